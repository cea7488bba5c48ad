import { type CallBegin, type CallEnd, type CallLost, type TraceEvent, type TraceInfo, timeOf } from './events.js';
import { isLockTaken, type LockUse, lockName, lockUse } from './lock-events.js';
import { HeldLocks, type Hold, isSameOwner, type Lock, type Mutable, type Wait } from './lock-holds.js';
import type { LockFinding, LockOrder, LockRow, LockWait, OpenLockWait } from './lock-rows.js';
import type { Chosen } from './selection.js';
import { Fold } from './sinks.js';

type Edge = Mutable<LockOrder> & { readonly isShared: boolean };

/** Locks, pairs of locks, and pairs of places that are kept. */
const mostLocks = 100_000;
const mostPairs = 100_000;
/** Locks that are taken while one is held. */
const mostInside = 256;
/** Readers of one lock at a time, and more where releases are not seen. */
const mostReaders = 1024;
/** Calls that were lost and are looked for among those that wait: their thread may only have gone away meanwhile. */
const mostLost = 256;

/** What came of each lock, while events come. */
export class LockSummary extends Fold {
  readonly #locks = new Map<string, Lock>();
  #waits = new WeakMap<CallBegin, Wait>();
  /** Those of them that were lost, the oldest first. */
  readonly #lost = new Set<Wait>();
  readonly #held = new HeldLocks();
  readonly #orders = new Map<string, Edge>();
  readonly #chosen: Chosen | undefined;
  /** Uses of locks of which there are more than are kept. */
  leftOut = 0;
  #tickNs = 1;
  /** When the last of the events was that are not the guest's own words. */
  #now = 0;

  /** `chosen`: of these uses alone. */
  constructor(chosen?: Chosen) {
    super();
    this.#chosen = chosen;
  }

  override begin({ clock }: TraceInfo): void {
    this.#tickNs = clock.resolutionNs;
  }

  event(event: TraceEvent): void {
    if (event.type !== 'console') this.#now = timeOf(event);
    if (event.type === 'call-begin') this.#begins(event);
    else if (event.type === 'call-end') this.#ends(event);
    else if (event.type === 'call-lost') this.#loses(event);
    else if (event.type === 'place') this.#released(event.place.lock, event.hart, event.time);
    else if (event.type === 'reset' || event.type === 'gap') this.#forget();
  }

  #begins(begin: CallBegin): void {
    const use = lockUse(begin);
    if (!use || this.#chosen?.begin(begin) === false) return;
    const lock = this.#lock(use, begin);
    if (!lock) return;
    const { hart, thread, time: since } = begin;
    const wait = { lock, use, hart, thread, since, blocker: undefined, lost: undefined };
    this.#waits.set(begin, wait);
    lock.waits.add(wait);
  }

