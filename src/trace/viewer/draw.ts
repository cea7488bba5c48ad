import { firstWhere } from '../../base/search.js';
import { timeText } from '../events/text-table.js';
import { CHARACTER, colorOf, fitting, type Surface, theme } from './dom.js';
import { AXIS, type Layout, NAMES, ROW, type ShownLane } from './layout.js';
import { firstFrom, indexIn, isSlice, type Row, type Trace } from './trace.js';

/** Pixels in which narrower slices are drawn together, as dark as the time in them. */
const BUCKET = 2;
/** Between two times. */
const TICK = 110;
const LEVELS = 5;
/** More arrows say nothing. */
const MOST_FLOWS = 150;

/** What else is drawn than slices. */
export interface Picked {
  readonly slice: number;
  /** Where it was selected: it may be on its task's lane too. */
  readonly row: Row | undefined;
  /** Undefined: nothing is searched for. */
  readonly matches: ((slice: number) => boolean) | undefined;
  /** That the selection is an end of. */
  readonly flow: Flow | undefined;
}

/** From a wake to the poll that it caused, from a system call to what serves it: numbers of slices. */
export interface Flow {
  readonly wake: number;
  readonly poll: number;
}

export class Drawing {
  readonly #trace: Trace;
  readonly #layout: Layout;
  readonly #surface: Surface;
  readonly #colors: string[] = [];
  readonly #theme = theme();
  #picked: Picked = { slice: -1, row: undefined, matches: undefined, flow: undefined };

  constructor(trace: Trace, layout: Layout, surface: Surface) {
    this.#trace = trace;
    this.#layout = layout;
    this.#surface = surface;
    for (const { kind, name } of trace.whats) this.#colors.push(colorOf(kind, name, this.#theme.isDark));
  }

