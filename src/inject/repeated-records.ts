import { type Addr, addr, distance, highHalf, lowHalf } from '../base/addr.js';
import { type CallTracer, type IdleHart, movesWith, type Repeat, type Repeats } from '../calls/index.js';
import type { ReadLog } from './read-log.js';
import type { RecordDispatcher, RecordTime } from './record-dispatcher.js';
import { recordOffset } from './record-layout.js';

/** Records of one call that are kept at most. */
const mostOfCall = 1024;
/** Records that are kept at most. */
const mostKept = 1 << 16;
/** Records that may be noted before the first one is known again: noting costs time. */
const noted = 4096;
/** Calls with the same records that are kept, which differ in what was before them. */
const mostAlike = 8;

/** What is read of a record, of those with one id that mean the same. */
interface Step {
  readonly id: number;
  /** Words of four bytes: where they lie, and what they are where the mask has ones. */
  readonly at: Int32Array;
  readonly mask: Int32Array;
  readonly value: Int32Array;
  /** Words of eight bytes that move with the object, and how far behind its begin they lead. */
  readonly movedAt: Int32Array;
  readonly moved: Int32Array;
  /** The records behind it. */
  readonly next: Step[];
  /** The calls that end with it. */
  readonly ends: Repeat[];
}

/** How calls begin whose first record has one id. */
interface First {
  /** Where that has the object. */
  readonly selfAt: number;
  readonly align: number;
  readonly steps: Step[];
}

interface Parts {
  readonly tracer: CallTracer;
  readonly time: RecordTime;
  readonly hartNumber: (word: bigint) => number;
}

/**
 * Finds calls that were there before by their records, from the outermost call's entry to its return. Of a record only
 * what was read the first time is compared.
 */
export class RepeatedRecords {
  readonly #dispatcher: RecordDispatcher;
  readonly #repeats: Repeats;
  readonly #log: ReadLog;
  readonly #parts: Parts;
  readonly #firsts: (First | undefined)[] = [];
  readonly #times = new Float64Array(mostOfCall);
  #kept = 0;
  #credit = noted;

  constructor(dispatcher: RecordDispatcher, repeats: Repeats, log: ReadLog, parts: Parts) {
    this.#dispatcher = dispatcher;
    this.#repeats = repeats;
    this.#log = log;
    this.#parts = parts;
  }

  /**
   * Understands the records of a whole call, if one begins here.
   * @returns the offset behind them
   */
  take(view: DataView, offset: number, end: number, slot: number): number {
    const first = this.#firsts[view.getUint32(offset + recordOffset.id, true)];
    const mayNote = this.#credit > 0 && this.#dispatcher.isEntry(view, offset);
    if (!first && !mayNote) return offset;
    const hart = this.#parts.tracer.idle(this.#hartOf(view, offset));
    if (!hart) return offset;
    const known = first ? this.#known(first, hart, { view, offset, end, slot }) : offset;
    if (known > offset || !mayNote) return known;
    return this.#note(hart, { view, offset, end, slot });
  }

