import { basename } from 'node:path';
import type { Architecture } from '../arch/index.js';
import { hex } from '../base/addr.js';
import { messageOf } from '../base/errors.js';
import { type Logger, partOf, silent } from '../base/logger.js';
import { isRefusal } from '../base/refusal.js';
import { type CallTracer, QueuedStops, type Tracer } from '../calls/index.js';
import type { ClockLeak, ClockReader, ClosedCounter, StopLeak } from '../clock/index.js';
import { type EnginePlanOptions, Engines, type Hurdle } from '../engines/index.js';
import { plannedStops } from '../probes/index.js';
import type { Session, StopReply } from '../rsp/index.js';
import { StopEngine, Watchpoints } from '../stop/index.js';
import { changesItsCode, verifyArchitecture, verifyCode } from '../target/index.js';
import type { ClockInfo, GuestNanos, ProbeFact, TallyRow } from '../trace/index.js';
import { gapUntilNow, isLinkError } from './broken-link.js';
import { CodeAsLoaded } from './code-as-loaded.js';
import { ConsoleLines } from './console-lines.js';
import { EarlyStops } from './early-stops.js';
import { plannedEnds } from './function-named.js';
import { addressesOf, isLoadedAlike, type Program, watchesOf } from './program.js';
import type { Progress, RecordOptions } from './recording.js';
import { LoggedTracer, RecordingLog } from './recording-log.js';
import { Resets } from './resets.js';
import { StopConditions } from './stop-conditions.js';
import { TableChanges } from './table-changes.js';
import { TraceClock } from './trace-clock.js';
import { buildTracers, type Tracers } from './tracers.js';
import type { Verified } from './verify.js';

/** How often buffered events are written to the file, in milliseconds: what a SIGKILL may cost. */
const flushMs = 200;

/** One connection to the target, and what stops the target over it. */
interface Connection {
  readonly session: Session;
  readonly engine: StopEngine;
  readonly watches: Watchpoints;
  /** Totals of the stop engines of the connections before it. */
  readonly earlier: { readonly stops: number; readonly ranNs: number; readonly foreignHits: number };
}

/**
 * One recording: arms the target and runs it. If the options ask for it, connects again, or begins anew after a
 * reset.
 */
export class Run {
  readonly tracers: Tracers;
  readonly engines: Engines;
  readonly stopping: StopConditions;
  readonly resets: Resets | undefined;
  readonly #early: EarlyStops;
  readonly #tables: TableChanges;
  /** Undefined if nothing is recorded without stops, or if nobody wants it. */
  readonly log: RecordingLog | undefined;
  readonly #options: RecordOptions;
  readonly #target: Verified;
  readonly #clock: TraceClock;
  #connection: Connection;