  #ends(end: CallEnd): void {
    const wait = end.begin && this.#over(end.begin);
    if (!wait) return;
    const { lock, use, blocker } = wait;
    const { row } = lock;
    if (!isLockTaken(end)) {
      row.not_taken++;
      return;
    }
    const { time, thread = wait.thread, hart } = end;
    const waited = time - wait.since;
    row.taken++;
    row.waited_ns += waited;
    row.max_wait_ns = Math.max(row.max_wait_ns, waited);
    const isContended = blocker !== undefined && !(use.isShared && blocker.use.isShared);
    if (isContended) this.#contend(lock, blocker.use.by, use.by, waited);
    const hold: Hold = { lock, use, hart, thread, wanted: wait.since, since: time, inside: [] };
    if (!use.isAttempt) this.#isInside(hold);
    // Whoever holds it exclusively is the only one: another's release was not seen.
    if (!use.isShared) {
      row.unreleased += lock.holds.length;
      for (const gone of lock.holds.splice(0)) this.#held.delete(gone);
    }
    lock.holds.push(hold);
    this.#held.add(hold);
    const oldest = lock.holds.length > mostReaders ? lock.holds.shift() : undefined;
    if (oldest) this.#held.delete(oldest);
  }

  #loses({ begin, entryOnly, time }: CallLost): void {
    const wait = begin && this.#waits.get(begin);
    if (!wait) return;
    // Others stay among those that wait: at the end of a recording they are lost.
    if (entryOnly) {
      this.#over(begin);
      return;
    }
    wait.lost = time;
    this.#lost.add(wait);
    const [oldest] = this.#lost;
    if (!oldest || this.#lost.size <= mostLost) return;
    this.#lost.delete(oldest);
    oldest.lock.waits.delete(oldest);
    oldest.lock.row.waiting++;
  }

  #over(begin: CallBegin): Wait | undefined {
    const wait = this.#waits.get(begin);
    if (!wait) return undefined;
    this.#waits.delete(begin);
    this.#lost.delete(wait);
    if (!wait.lock.waits.delete(wait)) wait.lock.row.waiting--;
    return wait;
  }

  #released(address: string | undefined, hart: number, time: number): void {
    const lock = address === undefined ? undefined : this.#locks.get(address);
    if (!lock || lock.holds.length === 0) return;
    const own = lock.holds.findLastIndex((hold) => hold.hart === hart);
    // Of several readers another hart's is not meant, and whoever has it alone may have moved to this hart.
    if (own < 0 && lock.holds[0]?.use.isShared) return;
    const [hold] = lock.holds.splice(own < 0 ? lock.holds.length - 1 : own, 1);
    if (!hold) return;
    this.#held.delete(hold);
    for (const taken of hold.inside) this.#order(hold, taken);
    const held = time - hold.since;
    const { row } = lock;
    row.held_ns = (row.held_ns ?? 0) + held;
    if (held >= (row.max_held_ns ?? 0)) {
      row.max_held_ns = held;
      row.max_held_by = hold.use.by;
    }
    for (const wait of lock.waits) if (wait.blocker !== undefined || !isNested(hold, wait)) wait.blocker = hold;
  }

  #contend(lock: Lock, holder: string, waiter: string, waited: number): void {
    lock.row.contended++;
    const key = `${holder} < ${waiter}`;
    const known = lock.contention.get(key);
    if (known) {
      known.count++;
      known.waited_ns += waited;
    } else if (lock.contention.size < mostPairs) {
      lock.contention.set(key, { holder, waiter, count: 1, waited_ns: waited });
    }
  }

  /** What its owner holds already was taken before it, as far as it turns out that it was held: its release is seen. */
  #isInside(taken: Hold): void {
    for (const held of this.#held.of(taken)) {
      if (held.lock !== taken.lock && held.inside.length < mostInside) held.inside.push(taken);
    }
  }

  #order(held: Hold, taken: Hold): void {
    const isShared = held.use.isShared && taken.use.isShared;
    const key = `${held.lock.row.address} > ${taken.lock.row.address}`;
    const known = this.#orders.get(key);
    if (known) known.count++;
    else if (this.#orders.size < mostPairs) this.#orders.set(key, { ...orderOf(held, taken), isShared });
  }

  /** What is taken now is not known. */
  #forget(): void {
    for (const lock of this.#locks.values()) {
      lock.holds.length = 0;
      lock.waits.clear();
    }
    this.#held.clear();
    this.#waits = new WeakMap();
    this.#lost.clear();
  }

  #lock({ lock: address }: LockUse, { function: fn }: CallBegin): Lock | undefined {
    const known = this.#locks.get(address);
    if (known) return known;
    if (this.#locks.size >= mostLocks) {
      this.leftOut++;
      return undefined;
    }
    const row = {
      ...{ lock: lockName(fn), type: fn.type ?? '', address, file: fn.file ?? null, line: fn.line ?? null },
      ...{ taken: 0, not_taken: 0, unreleased: 0, contended: 0, waiting: 0, waited_ns: 0, max_wait_ns: 0 },
      ...{ held_ns: null, max_held_ns: null, max_held_by: null, contention: [] },
    };
    const lock: Lock = { row, holds: [], waits: new Set(), contention: new Map() };
    this.#locks.set(address, lock);
    return lock;
  }

  /**
   * A row a lock that was used, those that were waited for longest first. `timesAtMost`: times are upper bounds, each a
   * tick of the clock at least.
   */
  rows(timesAtMost = false): LockRow[] {
    const rows = [...this.#locks.values()].map(({ row, waits, contention }) => {
      const least = timesAtMost && row.taken > 0 ? Math.ceil(this.#tickNs) : 0;
      const bound = (nanos: number): number => Math.max(nanos, least);
      const pairs = [...contention.values()].map((pair) => ({ ...pair, waited_ns: bound(pair.waited_ns) }));
      pairs.sort((a, b) => b.waited_ns - a.waited_ns);
      const waited = { waited_ns: bound(row.waited_ns), max_wait_ns: bound(row.max_wait_ns) };
      const held = {
        held_ns: row.held_ns === null ? null : bound(row.held_ns),
        max_held_ns: row.max_held_ns === null ? null : bound(row.max_held_ns),
      };
      return { ...row, ...waited, ...held, waiting: row.waiting + waits.size, contention: pairs };
    });
    return rows.sort(
      (a, b) => b.waited_ns - a.waited_ns || (b.held_ns ?? 0) - (a.held_ns ?? 0) || (a.address < b.address ? -1 : 1),
    );
  }

  /** Of calls that take a lock and have not come back, the newest first. */
  open(): OpenLockWait[] {
    return this.#openWaits()
      .sort((a, b) => b.since - a.since)
      .map(({ lock, hart, use: { by }, since }) => {
        const [holder] = lock.holds;
        const { lock: name, address } = lock.row;
        const held = { held_by: holder?.use.by ?? null, held_since_ns: holder?.since ?? null };
        return { lock: name, address, hart, by, since_ns: since, ...held, held_on: holder?.hart ?? null };
      });
  }

  /** `isWhole`: false if events are missing, so that a lock may be held no more that was not seen to be released. */
  findings(isWhole = true): LockFinding[] {
    if (!isWhole) return [];
    const inversions = [...this.#orders].flatMap(([, one]): LockFinding[] => {
      const other = this.#orders.get(`${one.taken_address} > ${one.held_address}`);
      if (!other || (one.isShared && other.isShared) || one.held_address > one.taken_address) return [];
      const [{ isShared: _one, ...first }, { isShared: _other, ...second }] = [one, other];
      return [{ kind: 'lock-inversion', orders: [first, second] }];
    });
    return [...inversions, ...this.#deadlocks()];
  }

  /** Without attempts, and without what was lost before the end: that was left in another way. */
  #openWaits(): Wait[] {
    const isOpen = ({ use, lost = this.#now }: Wait): boolean => !use.isAttempt && lost === this.#now;
    return [...this.#locks.values()].flatMap(({ waits }) => [...waits].filter(isOpen));
  }

  /** Rings of calls that have not come back, each of which waits for a lock that the next one's owner holds. */
  #deadlocks(): LockFinding[] {
    const waits = this.#openWaits().sort((a, b) => a.since - b.since);
    const found: LockFinding[] = [];
    const seen = new Set<Wait>();
    for (const start of waits) {
      const ring: Wait[] = [];
      let at: Wait | undefined = start;
      while (at && !seen.has(at)) {
        seen.add(at);
        ring.push(at);
        at = nextOf(at, waits);
      }
      const first = at ? ring.indexOf(at) : -1;
      if (first < 0) continue;
      found.push({ kind: 'lock-deadlock', waits: ring.slice(first).flatMap((wait) => waitOf(wait)) });
    }
    return found;
  }
}

