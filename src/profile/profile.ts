import { basename } from 'node:path';
import { hex } from '../base/addr.js';
import { findClock } from '../facts/index.js';
import { findFutures } from '../futures/index.js';
import { HartNumbers, hartName } from '../recorder/index.js';
import type { ClockInfo, GuestNanos, SampledFrame, TraceSink } from '../trace/index.js';
import { SampledFrames } from './frames.js';
import { LoadedCode, type LoadedCodeOptions } from './loaded-code.js';
import { type HartLook, Looks } from './look.js';
import { type Sampled, sampling } from './sampling.js';

/** The program is as it is loaded. */
export interface ProfileOptions extends LoadedCodeOptions {
  readonly sink: TraceSink;
  readonly periodMs: number;
  readonly durationMs: number;
  /** It ends with the look that brings so many. */
  readonly mostSamples: number;
  readonly signal: AbortSignal;
  readonly want: SampleWishes;
}

/** Which samples there are to be, and what their stacks are made of. */
export interface SampleWishes {
  /** The most frames. */
  readonly depth: number;
  /** Only of the kernel, or only of programs. */
  readonly mode: 'kernel' | 'user' | 'all';
  /** Harts that wait for an interrupt, and threads that wait in a system call, are samples too. */
  readonly idle: boolean;
  /** By what is awaited: without the executor's frames. Samples outside of all polls are one frame. */
  readonly awaited: boolean;
  /** The outermost frame. */
  readonly by: 'hart' | 'process' | undefined;
}

/** How a profile went. */
export interface ProfileFacts extends Sampled {
  readonly samples: number;
  /** How often the target was stopped. */
  readonly looks: number;
  /** Harts that were not sampled, because they were idle, or in the mode that was not asked for. */
  readonly idle: number;
  readonly otherMode: number;
  /** Samples whose stack could not be walked to its end. */
  readonly incomplete: number;
  readonly clock: ClockInfo;
  readonly missingLibraries: readonly { readonly name: string; readonly why: string }[];
}

/**
 * Samples a target that stands; it stands when this returns, if it has not ended.
 * @throws RsptraceError `ARCH_UNSUPPORTED`, `RSP_*`
 */
export async function profile(options: ProfileOptions): Promise<ProfileFacts> {
  const { session, elf, arch, debug, sink, want } = options;
  await session.passSignals();
  const code = await LoadedCode.find(options);
  const looks = new Looks(session, arch, code, want.depth);
  const futures = want.awaited && debug ? findFutures(debug) : undefined;
  const samples = new Samples(new SampledFrames(elf, debug, futures), sink, options.periodMs, want);
  const harts = (await session.harts()).map(({ id, name }) => ({ id, name: hartName(id, name) }));
  const began = performance.now();
  const clock = await findClock(session, arch, () => (performance.now() - began) * 1e6);
  const numbers = new HartNumbers(harts);
  sink.begin({
    program: basename(elf.path),
    buildId: elf.buildId,
    arch: arch.name,
    clock: clock.info,
    harts: numbers.all(),
  });
  numbers.onNew = (hart) => sink.hart(hart);
  let last = 0;
  let stops = 0;
  const sampled = await sampling({
    ...options,
    look: async () => {
      const batch = session.batch();
      const time = clock.request(batch);
      await batch.send();
      const all = await looks.all();
      last = Math.max(last, time());
      for (const look of all) samples.add(look, numbers.number(look.hart.id), last as GuestNanos);
      stops++;
      sink.flush();
      return samples.counts.samples < options.mostSamples;
    },
  });
  return { ...sampled, ...samples.counts, looks: stops, clock: clock.info, missingLibraries: code.missing };
}

/** Turns looks into samples. */
class Samples {
  readonly counts = { samples: 0, idle: 0, otherMode: 0, incomplete: 0 };
  readonly #frames: SampledFrames;
  readonly #sink: TraceSink;
  readonly #periodNs: number;
  readonly #want: SampleWishes;

  constructor(frames: SampledFrames, sink: TraceSink, periodMs: number, want: SampleWishes) {
    this.#frames = frames;
    this.#sink = sink;
    this.#periodNs = Math.round(periodMs * 1e6);
    this.#want = want;
  }

  add(look: HartLook, hart: number, time: GuestNanos): void {
    const { mode, idle } = this.#want;
    const isKernel = look.privilege !== 'user';
    if (look.isIdle && !idle) this.counts.idle++;
    else if (mode !== 'all' && isKernel !== (mode === 'kernel')) this.counts.otherMode++;
    else {
      this.counts.samples++;
      if (!look.stack.end.complete) this.counts.incomplete++;
      const inner = this.#stackOf(look);
      const stack = [...(inner.length > 0 ? inner : [this.#frames.mark('[unknown]')]), ...this.#outermost(look, hart)];
      this.#sink.event({ type: 'sample', time, hart, stack, periodNs: this.#periodNs });
    }
  }

  #stackOf({ stack, firmware, other, isIdle }: HartLook): SampledFrame[] {
    const frames = this.#frames;
    const innermost = isIdle ? [frames.mark('[idle]')] : firmware === undefined ? [] : [frames.mark('[firmware]')];
    if (other !== undefined) return [...innermost, frames.mark('[another program]')];
    if (!this.#want.awaited) return [...innermost, ...frames.of(stack.frames)];
    return [...innermost, ...(frames.awaited(stack.frames) ?? [frames.mark('[outside of polls]')])];
  }

  #outermost({ root }: HartLook, hart: number): SampledFrame[] {
    const { by } = this.#want;
    if (by === 'hart') return [this.#frames.mark(`hart ${hart}`)];
    if (by === 'process') return [this.#frames.mark(root === undefined ? 'no paging' : `process ${hex(root)}`)];
    return [];
  }
}
