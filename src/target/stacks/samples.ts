import { hex } from '../../base/addr.js';
import type { ElfFile } from '../../elf/index.js';
import type { GuestNanos, Sample, SampledFrame } from '../../trace/index.js';
import { programName, type SampledFrames } from './frames.js';
import type { OtherCode } from './hart-stack.js';
import type { HartLook } from './look.js';

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
  /** What a hart is called; its number if left out. */
  readonly labelOf?: ((hart: number) => string) | undefined;
}

type FrameNames = Pick<SampledFrames, 'of' | 'awaited' | 'areNamed' | 'mark'>;

/** Where samples go: a trace's sink is one. */
interface SampleSink {
  event(event: Sample): void;
}

interface Taken {
  readonly look: HartLook;
  readonly hart: number;
  readonly time: GuestNanos;
}

/** So many samples, and for so many milliseconds, may wait for names. */
const MOST_UNNAMED = 1000;
const UNNAMED_MS = 1000;

/** Turns looks into samples. */
export class Samples {
  readonly counts = { samples: 0, idle: 0, otherMode: 0, incomplete: 0 };
  /** Samples by the program that ran; those in code of no program, or of any of several, are of none. */
  readonly ofProgram = new Map<ElfFile, number>();
  readonly #frames: FrameNames;
  readonly #sink: SampleSink;
  readonly #periodNs: number;
  readonly #want: SampleWishes;
  /** Harts that were seen to run the program. */
  readonly #began = new Set<number>();
  #taken: Taken[] = [];
  /** When the first of these came, by the host's clock in milliseconds. */
  #since = 0;

  constructor(frames: FrameNames, sink: SampleSink, periodMs: number, want: SampleWishes) {
    this.#frames = frames;
    this.#sink = sink;
    this.#periodNs = Math.round(periodMs * 1e6);
    this.#want = want;
  }

  /** Counts a sample, which {@link emit} names: names of new places take time, and nothing of the target. */
  take(look: HartLook, hart: number, time: GuestNanos): void {
    const { mode, idle } = this.#want;
    const isKernel = look.privilege !== 'user';
    if (look.isIdle && !idle) this.counts.idle++;
    else if (mode !== 'all' && isKernel !== (mode === 'kernel')) this.counts.otherMode++;
    else {
      this.counts.samples++;
      if (this.#hasLostCallers(look, hart)) this.counts.incomplete++;
      if (look.other === undefined) this.ofProgram.set(look.program, (this.ofProgram.get(look.program) ?? 0) + 1);
      if (this.#taken.length === 0) this.#since = performance.now();
      this.#taken.push({ look, hart, time });
    }
  }

  /** Before a hart runs the program for the first time, in firmware or a loader, no caller of it can be missing. */
  #hasLostCallers({ stack: { frames, end } }: HartLook, hart: number): boolean {
    if (frames.some(({ image }) => image !== undefined)) this.#began.add(hart);
    return !end.complete && this.#began.has(hart);
  }

  /** Emits what was taken. */
  emit(): void {
    this.#emit(this.#taken.splice(0));
  }

  /**
   * Emits what was taken up to the first place without a name. Names are found for many samples at once, because that
   * keeps the next one waiting.
   */
  emitNamed(): void {
    const taken = this.#taken;
    if (taken.length >= MOST_UNNAMED || (taken.length > 0 && performance.now() - this.#since > UNNAMED_MS)) this.emit();
    const first = taken.findIndex(({ look }) => !this.#frames.areNamed(look.stack.frames));
    this.#emit(taken.splice(0, first < 0 ? taken.length : first));
  }

  #emit(taken: readonly Taken[]): void {
    for (const { look, hart, time } of taken) {
      const inner = this.#stackOf(look);
      const stack = [...(inner.length > 0 ? inner : [this.#frames.mark('[unknown]')]), ...this.#outermost(look, hart)];
      this.#sink.event({ type: 'sample', time, hart, stack, periodNs: this.#periodNs });
    }
  }

  #stackOf({ stack, firmware, other, isIdle, inKernel }: HartLook): SampledFrame[] {
    const frames = this.#frames;
    const kernel = inKernel && `[kernel${inKernel.call === undefined ? '' : `: ${inKernel.call}`}]`;
    const mark = isIdle ? '[idle]' : firmware === undefined ? kernel : '[firmware]';
    const innermost = mark === undefined ? [] : [frames.mark(mark)];
    if (other !== undefined) return [...innermost, frames.mark(otherText(other))];
    if (!this.#want.awaited) return [...innermost, ...frames.of(stack.frames)];
    return [...innermost, ...(frames.awaited(stack.frames) ?? [frames.mark('[outside of polls]')])];
  }

  #outermost({ root }: HartLook, hart: number): SampledFrame[] {
    const { by, labelOf } = this.#want;
    if (by === 'hart') return [this.#frames.mark(labelOf?.(hart) ?? `hart ${hart}`)];
    if (by === 'process') return [this.#frames.mark(root === undefined ? 'no paging' : `process ${hex(root)}`)];
    return [];
  }
}

/** `[another program]`, or `[sh or echo]` where both have the code. */
function otherText({ oneOf }: OtherCode): string {
  return oneOf.length === 0 ? '[another program]' : `[${oneOf.map(programName).join(' or ')}]`;
}
