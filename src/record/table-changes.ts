import { type Addr, hex } from '../base/addr.js';
import type { StopObserver } from '../calls/index.js';
import { type Batch, registerOf, type SignalStop } from '../rsp/index.js';
import type { TablePlace } from '../target/index.js';
import type { EarlyStops } from './early-stops.js';
import type { Parts } from './parts.js';

/** A place that has changed the table so often, with nothing for us to do, is left alone. */
const mostIdle = 4;
/** So often a place is waited for while there are no trampolines. */
const mostEarly = 50;
/**
 * A breakpoint slows the code of its page. After this time without a stop it is looked where the target is, in
 * milliseconds. The next looks come after twice the time each, up to the longest.
 */
const patience = { first: 500, longest: 8000 };
/** A place is left alone if the target was seen in its page in this share of the looks, and after so many looks. */
const hot = { share: 0.25, looks: 5 };
/**
 * While no probe stops it before its last page table. `patience`: milliseconds between two looks. `seen`: so often it is
 * in a place's page until that place is left alone.
 */
const early = { patience: 100, seen: 5 };
const CODE_PAGE = 12n;
const SIGINT = 2;

/**
 * Stands behind each place where a kernel turns to another page table, from when that matters. Trampolines that are
 * there already are mapped in the new table too, before a function is called that leads to them.
 */
export class TableChanges implements StopObserver {
  readonly #parts: Parts;
  /** What is done while there are no trampolines. */
  readonly #early: EarlyStops;
  readonly #places: readonly TablePlace[];
  /** By place: how often it was passed to no purpose. */
  readonly #waiting = new Map<TablePlace, number>();
  /** How long it has run without trampolines, in milliseconds. */
  #ran = 0;
  /** The same since they were there, since a probe last stopped it, or since the last look. */
  #quiet = 0;
  readonly #looks = new QuietLooks();
  /** Before there are trampolines: places are left alone, so only a look shows that the table has changed. */
  #isBlind = false;
  #interrupted = false;

  constructor(parts: Parts, early: EarlyStops) {
    this.#parts = parts;
    this.#early = early;
    this.#places = parts.options.engine === 'stop' ? [] : parts.target.pagingAt;
  }

  begin(): void {
    this.#ran = 0;
    this.#quiet = 0;
    this.#looks.begin();
    this.#waiting.clear();
    this.#isBlind = false;
  }

