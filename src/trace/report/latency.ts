import { AddressMap } from '../../base/address-map.js';
import { madeOnce } from '../../base/made-once.js';
import type {
  Cancelled,
  DerivedPoll,
  FutureRef,
  GuestNanos,
  PollBegin,
  PollEnd,
  PollLost,
  RootRef,
  TraceEvent,
} from '../events/events.js';
import { isOfTask, placeOf } from '../events/roots.js';
import type { Chosen } from '../events/selection.js';
import { Fold } from '../events/sinks.js';
import type { Row, Rows } from './rows.js';

/** A Future that has been polled and is not over. */
interface Life {
  /** When it was first polled; undefined if that was not seen, or the end of a poll was not. */
  began: GuestNanos | undefined;
  /** In its polls so far. */
  busy: number;
  /** Nothing has shown the result of its last poll. */
  isUnknown: boolean;
}

/** A row a Future: how long it lived, from its first poll to its end. A request's life is that of its handler. */
export class Latency extends Fold {
  readonly #rows: Rows;
  readonly #lives = new Map<FutureRef, AddressMap<Life>>();
  /** Those that are not over. */
  readonly #open = new Map<FutureRef, Set<Life>>();
  /** Those with such a poll in a task's present poll, by name; undefined for two of one name. */
  readonly #unknown = new Map<RootRef, Map<string, Life | undefined>>();
  readonly #chosen: Chosen | undefined;

  /** `chosen`: of these alone. */
  constructor(rows: Rows, chosen: Chosen | undefined) {
    super();
    this.#rows = rows;
    this.#chosen = chosen;
  }

  event(event: TraceEvent): void {
    if (event.type === 'poll-begin') this.#begins(event);
    else if (event.type === 'poll-end') this.#ends(event);
    else if (event.type === 'poll-lost') this.#loses(event);
    else if (event.type === 'derived-poll') this.#derives(event);
    else if (event.type === 'cancelled') this.#cancels(event);
    else if (event.type === 'gap') this.#gap();
    else if (event.type === 'reset') this.#forget();
  }

  override end(): void {
    this.#forget();
  }

  #begins(begin: PollBegin): void {
    const row = this.#rowOf(begin.future);
    if (row === undefined) return;
    const isFirst = begin.state === undefined || begin.state.name === 'Unresumed';
    const before = this.#lifeOf(begin);
    // One written by hand has no state: it lives on until it is ready.
    if (before !== undefined && (begin.state === undefined || !isFirst)) {
      // That may have been its last one, and this is the first one of the next life.
      if (before.isUnknown && begin.state === undefined) this.#rows.unseen.add(begin.future);
      return;
    }
    if (before !== undefined) this.#over(begin, before, row);
    row.calls++;
    const life: Life = { began: isFirst ? begin.time : undefined, busy: 0, isUnknown: false };
    madeOnce(this.#lives, begin.future, () => new AddressMap<Life>(16)).set(placeOfFuture(begin), life);
    madeOnce(this.#open, begin.future, () => new Set<Life>()).add(life);
  }

  #ends(end: PollEnd): void {
    this.#settle(end);
    const life = this.#lifeOf(end);
    const row = life && this.#rowOf(end.future);
    if (life === undefined || row === undefined) return;
    life.busy += end.time - end.began;
    if (end.stopped) row.stopped++;
    life.isUnknown = end.result === 'unknown';
    if (life.isUnknown) {
      const unknown = madeOnce(this.#unknown, end.root, () => new Map<string, Life | undefined>());
      unknown.set(end.future.future, unknown.has(end.future.future) ? undefined : life);
    }
    if (end.result === 'ready' || end.result === 'panicked') this.#over(end, life, row, end.time);
  }

  /** A Future around one that is pending shows that it waits. A trace that was read back has names alone. */
  #settle(end: PollEnd): void {
    const unknown = this.#unknown.get(end.root);
    if (unknown === undefined) return;
    // What awaits another one has been polled, and is not over.
    for (const { future, typeName } of end.result === 'pending' ? end.chain.slice(0, -1) : []) {
      const life = unknown.get(future?.future ?? typeName);
      if (life) life.isUnknown = false;
    }
    if (isOfTask(end)) this.#unknown.delete(end.root);
  }

  #loses(lost: PollLost): void {
    const life = this.#lifeOf(lost);
    if (life) life.began = undefined;
  }

  /** A poll that was inlined: how long it took is not known. */
  #derives(event: DerivedPoll): void {
    const row = this.#rowOf(event.future);
    if (row === undefined) return;
    this.#rows.unseen.add(event.future);
    const life = this.#lifeOf(event);
    if (life && (event.result === 'ready' || event.result === 'panicked')) this.#over(event, life, row, event.time);
  }

  #cancels({ future, address, root }: Cancelled): void {
    const row = root && this.#rowOf(future);
    const life = root && this.#lifeOf({ future, address, root });
    if (row && life) this.#over({ future, address, root }, life, row);
  }

  /** `time`: when it was ready; undefined: nobody has seen that, or it was not. */
  #over(of: OfFuture, life: Life, row: Row, time?: number): void {
    this.#lives.get(of.future)?.delete(placeOfFuture(of));
    this.#open.get(of.future)?.delete(life);
    if (time === undefined || life.began === undefined) {
      row.lost++;
      return;
    }
    const took = time - life.began;
    row.total += took;
    row.self += life.busy;
    row.waiting = row.total - row.self;
    row.durations.add(took);
  }

  /** What lives may be over, and another one in its place. */
  #gap(): void {
    for (const lives of this.#open.values()) for (const life of lives) life.began = undefined;
  }

  /** What still lives has no end. */
  #forget(): void {
    for (const [future, { size }] of this.#open) {
      const row = this.#rowOf(future);
      if (row) row.lost += size;
    }
    this.#open.clear();
    this.#lives.clear();
    this.#unknown.clear();
  }

  #lifeOf(of: OfFuture): Life | undefined {
    return this.#lives.get(of.future)?.get(placeOfFuture(of));
  }

  #rowOf(future: FutureRef): Row | undefined {
    const { future: name, instance, file, line, inlined: isInlined = false } = future;
    if (this.#chosen !== undefined && ![name, instance].some(this.#chosen.note)) return undefined;
    return this.#rows.of(future, () => ({ name, instance, file, line, isInlined, waiting: 0 }));
  }
}

type OfFuture = Pick<PollBegin, 'future' | 'address'> & { readonly root: RootRef };

function placeOfFuture({ address, root: { space } }: OfFuture): bigint {
  return placeOf({ address, space });
}
