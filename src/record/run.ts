import { basename } from 'node:path';
import type { Architecture } from '../arch/index.js';
import { hex } from '../base/addr.js';
import { isRefusal, messageOf, RsptraceError } from '../base/errors.js';
import { partOf, silent } from '../base/logger.js';
import { QueuedStops, type Tracer } from '../calls/index.js';
import type { ClockReader, StopLeak } from '../clock/index.js';
import type { ReadPlan } from '../probes/index.js';
import type { Session, StopReply } from '../rsp/index.js';
import { StopEngine, Watchpoints } from '../stop/index.js';
import { changesItsCode, verifyArchitecture, verifyCode } from '../target/index.js';
import type { ClockInfo, Gap, GuestNanos } from '../trace/index.js';
import { Boot } from './boot.js';
import { type Parts, putTogether } from './parts.js';
import { addressesOf, isLoadedAlike, systemCallsOf, watchesOf } from './program.js';
import { QuietWatch } from './quiet.js';
import type { Progress, RecordOptions } from './recording.js';
import { LoggedTracer, removeOlder } from './recording-log.js';
import { leakOfProcess, leakOfTraps } from './trace-clock.js';
import { allCalls } from './tracers.js';
import type { Verified } from './verify.js';

/** How often buffered events are written to the file, in milliseconds: what a SIGKILL may cost. */
const flushMs = 200;

/** One recording: arms the target and runs it. If the options ask for it, connects again when the link breaks. */
export class Run {
  readonly parts: Parts;
  readonly boot: Boot;
  readonly quiet: QuietWatch | undefined;

  /** @throws RsptraceError `ENGINE_UNAVAILABLE` if the engine without stops is asked for and no probe can use it */
  constructor(options: RecordOptions, target: Verified) {
    this.parts = putTogether(options, target);
    this.boot = new Boot(this.parts);
    this.quiet = this.#quietWatch(options);
    this.#connect(options.session, () => this.#firstClock());
  }

  get progress(): Progress {
    const { connection, tracers, engines, target, clock } = this.parts;
    const { counting, sampler } = tracers;
    const { stops } = connection;
    const { records } = engines.results.all;
    const sampled = sampler?.facts;
    return {
      events: counting.count,
      stops,
      records,
      undigested: engines.undigested,
      hits: stops + records + counting.count - (sampled ? sampled.looks + sampled.samples : 0),
      codeAbsent: target.isAbsent,
      // Also what was taken out and the clock has not made up for yet.
      guestNs: counting.span + (clock.steady?.takenOut ?? 0),
    };
  }

  /** What stops have added to the clock; undefined if only the times of some probes have it. */
  get leaked(): StopLeak | undefined {
    const { engines, clock, tracers, target } = this.parts;
    const of = (leak: StopLeak): StopLeak => (target.isProcess ? leakOfProcess(leak) : leak);
    if (engines.onlyStops) return of(clock.leaked);
    const isAnywhere = engines.stopsBeside > 0 && tracers.kinds.some(({ crossings }) => crossings !== undefined);
    return isAnywhere ? of(leakOfTraps) : undefined;
  }

  get recordsClock(): string | undefined {
    const { engines, clock } = this.parts;
    return engines.results.all.records > 0 ? clock.ofRecords : undefined;
  }

  /** Deferred probes, by name. */
  get notLoaded(): string[] {
    const { engines, connection } = this.parts;
    const names = new Map(engines.choices.map(({ address, name }) => [address, name]));
    return connection.engine.waiting.map((address) => names.get(address) ?? hex(address));
  }

  /**
   * Third phase: inserts a breakpoint at every probe.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  async arm(): Promise<void> {
    const { connection, target, options, engines } = this.parts;
    if (options.before?.isSettled) engines.settle();
    await connection.session.passSignals();
    await this.boot.resets?.watch();
    if (target.hasBegun) await this.#beginNow();
    await this.boot.insert();
    const { notLoaded: waiting } = this;
    if (waiting.length === 0) return;
    options.logger?.info({ waiting }, 'code that is not loaded yet: these probes are planted when it is');
  }

  /**
   * Fourth phase: lets the target run until it ends or something stops the recording. Errors are kept in
   * `stopping`.
   * @returns how the target ended, if it did
   */
  async toEnd(): Promise<StopReply | undefined> {
    const { options, stopping, engines, tracers } = this.parts;
    const { maxEvents = Number.POSITIVE_INFINITY } = options;
    tracers.counting.onEvent = (count) => {
      if (count < maxEvents) return;
      stopping.stop('max-events');
      engines.enough();
    };
    const flusher = setInterval(() => {
      try {
        tracers.sink.flush();
      } catch (thrown) {
        stopping.fail(thrown);
      }
    }, flushMs);
    stopping.begin(options);
    options.onStart?.(() => this.progress);
    this.quiet?.begin();
    try {
      return await this.#runConnected();
    } catch (thrown) {
      stopping.fail(thrown);
      return undefined;
    } finally {
      clearInterval(flusher);
      this.quiet?.[Symbol.dispose]();
      stopping[Symbol.dispose]();
    }
  }

