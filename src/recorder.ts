import { basename } from 'node:path';
import { type Architecture, architectureOf } from './arch/index.js';
import { type Addr, addOffset, hex } from './base/addr.js';
import { messageOf, RsptraceError } from './base/errors.js';
import { type Logger, silent } from './base/logger.js';
import { type DebugFileOptions, DebugInfo, ElfFile, type FutureSet, findFutures } from './dwarf/index.js';
import {
  Backtraces,
  type CallKind,
  CallTracer,
  type ClockName,
  type ClockReader,
  counterScale,
  type EngineChoice,
  type EngineName,
  type EnginePlanOptions,
  Engines,
  EventOutput,
  type FunctionOptions,
  type FunctionProbes,
  FunctionTracer,
  findClock,
  loadedElf,
  mayInline,
  mergePlans,
  type PollProbes,
  PollTracer,
  type ProbeSpec,
  planFunction,
  planPoll,
  probesByKind,
  resolveFunctions,
  resolvePolls,
  type ScratchSources,
  StopEngine,
  type TimeScale,
  verifyArchitecture,
  verifyCode,
} from './probes/index.js';
import { isRefusal, pagingIsFinal } from './probes/scratch/index.js';
import type { Session, StopReply } from './rsp/index.js';
import {
  type ClockInfo,
  type Gap,
  type GuestNanos,
  type HartInfo,
  Threshold,
  type TraceEvent,
  type TraceSink,
} from './trace/index.js';
import type { Hooked } from './unwind/index.js';

/** A program, read and understood, with its probes resolved: all that can be known before the target is touched. */
export interface Program {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** Undefined for a program without, whose functions are known by their symbols. */
  readonly debug: DebugInfo | undefined;
  /** Undefined when no polls are traced. */
  readonly polls: { readonly futures: FutureSet; readonly probes: PollProbes } | undefined;
  /** Undefined when no functions are traced. */
  readonly functions: FunctionProbes | undefined;
  readonly specs: readonly ProbeSpec[];
}

/**
 * Reads an ELF (and its debug file, where it has one) and resolves probes against it.
 * @throws RsptraceError `ELF_*`, `DWARF_*`, `DEBUG_FILE_MISMATCH`, `ARCH_UNSUPPORTED`, `PROBE_*`
 */
export async function prepare(
  path: string,
  specs: readonly ProbeSpec[],
  logger: Logger = silent,
  debugFiles: DebugFileOptions = {},
): Promise<Program> {
  return understand(await ElfFile.open(path, { ...debugFiles, logger }), specs, logger);
}

async function understand(elf: ElfFile, specs: readonly ProbeSpec[], logger: Logger): Promise<Program> {
  const arch = architectureOf(elf.machine);
  if (!arch) {
    throw new RsptraceError(
      'ARCH_UNSUPPORTED',
      `${elf.path} is for an architecture (e_machine ${elf.machine}) that rsptrace does not know`,
      {
        hint: 'riscv64 (243) and x86_64 (62) are supported',
      },
    );
  }
  const wanted = probesByKind(specs);
  const debug = wanted.poll || elf.has('.debug_info') ? DebugInfo.load(elf, { logger }) : undefined;
  const futures = wanted.poll && debug && findFutures(debug);
  const polls = futures && wanted.poll && { futures, probes: resolvePolls(futures, arch, wanted.poll) };
  await arch.prepare();
  const functions = wanted.fn && resolveFunctions(elf, debug, arch, wanted.fn);
  for (const probe of functions?.unmatched ?? []) logger.warn({ probe }, 'a probe that matches no function');
  return { elf, arch, debug, polls, functions, specs };
}

/** The program with the addresses that it has in the target: a position-independent one is read once more. */
async function loadedProgram(program: Program, session: Session, logger: Logger): Promise<Program> {
  const elf = await loadedElf(session, program.elf);
  if (elf === program.elf) return program;
  logger.info({ bias: hex(elf.loadBias) }, 'the program is position-independent');
  return understand(elf, program.specs, logger);
}

/** Every address where a probe goes, each once, in ascending order. */
function addressesOf({ polls, functions }: Program): Addr[] {
  const all = new Set([...(polls?.probes.probes ?? []), ...(functions?.probes ?? [])].map(({ address }) => address));
  return [...all].sort((a, b) => (a < b ? -1 : 1));
}

