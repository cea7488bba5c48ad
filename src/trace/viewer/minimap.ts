import type { LaneKind } from '../formats/html/columns.js';
import { byId, Surface, theme } from './dom.js';
import { type Layout, NAMES } from './layout.js';
import { firstFrom, type Row, type Trace } from './trace.js';

/** How busy harts are over the whole trace, and the window in it. */
export class Minimap {
  readonly #layout: Layout;
  readonly #trace: Trace;
  readonly #surface = new Surface(byId<HTMLCanvasElement>('map'));
  /** For each pixel: the share of harts, or of tasks where there is none, that were in slices. */
  #shares: Float64Array | undefined;

  constructor(trace: Trace, layout: Layout, changed: () => void) {
    this.#trace = trace;
    this.#layout = layout;
    const { canvas } = this.#surface;
    const move = (event: PointerEvent): void => {
      if (event.buttons !== 1) return;
      const half = (layout.to - layout.from) / 2;
      const share = (event.offsetX - NAMES) / (this.#surface.width - NAMES);
      const at = trace.first + share * (trace.last - trace.first);
      layout.show(at - half, at + half);
      changed();
    };
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    canvas.addEventListener('pointermove', move);
  }

  draw(): void {
    const colors = theme();
    const { first, last } = this.#trace;
    this.#surface.clear(colors.back);
    const { pen, width, height } = this.#surface;
    if (this.#shares?.length !== Math.max(1, Math.floor(width - NAMES))) this.#shares = this.#measure(width - NAMES);
    pen.fillStyle = colors.panel;
    pen.fillRect(0, 0, NAMES, height);
    pen.fillStyle = colors.soft;
    pen.fillText('whole trace', 18, height / 2);
    pen.globalAlpha = 0.55;
    pen.fillStyle = colors.accent;
    for (const [x, share] of this.#shares.entries())
      if (share > 0) pen.fillRect(NAMES + x, height - 3 - share * (height - 6), 1, share * (height - 6));
    const at = (time: number): number => NAMES + ((time - first) / (last - first)) * (width - NAMES);
    const [left, right] = [Math.max(NAMES, at(this.#layout.from)), Math.min(width, at(this.#layout.to))];
    pen.fillStyle = colors.line;
    pen.fillRect(NAMES, 0, left - NAMES, height);
    pen.fillRect(right, 0, width - right, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colors.pick;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), height - 1);
  }

  #measure(pixels: number): Float64Array {
    const shares = new Float64Array(Math.max(1, Math.floor(pixels)));
    const { rows, lanes, start, first, last } = this.#trace;
    const of = (...kinds: (LaneKind | undefined)[]): Row[] =>
      rows.filter(({ lane, depth }) => depth === 0 && kinds.includes(lanes[lane]?.kind));
    const harts = of('hart', 'thread');
    const used = harts.length > 0 ? harts : of('task');
    const step = (last - first) / shares.length;
    for (const row of used) {
      let i = 0;
      for (let x = 0; x < shares.length; x++) {
        const next = firstFrom(row, start, first + (x + 1) * step, i);
        const inside = (row.busy[next] as number) - (row.busy[i] as number);
        // A long slice goes on in the pixels behind the one that it begins in.
        for (let to = x, rest = inside; rest > 0 && to < shares.length; to++, rest -= step)
          shares[to] = (shares[to] as number) + Math.min(rest, step) / step / used.length;
        i = next;
      }
    }
    return shares.map((share) => Math.min(1, share));
  }
}
