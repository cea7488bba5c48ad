import { basename } from 'node:path';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { messageOf, RsptraceError, toError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import {
  Backtraces,
  type CallKind,
  CallTracer,
  type ClockReader,
  changesItsCode,
  counterScale,
  Engines,
  EventOutput,
  FunctionTracer,
  findClock,
  loopsToStart,
  PollTracer,
  type RecordCounter,
  resolveWatches,
  SteadyClock,
  StopEngine,
  stackBytes,
  TallyTracer,
  ThreadsByStack,
  verifyArchitecture,
  verifyCode,
  verifyPlace,
  WatchEvents,
  Watchpoints,
  watchRef,
} from '../probes/index.js';
import { isRefusal, pagingIsFinal } from '../probes/scratch/index.js';
import { isProcess, neverRan, type Session, type StopReply } from '../rsp/index.js';
import { type ClockInfo, Threshold, type TraceSink } from '../trace/index.js';
import type { Hooked } from '../unwind/index.js';
import { gapUntilNow, isLinkError } from './broken-link.js';
import { CountingSink } from './counting-sink.js';
import { HartNumbers, HartWords, hartName } from './harts.js';
import { addressesOf, codeToVerify, enginePlan, isLoadedAlike, loadedProgram, planHarts } from './program.js';
import type { Progress, Recording, RecordOptions } from './recording.js';
import { Resets } from './resets.js';

/** Of QEMU's `virt` machine. */
const defaultTimebaseHz = 10_000_000;

/** How often buffered events reach the file, in milliseconds: what a SIGKILL may cost. */
const flushMs = 200;

/**
 * The whole main job. Checks that the target runs this program, plants the probes, lets the guest run, and writes every event
 * to the sink until the guest ends or the options say stop; then takes every breakpoint out and lets the guest run on.
 *
 * @returns how it went; a wire that breaks in the middle is told in `error`, with all that was recorded kept
 * @throws RsptraceError for what is wrong before the guest runs: `ARCH_MISMATCH`, `ELF_MISMATCH`, `KERNEL_MOVES`, `LOAD_ADDRESS_UNKNOWN`, `RSP_*`, `WATCH_*`
 */
export async function record(options: RecordOptions): Promise<Recording> {
  const { sink, logger = silent } = options;
  let { session } = options;
  const started = performance.now();
  verifyArchitecture(session, options.program.arch);
  // Over another connection nobody would know of what was written over the first.
  const wanted = options.reconnect ? 'stop' : options.engine;
  const program = await loadedProgram(options.program, session, logger);
  const { arch, elf, debug, polls, functions, tallies } = program;
  const until = options.until && addOffset(options.until, elf.loadBias);
  const plan = enginePlan(program, { ...options, wanted, values: options.functions?.values, until });
  const verified = codeToVerify(program);
  await verifyPlace(session, arch, elf);
  await verifyCode(session, elf, verified);

  const harts = new HartNumbers((await session.harts()).map(({ id, name }) => ({ id, name: hartName(id, name) })));
  const hartsPlan = planHarts(program, session, harts.all().length);
  const { hart } = hartsPlan;
  const words = new HartWords(harts.all().length);
  const counting = new CountingSink(sink, harts);
  const filtered: TraceSink = options.thresholdNs ? new Threshold(counting, options.thresholdNs) : counting;
  const output = new EventOutput(filtered);
  const kinds: CallKind[] = [];
  if (polls && debug) {
    const { stackDepth: depth } = options;
    const hooked: Hooked = (returnAddress) => engines.hooked(returnAddress);
    const backtraces = depth ? new Backtraces(elf, arch, debug, { depth, hooked }) : undefined;
    kinds.push(new PollTracer(polls.futures, polls.probes, output, backtraces));
  }
  const stackSize = stackBytes(elf);
  const threads = stackSize === undefined ? undefined : new ThreadsByStack(stackSize);
  const loops = loopsToStart(elf, arch);
  if (functions) kinds.push(new FunctionTracer(functions, output, { ...options.functions, threads, loops }));
  const tally = new TallyTracer(tallies?.probes ?? []);
  if (tallies) kinds.push(tally);
  const tracer = new CallTracer(arch, output, kinds, stackSize);
  const specs = program.watches.map(({ spec }) => spec);
  const places = await resolveWatches(specs, debug, session.memory());
  const watchEvents = new WatchEvents(elf, debug, output);
  const watchesOf = (of: Session): Watchpoints =>
    new Watchpoints({ session: of, arch, places, logger, tell: (access) => watchEvents.tell(access) });
  const nanosPerTick = 1e9 / (options.timebaseHz ?? defaultTimebaseHz);
  const counter = async (at: Addr): Promise<RecordCounter> => {
    const calibration = arch.probeCode?.calibration;
    const ahead = steady?.ahead ?? 0;
    if (!calibration || !engine.clock) {
      // Trampolines read the time CSR: on a hart that has none they would trap.
      if (!inProcess && engine.clock?.info.guest === false && (options.clock ?? 'auto') === 'auto') {
        throw new RsptraceError('COUNTER_UNKNOWN', 'the target has no time counter that can be read', {
          hint:
            options.nanosPerInstruction === undefined
              ? '--engine stop takes the time from the host'
              : 'under -icount sleep=off a stop before the first timer moves the clock to the end of time: leave sleep=off out',
        });
      }
      return { time: (ticks) => Math.round(ticks * nanosPerTick) + ahead, nanosPerTick };
    }
    return counterScale(session, arch, calibration, engine.clock, at);
  };
  const { hidden, given } = options.scratch ?? {};
  // A machine whose kernel is still to run its first instruction: it has not set up its last page table yet.
  const lastTable = pagingIsFinal(elf);
  const begins = hidden ? !isRefusal(hidden) : !given && lastTable !== undefined && (await neverRan(session));
  const settlesAt = begins ? lastTable : undefined;
  const inProcess = isProcess(session.features);
  const engines: Engines = new Engines({
    settles: settlesAt !== undefined,
    session,
    tracer,
    logger,
    ...plan,
    scratch: options.scratch ?? {},
    elf,
    // At stops the time is the guest's own.
    nanosPerInstruction: program.watches.length > 0 ? undefined : options.nanosPerInstruction,
    thresholdNs: options.thresholdNs,
    counter: (scratch) => counter(scratch.code.address),
    ...hartsPlan,
    hartNumber: (word) => words.number(word),
    counted: (address, counts) => tally.add(address, counts),
    ...(inProcess && {
      process: true,
      inProcess: {
        threadNumber: (id: string) => harts.number(id),
        traceTime: (hostMs: number) => engine.runningTimeAt(hostMs),
      },
    }),
  });
  // What engines of earlier connections have done.
  const earlier = { stops: 0, ranNs: 0 };
  const running = (): number => earlier.ranNs + engine.runningTime();
  const clockOf = (of: Session): Promise<ClockReader> =>
    findClock(of, arch.name, running, options.clock, options.timebaseHz);
  const engineFor = (of: Session, watches: Watchpoints, clock: () => Promise<ClockReader>): StopEngine =>
    new StopEngine({
      session: of,
      arch,
      tracer,
      watches,
      logger,
      ...(options.hardware === undefined ? {} : { hardware: options.hardware }),
      code: (address, length) => elf.bytesAt(address, length),
      codeChanges: changesItsCode(elf),
      hartNumber: (id) => harts.number(id),
      isSameProgram: () => isLoadedAlike(of, options.program.elf, elf, verified),
      resets,
      onFirstHit: async () => {
        const done = await engines.arrive(engine, (thrown) => failed(thrown));
        // Before the first record is looked at: the target stands.
        if (engines.scratch !== undefined && hart && !isRefusal(hart)) {
          await words.learn(of, elf, hart.how, (id) => harts.number(id));
        }
        return done;
      },
      beside: engines,
      onExec: () => engines.restart(),
      findClock: clock,
    });
  /** Undefined until the first stop. */
  let steady: SteadyClock | undefined;
  const firstClock = async (): Promise<ClockReader> => {
    steady = new SteadyClock(await clockOf(session));
    begin(steady.info);
    return steady;
  };
  const plant = async (): Promise<void> => {
    await engine.arm(addresses);
    await watches.arm();
    if (until !== undefined) await engine.pauseInProgram(until, () => stop('until'));
    if (settlesAt !== undefined) await engine.pause(settlesAt, () => engines.settle());
  };
  const bootEnded = async (time: number | undefined): Promise<void> => {
    await engines.restart(true);
    tracer.abandon();
    engine.points.forget();
    words.forget();
    if (time === undefined) return;
    steady?.goOnFrom(output.time, time);
    output.moveTo(time);
  };
  const tellReset = (): void => {
    if (steady) output.emit({ type: 'reset', time: output.time });
  };
  const { resetVector: vector } = options;
  const resets =
    vector &&
    new Resets({
      session,
      vector,
      hidden,
      logger,
      ended: bootEnded,
      tell: tellReset,
      events: () => output.events,
      plant,
    });
  let watches = watchesOf(session);
  let engine = engineFor(session, watches, firstClock);
  const begin = (clock: ClockInfo): void =>
    filtered.begin({ program: basename(elf.path), buildId: elf.buildId, arch: arch.name, clock, harts: harts.all() });
  await session.passSignals();
  const leftOut = new Set<Addr>(engines.leftOut);
  const addresses = addressesOf(program).filter((address) => !leftOut.has(address));
  await resets?.watch();
  await plant();

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
  const notLoaded = (): string[] => {
    const names = new Map(engines.choices.map(({ address, name }) => [address, name]));
    return engine.waiting.map((address) => names.get(address) ?? hex(address));
  };
  if (engine.waiting.length > 0)
    logger.info({ waiting: notLoaded() }, 'code that is not loaded yet: these probes are planted when it is');
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
    await verifyCode(session, elf, verified);
    const clock = known && (await clockOf(session));
    if (clock) counting.event(await gapUntilNow(session, clock, known, output.time));
    watches = watchesOf(session);
    engine = engineFor(session, watches, clock ? async () => clock : firstClock);
    await plant();
    return engine;
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
    // A target that runs out of patches must not stand still before an access.
    if (session.state.kind === 'idle') await engine.settle();
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
    filtered.end({ probes: engines.choices, ownTime: engines.ownTime?.facts });
  } catch (thrown) {
    failed(thrown);
  }
  await leave(session, logger);
  const neverLoaded = notLoaded();
  if (neverLoaded.length > 0)
    logger.warn({ probes: neverLoaded }, 'their code was never loaded: these probes were not planted');
  const hostMs = performance.now() - started;
  const { choices, scratch, tailLost, pastWire } = engines;
  const outcome = { end: why, clock, stop: ended, error, hostMs, neverLoaded };
  return {
    ...outcome,
    engines: choices,
    tallies: tally.rows().filter((row) => !engines.leftOut.includes(row.function.address)),
    watches: watches.all.map(watchRef),
    scratch,
    ownTime: engines.ownTime?.facts,
    missing,
    tailLost,
    pastWire,
    resets: resets?.count ?? 0,
    ...progress(),
  };
}

/** Takes everything out of the target and lets it run on; where the wire is gone there is nothing left to do. */
async function leave(session: Session, logger: Logger): Promise<void> {
  try {
    await session.detach();
  } catch (thrown) {
    logger.warn({ error: String(thrown) }, 'could not detach: breakpoints may be left in the target');
  }
}