/** After an exec: whether the ELF is what runs, loaded as it was before. */
async function isLoadedAlike(
  session: Session,
  linked: ElfFile,
  loaded: ElfFile,
  probes: readonly Addr[],
): Promise<boolean> {
  try {
    const now = await loadedElf(session, linked);
    return (
      now.loadBias === loaded.loadBias && (await verifyCode(session, loaded, probes)).absent.length < probes.length
    );
  } catch (error) {
    if (error instanceof RsptraceError && /^(LOAD_ADDRESS_UNKNOWN|ELF_MISMATCH)$/.test(error.code)) return false;
    throw error;
  }
}

export interface RecordOptions {
  readonly session: Session;
  readonly program: Program;
  readonly sink: TraceSink;
  readonly clock?: ClockName;
  /** Ticks a second of riscv's `time`; 10 MHz on QEMU's virt machine. */
  readonly timebaseHz?: number;
  /** Stop after this long, in milliseconds of the host. */
  readonly durationMs?: number;
  /** Stop at the first hit at which this many events have been recorded. */
  readonly maxEvents?: number;
  /** Stop when the program comes to this address, counted as its ELF counts. */
  readonly until?: Addr;
  /** Stop when this is aborted. */
  readonly signal?: AbortSignal;
  readonly hardware?: boolean;
  /** `auto` (the default): without stops where that can be done. */
  readonly engine?: EngineName;
  /** Where trampolines and the ring may lie. */
  readonly scratch?: ScratchSources;
  /** Record who polls: the stack of so many frames at every poll's begin. */
  readonly stackDepth?: number;
  readonly functions?: FunctionOptions;
  /** Leave out calls of functions that last less, in guest nanoseconds. */
  readonly thresholdNs?: number;
  /**
   * Connects again after the link has broken; rejects when the target is not there any more. Then the probes are planted again,
   * and the trace has a gap. Without it, a link that breaks ends the recording.
   */
  readonly reconnect?: () => Promise<Session>;
  readonly logger?: Logger;
  /** Called once, when the guest is about to run. */
  readonly onStart?: (progress: () => Progress) => void;
}

export interface Progress {
  readonly events: number;
  readonly stops: number;
  /** Events that were read out of the target's memory, without a stop. */
  readonly records: number;
  /** Guest nanoseconds from the first event to the last. */
  readonly guestNs: number;
}

export interface Recording extends Progress {
  readonly end: 'guest-ended' | 'until' | 'duration' | 'max-events' | 'interrupted' | 'failed';
  readonly clock: ClockInfo;
  /** How the guest ended, where the stub said so. */
  readonly stop: StopReply | undefined;
  /** What went wrong, when `end` is `failed`. What came before is in the trace. */
  readonly error: RsptraceError | undefined;
  readonly hostMs: number;
  /** What carried each probe out. */
  readonly engines: readonly EngineChoice[];
  /** Where the trampolines lay; undefined where every probe stopped the target. */
  readonly scratch: string | undefined;
  /** Events known to be missing from the trace. */
  readonly missing: number;
  /** The guest ended with a ring that could only be read at stops: what was in it is lost. */
  readonly tailLost: boolean;
}

/** What is known of the engines before the target is: for `record`, and for a look beforehand. */
export function enginePlan(
  program: Program,
  wanted: EngineName = 'auto',
  stackDepth?: number,
  values = true,
): EnginePlanOptions {
  const { arch, elf, polls, functions } = program;
  const general = generalRegisters(arch);
  return {
    arch,
    wanted,
    plans: mergePlans([
      ...(polls?.probes.probes ?? []).map((probe) => planPoll(probe, arch.results, mayInline, stackDepth)),
      ...(functions?.probes ?? []).map((probe) => planFunction(probe, values, general)),
    ]),
    bytesAt: (address, length) => elf.bytesAt(address, length),
    harts: 1,
  };
}

/** Numbers the words by which trampolines tell harts apart, in the order in which they come; a word too many is no hart's own. */
function hartWords(harts: number): (word: bigint) => number {
  const known = new Map<bigint, number>();
  return (word) => {
    if (harts === 1) return 0;
    const number = known.get(word);
    if (number !== undefined) return number;
    if (known.size === harts) return 0;
    known.set(word, known.size);
    return known.size - 1;
  };
}

