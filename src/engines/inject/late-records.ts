/** Committed records in order, one slot after the other, from `start` to before `end`. The bytes are the receiver's to keep. */
export type OnRecords = (view: DataView, start: number, end: number) => void;

/** What the ring must know of the records in it. */
export interface SlotReader {
  /** Equal for all records of one hart. */
  hart(view: DataView, offset: number): number;
  /** True where a call begins, false where one ends. */
  begins(view: DataView, offset: number): boolean;
}

/** A slot that was passed by, since it was not written yet. */
export interface PassedBy {
  readonly claim: number;
  /** By hart: calls that have begun since, less those that have ended. */
  readonly depths: Map<number, number>;
}

interface Written {
  readonly claim: number;
  readonly view: DataView;
  readonly hart: number;
  /** Nothing claimed from here on can come before it. */
  readonly until: number;
  depth: number;
}

/**
 * Puts records that come late where they belong. A slot is written late by a hart that was interrupted while it wrote it, so all that
 * the same hart claimed meanwhile is an interrupt's: calls which that has begun end before the late record's turn comes. All of it
 * was written before the late record was.
 */
export class LateRecords<T extends PassedBy> {
  readonly #slots: SlotReader;
  readonly #slot: number;
  readonly #passedBy = new Set<T>();
  #written: Written[] = [];

  /** `slot`: bytes of one. */
  constructor(slots: SlotReader, slot: number) {
    this.#slots = slots;
    this.#slot = slot;
  }

  /** Those that are still not written. */
  get passedBy(): ReadonlySet<T> {
    return this.#passedBy;
  }

  passBy(slot: T): void {
    this.#passedBy.add(slot);
  }

  /** It is written now; `view` begins with it, and `head` is what was claimed by then. */
  write(slot: T, view: DataView, head: number, onRecords: OnRecords): void {
    this.#passedBy.delete(slot);
    const hart = this.#slots.hart(view, 0);
    const depth = slot.depths.get(hart) ?? 0;
    const { claim } = slot;
    if (depth > 0) this.#written.push({ claim, view, hart, until: head, depth });
    else this.#handOnLate(claim, view, onRecords);
  }

  /** Hands on records which are claimed later than all that were passed by, and late ones between them. */
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

  /** All that was claimed before `claim` is handed on: so are those late ones that waited for part of it in vain. */
  settle(claim: number, onRecords: OnRecords): void {
    this.#take(({ until }) => until <= claim, onRecords);
  }

  #handOnLate(claim: number, view: DataView, onRecords: OnRecords): void {
    const due = this.#count(view, 0, claim);
    onRecords(view, 0, this.#slot);
    if (due) this.#take((each) => each.depth <= 0, onRecords);
  }

  /** Counts a record for those claimed before it. True where the turn of a late one has come. */
  #count(view: DataView, at: number, claim: number): boolean {
    const hart = this.#slots.hart(view, at);
    const change = this.#slots.begins(view, at) ? 1 : -1;
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