/** What the owner of a lock waits for: the newest wait, where a handler has interrupted another. */
function nextOf({ lock }: Wait, waits: readonly Wait[]): Wait | undefined {
  const [holder] = lock.holds;
  return holder && waits.findLast((each) => isSameOwner(each, holder));
}

function waitOf({ lock, hart, use, since }: Wait): LockWait[] {
  const [holder] = lock.holds;
  if (!holder) return [];
  const held = { held_by: holder.use.by, held_since_ns: holder.since };
  const { lock: name, address } = lock.row;
  return [{ lock: name, address, hart, by: use.by, since_ns: since, ...held }];
}

/**
 * Whoever waits was interrupted on its hart before it tried: else the lock was taken then, and its release has been
 * seen. A handler, or another thread, has taken and released it meanwhile.
 */
function isNested(hold: Hold, wait: Wait): boolean {
  return hold.hart === wait.hart && hold.wanted >= wait.since;
}

function orderOf(held: Hold, taken: Hold): LockOrder {
  return {
    held: held.lock.row.lock,
    held_address: held.lock.row.address,
    held_by: held.use.by,
    taken: taken.lock.row.lock,
    taken_address: taken.lock.row.address,
    taken_by: taken.use.by,
    count: 1,
    first_ns: taken.since,
  };
}