/** Registers that hold integers, those that trampolines can record. */
function generalRegisters(arch: Architecture): ReadonlySet<string> {
  const numbers = Array.from({ length: arch.name === 'riscv64' ? 32 : 16 }, (_, number) => arch.dwarfRegister(number));
  return new Set(numbers.filter((name) => name !== undefined));
}

/** Of QEMU's `virt` machine. */
const defaultTimebaseHz = 10_000_000;

/** How often buffered events reach the file, in milliseconds: what a SIGKILL may cost. */
const flushMs = 200;

/**
 * The whole main job. Checks that the target runs this program, plants the probes, lets the guest run, and writes every event
 * to the sink until the guest ends or the options say stop; then takes every breakpoint out and lets the guest run on.
 *
 * @returns how it went; a wire that breaks in the middle is told in `error`, with all that was recorded kept
 * @throws RsptraceError for what is wrong before the guest runs: `ARCH_MISMATCH`, `ELF_MISMATCH`, `LOAD_ADDRESS_UNKNOWN`, `RSP_*`
 */
export async function record(options: RecordOptions): Promise<Recording> {
  const { sink, logger = silent } = options;
  let { session } = options;
  const started = performance.now();
  verifyArchitecture(session, options.program.arch);
  const program = await loadedProgram(options.program, session, logger);
  const { arch, elf, debug, polls, functions } = program;
  const addresses = addressesOf(program);
  const { absent } = await verifyCode(session, elf, addresses);
  if (absent.length > 0) logger.info({ probes: absent.length }, 'code not loaded yet: these probes wait for it');

  const harts = new HartNumbers((await session.harts()).map(({ id, name }) => ({ id, name: hartName(id, name) })));
  const counting = new CountingSink(sink, harts);
  const filtered: TraceSink = options.thresholdNs ? new Threshold(counting, options.thresholdNs) : counting;
  const output = new EventOutput(filtered);
  const kinds: CallKind[] = [];
  if (polls && debug) {
    const { stackDepth: depth } = options;
    const hooked: Hooked = (returnAddress) => engines.hooked(returnAddress);
    const backtraces = depth ? new Backtraces(elf, arch, debug, { depth, hooked }) : undefined;
    kinds.push(new PollTracer(arch, polls.futures, polls.probes, output, backtraces));
  }
  if (functions) kinds.push(new FunctionTracer(functions, output, options.functions));
  const tracer = new CallTracer(arch, output, kinds);
  const nanosPerTick = 1e9 / (options.timebaseHz ?? defaultTimebaseHz);
  const timeScale = async (at: Addr): Promise<TimeScale> => {
    const calibration = arch.probeCode?.calibration;
    if (!calibration || !engine.clock) return (ticks) => Math.round(ticks * nanosPerTick);
    return counterScale(session, arch, calibration, engine.clock, at);
  };
  const { hidden } = options.scratch ?? {};
  // A machine that we started runs its kernel from the first instruction: it has not set up its last page table yet.
  const settlesAt = hidden && !isRefusal(hidden) ? pagingIsFinal(elf) : undefined;
  const engines: Engines = new Engines({
    settles: settlesAt !== undefined,
    session,
    tracer,
    logger,
    // Over another connection nobody would know of what was written over the first.
    ...enginePlan(program, options.reconnect ? 'stop' : options.engine, options.stackDepth, options.functions?.values),
    scratch: options.scratch ?? {},
    elf,
    timeScale: (scratch) => timeScale(scratch.code.address),
    harts: harts.all().length,
    hartNumber: hartWords(harts.all().length),
  });
  // What engines of earlier connections have done.
  const earlier = { stops: 0, ranNs: 0 };
  const running = (): number => earlier.ranNs + engine.runningTime();
  const clockOf = (of: Session): Promise<ClockReader> =>
    findClock(of, arch.name, running, options.clock, options.timebaseHz);
  const engineFor = (of: Session, clock: () => Promise<ClockReader>): StopEngine =>
    new StopEngine({
      session: of,
      arch,
      tracer,
      logger,
      ...(options.hardware === undefined ? {} : { hardware: options.hardware }),
      code: (address, length) => elf.bytesAt(address, length),
      hartNumber: (id) => harts.number(id),
      isSameProgram: () => isLoadedAlike(of, options.program.elf, elf, addresses),
      onFirstHit: () => engines.arrive(engine, (thrown) => failed(thrown)),
      onStop: () => engines.onStop(),
      findClock: clock,
    });
  const firstClock = async (): Promise<ClockReader> => {
    const clock = await clockOf(session);
    begin(clock.info);
    return clock;
  };
  let engine = engineFor(session, firstClock);
  const begin = (clock: ClockInfo): void =>
    filtered.begin({ program: basename(elf.path), buildId: elf.buildId, arch: arch.name, clock, harts: harts.all() });
  await session.passSignals();
  await engine.arm(addresses);

  const stopping = new AbortController();
  let why: Recording['end'] = 'guest-ended';
  let error: RsptraceError | undefined;
  const stop = (reason: Recording['end']): void => {
    if (stopping.signal.aborted) return;
    why = reason;
    stopping.abort();
    // A wire that breaks here breaks `run` too, which tells it.
    engine.stop().catch((thrown: unknown) => logger.debug({ error: String(thrown) }, 'could not interrupt'));
  };
  const failed = (thrown: unknown): void => {
    error ??= toError(thrown);
    stop('failed');
    why = 'failed';
  };
  const { maxEvents = Number.POSITIVE_INFINITY } = options;
  counting.onEvent = (count) => {
    if (count < maxEvents) return;
    stop('max-events');
    engines.enough();
  };
  const onAbort = (): void => stop('interrupted');
  options.signal?.addEventListener('abort', onAbort);
  if (options.signal?.aborted) onAbort();
  const timer = options.durationMs === undefined ? undefined : setTimeout(stop, options.durationMs, 'duration');
  const flusher = setInterval(() => {
    try {
      filtered.flush();
    } catch (thrown) {
      failed(thrown);
    }
  }, flushMs);
  const progress = (): Progress => ({
    events: counting.count,
    stops: earlier.stops + engine.stops,
    records: engines.records,
    guestNs: counting.span,
  });
  const until = options.until && addOffset(options.until, elf.loadBias);
  if (until !== undefined) await engine.pause(until, () => stop('until'));
  if (settlesAt !== undefined) await engine.pause(settlesAt, () => engines.settle());
  options.onStart?.(progress);

  /** Goes on at the target that was lost; undefined when it is not there any more. */
  const goOn = async (reconnect: () => Promise<Session>): Promise<StopEngine | undefined> => {
    tracer.finish();
    await leave(session, logger);
    earlier.stops += engine.stops;
    earlier.ranNs += engine.runningTime();
    const known = engine.clock;
    try {
      session = await reconnect();
    } catch (thrown) {
      logger.info({ error: messageOf(thrown) }, 'the target is not there any more');
      return undefined;
    }
    verifyArchitecture(session, arch);
    await verifyCode(session, elf, addresses);
    const clock = known && (await clockOf(session));
    if (clock) counting.event(await gapUntilNow(session, clock, known, output.time));
    const next = engineFor(session, clock ? async () => clock : firstClock);
    await next.arm(addresses);
    if (until !== undefined) await next.pause(until, () => stop('until'));
    return next;
  };

  let ended: StopReply | undefined;
  try {
    for (let eventsBefore = -1; ; eventsBefore = counting.count) {
      const run = await engine.run().catch((thrown: unknown) => ({ kind: 'broken', thrown }) as const);
      if (run.kind === 'guest-ended') ended = run.stop;
      const broken = run.kind === 'broken' ? isLinkError(run.thrown) : ended?.kind === 'gone';
      const wanted = options.reconnect !== undefined && !stopping.signal.aborted && counting.count > eventsBefore;
      const next = broken && wanted && options.reconnect ? await goOn(options.reconnect) : undefined;
      if (next === undefined && run.kind === 'broken') throw run.thrown;
      if (next === undefined) break;
      engine = next;
      ended = undefined;
      if (stopping.signal.aborted) break;
    }
  } catch (thrown) {
    failed(thrown);
  } finally {
    clearTimeout(timer);
    clearInterval(flusher);
    options.signal?.removeEventListener('abort', onAbort);
  }
  let missing = 0;
  try {
    ({ missing } = await engines.leave(session.state.kind === 'idle'));
  } catch (thrown) {
    failed(thrown);
  }
  try {
    tracer.finish();
  } catch (thrown) {
    failed(thrown);
  }
  const clock = engine.clock?.info ?? { name: 'running-intervals', resolutionNs: 1, guest: false };
  try {
    if (!engine.clock) begin(clock);
    filtered.end();
  } catch (thrown) {
    failed(thrown);
  }
  await leave(session, logger);
  const hostMs = performance.now() - started;
  const { choices, scratch } = engines;
  const { tailLost } = engines;
  return { end: why, clock, stop: ended, error, hostMs, engines: choices, scratch, missing, tailLost, ...progress() };
}