  #hartOf(view: DataView, offset: number): number {
    return this.#parts.hartNumber(this.#dispatcher.reader(view, offset)?.hart ?? 0n);
  }

  /** Goes along the records of calls that are known. */
  #known({ selfAt, align, steps }: First, hart: IdleHart, { view, offset, end, slot }: Records): number {
    const low = view.getUint32(offset + selfAt, true);
    const high = view.getUint32(offset + selfAt + 4, true);
    let next = steps;
    for (let at = offset; at < end; at += slot) {
      const step = fitting(next, view, at, low, high);
      if (!step) return offset;
      if (step.ends.length === 0) {
        next = step.next;
        continue;
      }
      const [{ self }] = step.ends as [Repeat];
      if (((low ^ lowHalf(self)) & (align - 1)) !== 0) return offset;
      const behind = at + slot;
      const place = addr(view.getBigUint64(offset + selfAt, true));
      return this.#repeat(step.ends, place, hart, { view, offset, end: behind, slot }) ? behind : offset;
    }
    return offset;
  }

  #repeat(ends: readonly Repeat[], self: Addr, hart: IdleHart, { view, offset, end, slot }: Records): boolean {
    const count = (end - offset) / slot;
    for (const repeat of ends) {
      if (!repeat.isSame(self, hart)) continue;
      for (let i = 0, at = offset; at < end; i++, at += slot) {
        const id = view.getUint32(at + recordOffset.id, true);
        const reader = this.#dispatcher.reader(view, at);
        this.#times[i] = reader ? this.#parts.time(reader.count(recordOffset.time), id, reader) : 0;
      }
      repeat.emit(self, this.#times);
      this.#credit = Math.min(noted, this.#credit + count);
      return true;
    }
    return false;
  }

  /** Understands a call record by record, and keeps what was read of them. */
  #note(hart: IdleHart, { view, offset, end, slot }: Records): number {
    const read: ReadonlyMap<number, number>[] = [];
    const log = this.#log;
    this.#repeats.note(hart);
    log.start();
    let at = offset;
    let isOne = true;
    let repeat: Repeat | undefined;
    try {
      do {
        if (this.#hartOf(view, at) !== hart.hart) isOne = false;
        this.#dispatcher.dispatch(view, at);
        this.#repeats.understood();
        read.push(log.take());
        at += slot;
      } while (isOne && at < end && read.length < mostOfCall && !this.#parts.tracer.idle(hart.hart));
    } finally {
      log.isOn = false;
      repeat = this.#repeats.noted(this.#parts.tracer.idle(hart.hart));
    }
    this.#credit -= read.length;
    if (repeat && isOne && !log.isOdd) this.#keep(repeat, read, { view, offset, end: at, slot });
    return at;
  }

  #keep(repeat: Repeat, read: readonly ReadonlyMap<number, number>[], { view, offset, slot }: Records): void {
    const { self, size } = repeat;
    const id = view.getUint32(offset + recordOffset.id, true);
    const places = [...(read[0] ?? [])];
    const [selfAt] = places.find(([at, size]) => size === 8 && view.getBigUint64(offset + at, true) === self) ?? [];
    if (selfAt === undefined) return;
    if (this.#kept > mostKept) {
      this.#firsts.length = 0;
      this.#kept = 0;
    }
    const { steps = [], align = 1 } = this.#firsts[id] ?? {};
    this.#firsts[id] = { selfAt, steps, align: Math.max(this.#log.align, align) };
    let next = steps;
    let last: Step | undefined;
    for (const [i, places] of read.entries()) {
      const at = offset + i * slot;
      last = fitting(next, view, at, lowHalf(self), highHalf(self));
      if (!last) {
        last = stepOf(places, { view, offset: at }, { self, size });
        next.push(last);
        this.#kept++;
      }
      next = last.next;
    }
    if (last && last.ends.length >= mostAlike) last.ends.shift();
    last?.ends.push(repeat);
  }
}

interface Records {
  readonly view: DataView;
  readonly offset: number;
  readonly end: number;
  readonly slot: number;
}

/** That whose record this is. What came last is looked at first. */
function fitting(steps: Step[], view: DataView, offset: number, low: number, high: number): Step | undefined {
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i] as Step;
    if (!isOf(step, view, offset, low, high)) continue;
    if (i > 0) {
      steps[i] = steps[i - 1] as Step;
      steps[i - 1] = step;
    }
    return step;
  }
  return undefined;
}

/** `low`, `high`: of the object's address. */
function isOf(
  { id, at, mask, value, movedAt, moved }: Step,
  view: DataView,
  offset: number,
  low: number,
  high: number,
) {
  if (view.getUint32(offset + recordOffset.id, true) !== id) return false;
  for (let i = 0; i < at.length; i++)
    if ((view.getInt32(offset + (at[i] as number), true) & (mask[i] as number)) !== value[i]) return false;
  for (let i = 0; i < movedAt.length; i++) {
    const place = offset + (movedAt[i] as number);
    const sum = low + (moved[i] as number);
    if (view.getUint32(place, true) !== sum >>> 0) return false;
    if (view.getUint32(place + 4, true) !== (high + Math.floor(sum / 2 ** 32)) >>> 0) return false;
  }
  return true;
}

/** What is to be compared of a record. */
function stepOf(
  places: ReadonlyMap<number, number>,
  { view, offset }: Pick<Records, 'view' | 'offset'>,
  { self, size }: Pick<Repeat, 'self' | 'size'>,
): Step {
  const masks = new Map<number, number>();
  const moved = new Map<number, number>();
  for (const [at, length] of places) {
    const far = length === 8 ? distance(self, view.getBigUint64(offset + at, true)) : Number.NaN;
    if (movesWith(far, size)) moved.set(at, far);
    else for (let i = at; i < at + length; i++) masks.set(i & ~3, (masks.get(i & ~3) ?? 0) | (0xff << (8 * (i & 3))));
  }
  return {
    id: view.getUint32(offset + recordOffset.id, true),
    at: Int32Array.from(masks.keys()),
    mask: Int32Array.from(masks.values()),
    value: Int32Array.from(masks, ([at, mask]) => view.getInt32(offset + at, true) & mask),
    movedAt: Int32Array.from(moved.keys()),
    moved: Int32Array.from(moved.values()),
    next: [],
    ends: [],
  };
}
