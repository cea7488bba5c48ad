import { timeText } from '../events/text-table.js';
import { showDetails } from './details.js';
import { byId, onScheme, Surface, showTip, theme } from './dom.js';
import { Drawing, type Flow, type Picked } from './draw.js';
import { matchesOf } from './find.js';
import { Layout, NAMES } from './layout.js';
import { Minimap } from './minimap.js';
import { deeper, firstFrom, indexIn, type Row, type Trace } from './trace.js';

/** Pixels next to a narrow slice that still mean it. */
const NEAR = 3;

/** The timeline with its window, its selection and its search. */
export class Timeline {
  readonly layout: Layout;
  readonly #trace: Trace;
  readonly #surface = new Surface(byId<HTMLCanvasElement>('lanes'));
  readonly #minimap: Minimap;
  readonly #flows: readonly Flow[];
  #drawing: Drawing;
  #isAsked = false;
  #picked: Picked = { slice: -1, row: undefined, matches: undefined, flow: undefined };
  /** Called when the window or the selection changes. */
  onChange = (): void => {};

  constructor(trace: Trace) {
    this.#trace = trace;
    this.layout = new Layout(trace);
    this.#drawing = new Drawing(trace, this.layout, this.#surface);
    this.#minimap = new Minimap(trace, this.layout, () => this.draw());
    this.#flows = flowsOf(trace);
    const { canvas } = this.#surface;
    canvas.setAttribute('role', 'application');
    canvas.setAttribute(
      'aria-label',
      `Timeline of ${trace.what.length} slices and marks on ${this.layout.lanes.length} lanes. Press ? for its keys.`,
    );
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.#pointer(canvas);
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const does = this.#keys()[event.key];
      if (does === undefined) return;
      event.preventDefault();
      does();
      this.draw();
    });
    onScheme(() => {
      this.#drawing = new Drawing(trace, this.layout, this.#surface);
      this.draw();
    });
  }

  get selected(): number {
    return this.#picked.slice;
  }

  /** At the next frame, once. */
  draw(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    requestAnimationFrame(() => {
      this.#isAsked = false;
      this.drawNow();
    });
  }

  drawNow(): void {
    if (this.#surface.canvas.clientHeight === 0) return;
    this.#surface.clear(theme().back);
    this.layout.width = this.#surface.width;
    this.layout.height = this.#surface.height;
    this.#drawing.all(this.#flows, this.#picked);
    this.#minimap.draw();
    this.onChange();
  }

  /** -1: nothing. `row`: of those that it is on. */
  select(slice: number, row = this.#rowOf(slice)): void {
    const flow = this.#flows.find(({ wake, poll }) => wake === slice || poll === slice);
    this.#picked = { ...this.#picked, slice, row, flow };
    this.draw();
    const { start, end } = this.#trace;
    if (row) this.layout.reveal(row, start[slice] as number, end[slice] as number);
    this.describe();
  }

  describe(): void {
    const { slice, flow } = this.#picked;
    showDetails(this.#trace, slice, flow && this.#causeText(flow, slice));
  }

  /** Marks what matches; gives how many slices do. Empty: nothing is searched for. */
  search(text: string): number {
    const found = text === '' ? undefined : matchesOf(this.#trace, text);
    this.#picked = { ...this.#picked, matches: found?.slices };
    this.draw();
    return found?.count ?? 0;
  }

  /** Selects the next slice that matches, or the one before. */
  next(step: 1 | -1): void {
    const { start, what } = this.#trace;
    const { slice: now, matches } = this.#picked;
    if (matches === undefined) return;
    const from = now < 0 ? this.layout.from : (start[now] as number);
    let [best, other] = [-1, -1];
    const isAfter = (a: number, b: number): boolean => {
      const change = (start[a] as number) - (b < 0 ? from : (start[b] as number));
      return step * (change || (b < 0 ? 0 : a - b)) > 0;
    };
    for (let id = 0; id < what.length; id++) {
      if (!matches(id)) continue;
      if (other < 0 || isAfter(other, id)) other = id;
      const isBehind = now < 0 ? (start[id] as number) >= from : isAfter(id, now);
      if (isBehind && (best < 0 || isAfter(best, id))) best = id;
    }
    this.select(best < 0 ? other : best);
  }

  /** Selects it, and shows as much time before and behind it. */
  showAround(slice: number): void {
    this.select(slice);
    this.#fit(1);
  }

  #causeText({ wake, poll }: Flow, slice: number): string {
    const { start, whats, what, details, detail } = this.#trace;
    const delay = timeText((start[poll] as number) - (start[wake] as number));
    const [cause, caused] = [whats[what[wake] as number], whats[what[poll] as number]];
    if (slice === wake) return `${caused?.kind} ${caused?.name}, ${delay} later`;
    if (cause?.kind !== 'wake') return `${cause?.name}, ${delay} before`;
    return `${(details[detail[wake] as number] ?? '').replace(/^what\t/, '')}, ${delay} before`;
  }

  /** The first row that a slice is on: its hart's or thread's before its task's. */
  #rowOf(slice: number): Row | undefined {
    return this.#trace.rows.find((row) => indexIn(row, this.#trace.start, slice) >= 0);
  }

  #keys(): Readonly<Record<string, () => void>> {
    const { layout } = this;
    const half = (layout.width + NAMES) / 2;
    const step = layout.width / 8;
    return {
      '+': () => layout.zoom(1 / 1.5, half),
      '=': () => layout.zoom(1 / 1.5, half),
      '-': () => layout.zoom(1.5, half),
      0: () => layout.show(this.#trace.first, this.#trace.last),
      f: () => this.#fit(),
      ArrowLeft: () => layout.pan(-step),
      ArrowRight: () => layout.pan(step),
      ArrowUp: () => layout.pan(0, -40),
      ArrowDown: () => layout.pan(0, 40),
      PageUp: () => layout.pan(0, -layout.height * 0.8),
      PageDown: () => layout.pan(0, layout.height * 0.8),
      Home: () => layout.scrollTo(0),
      End: () => layout.scrollTo(Number.MAX_SAFE_INTEGER),
      ',': () => this.#step(-1),
      '.': () => this.#step(1),
      k: () => this.#deeper(-1),
      j: () => this.#deeper(1),
      w: () => this.#otherEnd(),
      Escape: () => this.select(-1),
    };
  }

  /** `around`: how much time before and behind it, as a share of its own. */
  #fit(around = 0.1): void {
    const { start, end } = this.#trace;
    const slice = this.selected;
    if (slice < 0) return;
    const [from, to] = [start[slice] as number, end[slice] as number];
    const margin = Math.max(5, (to - from) * around);
    this.layout.show(from - margin, to + margin);
  }

  /** Selects what is before or behind the selection in its row; without one, the first that is shown. */
  #step(step: 1 | -1): void {
    const { slice, row: own } = this.#picked;
    const { start } = this.#trace;
    const { from, to } = this.layout;
    const shown = (row: Row): boolean => (start[row.ids[firstFrom(row, start, from)] ?? -1] ?? to) < to;
    const rows = this.layout.visible().flatMap((lane) => lane.rows.filter(({ depth }) => depth >= 0));
    const row = slice < 0 ? rows.find(shown) : own;
    if (row === undefined) return;
    const at = slice < 0 ? firstFrom(row, start, from) - step : indexIn(row, start, slice);
    const next = row.ids[at + step];
    if (next !== undefined) this.select(next, row);
  }

  /** See {@link deeper}. Without a selection, the first that is shown. */
  #deeper(step: 1 | -1): void {
    const { slice, row } = this.#picked;
    if (row === undefined) {
      this.#step(1);
      return;
    }
    const rows = this.layout.lanes.flatMap((lane) => lane.rows);
    const next = deeper(rows, this.#trace, { slice, row }, step);
    if (next) this.select(next.slice, next.row);
  }

  #otherEnd(): void {
    const { flow } = this.#picked;
    if (flow) this.select(flow.wake === this.selected ? flow.poll : flow.wake);
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    const { layout } = this;
    // In pixels, lines or pages.
    const unit = [1, 16, layout.height][event.deltaMode] ?? 1;
    const [across, along] = [event.deltaX * unit, event.deltaY * unit];
    if (event.offsetX < NAMES) layout.pan(0, along);
    else if (event.shiftKey || Math.abs(across) > Math.abs(along)) layout.pan(across || along);
    else layout.zoom(1.0018 ** along, event.offsetX);
    this.draw();
  }

  #pointer(canvas: HTMLCanvasElement): void {
    let drag: { x: number; y: number; hasMoved: boolean } | undefined;
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      drag = { x: event.offsetX, y: event.offsetY, hasMoved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', ({ offsetX: x, offsetY: y }) => {
      if (drag === undefined) this.#tip(x, y);
      else if (drag.hasMoved || Math.abs(x - drag.x) + Math.abs(y - drag.y) > NEAR) {
        this.layout.pan(drag.x - x, drag.y - y);
        drag = { x, y, hasMoved: true };
        this.draw();
      }
    });
    canvas.addEventListener('pointerup', ({ offsetX: x, offsetY: y }) => {
      if (drag && !drag.hasMoved) this.#click(x, y);
      drag = undefined;
    });
    const drop = (): void => {
      drag = undefined;
    };
    canvas.addEventListener('pointercancel', drop);
    canvas.addEventListener('lostpointercapture', drop);
    canvas.addEventListener('pointerleave', () => byId('tip').setAttribute('hidden', ''));
  }

  #click(x: number, y: number): void {
    if (x >= NAMES) {
      const row = this.#rowAt(y);
      const slice = this.#at(x, row);
      if (slice >= 0) this.select(slice, row);
      return;
    }
    const lane = this.layout.laneAt(y);
    if (lane) this.layout.fold(lane);
    this.draw();
  }

  #rowAt(y: number): Row | undefined {
    const lane = this.layout.laneAt(y);
    return lane && this.layout.rowAt(lane, y);
  }

  /** The slice at a place of a row; -1 if there is none. */
  #at(x: number, row: Row | undefined): number {
    if (row === undefined) return -1;
    const { start, end } = this.#trace;
    const time = this.layout.timeAt(x);
    const near = NEAR * this.layout.perPixel;
    const behind = firstFrom(row, start, time);
    let [best, distance] = [-1, near];
    for (const id of row.ids.subarray(Math.max(0, behind - 1), behind + 1)) {
      const away = Math.max((start[id] as number) - time, time - (end[id] as number), 0);
      if (away < distance) [best, distance] = [id, away];
    }
    return best;
  }

  #tip(x: number, y: number): void {
    const slice = x < NAMES ? -1 : this.#at(x, this.#rowAt(y));
    const { width, height, canvas } = this.#surface;
    const text = slice < 0 ? (x < NAMES ? this.layout.laneAt(y)?.name : undefined) : this.#tipText(slice);
    showTip(text, x, width, (own) => canvas.offsetTop + (y + 20 + own > height ? y - own - 6 : y + 16));
  }

  #tipText(slice: number): string {
    const { start, end, what, whats, details, detail, isOpen } = this.#trace;
    const name = whats[what[slice] as number]?.name ?? '';
    const nanos = (end[slice] as number) - (start[slice] as number);
    const more = (details[detail[slice] as number] ?? '').split('\n')[0]?.replace('\t', ': ') ?? '';
    const time = nanos > 0 && isOpen[slice] === 0 ? `  ${timeText(nanos)}` : '';
    return `${name}${time}${more === '' ? '' : `  ${more}`}`;
  }
}

/** In the order of their polls. */
function flowsOf({ wake, what, whats, start }: Trace): Flow[] {
  const wakes: number[] = [];
  const polls: number[] = [];
  /** A system call, and what serves it. */
  const ends: number[][] = [];
  for (let id = 0; id < wake.length; id++) {
    const number = wake[id] as number;
    if (number === 0) continue;
    if (whats[what[id] as number]?.kind === 'wake') wakes[number] = id;
    else if (number % 2 === 0) polls[number] ??= id;
    else ends[number] = [...(ends[number] ?? []), id];
  }
  for (const [number, ids = []] of ends.entries()) {
    const [first, second] = ids.sort((a, b) => (start[a] as number) - (start[b] as number) || b - a);
    if (first === undefined || second === undefined) continue;
    wakes[number] = first;
    polls[number] = second;
  }
  return polls
    .flatMap((poll, number) => (wakes[number] === undefined ? [] : [{ wake: wakes[number], poll }]))
    .sort((a, b) => (start[a.poll] as number) - (start[b.poll] as number));
}