  /** From now on a change of the table matters. */
  async watch(): Promise<void> {
    for (const place of this.#places) if (!this.#waiting.has(place)) await this.#wait(place, 0);
  }

  runs(): () => void {
    const stop = this.#parts.engines.runs();
    const left = this.#left;
    if (left === undefined) return stop;
    const began = performance.now();
    const timer = setTimeout(() => this.#interrupt(), left);
    return () => {
      clearTimeout(timer);
      const ms = performance.now() - began;
      if (this.#parts.engines.isInstalled || this.#early.mayLook) this.#quiet += ms;
      else this.#ran += ms;
      stop();
    };
  }

  /** How long the target may run until something is to be done, in milliseconds; undefined: for ever. */
  get #left(): number | undefined {
    const { options, engines } = this.#parts;
    // Two runs under a clock of instructions are to be alike.
    if (options.nanosPerInstruction !== undefined) return undefined;
    if (engines.isInstalled) return this.#waiting.size > 0 ? this.#looks.patience - this.#quiet : undefined;
    if (this.#early.mayLook) return Math.max(0, early.patience - this.#quiet);
    const most = this.#early.patience;
    return most === undefined ? undefined : most - this.#ran;
  }

  async handles(stop: SignalStop, resume: Batch): Promise<boolean> {
    const isOurs = this.#interrupted && stop.signal === SIGINT && stop.reason === undefined;
    if (isOurs) await this.#tooLong();
    return (await this.#parts.engines.handles(stop, resume)) || isOurs;
  }

  stopped(emits: boolean, at?: Addr): Promise<void> {
    if (emits) this.#quiet = 0;
    return this.#parts.engines.stopped(emits, at);
  }

  async #wait(place: TablePlace, idle: number): Promise<void> {
    this.#waiting.set(place, idle);
    await this.#parts.connection.engine.points.intercept(place.addresses, () => this.#changed(place, idle));
  }

  async #changed(place: TablePlace, idle: number): Promise<void> {
    const { engines } = this.#parts;
    this.#waiting.delete(place);
    const isEarly = !engines.isInstalled;
    if (isEarly) await this.#early.changed();
    const isIdle = isEarly || (await engines.followTable());
    const now = isIdle ? idle + 1 : 0;
    if (now < (isEarly ? mostEarly : mostIdle)) await this.#wait(place, isEarly && engines.isInstalled ? 0 : now);
  }

  async #tooLong(): Promise<void> {
    this.#interrupted = false;
    if (this.#parts.engines.isInstalled) await this.#leave();
    else if (this.#early.mayLook) await this.#lookEarly();
    else {
      await this.#early.tooSlow();
      // Perhaps the table will not change any more.
      this.#isBlind = this.#early.mayLook;
    }
  }

  /**
   * A boot is not to run at a thirtieth of its speed because its longest loop lies in the page of a place. What is
   * recorded then begins at a look that is up to so much later than the change.
   */
  async #lookEarly(): Promise<void> {
    if ((await this.#releaseHot()).length > 0) {
      const { points } = this.#parts.connection.engine;
      this.#isBlind = true;
      // They are in the way as the places are, and end in the gap.
      await points.awaitNoMore();
    }
    if (!this.#isBlind) return;
    await this.#early.look();
    if (!this.#parts.engines.isInstalled) return;
    this.#isBlind = false;
    this.#looks.begin();
  }

  /** Takes the breakpoints out that slow the code that runs most. */
  async #releaseHot(): Promise<readonly TablePlace[]> {
    this.#quiet = 0;
    const isHot = this.#parts.engines.isInstalled
      ? (seen: number, looks: number): boolean => looks >= hot.looks && seen >= hot.share * looks
      : (seen: number): boolean => seen >= early.seen;
    const places = this.#looks.add(await this.#pcs(), [...this.#waiting.keys()], isHot);
    for (const place of places) this.#waiting.delete(place);
    if (places.length > 0)
      await this.#parts.connection.engine.points.release(places.flatMap(({ addresses }) => addresses));
    return places;
  }

  /** Leaves the places alone that slow the code that runs most. Missing one of them may cost the kernel its life. */
  async #leave(): Promise<void> {
    const places = await this.#releaseHot();
    if (places.length === 0) return;
    this.#parts.options.logger?.warn(
      { at: places.map((place) => place.addresses.map(hex).join(' or ')).join(', ') },
      'the page table is no longer watched there, because a breakpoint slows the code beside it: if the kernel changes it once more, --engine stop is safe',
    );
  }

  async #pcs(): Promise<readonly bigint[]> {
    const session = this.#parts.connection.session;
    const pcs: bigint[] = [];
    for (const { id } of await session.harts()) {
      const pc = await registerOf(session, this.#parts.target.program.arch.pc, id);
      if (pc !== undefined) pcs.push(pc);
    }
    return pcs;
  }

  #interrupt(): void {
    const session = this.#parts.connection.session;
    if (session.state.kind !== 'running') return;
    this.#interrupted = true;
    // An error here also ends the run, which reports it.
    session.interrupt().catch(() => {});
  }
}

/** Where the target was found while no probe stopped it. */
class QuietLooks {
  #looks = 0;
  readonly #seen = new Map<TablePlace, number>();

  begin(): void {
    this.#looks = 0;
    this.#seen.clear();
  }

  /** How long until the next look, in milliseconds. */
  get patience(): number {
    return Math.min(patience.first * 2 ** this.#looks, patience.longest);
  }

  /** Returns those of the places whose code page runs much. */
  add(
    pcs: readonly bigint[],
    places: readonly TablePlace[],
    isHot: (seen: number, looks: number) => boolean,
  ): readonly TablePlace[] {
    this.#looks++;
    const pages = new Set(pcs.map((pc) => pc >> CODE_PAGE));
    return places.filter((place) => {
      const isThere = place.addresses.some((address) => pages.has(address >> CODE_PAGE));
      const seen = (this.#seen.get(place) ?? 0) + Number(isThere);
      this.#seen.set(place, seen);
      return isHot(seen, this.#looks);
    });
  }
}
