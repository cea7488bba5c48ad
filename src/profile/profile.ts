import { basename } from 'node:path';
import { findFutures } from '../async/futures/index.js';
import { findClock } from '../clock/index.js';
import type { ElfFile } from '../elf/index.js';
import { HartNumbers } from '../record/index.js';
import { isProcess } from '../rsp/index.js';
import { hartName } from '../target/index.js';
import {
  LoadedCode,
  type LoadedCodeOptions,
  Looks,
  type OtherProgram,
  OtherPrograms,
  SampledFrames,
  Samples,
  type SampleWishes,
} from '../target/stacks/index.js';
import { type ClockInfo, type GuestNanos, HartLabels, type TraceInfo, type TraceSink } from '../trace/index.js';
import { type Sampled, sampling } from './sampling.js';

/** The program is as it is loaded. */
interface ProfileOptions extends Omit<LoadedCodeOptions, 'others'> {
  readonly sink: TraceSink;
  readonly periodMs: number;
  readonly durationMs: number;
  /** It ends with the look that brings so many. */
  readonly mostSamples: number;
  readonly signal: AbortSignal;
  readonly want: SampleWishes;
  /** Further programs of a machine. */
  readonly programs?: readonly OtherProgram[];
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
  readonly isProcess: boolean;
  /** The program, and the further ones: how many samples are of each. */
  readonly programs: readonly { readonly elf: ElfFile; readonly samples: number }[];
  readonly missingLibraries: readonly { readonly name: string; readonly why: string }[];
}

/**
 * Samples a target that stands; it stands when this returns, if it has not ended.
 * @throws RsptraceError `ARCH_UNSUPPORTED`, `RSP_*`
 */
export async function profile(options: ProfileOptions): Promise<ProfileFacts> {
  const { session, elf, arch, debug, sink, want, programs = [] } = options;
  await session.passSignals();
  const others = OtherPrograms.of({ arch, others: programs });
  const code = await LoadedCode.find({ ...options, others });
  const looks = new Looks(session, arch, code, { depth: want.depth, walksIdle: want.idle });
  const all = [{ elf, debug }, ...programs];
  const process = isProcess(session.features);
  const harts = (await session.harts()).map((hart) => ({ id: hart.id, name: hartName(hart, process) }));
  const clock = await findClock(session, arch, hostNanos(performance.now()));
  const numbers = new HartNumbers(harts, process);
  const labels = new HartLabels();
  const wishes = { ...want, labelOf: (hart: number) => labels.of(hart) };
  const samples = new Samples(namesOf(all, want.awaited), sink, options.periodMs, wishes);
  const info: TraceInfo = {
    program: basename(elf.path),
    buildId: elf.buildId,
    arch: arch.name,
    clock: clock.info,
    harts: numbers.all(),
    ...(process ? { isProcess: true } : {}),
  };
  labels.begin(info);
  sink.begin(info);
  numbers.onNew = (hart) => {
    labels.hart(hart);
    sink.hart(hart);
  };
  let last = 0;
  let stops = 0;
  const sampled = await sampling({
    ...options,
    look: async () => {
      let time = (): number => last;
      const all = await looks.all((batch) => {
        time = clock.request(batch);
      });
      last = Math.max(last, time());
      for (const look of all) samples.take(look, numbers.number(look.hart.id), last as GuestNanos);
      stops++;
      return samples.counts.samples < options.mostSamples;
    },
    interrupting: () => looks.interrupting(),
    meanwhile: () => {
      samples.emitNamed();
      sink.flush();
    },
  });
  samples.emit();
  sink.flush();
  return {
    ...sampled,
    ...samples.counts,
    looks: stops,
    clock: clock.info,
    programs: all.map((each) => ({ elf: each.elf, samples: samples.ofProgram.get(each.elf) ?? 0 })),
    missingLibraries: code.missing,
    isProcess: process,
  };
}

/** The host's clock from then on, in nanoseconds. */
function hostNanos(began: number): () => number {
  return () => (performance.now() - began) * 1e6;
}

/** Names of frames in these programs, the first of which is that of the target. */
function namesOf(programs: readonly OtherProgram[], awaited: boolean): SampledFrames {
  return new SampledFrames(
    programs.map((each) => ({ ...each, futures: awaited && each.debug ? findFutures(each.debug) : undefined })),
  );
}
