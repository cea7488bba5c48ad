import type { Architecture } from '../arch/index.js';
import { addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { madeOnce } from '../base/made-once.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { entriesOf, statOf, textOf } from '../base/proc.js';
import { hartName, verifyLoadedIn } from '../target/index.js';
import { type HartLook, LoadedCode } from '../target/stacks/index.js';
import { type Frame, StackWindow } from '../target/unwind/index.js';
import type { ClockInfo, GuestNanos } from '../trace/index.js';
import { type Perf, startPerf } from './perf.js';
import { type PerfSample, PerfStream } from './perf-stream.js';
import { begun, type ProfileFacts, type ProfileOptions } from './profile.js';
import type { Sampled } from './sampling.js';

/** Nanoseconds from the first sample on. */
const clock: ClockInfo = { name: 'perf', resolutionNs: 1, guest: false };
/** So many samples wait for names, because finding new ones may take longer than perf can wait. */
const mostUnnamed = 20_000;
/** A period in which nothing is sampled, in milliseconds. */
const triedMs = 1000;
/** USER_HZ: of the times in /proc/PID/stat. */
const ticks = 100;
/** In less time of processors, in seconds, there are too few ticks to tell the rate. */
const leastSeconds = 0.2;

/**
 * Samples a process of this machine, which runs on meanwhile.
 * @throws RsptraceError `ARCH_UNSUPPORTED`, `LOAD_ADDRESS_UNKNOWN`, `RUN_NOT_FOUND`, `SAMPLES_UNAVAILABLE`,
 * `INPUT_DAMAGED`
 */
export async function profileByPerf(options: ProfileOptions<number>): Promise<ProfileFacts> {
  const { session: pid, arch, want, mostSamples } = options;
  const registers = arch.linux?.perfRegisters;
  if (registers === undefined) throw unknownRegisters(arch);
  verifyLoadedIn(pid, options.elf);
  const code = await LoadedCode.find(options);
  const threads = entriesOf(`/proc/${pid}/task`).map((tid) => threadOf(pid, Number(tid)));
  const { numbers, samples, facts } = begun(options, threads, clock, true);
  const lookAt = looker(code, arch, registers, want.depth);
  let [first, looks]: [number | undefined, number] = [undefined, 0];
  const stream = new PerfStream();
  const perf = await startPerf(pid, options.periodMs);
  const ran = await untilEnd(perf, stream, options, async (sample) => {
    // The children of the process are sampled, too.
    if (sample.pid !== pid || samples.counts.samples >= mostSamples) return true;
    first ??= sample.time;
    looks++;
    const look = lookAt(sample);
    samples.take(look, numbers.number(look.hart.id), Math.max(0, sample.time - first) as GuestNanos);
    if (look.stack.end.reason === 'outside-code') await code.strayed();
    if (looks % mostUnnamed === 0) samples.emit();
    return samples.counts.samples < mostSamples;
  });
  if (!stream.isSampling && ran.end === 'perf-ended') throw perf.refused();
  samples.emit();
  options.sink.flush();
  const hadHz = ran.seconds < leastSeconds ? undefined : looks / ran.seconds;
  const { lost, kernelLeftOut } = stream;
  return {
    ...{ end: ran.end, ranMs: ran.ms, stoodMs: 0, ...facts(), looks, hadHz },
    ...{ lost, kernelLeftOut, missingLibraries: code.missing, gaveUp: perf.gaveUp() },
  };
}

/**
 * Why perf would sample nothing of a process; undefined where it would. It is tried, because settings of the kernel, of
 * containers and of security modules decide it together.
 */
export async function whyNoPerf(pid: number, arch: Architecture): Promise<RsptraceError | undefined> {
  if (arch.linux?.perfRegisters === undefined) return unknownRegisters(arch);
  try {
    const perf = await startPerf(pid, triedMs);
    const stream = new PerfStream();
    perf.end();
    for await (const bytes of perf.output) for (const _ of stream.push(bytes));
    return stream.isSampling ? undefined : perf.refused();
  } catch (thrown) {
    if (thrown instanceof RsptraceError) return thrown;
    throw thrown;
  }
}

function unknownRegisters(arch: Architecture): RsptraceError {
  return new RsptraceError('ARCH_UNSUPPORTED', `perf's registers on ${arch.name} are not known`);
}

/** Takes samples as they come, until `take` says that it was enough; with the processors' time that they are of. */
async function untilEnd(
  perf: Perf,
  stream: PerfStream,
  { session: pid, durationMs, signal }: ProfileOptions<number>,
  take: (sample: PerfSample) => Promise<boolean>,
): Promise<{ readonly end: Sampled['end']; readonly ms: number; readonly seconds: number }> {
  let end: Sampled['end'] | undefined;
  const stop = (why: Sampled['end']): void => {
    end ??= why;
    perf.end();
  };
  const interrupted = (): void => stop('interrupted');
  signal.addEventListener('abort', interrupted);
  if (signal.aborted) interrupted();
  let timer: NodeJS.Timeout | undefined;
  let began = { at: performance.now(), seconds: 0 };
  let seconds = 0;
  try {
    for await (const bytes of perf.output) {
      for (const sample of stream.push(bytes)) if (!(await take(sample))) stop('samples');
      if (end !== 'samples') seconds = secondsOf(pid) ?? seconds;
      if (timer !== undefined || !stream.isSampling) continue;
      began = { at: performance.now(), seconds };
      timer = setTimeout(() => stop('duration'), durationMs);
    }
    for (const sample of stream.rest()) await take(sample);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', interrupted);
    perf.end();
  }
  end ??= secondsOf(pid) === undefined ? 'target-ended' : 'perf-ended';
  return { end, ms: performance.now() - began.at, seconds: seconds - began.seconds };
}

/** Makes of a sample what a look at its thread would be, if the process stood. */
function looker(code: LoadedCode, arch: Architecture, names: readonly string[], depth: number) {
  const calls = new KernelCalls();
  return ({ pid, tid, inKernel, chain, registers, stack: bytes }: PerfSample): HartLook => {
    const named = new Map([...registers].map(([number, value]) => [names[number], value]));
    const reader: RegisterReader = { register: (name) => named.get(name) };
    const window = new StackWindow();
    const sp = named.get(arch.sp);
    if (sp !== undefined) window.add(addr(sp), bytes);
    const { frames, end } = code.stacks.walk(reader, window, { depth });
    return {
      hart: { id: idOf(pid, tid) },
      pc: named.get(arch.pc),
      stack: { frames: frames.map(withoutRegisters), end },
      ...{ firmware: undefined, other: undefined, root: undefined, program: code.stacks.elf, isIdle: false },
      privilege: inKernel ? 'kernel' : 'user',
      inKernel: inKernel ? { call: calls.of(chain) } : undefined,
    };
  };
}

/** Many frames wait for names, which come of their addresses alone. */
function withoutRegisters(frame: Frame): Frame {
  return { ...frame, registers: { register: () => undefined, numbered: () => undefined } };
}

function threadOf(pid: number, tid: number) {
  const id = idOf(pid, tid);
  return { id, name: hartName({ id, name: textOf(`/proc/${pid}/task/${tid}/comm`).trim() }, true) };
}

/** As a debug server calls it. */
function idOf(pid: number, tid: number): string {
  return `p${pid.toString(16)}.${tid.toString(16)}`;
}

/** How long the threads of a process have had a processor; undefined if it has ended. */
function secondsOf(pid: number): number | undefined {
  const [state, ...fields] = statOf(pid);
  return state === undefined || /[ZX]/.test(state) ? undefined : (Number(fields[10]) + Number(fields[11])) / ticks;
}

/** A function of the kernel that begins a system call. */
interface CallCode {
  readonly name: string;
  readonly low: bigint;
  /** Where the next symbol begins. */
  readonly high: bigint;
}

/** `__x64_sys_read`, and what that may end with a jump to: `ksys_read`, `__sys_sendto`. */
const call = /^([0-9a-f]{16}) [tT] (?:k|__(?:[a-z0-9]+_)?)sys_(\w+)\n(?=([0-9a-f]{16}))/gm;

/** Which system call the kernel is in, by its symbols. Few users may see where these are. */
export class KernelCalls {
  readonly #symbols: () => string;
  #calls: readonly CallCode[] | undefined;
  /** By return addresses; '' for one that is in none of them. */
  readonly #known = new Map<bigint, string>();

  constructor(symbols = () => textOf('/proc/kallsyms')) {
    this.#symbols = symbols;
  }

  /** `chain`: where the kernel is, and return addresses. */
  of(chain: readonly bigint[]): string | undefined {
    return chain.map((at) => madeOnce(this.#known, at, () => this.#at(at))).find((name) => name !== '');
  }

  #at(address: bigint): string {
    this.#calls ??= [...this.#symbols().matchAll(call)].map(([, low, name = '', high]) => {
      return { name, low: BigInt(`0x${low}`), high: BigInt(`0x${high}`) };
    });
    return this.#calls.find(({ low, high }) => address >= low && address < high)?.name ?? '';
  }
}