/** Takes everything out of the target and lets it run on; where the wire is gone there is nothing left to do. */
async function leave(session: Session, logger: Logger): Promise<void> {
  try {
    await session.detach();
  } catch (thrown) {
    logger.warn({ error: String(thrown) }, 'could not detach: breakpoints may be left in the target');
  }
}

/** What a link that has broken in the middle throws. */
function isLinkError(thrown: unknown): boolean {
  return thrown instanceof RsptraceError && /^RSP_(?:CLOSED|TIMEOUT|PROTOCOL)$/.test(thrown.code);
}

/** The gap that ends now, by the clock that was used before. */
async function gapUntilNow(session: Session, clock: ClockReader, before: ClockReader, from: GuestNanos): Promise<Gap> {
  if (clock.info.name !== before.info.name) {
    throw new RsptraceError(
      'CLOCK_UNAVAILABLE',
      `after the link was broken the clock ${before.info.name} cannot be read any more`,
    );
  }
  const batch = session.batch();
  const time = clock.request(batch);
  await batch.send();
  const to = time() as GuestNanos;
  if (to < from) {
    throw new RsptraceError(
      'TARGET_RESTARTED',
      'the target was restarted while the link was broken: its clock went back',
    );
  }
  return { type: 'gap', from, to };
}

/** A defect of our own must not keep us from leaving the target as it was: it is told like any other error. */
function toError(thrown: unknown): RsptraceError {
  if (thrown instanceof RsptraceError) return thrown;
  return new RsptraceError('INTERNAL', messageOf(thrown), { hint: 'please report this defect', cause: thrown });
}

