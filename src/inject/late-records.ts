/**
 * Committed records in order, one slot after the other, from `start` to before `end`. The receiver may keep the
 * bytes.
 */
export type OnRecords = (view: DataView, start: number, end: number) => void;

/** What the ring must know about its records. */
export interface SlotReader {
  /** Equal for all records of one hart. */
  hart(view: DataView, offset: number): number;
  /** 1 where a call begins, -1 where one ends, 0 inside. */
  opens(view: DataView, offset: number): 1 | 0 | -1;
}

/** A slot that was passed by, because it was not committed yet. */
export interface PassedBy {
  readonly claim: number;
  /** By hart: calls that began since, minus calls that ended since. */
  readonly depths: Map<number, number>;
}

interface Written {
  readonly claim: number;
  readonly view: DataView;
  readonly hart: number;
  /** A record claimed at or after this point cannot belong before it. */
  readonly until: number;
  depth: number;
}

/**
 * Puts late records where they belong. A slot is late when its writer was interrupted. What the hart claimed in
 * between belongs to the handler, whose calls have all returned before the late record's turn comes. All records of
 * the handler were written before the late one.
 */
export class LateRecords<T extends PassedBy> {
  readonly #slots: SlotReader;
  readonly #slot: number;
  readonly #passedBy = new Set<T>();
  #written: Written[] = [];

  /** `slot`: bytes of one slot. */
  constructor(slots: SlotReader, slot: number) {
    this.#slots = slots;
    this.#slot = slot;
  }

  /** The slots that are still not committed. */
  get passedBy(): ReadonlySet<T> {
    return this.#passedBy;
  }

  passBy(slot: T): void {
    this.#passedBy.add(slot);
  }

  /** The slot is committed now. `view` begins with it; `head` is what was claimed by then. */
  write(slot: T, view: DataView, head: number, onRecords: OnRecords): void {
    this.#passedBy.delete(slot);
    const hart = this.#slots.hart(view, 0);
    const depth = slot.depths.get(hart) ?? 0;
    const { claim } = slot;
    if (depth > 0) this.#written.push({ claim, view, hart, until: head, depth });
    else this.#handOnLate(claim, view, onRecords);
  }

  /** Emits records that were claimed later than all slots passed by, and the late records between them. */
  handOn(view: DataView, start: number, end: number, onRecords: OnRecords): void {
    let from = start;
    if (this.#passedBy.size > 0 || this.#written.length > 0) {
      for (let at = start; at < end; at += this.#slot) {
        if (!this.#count(view, at, Number.POSITIVE_INFINITY)) continue;
        onRecords(view, from, at + this.#slot);
        from = at + this.#slot;
        this.#take((each) => each.depth <= 0, onRecords);
      }
    }
    if (from < end) onRecords(view, from, end);
  }

  /**
   * Everything claimed before `claim` was emitted. So the late records that still wait for a part of it are emitted
   * too.
   */
  settle(claim: number, onRecords: OnRecords): void {
    this.#take(({ until }) => until <= claim, onRecords);
  }

  #handOnLate(claim: number, view: DataView, onRecords: OnRecords): void {
    const due = this.#count(view, 0, claim);
    onRecords(view, 0, this.#slot);
    if (due) this.#take((each) => each.depth <= 0, onRecords);
  }

  /** Counts a record for the slots claimed before it. Returns true if the turn of a late record has come. */
  #count(view: DataView, at: number, claim: number): boolean {
    const hart = this.#slots.hart(view, at);
    const change = this.#slots.opens(view, at);
    if (change === 0) return false;
    for (const { claim: before, depths } of this.#passedBy)
      if (before < claim) depths.set(hart, (depths.get(hart) ?? 0) + change);
    let due = false;
    for (const each of this.#written) {
      if (each.hart !== hart || each.claim > claim) continue;
      each.depth += change;
      due ||= each.depth <= 0;
    }
    return due;
  }

  #take(isDue: (each: Written) => boolean, onRecords: OnRecords): void {
    const due = this.#written.filter(isDue).sort((a, b) => a.claim - b.claim);
    if (due.length === 0) return;
    this.#written = this.#written.filter((each) => !due.includes(each));
    for (const { claim, view } of due) this.#handOnLate(claim, view, onRecords);
  }
}
