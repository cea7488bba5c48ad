import { basename } from 'node:path';
import { findFutures } from '../async/futures/index.js';
import { findClock } from '../clock/index.js';
import type { ElfFile } from '../elf/index.js';
import { HartNumbers } from '../record/index.js';
import { isProcess, type Session } from '../rsp/index.js';
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
export interface ProfileOptions<From = Session> extends Omit<LoadedCodeOptions, 'others' | 'session'> {
  readonly session: From;
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
  /** Samples a second, of a hart or thread that runs; undefined if it ran too short to say. */
  readonly hadHz: number | undefined;
  /** Samples that were taken, but not kept up with. */
  readonly lost: number;
  /** Only programs could be sampled. */
  readonly kernelLeftOut: boolean;
  /** The status with which perf gave up; undefined if it has not. */
  readonly gaveUp?: number | undefined;
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
  const { session, arch, sink, want, programs = [] } = options;
  await session.passSignals();
  const others = OtherPrograms.of({ arch, others: programs });
  const code = await LoadedCode.find({ ...options, others });
  const looks = new Looks(session, arch, code, { depth: want.depth, walksIdle: want.idle });
  const process = isProcess(session.features);
  const harts = (await session.harts()).map((hart) => ({ id: hart.id, name: hartName(hart, process) }));
  const clock = await findClock(session, arch, hostNanos(performance.now()));
  const { numbers, samples, facts } = begun(options, harts, clock.info, process);
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
  const hadHz = stops === 0 ? undefined : (1000 * stops) / sampled.ranMs;
  const missingLibraries = code.missing;
  return { ...sampled, ...facts(), looks: stops, hadHz, lost: 0, kernelLeftOut: false, missingLibraries };
}

/** Where samples of these harts go, by whatever they are taken. */
export function begun(
  { elf, arch, debug, sink, want, periodMs, programs = [] }: Omit<ProfileOptions<unknown>, 'session'>,
  harts: ConstructorParameters<typeof HartNumbers>[0],
  clock: ClockInfo,
  isProcess: boolean,
) {
  const all = [{ elf, debug }, ...programs];
  const numbers = new HartNumbers(harts, isProcess);
  const labels = new HartLabels();
  const wishes = { ...want, labelOf: (hart: number) => labels.of(hart) };
  const samples = new Samples(namesOf(all, want.awaited), sink, periodMs, wishes);
  const info: TraceInfo = {
    program: basename(elf.path),
    buildId: elf.buildId,
    arch: arch.name,
    clock,
    harts: numbers.all(),
    ...(isProcess ? { isProcess } : {}),
  };
  labels.begin(info);
  sink.begin(info);
  numbers.onNew = (hart) => {
    labels.hart(hart);
    sink.hart(hart);
  };
  const ofProgram = (elf: ElfFile): number => samples.ofProgram.get(elf) ?? 0;
  const facts = () => ({
    ...samples.counts,
    clock,
    programs: all.map((each) => ({ elf: each.elf, samples: ofProgram(each.elf) })),
    isProcess,
  });
  return { numbers, samples, facts };
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