  /** @throws RsptraceError `ENGINE_UNAVAILABLE` if the engine without stops is asked for and no probe can use it */
  constructor(options: RecordOptions, target: Verified) {
    this.#options = options;
    this.#target = target;
    const { logger = silent } = options;
    this.tracers = buildTracers(options, target, this);
    this.#clock = new TraceClock(options, target, () => this.#totals.ranNs, {
      isWanted: () => this.engines.writesRecords && !target.hurdles.isWithoutMemory,
      opened: (closed) =>
        target.hurdles.counterOpened(closed, this.engines.choices.filter(({ engine }) => engine === 'target').length),
    });
    this.stopping = new StopConditions(options, () => this.#interrupt(logger));
    this.engines = this.#makeEngines();
    this.#early = this.#makeEarlyStops();
    this.#tables = new TableChanges({
      places: options.engine === 'stop' ? [] : target.pagingAt,
      engines: this.engines,
      engine: () => this.engine,
      session: () => this.session,
      early: () => this.#early,
      interrupts: options.nanosPerInstruction === undefined,
      pc: target.program.arch.pc,
      logger,
    });
    this.#takeConsole();
    const isNeeded = options.log?.keeps || this.engines.choices.some(({ engine }) => engine === 'target');
    this.log = options.log && isNeeded ? new RecordingLog(options.log, logger) : undefined;
    this.resets = this.#makeResets(logger);
    this.#connection = this.#connect(options.session, () => this.#firstClock());
  }

  /** With its addresses in the target. */
  get program(): Program {
    return this.#target.program;
  }

  get session(): Session {
    return this.#connection.session;
  }

  get engine(): StopEngine {
    return this.#connection.engine;
  }

  get watches(): Watchpoints {
    return this.#connection.watches;
  }

  get progress(): Progress {
    const { counting, sampler } = this.tracers;
    const { stops } = this.#totals;
    const { records } = this.engines;
    const sampled = sampler?.facts;
    return {
      events: counting.count,
      stops,
      records,
      undigested: this.engines.undigested,
      hits: stops + records + counting.count - (sampled ? sampled.looks + sampled.samples : 0),
      codeAbsent: this.#target.isAbsent,
      // Also what was taken out and the clock has not made up for yet.
      guestNs: counting.span + (this.#clock.steady?.takenOut ?? 0),
    };
  }

  /** How long the target has run, in milliseconds of the host. */
  get ranMs(): number {
    return this.#totals.ranNs / 1e6;
  }

  /** What stops have added to the clock; undefined if anything was recorded without them. */
  get leaked(): StopLeak | undefined {
    return this.engines.onlyStops ? this.#clock.leaked : undefined;
  }

  /** What keeps probes from running without stops, as far as that is known. */
  get hurdles(): readonly Hurdle[] {
    return this.#target.hurdles.all;
  }

  /** Functions that panic, at which it ends. */
  get panicPlaces(): number {
    return this.#target.panics.length;
  }

  /** The counter that is open for the kernel; undefined if none was opened, or if it was closed again. */
  get openCounter(): ClosedCounter | undefined {
    return this.#clock.openCounter;
  }

  /** No code of ours is in the target any more, which is stopped. */
  closeCounter(): Promise<void> {
    return this.#clock.closeCounter();
  }

  get #totals(): Connection['earlier'] {
    const { engine, earlier } = this.#connection;
    return {
      stops: earlier.stops + engine.stops,
      ranNs: earlier.ranNs + engine.runningTime(),
      foreignHits: earlier.foreignHits + engine.foreignHits,
    };
  }

  /** Foreign hits: stops at a probe's address in other code. */
  get foreignHits(): number {
    return this.#totals.foreignHits;
  }

  /** Deferred probes, by name. */
  get notLoaded(): string[] {
    const names = new Map(this.engines.choices.map(({ address, name }) => [address, name]));
    return this.engine.waiting.map((address) => names.get(address) ?? hex(address));
  }

  /**
   * Third phase: inserts a breakpoint at every probe.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  async arm(): Promise<void> {
    await this.session.passSignals();
    await this.resets?.watch();
    await this.#insert();
    if (this.isProcess) await this.#beginNow();
    if (this.engine.waiting.length === 0) return;
    const { logger = silent } = this.#options;
    logger.info({ waiting: this.notLoaded }, 'code that is not loaded yet: these probes are planted when it is');
  }

  /**
   * Fourth phase: lets the target run until it ends or something stops the recording. Errors are kept in
   * {@link stopping}.
   * @returns how the target ended, if it did
   */
  async toEnd(): Promise<StopReply | undefined> {
    const { maxEvents = Number.POSITIVE_INFINITY } = this.#options;
    const { stopping, engines } = this;
    const { counting, sink } = this.tracers;
    counting.onEvent = (count) => {
      if (count < maxEvents) return;
      stopping.stop('max-events');
      engines.enough();
    };
    const flusher = setInterval(() => {
      try {
        sink.flush();
      } catch (thrown) {
        stopping.fail(thrown);
      }
    }, flushMs);
    stopping.begin(this.#options);
    this.#options.onStart?.(() => this.progress);
    try {
      return await this.#runConnected();
    } catch (thrown) {
      stopping.fail(thrown);
      return undefined;
    } finally {
      clearInterval(flusher);
      stopping[Symbol.dispose]();
    }
  }

  /** The clock of a process is the host's, which is known before a hit: so its trace can be opened from now on. */
  async #beginNow(): Promise<void> {
    await this.engine.findClock();
    this.tracers.sink.flush();
  }

  /** The recording ends: what was not recorded because it was too early is said. */
  endEarly(): Promise<void> {
    return this.#early.end();
  }

  /** Calls counted by thread have its name. */
  named(row: TallyRow): TallyRow {
    if (row.group?.by !== 'hart' || !this.isProcess) return row;
    const { hart } = row.group;
    return { ...row, group: { by: 'hart', hart, label: this.#target.harts.all()[hart]?.name } };
  }

  get isProcess(): boolean {
    return this.#target.isProcess;
  }

  /** The trace begins. */
  begin(clock: ClockInfo): void {
    const { elf, arch } = this.#target.program;
    const { harts, program } = this.#target;
    const { nanosPerInstruction } = this.#options;
    const counts = clock.guest && nanosPerInstruction !== undefined;
    const info = {
      ...{ program: basename(elf.path), buildId: elf.buildId, arch: arch.name, harts: harts.all() },
      ...(this.isProcess ? { isProcess: true } : {}),
      clock: counts ? { ...clock, nanosPerInstruction } : clock,
    };
    const { logger = silent } = this.#options;
    const { name, resolutionNs, guest } = clock;
    partOf(logger, 'clock').debug({ clock: name, resolutionNs, guest, nanosPerInstruction }, 'times come from');
    this.tracers.sink.begin(info);
    if (!this.log) return;
    const watches = watchesOf(program).length > 0;
    this.log.begin({ info, loadBias: hex(elf.loadBias), harts: harts.known(), watches });
    const { onNew } = harts;
    harts.onNew = (hart, id) => {
      onNew(hart, id);
      this.log?.tell({ type: 'hart', id });
    };
  }

  /** Runs, and connects again whenever the link breaks, if events have come since it last did. */
  async #runConnected(): Promise<StopReply | undefined> {
    const { reconnect } = this.#options;
    for (let eventsBefore = -1; ; ) {
      const run = await this.engine.run().catch((thrown: unknown) => ({ kind: 'broken', thrown }) as const);
      const ended = run.kind === 'guest-ended' ? run.stop : undefined;
      const isBroken = run.kind === 'broken' ? isLinkError(run.thrown) : ended?.kind === 'gone';
      const { count } = this.tracers.counting;
      const wanted = isBroken && !this.stopping.met && count > eventsBefore;
      if (!wanted || !reconnect || !(await this.#reconnect(reconnect))) {
        if (run.kind === 'broken') throw run.thrown;
        return ended;
      }
      if (this.stopping.met) return undefined;
      eventsBefore = count;
    }
  }

  /** Arms the lost target over another connection; false if the target has ended. */
  async #reconnect(reconnect: () => Promise<Session>): Promise<boolean> {
    const { logger = silent } = this.#options;
    const { program, code } = this.#target;
    this.tracers.calls.finish();
    this.log?.tell({ type: 'left' });
    await detach(this.session, logger);
    const before = this.engine.clock;
    let session: Session;
    try {
      session = await reconnect();
    } catch (thrown) {
      logger.info({ error: messageOf(thrown) }, 'the target is not there any more');
      return false;
    }
    verifyArchitecture(session, program.arch);
    await verifyCode(session, program.elf, code);
    const clock = before && (await this.#clock.find(session));
    const { counting, output } = this.tracers;
    const earlier = this.#totals;
    if (clock) counting.event(await gapUntilNow(session, clock, before, output.time));
    this.#connection = this.#connect(session, clock ? async () => clock : () => this.#firstClock(), earlier);
    await this.#insert();
    return true;
  }

  /** Inserts everything that a target gets before its first instruction. */
  async #insert(): Promise<void> {
    const { until, panics, settlesAt } = this.#target;
    this.#tables.begin();
    await this.engine.arm(await this.#early.begin());
    await this.watches.arm();
    if (until !== undefined) await this.engine.pauseInProgram([until], () => this.stopping.stop('until'));
    if (panics.length > 0) await this.engine.pauseInProgram(panics, () => this.stopping.stop('panicked'));
    if (settlesAt !== undefined) await this.engine.pause(settlesAt, () => this.engines.settle());
  }

  /** The machine boots again: the last records of the old boot are written to the trace. */
  async #bootEnded(time: number | undefined): Promise<void> {
    const { calls, output } = this.tracers;
    await this.engines.restart(true);
    this.log?.tell({ type: 'left' });
    calls.abandon();
    this.engine.points.forget();
    this.#target.words.forget();
    if (time === undefined) return;
    this.#clock.goOnFrom(output.time, time);
    output.moveTo(time);
  }

  /** At the first hits: false as long as it is too early for trampolines. */
  async #firstHit(inUserMode: boolean): Promise<boolean> {
    const { words, plan, program, harts, isElsewhere } = this.#target;
    const onError = (thrown: unknown): void => this.stopping.fail(thrown);
    await this.#early.hit();
    const done = await this.engines.arrive(this.engine, onError, inUserMode || isElsewhere);
    // Before the first record is digested: the target is stopped.
    if (this.engines.scratch !== undefined && plan.hart && !isRefusal(plan.hart)) {
      await words.learn(this.session, program.elf, plan.hart.outside, (id) => harts.number(id));
      this.log?.tell({ type: 'words', words: [...words.hints].map(([word, hart]) => [hex(word), hart]) });
    }
    // Stops alone leave no records that are not yet events.
    if (this.engines.refusal !== undefined && !this.#options.log?.keeps) this.log?.end(false);
    if (!done && this.engines.isWaiting) await this.#early.tooEarly();
    if (this.engines.isInstalled) await this.#tables.watch();
    if (done) {
      this.#reportLeftOut(this.engines.choices);
      this.#options.onEngines?.({
        engines: this.engines.choices,
        refusal: this.engines.refusal,
        ram: this.#target.ram,
      });
    }
    return done;
  }

  /** What probes see no more all hits is known to the tracers, now and after a kill. */
  #reportLeftOut(choices: readonly ProbeFact[]): void {
    const probes = choices.filter(({ engine }) => engine === 'none');
    if (probes.length === 0) return;
    this.tracers.calls.leftOut(probes);
    this.log?.tell({
      type: 'left-out',
      probes: probes.map(({ name, address, why }) => ({ name, address: hex(address), why })),
    });
  }

  async #firstClock(): Promise<ClockReader> {
    const clock = await this.#clock.first(this.session);
    this.begin(clock.info);
    await this.#clock.findLeak();
    return clock;
  }

  /** Only if nothing else than stops is timed: records have the counter as it is. */
  #leakOfStops(): ClockLeak | undefined {
    return this.engines.onlyStops ? this.#clock.leak : undefined;
  }

  #interrupt(logger: Logger): void {
    // A wire that breaks here breaks `run` too, which reports it.
    this.engine.stop().catch((thrown: unknown) => logger.debug({ error: String(thrown) }, 'could not interrupt'));
  }

  #makeEngines(): Engines {
    const { session, logger = silent, scratch = {}, nanosPerInstruction, counts } = this.#options;
    const { program, plan, harts, words, until, panics, settlesAt, isProcess, ram } = this.#target;
    const { calls: tracer, kinds } = this.tracers;
    return new Engines({
      ...plan,
      settles: settlesAt !== undefined,
      session,
      tracer,
      logger,
      scratch,
      ram: ram && !isRefusal(ram) ? ram : undefined,
      elf: program.elf,
      // At stops the time is the guest's own.
      nanosPerInstruction: watchesOf(program).length > 0 ? undefined : nanosPerInstruction,
      isRepeatable: counts?.nanosPerInstruction !== undefined && counts.sleeps === false,
      isCounted: this.#options.maxEvents !== undefined,
      stopsHarm: this.#options.stopsHarm,
      isLossless: this.#options.isLossless ?? false,
      counter: ({ code }) => this.#clock.counter(session, code.address),
      mustEnd: () => this.openCounter !== undefined,
      staysHere: () => this.#options.stays === true || this.stopping.reason === 'panicked',
      ends: plannedEnds(program.elf, until, panics),
      planStops: (places) => (program.debug ? plannedStops(places, program.debug, program.arch) : []),
      hartNumber: (word) => words.number(word),
      leftOut: (probes) => {
        this.#reportLeftOut(probes);
        this.#options.onLeftOut?.(probes);
      },
      log: () => this.log?.opened,
      counted: (probe, words) => {
        for (const kind of kinds) kind.counts?.add(probe, words);
      },
      ...(isProcess && {
        inProcess: {
          threadNumber: (id: string) => harts.number(id),
          traceTime: (hostMs: number) => this.engine.runningTimeAt(hostMs),
        },
      }),
    });
  }

  /** What the guest prints goes past the counting, because it is no hit. */
  #takeConsole(): void {
    const { sink, console } = this.#options;
    const lines = new ConsoleLines({
      sink,
      time: () => this.tracers.output.time,
      whenDigested: (tell) => this.engines.whenDigested(tell),
      onError: (thrown) => this.stopping.fail(thrown),
    });
    console?.(lines.take);
    this.tracers.counting.onFirst = () => lines.begin();
    this.tracers.counting.onLast = () => lines.end();
  }

  #makeEarlyStops(): EarlyStops {
    const { engine: wanted = 'auto', fromReset = false } = this.#options;
    const { calls, counting, output } = this.tracers;
    return new EarlyStops({
      wanted,
      fromReset,
      late: this.#target.foundLate,
      places: this.#target.pagingAt,
      isSure: this.#target.settlesAt !== undefined,
      watch: () => this.#tables.watch(),
      addresses: addressesOf(this.#target.program),
      engine: () => this.engine,
      engines: this.engines,
      arrive: () => this.#firstHit(false),
      time: () => output.time,
      loaded: new CodeAsLoaded({
        elf: this.#target.program.elf,
        probes: addressesOf(this.#target.program),
        session: () => this.session,
        engine: () => this.engine,
      }),
      unrecorded: async (from = 0 as GuestNanos, why) => {
        const to = await this.now();
        calls.missed();
        if (!this.engine.clock) counting.gaps.push({ from_ns: from, to_ns: to, why });
        else counting.event({ type: 'gap', from, to, why });
        output.moveTo(to);
      },
    });
  }

  /** The trace's time, if the target can be asked; else that of the last event. */
  async now(): Promise<GuestNanos> {
    const { clock } = this.engine;
    if (!clock || this.session.state.kind !== 'idle') return this.tracers.output.time;
    const batch = this.session.batch();
    const time = clock.request(batch);
    await batch.send();
    return time() as GuestNanos;
  }

  #makeResets(logger: Logger): Resets | undefined {
    const { session, resetVector: vector, scratch } = this.#options;
    const { counting, output } = this.tracers;
    if (!vector) return undefined;
    return new Resets({
      session,
      vector,
      hidden: scratch?.hidden,
      logger,
      ended: (time) => this.#bootEnded(time),
      emit: () => {
        if (this.#clock.info) output.emit({ type: 'reset', time: output.time });
      },
      events: () => counting.count,
      insert: () => this.#insert(),
    });
  }

  #connect(
    session: Session,
    findClock: () => Promise<ClockReader>,
    earlier: Connection['earlier'] = { stops: 0, ranNs: 0, foreignHits: 0 },
  ): Connection {
    const { logger = silent, hardware, program: linked } = this.#options;
    const { program, plan, harts, code, places, ram } = this.#target;
    const { arch, elf } = program;
    const { calls: tracer, spaces, watches: watchEvents, sampler } = this.tracers;
    const values = valueRegisters(plan, arch);
    const tell: ConstructorParameters<typeof Watchpoints>[0]['tell'] = (access) => watchEvents.tell(access);
    const watches = new Watchpoints({ session, arch, places, logger, tell });
    const engine = new StopEngine({
      session,
      arch,
      tracer: this.#stopTracer(tracer, [...arch.generalRegisters, ...values]),
      // Another connection may lead to another QEMU.
      ram: session === this.#options.session && ram && !isRefusal(ram) ? ram : undefined,
      spaces,
      watches,
      logger,
      ...(hardware === undefined ? {} : { hardware }),
      code: (address, length) => elf.bytesAt(address, length),
      codeChanges: changesItsCode(elf),
      hartNumber: (id) => harts.number(id),
      isSameProgram: () => isLoadedAlike(session, linked.elf, elf, code),
      resets: this.resets,
      onFirstHit: (inUserMode) => this.#firstHit(inUserMode),
      beside: this.#tables,
      refused: (places, why) => this.engines.leaveOut(places, why),
      sampler,
      leak: () => this.#leakOfStops(),
      onExec: async () => {
        const addresses = await this.engines.restart();
        this.log?.tell({ type: 'left' });
        return addresses;
      },
      findClock,
      valueRegisters: values,
    });
    return { session, engine, watches, earlier };
  }

  /** What takes the hits of stops: each has its turn behind the records before it, and is kept in the log. */
  #stopTracer(calls: CallTracer, registers: readonly string[]): Tracer {
    const queued = new QueuedStops(calls, this.engines);
    return this.log ? new LoggedTracer(queued, this.log, registers) : queued;
  }
}

/** What probes read besides general registers. */
function valueRegisters({ plans }: Pick<EnginePlanOptions, 'plans'>, { generalRegisters }: Architecture): string[] {
  const names = new Set(plans.flatMap(({ entryRegisters, exit }) => [...entryRegisters, ...exit.registers]));
  for (const name of generalRegisters) names.delete(name);
  return [...names];
}

/**
 * Takes everything out of the target and lets it run on, unless it `stays`; where the wire is gone there is nothing
 * left to do.
 */
export async function detach(session: Session, logger: Logger, stays = false): Promise<void> {
  try {
    if (stays && session.state.kind === 'idle' && session.state.stop.kind === 'signal')
      await session.clearBreakpoints();
    else await session.detach();
  } catch (thrown) {
    logger.warn({ error: String(thrown) }, 'could not detach: breakpoints may be left in the target');
  }
}
