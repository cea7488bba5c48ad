import type { Addr } from '../../base/addr.js';

/**
 * Machine code that records events inside the target. A probed function's entry is patched to jump to a trampoline,
 * which writes records into a ring. Each architecture has one implementation. What follows is the contract between
 * that code and the client that drains the ring.
 *
 * Claims are byte offsets in an endless order of segments. K and the sizes of segments and slots are powers of two.
 * `HEAD` counts the bytes that were ever claimed. The client gives a segment its memory by writing the table's entry,
 * and then moves `LIMIT` past it:
 *
 *      again:
 *      claim  = HEAD
 *      if claim >= LIMIT: wait, again                  the client moves LIMIT when it has read a segment
 *      record = SEGMENTS[(claim >> segmentShift) & (K - 1)] + (claim & (segment - 1))
 *      if not compare-and-swap HEAD, claim, claim + slot: again
 *      ... fields ...
 *      record[0] = claim                               the commit: last, after a store barrier
 *
 * The loads happen in this order. HEAD never comes back to an earlier value. So if the exchange succeeds, no other
 * writer claimed in between, and the entry still belongs to this claim. A dropped event has claimed nothing, and no
 * claim is given up. Every claim below HEAD is also below LIMIT, and is written sooner or later. Writers do not
 * depend on where LIMIT is, or how far it moves at once.
 *
 * A slot whose first word is not its claim is not committed yet, because its writer was interrupted. Until it is
 * committed, its segment keeps its memory, and the ring goes on with other memory. So no record is torn, and nothing
 * waits for a task that sleeps.
 */
export const controlBlock = {
  /** Bytes claimed ever. On a cache line of its own. */
  head: 0,
  /** A number that the client changes, some times a second, as long as it lives. */
  beat: 16,
  /** {@link waited} may come so far: a process's writers wait no longer. A client that is gone allows no more. */
  allowed: 24,
  /** A process's writers give up if `beat` has not changed for so many ticks. */
  patience: 32,
  /** Ticks that writers have waited for room, all together. On HEAD's line, because it changes rarely. */
  waited: 56,
  /** Claims below this may be written. */
  limit: 64,
  /**
   * Not zero: nobody drains, so a writer drops its event at once when the ring is full. The wait routine sets it when
   * `beat` stands still.
   */
  unattended: 72,
  /** Records that were dropped, without a claim. */
  dropped: 80,
  /**
   * How often the wait routine passes its breakpoint, then gives up if `beat` has not changed meanwhile; never 0.
   * Not in a process.
   */
  spins: 88,
  /** The Future whose poll is open (see `Nesting`), or 0. */
  outer: 96,
  /** Address of the list of what to copy out of it: u32 count, then `count` u32 byte offsets, then its size as u64. */
  outerPlan: 104,
  /** How often `limit` is polled before each pass; in a process once. */
  looks: 112,
  /** The address of each segment's memory: K addresses. */
  segments: 128,
  /** Bytes of the control block, with 64 entries. */
  size: 640,
} as const;

/**
 * How often a full ring is polled between two passes of the breakpoint, if none is inserted: the target gets its room
 * in another way.
 */
export const looksAtOnce = 1000;

export interface RingGeometry {
  readonly control: Addr;
  /** Where the wait routine starts. */
  readonly wait: Addr;
  /** log2 of a slot's bytes. */
  readonly slotShift: number;
  readonly segmentShift: number;
  /** log2 of K, the number of entries in the table: at most 6. */
  readonly countShift: number;
  /** Where the words of the open outer poll are. Undefined: in the control block, for one hart only. */
  readonly outer?: OuterWords | undefined;
}

/**
 * Two words in a thread's own block, at this offset from fs's base: the `outer` and `outerPlan` of the control block.
 */
interface OuterWords {
  readonly fs: number;
  /** Where all lists for the second word are. A dead thread may have left another value in a block that is reused. */
  readonly plans: { readonly at: Addr; readonly bytes: number };
}