  /** `flows`: in the order of their wakes. */
  all(flows: readonly Flow[], picked: Picked): void {
    const theme = this.#theme;
    this.#picked = picked;
    const { pen } = this.#surface;
    const lanes = this.#layout.visible();
    for (const [i, lane] of lanes.entries()) this.#lane(lane, i);
    this.#flows(flows);
    pen.fillStyle = theme.panel;
    pen.fillRect(0, 0, NAMES, this.#surface.height);
    for (const lane of lanes) this.#name(lane);
    this.#axis();
  }

  #lane(lane: ShownLane, i: number): void {
    const theme = this.#theme;
    const { pen, width } = this.#surface;
    const top = this.#layout.rowTop(lane, -1);
    if (i > 0) {
      pen.fillStyle = theme.line;
      pen.fillRect(NAMES, top - 3, width, 1);
    }
    for (const row of lane.rows) {
      if (lane.isFolded && row.depth > 0) break;
      const y = this.#layout.rowTop(lane, row.depth);
      if (y < AXIS - ROW || y > this.#surface.height) continue;
      if (row.depth < 0) this.#marks(row, y);
      else this.#slices(row, y);
      if (indexIn(row, this.#trace.start, this.#picked.slice) >= 0) this.#pick(y);
    }
  }

  /** Around the selection, which may be too narrow to be drawn itself. */
  #pick(y: number): void {
    const { pen, width } = this.#surface;
    const { start, end } = this.#trace;
    const { slice } = this.#picked;
    const left = Math.max(this.#layout.x(start[slice] as number), NAMES - 2);
    const right = Math.min(this.#layout.x(end[slice] as number), width + 2);
    pen.strokeStyle = this.#theme.pick;
    pen.lineWidth = 2;
    if (right >= left) pen.strokeRect(left, y, right - left, ROW - 2);
  }

  /** Of the row: the first slice that ends in the window. */
  #first(row: Row): number {
    const i = firstFrom(row, this.#trace.start, this.#layout.from);
    const before = row.ids[i - 1];
    return before !== undefined && (this.#trace.end[before] as number) >= this.#layout.from ? i - 1 : i;
  }

  #slices(row: Row, y: number): void {
    const { start, end } = this.#trace;
    const { from, to, perPixel } = this.#layout;
    const { ids, busy } = row;
    const run = { x: 0, end: 0, level: 0, slice: 0 };
    for (let i = this.#first(row); i < ids.length; ) {
      const id = ids[i] as number;
      const began = start[id] as number;
      if (began > to) break;
      const x = NAMES + (began - from) / perPixel;
      const wide = ((end[id] as number) - began) / perPixel;
      if (wide >= BUCKET) {
        this.#run(run, y);
        this.#slice(id, x, wide, y);
        i++;
        continue;
      }
      const left = NAMES + Math.floor((x - NAMES) / BUCKET) * BUCKET;
      let next = firstFrom(row, start, from + (left - NAMES + BUCKET) * perPixel, i + 1);
      const last = ids[next - 1] as number;
      if (next - 1 > i && ((end[last] as number) - (start[last] as number)) / perPixel >= BUCKET) next--;
      const share = ((busy[next] as number) - (busy[i] as number)) / (BUCKET * perPixel);
      const level = Math.max(1, Math.min(LEVELS, Math.ceil(share * LEVELS)));
      if (run.level !== level || run.end < left - 0.1) {
        this.#run(run, y);
        Object.assign(run, { x: left, level, slice: id });
      }
      run.end = left + BUCKET;
      i = next;
    }
    this.#run(run, y);
  }

  /** Slices that are too narrow to distinguish. */
  #run(run: { x: number; end: number; level: number; slice: number }, y: number): void {
    if (run.level === 0) return;
    const { pen } = this.#surface;
    pen.globalAlpha = (run.level / LEVELS) * 0.75 + 0.25;
    pen.fillStyle = this.#color(run.slice);
    pen.fillRect(run.x, y, run.end - run.x, ROW - 2);
    pen.globalAlpha = 1;
    run.level = 0;
  }

  #color(id: number): string {
    const [theme, picked] = [this.#theme, this.#picked];
    const what = this.#trace.what[id] as number;
    return picked.matches?.(id) === false ? theme.line : (this.#colors[what] as string);
  }

  #slice(id: number, x: number, wide: number, y: number): void {
    const { pen, width } = this.#surface;
    const theme = this.#theme;
    const left = Math.max(x, NAMES - 2);
    const right = Math.min(x + wide, width + 2);
    const shown = Math.max(1, right - left - (wide > 4 ? 1 : 0));
    pen.fillStyle = this.#color(id);
    pen.fillRect(left, y, shown, ROW - 2);
    if (this.#trace.isOpen[id] === 1 && wide > 8) {
      // Its end was not seen.
      pen.fillStyle = theme.back;
      for (let cut = 0; cut < 3; cut++) pen.fillRect(right - 3, y + 1 + cut * 5, 2, 3);
    }
    if (shown > 22) {
      const text = fitting(this.#trace.whats[this.#trace.what[id] as number]?.name ?? '', shown - 6);
      pen.fillStyle = theme.ink;
      if (text !== '') pen.fillText(text, left + 3, y + (ROW - 1) / 2);
    }
  }

  #marks(row: Row, y: number): void {
    const { pen } = this.#surface;
    const [theme, picked] = [this.#theme, this.#picked];
    const { start, what, whats, detail, details } = this.#trace;
    const { from, to, perPixel } = this.#layout;
    let free = 0;
    for (let i = this.#first(row); i < row.ids.length; ) {
      const id = row.ids[i] as number;
      const at = start[id] as number;
      if (at > to) break;
      const x = NAMES + (at - from) / perPixel;
      const kind = whats[what[id] as number]?.kind;
      pen.fillStyle =
        id === picked.slice
          ? theme.pick
          : kind === 'finding'
            ? theme.mark
            : kind === 'console' || kind === 'mark'
              ? theme.soft
              : theme.accent;
      if (picked.matches?.(id) === false) pen.fillStyle = theme.line;
      if (kind === 'wake' || kind === 'console') pen.fillRect(x - 1, y + 1, 2, 9);
      else diamond(pen, x, y + 5.5, kind === 'finding' ? 5 : 3);
      i = firstFrom(row, start, at + 2 * perPixel, i + 1);
      const next = row.ids[i];
      const room = (next === undefined ? this.#surface.width : this.#layout.x(start[next] as number)) - x;
      if (kind !== 'console' || room < 30 || x < free) continue;
      const text = (details[detail[id] as number] ?? '')
        .replace(/^line\t/, '')
        .slice(0, Math.floor((room - 8) / CHARACTER));
      pen.fillStyle = theme.soft;
      pen.fillText(text, x + 4, y + 6);
      free = x + room;
    }
  }

  #flows(flows: readonly Flow[]): void {
    const { start } = this.#trace;
    const { from, to } = this.#layout;
    const [theme, picked] = [this.#theme, this.#picked];
    const shown = [];
    const low = firstWhere(flows.length, (i) => (start[flows[i]?.poll as number] as number) >= from);
    for (let i = low; i < flows.length && shown.length <= MOST_FLOWS; i++) {
      const flow = flows[i] as Flow;
      if ((start[flow.poll] as number) > to) break;
      shown.push(flow);
    }
    if (shown.length <= MOST_FLOWS) for (const flow of shown) this.#arrow(flow, theme.soft, 0.45, 1);
    if (picked.flow) this.#arrow(picked.flow, theme.mark, 1, 2);
  }

  #arrow({ wake, poll }: Flow, color: string, alpha: number, wide: number): void {
    const { pen } = this.#surface;
    const { lane, depth, start, what, whats } = this.#trace;
    const at = (slice: number, level: number): readonly [number, number] | undefined => {
      const found = this.#layout.byNumber[(lane[slice] as number) - 1];
      return found && [this.#layout.x(start[slice] as number), this.#layout.rowTop(found, found.isFolded ? 0 : level)];
    };
    const isMark = !isSlice(whats[what[wake] as number]?.kind ?? 'wake');
    const [begin, end] = [at(wake, isMark ? -1 : (depth[wake] as number)), at(poll, depth[poll] as number)];
    if (begin === undefined || end === undefined) return;
    const [[x, y], [toX, toY]] = [begin, end];
    pen.strokeStyle = color;
    pen.fillStyle = color;
    pen.globalAlpha = alpha;
    pen.lineWidth = wide;
    const bend = Math.max(8, Math.min(60, (toX - x) / 2));
    pen.beginPath();
    pen.moveTo(x, y + 10);
    pen.bezierCurveTo(x + bend, y + 10, toX - bend, toY + ROW / 2, toX - 4, toY + ROW / 2);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(toX, toY + ROW / 2);
    pen.lineTo(toX - 6, toY + ROW / 2 - 3.5);
    pen.lineTo(toX - 6, toY + ROW / 2 + 3.5);
    pen.fill();
    pen.globalAlpha = 1;
  }

  #name(lane: ShownLane): void {
    const { pen } = this.#surface;
    const theme = this.#theme;
    const y = this.#layout.rowTop(lane, Math.min(0, lane.rows.at(-1)?.depth ?? 0)) - (lane.rows.length > 1 ? 0 : 2);
    pen.fillStyle = lane.kind === 'task' ? theme.ink : theme.accent;
    const isDeep = (lane.rows.at(-1)?.depth ?? 0) > 0;
    if (isDeep) pen.fillText(lane.isFolded ? '▸' : '▾', 6, y + ROW / 2);
    const [, number = '', name = lane.name] = /^(\d+: )(.*)$/s.exec(lane.name) ?? [];
    const short = lane.kind === 'task' ? name.replace(/ @0x[\da-f]+(?= \(|$).*$/, '') : name;
    const left = lane.process > 0 && lane.kind !== 'process' ? 28 : 18;
    pen.fillText(number + fitting(short, NAMES - 8 - left - number.length * CHARACTER), left, y + ROW / 2);
  }

  #axis(): void {
    const { pen, width } = this.#surface;
    const theme = this.#theme;
    pen.fillStyle = theme.panel;
    pen.fillRect(0, 0, width, AXIS - 2);
    pen.fillStyle = theme.line;
    pen.fillRect(0, AXIS - 2, width, 1);
    pen.fillRect(NAMES - 1, 0, 1, this.#surface.height);
    pen.fillStyle = theme.soft;
    const { from, to, perPixel } = this.#layout;
    pen.fillText(fitting(`${timeText(Math.round(to - from))} shown`, NAMES - 20), 18, AXIS / 2 - 1);
    const widest = tickText(to, stepOf(perPixel * TICK)).length * CHARACTER + 12;
    const step = stepOf(perPixel * Math.max(TICK, widest));
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = this.#layout.x(at);
      pen.fillStyle = theme.line;
      pen.fillRect(x, AXIS - 7, 1, 6);
      pen.fillStyle = theme.soft;
      pen.fillText(tickText(at, step), x + 4, AXIS / 2 - 1);
    }
  }
}

function diamond(pen: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  pen.beginPath();
  pen.moveTo(x, y - size);
  pen.lineTo(x + size, y);
  pen.lineTo(x, y + size);
  pen.lineTo(x - size, y);
  pen.fill();
}

/** A round number, at least this large. */
function stepOf(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10);
}

/** A time in the unit of the steps around it. */
function tickText(time: number, step: number): string {
  const [unit, name] = step >= 1e9 ? [1e9, 's'] : step >= 1e6 ? [1e6, 'ms'] : step >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
  return `${(Math.round(time / (unit as number)) || 0).toLocaleString('en').replaceAll(',', ' ')} ${name}`;
}
