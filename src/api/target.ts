import { setTimeout as delay } from 'node:timers/promises';
import type { Architecture } from '../arch/index.js';
import type { Runtime } from '../async/tasks/index.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { nanos, timeOf } from '../base/time.js';
import { ElfFile } from '../elf/index.js';
import { type EngineName, engineChoices, engineNames, planEngines } from '../engines/index.js';
import { kinds, type ProbeKind, parseProbe } from '../probes/index.js';
import { enginePlan, functionNamed, loadedProgram, type Recording, record, understand } from '../record/index.js';
import type { Session } from '../rsp/index.js';
import type { ScratchSources } from '../scratch/index.js';
import { architectureFor, connect, loadedElf, verifyArchitecture } from '../target/index.js';
import { endMissing, type Format, openTrace, type ProbeFact, type TraceSink, tee } from '../trace/index.js';
import type { PlainValue } from '../values/index.js';
import * as given from './given.js';
import { verifyGiven, verifyOne } from './given.js';
import { HandlerCalls } from './handler-calls.js';
import { Handlers } from './handlers.js';
import type { Machine } from './machine.js';
import {
  type AnyHit,
  type Asked,
  askedProbe,
  type CallHit,
  type Handler,
  type PollHit,
  type PollReturn,
  type Probe,
  type ProbeOptions,
} from './probe.js';
import { copyTarget } from './task-copy.js';
import {
  type BacktraceOptions,
  type FoundTasks,
  findStuck,
  type HartBacktrace,
  linesOf,
  stacksAt,
  type TaskOptions,
  tasksIn,
  taskView,
  understandFutures,
} from './views.js';

/** What of one's own a target knows besides what there is. */
export interface Plugins {
  readonly kinds?: readonly ProbeKind[];
  readonly formats?: readonly Format[];
  readonly runtimes?: readonly Runtime[];
}

export interface AttachOptions extends Plugins {
  /** `auto` (the default): without stops where that can be done. */
  readonly engine?: EngineName;
  readonly logger?: Logger;
  /** How long the stub may take to answer, in milliseconds. */
  readonly timeoutMs?: number;
  /** Where trampolines may lie. */
  readonly scratch?: ScratchSources;
  /** How far a loader has moved a position-independent kernel from its linked addresses, if that is known. */
  readonly loadBias?: bigint;
}

export const attachMusts: given.Musts<AttachOptions> = {
  ...{ kinds: given.list, formats: given.list, runtimes: given.list, timeoutMs: given.positive },
  ...{ logger: given.having('warn'), scratch: given.object, loadBias: given.address },
  engine: given.oneOf(engineNames),
};

export interface RunOptions {
  /** At most so long, by the host's clock: milliseconds, or `'500ms'`, `'10s'`, `'2m'`, `'1h'`. */
  readonly duration?: number | string;
  /** Until the program comes to this function: a symbol, or a path with `*`. */
  readonly until?: string;
  /** Until so many events were recorded. */
  readonly maxEvents?: number;
  readonly signal?: AbortSignal;
  /** Write a trace file too, in the format that its extension names. */
  readonly trace?: string;
  /** Overwrite that file if it is there already. Else it is refused: `OUTPUT_EXISTS`. */
  readonly force?: boolean;
  /**
   * Receives every event. The last ones may be of tasks that will not be polled again (`stuck`), as in a trace. A run
   * with probes at polls looks for them if its duration or signal ends it after a second or more.
   */
  readonly sink?: TraceSink;
}

const runMusts: given.Musts<RunOptions> = {
  ...{ duration: given.time, until: given.text, maxEvents: given.count, trace: given.text, force: given.flag },
  ...{ signal: given.having('addEventListener'), sink: given.having('begin', 'event', 'hart', 'flush', 'end') },
};

/** What only a machine that we started has. */
interface OwnMachine extends Pick<Machine, 'known'> {
  /** Resolves when it has ended and all of its console was handed on. */
  readonly ended: Promise<unknown>;
}

/** How long a machine whose guest has ended may take to end, in milliseconds. */
const lastWordsMs = 3000;

/** A function's result: what it returned. A poll's: how it ended. */
type CallOptions = ProbeOptions<CallHit, PlainValue>;
type PollOptions = ProbeOptions<PollHit, PollReturn>;

/**
 * A program at a stub, which stands but for the time of a run. Disposing of it takes everything out and lets it run
 * on. One that was launched is ended.
 */