  /**
   * A process has the host's clock, and a guest that runs has mostly started its own: the trace can be opened before a
   * hit then.
   */
  async #beginNow(): Promise<void> {
    const { connection, tracers, target, clock } = this.parts;
    const { session, engine } = connection;
    if (!target.isProcess && !(await clock.find(session)).info.guest) return;
    await engine.findClock();
    tracers.sink.flush();
  }

  begin(clock: ClockInfo): void {
    const { options, target, tracers, log } = this.parts;
    const { harts, program, isProcess } = target;
    const { elf, arch } = program;
    const { nanosPerInstruction, logger = silent } = options;
    const counts = clock.guest && nanosPerInstruction !== undefined;
    const info = {
      ...{ program: basename(elf.path), buildId: elf.buildId, arch: arch.name, harts: harts.all() },
      ...(isProcess ? { isProcess: true } : {}),
      clock: counts ? { ...clock, nanosPerInstruction } : clock,
    };
    const { name, resolutionNs, guest } = clock;
    partOf(logger, 'clock').debug({ clock: name, resolutionNs, guest, nanosPerInstruction }, 'times come from');
    tracers.sink.begin(info);
    if (!log) {
      if (options.log) removeOlder(options.log, logger);
      return;
    }
    const watches = watchesOf(program).length > 0;
    log.begin({ info, loadBias: hex(elf.loadBias), harts: harts.known(), watches });
    const { onNew } = harts;
    harts.onNew = (hart, id) => {
      onNew(hart, id);
      log.append({ type: 'hart', id });
    };
  }

  /** Runs, and connects again whenever the link breaks, if events have come since it last did. */
  async #runConnected(): Promise<StopReply | undefined> {
    const { options, connection, tracers, stopping } = this.parts;
    const { reconnect } = options;
    for (let eventsBefore = -1; ; ) {
      const run = await connection.engine.run().catch((thrown: unknown) => ({ kind: 'broken', thrown }) as const);
      const ended = run.kind === 'guest-ended' ? run.stop : undefined;
      const isBroken = run.kind === 'broken' ? isLinkError(run.thrown) : ended?.kind === 'gone';
      const wanted = isBroken && !stopping.met && tracers.counting.count > eventsBefore;
      if (!wanted || !reconnect || !(await this.#reconnect(reconnect))) {
        if (run.kind === 'broken') throw run.thrown;
        return ended;
      }
      if (stopping.met) return undefined;
      // The gap is one of them.
      eventsBefore = tracers.counting.count;
    }
  }

  /** Arms the lost target over another connection; false if the target has ended. */
  async #reconnect(reconnect: () => Promise<Session>): Promise<boolean> {
    const { options, connection, tracers, log } = this.parts;
    const { logger = silent } = options;
    for (const calls of allCalls(tracers)) calls.finish();
    log?.append({ type: 'left' });
    await connection.leave(logger);
    let session: Session;
    try {
      session = await reconnect();
    } catch (thrown) {
      logger.info({ error: messageOf(thrown) }, 'the target is not there any more');
      return false;
    }
    try {
      await this.#goOnAt(session);
    } catch (thrown) {
      // It is another target. Its link may be broken, too.
      await session.leaveAsFound().catch(() => {});
      throw thrown;
    }
    await this.boot.insert();
    return true;
  }

  async #goOnAt(session: Session): Promise<void> {
    const { target, tracers, clock: traceClock, log } = this.parts;
    const { program, code } = target;
    verifyArchitecture(session, program.arch);
    await verifyCode(session, program.elf, code);
    const before = traceClock.info;
    const clock = before && (await traceClock.find(session));
    if (before && clock) {
      const gap = await gapUntilNow(session, clock, before, tracers.output.time);
      log?.append(gap);
      tracers.counting.event(gap);
    }
    this.#connect(session, clock ? async () => clock : () => this.#firstClock());
  }

  async #firstClock(): Promise<ClockReader> {
    const { clock: traceClock, connection } = this.parts;
    const clock = await traceClock.first(connection.session);
    this.begin(clock.info);
    await traceClock.findLeak();
    return clock;
  }

  /** Reaches the target over a session, with a stop engine of its own. */
  #connect(session: Session, findClock: () => Promise<ClockReader>): void {
    const { options, target, connection, tracers, clock, engines, log } = this.parts;
    const { logger = silent, hardware, program: linked } = options;
    const { program, plan, harts, code, places, ram } = target;
    const { arch, elf } = program;
    const { spaces, watches: watchEvents, sampler } = tracers;
    const { boot } = this;
    const values = valueRegisters([...plan.plans, ...target.plansOfOthers], arch);
    const others = tracers.others.map((other) => ({
      elf: other.program.elf,
      addresses: addressesOf(other.program),
      tracer: new QueuedStops(other.calls, engines),
    }));
    const emit: ConstructorParameters<typeof Watchpoints>[0]['emit'] = (access) => watchEvents.emit(access);
    const watches = new Watchpoints({ session, arch, places, logger, emit });
    const engine = new StopEngine({
      ...{ session, arch, elf, others, spaces, watches, logger, sampler, findClock, valueRegisters: values },
      tracer: this.#stopTracer([...arch.generalRegisters, ...values]),
      // Another connection may lead to another QEMU.
      ram: session === options.session && ram && !isRefusal(ram) ? ram : undefined,
      leftAt: options.before?.leftAt,
      ...(hardware === undefined ? {} : { hardware }),
      code: (address, length) => elf.bytesAt(address, length),
      codeChanges: changesItsCode(elf),
      hartNumber: (id) => harts.number(id),
      systemCalls: systemCallsOf(program)?.of,
      isSameProgram: () => isLoadedAlike(session, linked.elf, elf, code),
      resets: boot.resets,
      onStop: (time) => {
        log?.append({ type: 'stood', time });
        tracers.counting.stops.stood(time);
      },
      onFirstHit: (inUserMode) => boot.firstHit(inUserMode),
      observer: this.quiet ?? boot.tables,
      refused: (places, why) => engines.leaveOut(places, why),
      // Only if nothing else than stops is timed: records have the counter as it is.
      leak: () => (engines.onlyStops ? clock.leak : undefined),
      onExec: async () => {
        const addresses = await engines.restart();
        log?.append({ type: 'left' });
        return addresses;
      },
    });
    connection.open({ session, engine, watches });
  }

  /** Samples show by themselves where the target is, and what only counts has no events. */
  #quietWatch({ quiet }: RecordOptions): QuietWatch | undefined {
    const { target, tracers } = this.parts;
    const onlyCounts = target.program.kinds.every(({ kind }) => kind.onlyCounts);
    if (quiet === undefined || quiet.ms === Number.POSITIVE_INFINITY || onlyCounts) return undefined;
    const interrupts = quiet.interrupts && tracers.sampler === undefined;
    return new QuietWatch({ ...quiet, interrupts }, this.parts, () => this.progress, this.boot.tables);
  }

  /** What takes the hits of stops: each has its turn behind the records before it, and is kept in the log. */
  #stopTracer(registers: readonly string[]): Tracer {
    const { tracers, engines, log } = this.parts;
    const queued = new QueuedStops(tracers.calls, engines);
    return log ? new LoggedTracer(queued, log, registers) : queued;
  }
}

/** What probes read besides general registers. */
function valueRegisters(plans: readonly ReadPlan[], { generalRegisters }: Architecture): string[] {
  const names = new Set(plans.flatMap(({ entryRegisters, exit }) => [...entryRegisters, ...exit.registers]));
  for (const name of generalRegisters) names.delete(name);
  return [...names];
}

/** The error of a link that breaks in the middle. */
function isLinkError(thrown: unknown): boolean {
  return thrown instanceof RsptraceError && /^RSP_(?:CLOSED|TIMEOUT|PROTOCOL)$/.test(thrown.code);
}

/** The gap that ends now, by the clock that was used before. */
async function gapUntilNow(session: Session, clock: ClockReader, before: ClockInfo, from: GuestNanos): Promise<Gap> {
  if (clock.info.name !== before.name) {
    throw new RsptraceError(
      'CLOCK_UNAVAILABLE',
      `after the link was broken the clock ${before.name} cannot be read any more`,
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