/** What the stub calls a hart, without what it is doing just now: QEMU says `CPU#0 [running]`. */
function hartName(id: string, name: string | undefined): string {
  return name?.replace(/\s*\[.*\]$/, '') || `hart ${id}`;
}

/** Numbers harts in the order in which the stub lists them; later ones as they come. */
class HartNumbers {
  readonly #numbers = new Map<string, number>();
  readonly #infos: HartInfo[] = [];
  onNew: (hart: HartInfo) => void = () => {};

  constructor(known: readonly { readonly id: string; readonly name: string }[]) {
    for (const { id, name } of known) this.#add(id, name);
  }

  all(): readonly HartInfo[] {
    return [...this.#infos];
  }

  number(id: string | undefined): number {
    if (id === undefined) return 0;
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    const added = this.#add(id, `hart ${id}`);
    this.onNew(added);
    return added.number;
  }

  #add(id: string, name: string): HartInfo {
    const hart = { number: this.#infos.length, name };
    this.#numbers.set(id, hart.number);
    this.#infos.push(hart);
    return hart;
  }
}

/** Counts what passes through, for progress and limits. */
class CountingSink implements TraceSink {
  readonly #sink: TraceSink;
  count = 0;
  span = 0;
  onEvent: (count: number) => void = () => {};
  #first: number | undefined;
  #begun = false;

  constructor(sink: TraceSink, harts: HartNumbers) {
    this.#sink = sink;
    harts.onNew = (hart) => {
      if (this.#begun) this.#sink.hart(hart);
    };
  }

  begin(...args: Parameters<TraceSink['begin']>): void {
    this.#begun = true;
    this.#sink.begin(...args);
  }

  event(event: TraceEvent): void {
    this.count++;
    const time = event.type === 'gap' ? event.to : event.time;
    this.#first ??= time;
    this.span = time - this.#first;
    this.#sink.event(event);
    this.onEvent(this.count);
  }

  hart(hart: HartInfo): void {
    this.#sink.hart(hart);
  }

  flush(): void {
    if (this.#begun) this.#sink.flush();
  }

  end(): void {
    this.#sink.end();
  }
}