export class Target implements AsyncDisposable {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly session: Session;
  readonly #options: AttachOptions;
  readonly #own: OwnMachine | undefined;
  readonly #asked: Asked[] = [];
  readonly #dispose: () => Promise<void>;
  /** The run that is under way, and what ends it. */
  #running: { readonly stopper: AbortController; readonly over: Promise<unknown> } | undefined;
  /** The last run that there was. */
  #before: Recording | undefined;

  /** Made by {@link attach} and `launch`. */
  constructor(
    session: Session,
    elf: ElfFile,
    options: AttachOptions,
    dispose: () => Promise<void>,
    own: OwnMachine | undefined,
  ) {
    this.session = session;
    this.elf = elf;
    this.arch = architectureFor(elf);
    this.#options = options;
    this.#dispose = dispose;
    this.#own = own;
  }

  /**
   * Adds a probe, for the runs from now on: `fn:GLOB`, `poll:GLOB`, `watch:PLACE`, `line:FILE:LINE`, or a kind of
   * one's own. What it names is looked up when the run begins.
   * @throws RsptraceError `PROBE_SYNTAX`, `EXPRESSION_SYNTAX`
   */
  probe(text: `fn:${string}`, handler?: Handler<CallHit>): Probe;
  probe(text: `fn:${string}`, options: CallOptions, handler?: Handler<CallHit>): Probe;
  probe(text: `poll:${string}`, handler?: Handler<PollHit>): Probe;
  probe(text: `poll:${string}`, options: PollOptions, handler?: Handler<PollHit>): Probe;
  probe(text: string, handler?: Handler<AnyHit>): Probe;
  probe(text: string, options: ProbeOptions<AnyHit, unknown>, handler?: Handler<AnyHit>): Probe;
  probe(text: string, ...rest: readonly unknown[]): Probe {
    const [first, second] = rest;
    const isShort = first === undefined || typeof first === 'function';
    const options = (isShort ? {} : first) as ProbeOptions<AnyHit, unknown>;
    const handler = (isShort ? first : second) as Handler<AnyHit> | undefined;
    verifyOne('a probe', text, given.text);
    verifyGiven('probe', options, { capture: given.texts, stop: given.flag, onReturn: given.call });
    if (handler !== undefined) verifyOne('the handler of a probe', handler, given.call);
    const asked = askedProbe(parseProbe(text, this.#kinds), options, handler);
    this.#asked.push(asked);
    return asked.probe;
  }

  /**
   * Lets the target run with its probes until it ends or the options say stop; then it stands.
   * What a handler throws ends the run, and is thrown on.
   * @returns how it went; `error`: a wire that broke
   * @throws RsptraceError `PROBE_*`, `EXPRESSION_*`, `UNTIL_NO_FUNCTION`, `TRACE_*`, and what `record` throws
   */
  async run(options: RunOptions = {}): Promise<Recording> {
    this.#begin();
    verifyGiven('run', options, runMusts);
    const stopper = new AbortController();
    const run = this.#runUntil(stopper, options);
    this.#running = { stopper, over: run.catch(() => {}) };
    return run.finally(() => {
      this.#running = undefined;
    });
  }

  async #runUntil(stopper: AbortController, options: RunOptions): Promise<Recording> {
    let failed: { readonly thrown: unknown } | undefined;
    // A handler may ask for more: those are for the next run.
    const handlers = new Handlers([...this.#asked]);
    const handlerCalls = new HandlerCalls(handlers, (thrown) => {
      failed ??= { thrown };
      stopper.abort();
    });
    const recording = await this.#record(options, handlers, handlerCalls, stopper.signal);
    this.#before = recording;
    // What the guest wrote last is still on its way.
    if (recording.end === 'guest-ended' && this.#own)
      await Promise.race([this.#own.ended, delay(lastWordsMs, undefined, { ref: false })]);
    await handlerCalls.done();
    this.#learn(handlers, recording.engines);
    if (failed) throw failed.thrown;
    return recording;
  }

  async #record(
    options: RunOptions,
    handlers: Handlers,
    handlerCalls: HandlerCalls,
    own: AbortSignal,
  ): Promise<Recording> {
    const { logger = silent, engine, scratch, loadBias } = this.#options;
    const { until, duration, maxEvents, signal, trace, force, sink } = options;
    const durationMs = duration === undefined ? undefined : milliseconds(duration);
    const known = this.#kinds.map((kind) => handlers.wrapped(kind));
    const specs = this.#asked.map(({ spec }) => spec);
    const address = until === undefined ? undefined : functionNamed(this.elf, until);
    const program = await understand(this.elf, specs, known, logger, {
      inlined: engine === 'target' ? 'patched' : engine === 'stop' ? 'needed' : 'auto',
    });
    const where = loadBias === undefined ? undefined : { known: loadBias };
    const plan = enginePlan(await loadedProgram(program, this.session, logger, where), { wanted: engine });
    this.#learn(handlers, engineChoices(plan, planEngines(plan)));
    const file = trace === undefined ? [] : [openTrace(trace, { force, formats: this.#options.formats })];
    const isTold = trace !== undefined || sink !== undefined;
    const all = tee([...file, ...(sink ? [sink] : []), handlerCalls]);
    const recording = record({
      ...(isTold ? { look: findStuck(logger, this.#options.runtimes ?? []) } : {}),
      ...{ session: this.session, program, logger, observer: handlerCalls, stays: true },
      ...this.#own?.known,
      isShown: this.#asked.length > 0 || sink !== undefined,
      sink: all,
      signal: signal ? AbortSignal.any([signal, own]) : own,
      engine,
      loadBias,
      before: this.#before,
      scratch,
      until: address,
      durationMs,
      maxEvents,
    });
    return await recording.catch((thrown: unknown) => {
      all.end(endMissing);
      throw thrown;
    });
  }

  /**
   * Every task and what it awaits, the target standing.
   * @throws RsptraceError `PROGRAM_NOT_SEEN`, `DWARF_MISSING`
   */
  async tasks(options: TaskOptions = {}): Promise<FoundTasks> {
    this.#begin();
    const { logger = silent, runtimes = [] } = this.#options;
    const program = understandFutures(await loadedElf(this.session, this.elf), logger);
    const { scan = [] } = options;
    const copy = await copyTarget(this.session, program, { arch: this.arch, scan, logger });
    const all = { logger, ...options, runtimes: [...(options.runtimes ?? []), ...runtimes] };
    return tasksIn(program, await taskView(program, copy), all);
  }

  /** Every hart's stack, the target standing. */
  async backtraces(options: BacktraceOptions = {}): Promise<readonly HartBacktrace[]> {
    this.#begin();
    const { logger = silent } = this.#options;
    const elf = await loadedElf(this.session, this.elf);
    const program = { elf, arch: this.arch, debug: linesOf(elf, logger), logger };
    return (await stacksAt(this.session, program, options)).harts;
  }

  /** A run that is under way is ended first: it takes its own out. One whose handler does not return is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { stopper, over } = this.#running ?? {};
    stopper?.abort();
    await Promise.race([over, delay(lastWordsMs, undefined, { ref: false })]);
    await this.#dispose();
  }

  /** What is asked of the target now may read its ELF anew. */
  #begin(): void {
    if (this.#running) {
      throw new RsptraceError('USAGE', 'the target runs: it can be looked at when its run has ended', {
        hint: 'await target.run(...) first',
      });
    }
    this.elf.budget.renew();
  }

  get #kinds(): readonly ProbeKind[] {
    return [...kinds, ...(this.#options.kinds ?? [])];
  }

  #learn(handlers: Handlers, facts: readonly ProbeFact[]): void {
    for (const { probe } of this.#asked) probe.places = facts.filter(({ address }) => handlers.handles(probe, address));
  }
}

/**
 * Connects to a stub and stops its target.
 * @param remote `:1234`, `host:1234`, `unix:/path`
 * @param program the ELF that runs there
 * @throws RsptraceError `RSP_*`, `ELF_*`, `ARCH_*`
 */
export async function attach(remote: string, program: string, options: AttachOptions = {}): Promise<Target> {
  verifyOne('the address of the stub', remote, given.text);
  verifyGiven('attach', options, attachMusts);
  const { logger = silent, timeoutMs } = options;
  const elf = await ElfFile.open(program, { logger });
  const arch = architectureFor(elf);
  await arch.prepare();
  const session = await connect(remote, { logger, expectedArchitecture: arch.name, timeoutMs });
  try {
    verifyArchitecture(session, arch);
    return new Target(session, elf, options, () => session.leaveAsFound(), undefined);
  } catch (error) {
    await session.leaveAsFound();
    throw error;
  }
}

function milliseconds(duration: number | string): number {
  const given = typeof duration === 'number' ? duration * nanos.ms : timeOf(duration, ['ms', 's', 'm', 'h']);
  const ms = (given ?? Number.NaN) / nanos.ms;
  if (ms > 0 && ms < 2 ** 31) return ms;
  throw new RsptraceError('USAGE', `'${duration}' is not a length of time`, {
    hint: "write '500ms', '10s', '2m', or a number of milliseconds, at most 24 days",
  });
}
