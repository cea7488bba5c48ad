import { type Addr, hex } from '../base/addr.js';
import { isRefusal, type RsptraceError, toError } from '../base/errors.js';
import { silent } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import { counterHurdle, Engines } from '../engines/index.js';
import { entryPlan, type PlannedStop, plannedStops } from '../probes/index.js';
import type { ProbeFact } from '../trace/index.js';
import { Connection } from './connection.js';
import { ConsoleEvents, ConsoleLines } from './console-lines.js';
import { watchesOf } from './program.js';
import type { Recording, RecordOptions } from './recording.js';
import { RecordingLog } from './recording-log.js';
import { TraceClock } from './trace-clock.js';
import { buildTracers, type Tracers } from './tracers.js';
import type { Verified } from './verify.js';

/** The parts of a recording. Each knows of the others only what it is given here. */
export interface Parts {
  readonly options: RecordOptions;
  readonly target: Verified;
  readonly connection: Connection;
  readonly tracers: Tracers;
  readonly clock: TraceClock;
  readonly stopping: StopConditions;
  readonly engines: Engines;
  /** Undefined if nothing is recorded without stops, or if nobody wants it. */
  readonly log: RecordingLog | undefined;
}

/**
 * Second phase: puts a recording's parts together.
 * @throws RsptraceError `ENGINE_UNAVAILABLE` if the engine without stops is asked for and no probe can use it
 */
export function putTogether(options: RecordOptions, target: Verified): Parts {
  const { logger = silent } = options;
  const connection = new Connection();
  const tracers = buildTracers(options, target, (pc) => engines.served(pc), { connection, engines: () => engines });
  const clock = new TraceClock(options, target, connection, {
    isWanted: () => engines.writesRecords && !target.hurdles.some(({ code }) => code === 'memory'),
    now: () => tracers.output.time,
    // Firmware keeps the counter from the kernel, which could not be known before that had run.
    opened: (closed) => {
      if (target.hurdles.some(({ code }) => code === 'counter')) return;
      const hurdle = counterHurdle(closed, engines.choices.filter(({ engine }) => engine === 'target').length);
      target.hurdles.push(hurdle);
      options.onHurdles?.([hurdle]);
    },
  });
  const stopping = new StopConditions(options, () => connection.interrupt(logger));
  const parts = { options, target, connection, tracers, clock, stopping };
  const engines = makeEngines(parts, () => log);
  const printed = new ConsoleEvents(options.sink, tracers.output);
  const lines = new ConsoleLines((text) => {
    stopping.failing(() => log?.append({ type: 'console', text }));
    engines.whenDigested(() => stopping.failing(() => printed.line(text)));
  });
  options.console?.(lines.take);
  tracers.counting.onFirst = () => stopping.failing(() => printed.begin());
  tracers.counting.onLast = () => lines.end();
  const isNeeded = options.log?.keeps || engines.choices.some(({ engine }) => engine === 'target');
  const log = options.log && isNeeded ? new RecordingLog(options.log, logger) : undefined;
  return { ...parts, engines, log };
}

/** What probes see no more all hits is known to the tracers, now and after a kill. */
export function reportLeftOut({ tracers, log }: Pick<Parts, 'tracers' | 'log'>, choices: readonly ProbeFact[]): void {
  const probes = choices.filter(({ engine }) => engine === 'none');
  if (probes.length === 0) return;
  tracers.calls.leftOut(probes);
  log?.append({
    type: 'left-out',
    probes: probes.map(({ name, address, why }) => ({ name, address: hex(address), why })),
  });
}

function makeEngines(parts: Omit<Parts, 'engines' | 'log'>, log: () => Parts['log']): Engines {
  const { options, target, connection, tracers, clock, stopping } = parts;
  const { session, logger = silent, scratch = {}, nanosPerInstruction, counts } = options;
  const { program, plan, harts, words, until, panics, settlesAt, ram } = target;
  return new Engines({
    ...plan,
    settles: settlesAt !== undefined,
    session,
    tracer: tracers.calls,
    logger,
    scratch,
    ram: ram && !isRefusal(ram) ? ram : undefined,
    elf: program.elf,
    // At stops the time is the guest's own.
    nanosPerInstruction: watchesOf(program).length > 0 ? undefined : nanosPerInstruction,
    isRepeatable: counts?.nanosPerInstruction !== undefined && counts.sleeps === false,
    isCounted: options.maxEvents !== undefined,
    isShown: options.isShown,
    stopsHarm: options.stopsHarm,
    letRun: options.letRun,
    isLossless: options.isLossless ?? false,
    counter: ({ code }) => clock.counter(session, code.address),
    mustEnd: () => clock.openCounter !== undefined,
    staysHere: () => options.stays === true || stopping.reason === 'panicked',
    endsSoon: () => options.deadline?.() !== undefined,
    ends: plannedEnds(program.elf, until, panics),
    planStops: (places) => (program.debug ? plannedStops(places, program.debug, program.arch) : []),
    hartNumber: (word) => words.number(word),
    leftOut: (probes) => {
      reportLeftOut({ tracers, log: log() }, probes);
      options.onLeftOut?.(probes);
    },
    log: () => log()?.opened,
    counted: (probe, words) => {
      for (const kind of tracers.kinds) kind.counts?.add(probe, words);
    },
    ...(target.isProcess && {
      inProcess: {
        threadNumber: (id: string) => harts.number(id),
        traceTime: (hostMs: number) => connection.engine.runningTime(hostMs),
      },
    }),
  });
}

/** Functions at which a recording ends. Rust's own functions that panic keep nothing in scratch registers. */
function plannedEnds(elf: ElfFile, until: Addr | undefined, panics: readonly Addr[]): readonly PlannedStop[] {
  const planned = (place: Addr, scratchIsFree: boolean): PlannedStop => {
    const symbol = elf.symbols.allAt(place).find(({ type, address }) => type === 'function' && address === place);
    const { size: codeSize = 0, name = '' } = symbol ?? {};
    return { place, plans: [{ ...entryPlan({ address: place, codeSize, name }), scratchIsFree }] };
  };
  const all = panics.map((place) => planned(place, true));
  return until === undefined ? all : [planned(until, false), ...all];
}

/** Everything that ends a recording, and why it ended. Only the first reason counts, but a failure overrides it. */
class StopConditions implements Disposable {
  readonly #interrupt: () => void;
  readonly #signal: AbortSignal | undefined;
  #reason: Recording['end'] | undefined;
  #error: RsptraceError | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `interrupt` makes the run of the target end; it is called once. */
  constructor({ signal }: RecordOptions, interrupt: () => void) {
    this.#interrupt = interrupt;
    this.#signal = signal;
  }

  get met(): boolean {
    return this.#reason !== undefined;
  }

  get reason(): Recording['end'] {
    return this.#reason ?? 'guest-ended';
  }

  get error(): RsptraceError | undefined {
    return this.#error;
  }

  /** From now on the user's signal and duration count. */
  begin({ durationMs }: RecordOptions): void {
    this.#signal?.addEventListener('abort', this.#onAbort);
    if (this.#signal?.aborted) this.#onAbort();
    if (durationMs !== undefined) this.#timer = setTimeout(() => this.stop('duration'), durationMs);
  }

  stop(reason: Recording['end']): void {
    if (this.met) return;
    this.#reason = reason;
    this.#interrupt();
  }

  fail(thrown: unknown): void {
    this.#error ??= toError(thrown);
    this.stop('failed');
    this.#reason = 'failed';
  }

  /** What is thrown ends the recording. */
  failing(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }

  readonly #onAbort = (): void => this.stop('interrupted');
}
