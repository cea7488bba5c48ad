import { firstWhere } from '../../base/search.js';
import type { LaneKind } from '../formats/html/columns.js';
import type { Row, Trace } from './trace.js';

export const ROW = 17;
const MARKS = 13;
const GAP = 5;
/** Pixels at the left, for names. */
export const NAMES = 190;
/** Pixels at the top, for the times. */
export const AXIS = 22;

/** A lane that is shown. `top`: pixels from the first lane's. */
export interface ShownLane {
  readonly lane: number;
  readonly kind: LaneKind;
  readonly name: string;
  /** The number of the process that it belongs to; 0 for none. */
  readonly process: number;
  readonly rows: readonly Row[];
  readonly hasMarks: boolean;
  top: number;
  height: number;
  /** Only its marks and its outermost slices are shown. */
  isFolded: boolean;
}

/** What of the trace is in the window, and where on the canvas. Times are nanoseconds. */
export class Layout {
  readonly lanes: readonly ShownLane[];
  /** The same, by their numbers. */
  readonly byNumber: readonly (ShownLane | undefined)[];
  readonly #trace: Trace;
  from: number;
  to: number;
  scroll = 0;
  /** Pixels of the canvas. */
  width = 0;
  height = 0;
  #total = 0;

  constructor(trace: Trace) {
    this.#trace = trace;
    const byLane: Row[][] = [];
    for (const row of trace.rows) {
      byLane[row.lane] ??= [];
      byLane[row.lane]?.push(row);
    }
    const lanes = trace.lanes.flatMap(({ kind, name, process = 0 }, lane) => {
      const rows = byLane[lane]?.sort((a, b) => a.depth - b.depth);
      if (rows === undefined) return [];
      const hasMarks = rows[0]?.depth === -1;
      return [{ lane, kind, name, process, rows, hasMarks, top: 0, height: 0, isFolded: false }];
    });
    // The kernel's own first, then each process with its stacks and tasks.
    this.lanes = lanes.sort((a, b) => a.process - b.process);
    const byNumber: ShownLane[] = [];
    for (const lane of this.lanes) byNumber[lane.lane] = lane;
    this.byNumber = byNumber;
    this.from = trace.first;
    this.to = trace.last;
    this.#arrange();
  }

  get perPixel(): number {
    return (this.to - this.from) / Math.max(1, this.width - NAMES);
  }

  x(time: number): number {
    return NAMES + (time - this.from) / this.perPixel;
  }

  timeAt(x: number): number {
    return this.from + (x - NAMES) * this.perPixel;
  }

  /** Folds a lane, or unfolds it. */
  fold(lane: ShownLane): void {
    lane.isFolded = !lane.isFolded;
    this.#arrange();
  }

  #arrange(): void {
    let top = 0;
    for (const lane of this.lanes) {
      const deepest = lane.isFolded ? 0 : (lane.rows.at(-1)?.depth ?? 0);
      lane.top = top;
      lane.height = Math.max(ROW, (lane.hasMarks ? MARKS : 0) + (deepest + 1) * ROW);
      top += lane.height + GAP;
    }
    this.#total = top;
    this.scrollTo(this.scroll);
  }

  /** Lanes that are at least partly shown. */
  visible(): readonly ShownLane[] {
    const first = this.#laneFrom(this.scroll);
    let behind = first;
    while (behind < this.lanes.length && (this.lanes[behind]?.top ?? 0) < this.scroll + this.height - AXIS) behind++;
    return this.lanes.slice(first, behind);
  }

  laneAt(y: number): ShownLane | undefined {
    return y < AXIS ? undefined : this.lanes[this.#laneFrom(y - AXIS + this.scroll)];
  }

  rowTop(lane: ShownLane, depth: number): number {
    const top = AXIS + lane.top - this.scroll;
    return depth < 0 ? top : top + (lane.hasMarks ? MARKS : 0) + depth * ROW;
  }

  rowAt(lane: ShownLane, y: number): Row | undefined {
    const inside = y - this.rowTop(lane, 0);
    const depth = inside < 0 ? -1 : Math.floor(inside / ROW);
    return lane.isFolded && depth > 0 ? undefined : lane.rows.find((row) => row.depth === depth);
  }

  /** Lanes by height are in order. */
  #laneFrom(top: number): number {
    return firstWhere(this.lanes.length, (i) => {
      const { top: at, height } = this.lanes[i] as ShownLane;
      return at + height + GAP > top;
    });
  }

  /** Shows this much time, as far as there is any. */
  show(from: number, to: number): void {
    const { first, last } = this.#trace;
    const all = last - first;
    const margin = all * 0.02;
    const span = Math.min(Math.max(to - from, 10), all + 2 * margin);
    const begin = Math.min(Math.max(from, first - margin), last + margin - span);
    this.from = begin;
    this.to = begin + span;
  }

  /** `factor`: below 1 to see more of less. `x`: the pixel that stays. */
  zoom(factor: number, x: number): void {
    const at = this.timeAt(x);
    const span = this.to - this.from;
    const wanted = span * factor;
    const share = (at - this.from) / span;
    this.show(at - wanted * share, at + wanted * (1 - share));
  }

  pan(pixels: number, lines = 0): void {
    const change = pixels * this.perPixel;
    this.show(this.from + change, this.to + change);
    this.scrollTo(this.scroll + lines);
  }

  scrollTo(top: number): void {
    this.scroll = Math.max(0, Math.min(top, this.#total - (this.height - AXIS) + GAP));
  }

  reveal(row: Row, start: number, end: number): void {
    const span = this.to - this.from;
    if (end < this.from + span * 0.02 || start > this.to - span * 0.02) {
      const middle = end - start > span ? start + span * 0.4 : (start + end) / 2;
      this.show(middle - span / 2, middle + span / 2);
    }
    const lane = this.byNumber[row.lane];
    if (lane === undefined) return;
    if (lane.isFolded && row.depth > 0) this.fold(lane);
    const top = this.rowTop(lane, row.depth);
    if (top < AXIS) this.scrollTo(this.scroll - (AXIS - top) - ROW);
    else if (top + ROW > this.height) this.scrollTo(this.scroll + top + 2 * ROW - this.height);
  }
}
