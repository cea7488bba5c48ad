import { type Addr, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { silent } from '../base/logger.js';
import type { StopObserver } from '../calls/index.js';
import type { Batch, SignalStop } from '../rsp/index.js';
import {
  codePlace,
  type HartLook,
  LoadedCode,
  Looks,
  OtherPrograms,
  type ThreadLook,
  Threads,
} from '../target/stacks/index.js';
import { type Frame, SourceFrames } from '../target/unwind/index.js';
import type { OpenLockWait } from '../trace/index.js';
import type { Parts } from './parts.js';
import type { Progress } from './recording.js';

/** Where a hart was, or a thread, while no event came. */
export interface QuietHart {
  /** A hart's number in the trace; of a thread the system's. */
  readonly number: number;
  /** A thread's; undefined for a hart. */
  readonly name: string | undefined;
  /** `idle`: a hart that waits for an interrupt. `waits`: a thread that waits in the kernel. */
  readonly state: 'runs' | 'idle' | 'waits' | 'firmware' | 'other-code';
  /** The function that the program's own code has called; without any of that, the innermost one. */
  readonly inside: string | undefined;
  /** The innermost function of the program's own files. */
  readonly own: { readonly function: string; readonly file: string; readonly line: number | undefined } | undefined;
  /** Of firmware and other code. */
  readonly pc: string | undefined;
  /** What it spins for: in the function that its stack is in. */
  readonly lock?: OpenLockWait | undefined;
}

/** A time without an event. */
export interface Quiet {
  readonly ms: number;
  /** Stops and records before it. */
  readonly hits: number;
  readonly codeAbsent: boolean;
  /** Stops in it that led to no event, because other code came to the places of probes. */
  readonly foreign: ForeignHits | undefined;
  readonly isProcess: boolean;
  /** Those of which most is known, first; empty where nobody could look. */
  readonly harts: readonly QuietHart[];
  /** How many more harts there are. */
  readonly more: number;
}

export interface QuietOptions {
  /** So long no event has come, in milliseconds of the host. */
  readonly ms: number;
  /** A machine may be interrupted for it. */
  readonly interrupts: boolean;
  readonly report: (quiet: Quiet) => void;
  /** Who waits for a lock, the newest first, as far as events show it. */
  readonly locks?: () => readonly OpenLockWait[];
}

/** So many are named. */
const MOST_NAMED = 4;
/** Of so many threads the stack is walked. */
const MOST_WALKED = 16;
const DEPTH = 32;
/** Of so many times all is kept. */
const MOST_KEPT = 1000;
/** A time is made of so many parts: in each of them it is seen whether something has come. */
const PARTS = 5;
const SIGINT = 2;

/**
 * Finds out where each hart is, once, when no event has come for some time. A machine is interrupted for that. Of a
 * process of this machine Linux says it, without a stop.
 */
export class QuietWatch implements StopObserver {
  readonly #options: QuietOptions;
  readonly #parts: Parts;
  readonly #progress: () => Progress;
  readonly #inner: StopObserver;
  #timer: NodeJS.Timeout | undefined;
  #threads: Threads | undefined;
  #code: LoadedCode | undefined;
  #interrupted = false;
  readonly times: Quiet[] = [];
  /** Events and records at the last change, in how many parts there were none since, and the hits before. */
  #seen = { count: 0, parts: 0, hits: 0, foreign: new Map<bigint, number>() };

  constructor(options: QuietOptions, parts: Parts, progress: () => Progress, inner: StopObserver) {
    this.#options = options;
    this.#parts = parts;
    this.#progress = progress;
    this.#inner = inner;
  }

  begin(): void {
    this.#timer = setInterval(() => this.#part(), this.#options.ms / PARTS);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** An interrupt that comes while the target stands already is lost: it is sent again when the target runs. */
  runs(): () => void {
    if (this.#interrupted) setImmediate(() => this.#interrupt());
    return this.#inner.runs();
  }

  async handles(stop: SignalStop, resume: Batch): Promise<boolean> {
    const isOurs = this.#interrupted && stop.signal === SIGINT && stop.reason === undefined;
    if (isOurs) {
      this.#interrupted = false;
      await this.#lookAtHarts();
    }
    return (await this.#inner.handles(stop, resume)) || isOurs;
  }

  stopped(emits: boolean, at?: Addr): Promise<void> {
    return this.#inner.stopped(emits, at);
  }

  get #count(): number {
    return this.#progress().events + this.#parts.engines.results.all.records;
  }

  #part(): void {
    const { count, parts } = this.#seen;
    const { hits } = this.#progress();
    if (this.#count !== count)
      this.#seen = { count: this.#count, parts: 0, hits, foreign: this.#parts.connection.foreignHits };
    else if (parts < PARTS) {
      this.#seen = { ...this.#seen, parts: parts + 1, hits };
      if (parts + 1 === PARTS) this.#look().catch((thrown: unknown) => this.#failed(thrown));
    }
  }

  /** A machine is looked at when the interrupt has stopped it. */
  async #look(): Promise<void> {
    const { connection, target, engines, options } = this.#parts;
    const { session } = connection;
    if (target.isProcess) {
      const pid = session.localProcess;
      if (pid === undefined) return this.#report([], 0);
      this.#threads ??= new Threads({ ...target.program, pid, hooked: (at) => engines.hooked(at) });
      return this.#reportOf((await this.#threads.all(MOST_WALKED)).map(threadPlaced));
    }
    if (!this.#options.interrupts || session.state.kind !== 'running') return this.#report([], 0);
    // Before the interrupt, because reading the program takes time.
    this.#code ??= await LoadedCode.find({
      ...target.program,
      others: OtherPrograms.of(target.program),
      session,
      logger: options.logger ?? silent,
    });
    this.#interrupted = true;
    this.#interrupt();
  }

  #interrupt(): void {
    const { session } = this.#parts.connection;
    // An error here also ends the run, which reports it.
    if (this.#interrupted && session.state.kind === 'running') session.interrupt().catch(() => {});
  }

  async #lookAtHarts(): Promise<void> {
    const { connection, target, engines } = this.#parts;
    await engines.catchUp();
    // The ring had events that only a stop could read; or there was one in the same moment.
    if (this.#code === undefined || this.#count !== this.#seen.count) return;
    const options = { depth: DEPTH, hooked: (at: bigint) => engines.hooked(at), walksIdle: true };
    const looks = await new Looks(connection.session, target.program.arch, this.#code, options).all();
    // Names are found when the target runs again.
    setImmediate(() => {
      try {
        this.#reportOf(looks.map((look) => hartPlaced(look, target.harts.number(look.hart.id))));
      } catch (thrown) {
        this.#failed(thrown);
      }
    });
  }

  #reportOf(placed: readonly Placed[]): void {
    const { elf, debug } = this.#parts.target.program;
    const sources = new SourceFrames(elf, debug);
    const waits = this.#parts.target.isProcess ? [] : (this.#options.locks?.() ?? []);
    const harts = placed.map(({ frames, ...rest }): QuietHart => {
      const { inside, own } = codePlace(frames, sources);
      const { function: name, file, line } = own ?? {};
      const known = name === undefined || file === undefined ? undefined : { function: name, file, line };
      const inHere = frames.flatMap((frame) => sources.of(frame).map((entry) => entry.function));
      // A thread that waits may have given its hart to others.
      const isHere = ({ hart, by }: OpenLockWait): boolean =>
        hart === rest.number && rest.state === 'runs' && inHere.some((fn) => by === fn || by.startsWith(`${fn} at `));
      return { ...rest, inside, own: known, lock: waits.find(isHere) };
    });
    harts.sort((a, b) => rank(a) - rank(b));
    this.#report(harts.slice(0, MOST_NAMED), Math.max(0, harts.length - MOST_NAMED));
  }

  #report(harts: readonly QuietHart[], more: number): void {
    if (this.#timer === undefined) return;
    const { codeAbsent } = this.#progress();
    const { isProcess } = this.#parts.target;
    const foreign = foreignHits(this.#parts, this.#seen.foreign);
    const quiet = { ms: this.#options.ms, hits: this.#seen.hits, codeAbsent, foreign, isProcess, harts, more };
    if (this.times.length < MOST_KEPT) this.times.push(quiet);
    this.#options.report(quiet);
  }

  #failed(thrown: unknown): void {
    const { options, stopping } = this.#parts;
    if (thrown instanceof RsptraceError) {
      options.logger?.info({ error: thrown.message }, 'where the harts are was not found out');
      this.#report([], 0);
    } else stopping.fail(thrown);
  }
}

interface Placed extends Omit<QuietHart, 'inside' | 'own'> {
  readonly frames: readonly Frame[];
}

function threadPlaced({ thread, name, waits, frames }: ThreadLook): Placed {
  return { number: thread, name, state: waits ? 'waits' : 'runs', pc: undefined, frames };
}

function hartPlaced({ stack, isIdle, firmware, other }: HartLook, number: number): Placed {
  const away = firmware ?? other?.pc;
  const elsewhere = firmware === undefined ? 'other-code' : 'firmware';
  const state = isIdle ? 'idle' : away === undefined ? 'runs' : elsewhere;
  return { number, name: undefined, state, pc: away && hex(away), frames: stack.frames };
}

/** What computes comes first, then what waits in the program's own code. */
function rank({ state, own }: QuietHart): number {
  if (state === 'runs') return 0;
  return own ? 1 : 2;
}

/** Stops at the places of probes in other code, for example in another address space. They are not recorded. */
export interface ForeignHits {
  readonly hits: number;
  /** The place of which there were most. */
  readonly most: {
    readonly hits: number;
    readonly address: Addr;
    /** The probes there; none where a call was to return. */
    readonly probes: readonly string[];
  };
}

/** Undefined without any. `earlier`: those that do not count, by place. */
export function foreignHits(
  { connection, engines, target }: Pick<Parts, 'connection' | 'engines' | 'target'>,
  earlier: ReadonlyMap<bigint, number> = new Map(),
): ForeignHits | undefined {
  let total = 0;
  let [most, place] = [0, 0n];
  for (const [at, all] of connection.foreignHits) {
    const hits = all - (earlier.get(at) ?? 0);
    total += hits;
    if (hits > most) [most, place] = [hits, at];
  }
  if (total === 0) return undefined;
  const probes = [...engines.choices, ...target.choicesOfOthers].filter(({ address }) => address === place);
  return { hits: total, most: { hits: most, address: addr(place), probes: probes.map(({ name }) => name) } };
}
