import { timeText } from '../events/text-table.js';
import type { HtmlStacks } from '../formats/html/tables.js';
import { byId, colorOf, el, fitting, listOf, onScheme, placeOf, Surface, showTip, theme } from './dom.js';

const ROW = 18;
/** Narrower frames are left out, in pixels. */
const NARROWEST = 0.5;

const view = byId('view');

/** A flame graph: callers above what they call. A click zooms. */
export class Flame {
  readonly #canvas = el('canvas', { tabindex: '0', role: 'application' });
  /** The canvas stays where it is while its view is scrolled: browsers show none of a hundred thousand pixels. */
  readonly parts = [this.#canvas, el('div')] as const;
  readonly #stacks: HtmlStacks;
  readonly #surface = new Surface(this.#canvas);
  /** Nanoseconds inside each node, with what it called; and in those before it. */
  readonly #total: Float64Array;
  readonly #from: Float64Array;
  readonly #depth: Uint32Array;
  readonly #all: number;
  /** Nodes: the one that fills the width, and the one that is selected; -1: none. */
  #picked = { zoom: -1, node: -1 };
  #filter = '';

  constructor(stacks: HtmlStacks, title: string) {
    this.#stacks = stacks;
    const { parent, self } = stacks;
    this.#total = Float64Array.from(self);
    this.#from = new Float64Array(self.length);
    this.#depth = new Uint32Array(self.length);
    for (let i = self.length - 1; i >= 0; i--) {
      const caller = parent[i] as number;
      if (caller >= 0) this.#total[caller] = (this.#total[caller] as number) + (this.#total[i] as number);
    }
    this.#all = this.#place();
    const deepest = this.#depth.reduce((most, depth) => Math.max(most, depth), 0);
    this.parts[1].style.height = `calc(${(deepest + 2) * ROW + 8}px - 100%)`;
    this.#canvas.setAttribute(
      'aria-label',
      `${title}: ${timeText(this.#all)}, ${self.length} stacks. Arrows select, Enter zooms, Escape zooms out.`,
    );
    this.#canvas.addEventListener('click', ({ offsetX, offsetY }) => this.#pick(this.#at(offsetX, offsetY), true));
    this.#canvas.addEventListener('mousemove', ({ offsetX, offsetY }) => this.#hover(offsetX, offsetY));
    this.#canvas.addEventListener('mouseleave', () => byId('tip').setAttribute('hidden', ''));
    this.#canvas.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.draw()).observe(this.#canvas);
    view.addEventListener('scroll', () => this.draw());
    onScheme(() => this.draw());
  }

  /** Frames without the text are dim. */
  search(text: string): void {
    this.#filter = text.toLowerCase();
    this.draw();
  }

  /** Children by their names, side by side below their callers. Gives the time of all. */
  #place(): number {
    const { parent } = this.#stacks;
    const children: number[][] = [];
    for (const [i, caller] of parent.entries()) {
      children[caller + 1] ??= [];
      children[caller + 1]?.push(i);
    }
    const put = (nodes: readonly number[] = [], start: number, depth: number): number => {
      let at = start;
      for (const i of nodes) {
        this.#from[i] = at;
        this.#depth[i] = depth;
        at += this.#total[i] as number;
      }
      return at;
    };
    for (const list of children) list?.sort((a, b) => (this.#nameOf(a) < this.#nameOf(b) ? -1 : 1));
    const all = put(children[0], 0, 1);
    // Callers come before what they call.
    for (const i of parent.keys()) put(children[i + 1], this.#from[i] as number, (this.#depth[i] as number) + 1);
    return all;
  }

  get #window(): { readonly from: number; readonly perPixel: number } {
    const { zoom } = this.#picked;
    const time = zoom < 0 ? this.#all : (this.#total[zoom] as number);
    return { from: zoom < 0 ? 0 : (this.#from[zoom] as number), perPixel: time / Math.max(1, this.#surface.width) };
  }

  draw(): void {
    if (this.#canvas.clientWidth === 0) return;
    const colors = theme();
    this.#surface.clear(colors.back);
    const { from, perPixel } = this.#window;
    const { width, height } = this.#surface;
    this.#frame({ left: 0, wide: width, y: this.#top(0), name: `all: ${timeText(this.#all)}`, color: colors.line });
    for (let i = 0; i < this.#total.length; i++) {
      const y = this.#top(this.#depth[i] as number);
      if (y < -ROW || y > height) continue;
      const x = ((this.#from[i] as number) - from) / perPixel;
      const wide = (this.#total[i] as number) / perPixel;
      if (wide < NARROWEST || x > width || x + wide < 0) continue;
      const name = this.#nameOf(i);
      const isDim = this.#filter !== '' && !name.toLowerCase().includes(this.#filter);
      const kind = this.#stacks.areWaits || name.startsWith('poll ') ? 'poll' : 'call';
      const color = isDim ? colors.line : colorOf(name.startsWith('[') ? 'wait' : kind, name, colors.isDark);
      const left = Math.max(0, x);
      this.#frame({ left, wide: Math.min(x + wide, width) - left, y, name, color, isPicked: i === this.#picked.node });
    }
  }

  #frame(drawn: { left: number; wide: number; y: number; name: string; color: string; isPicked?: boolean }): void {
    const { left, wide, y, name, color, isPicked = false } = drawn;
    const { pen } = this.#surface;
    pen.fillStyle = color;
    pen.fillRect(left, y, Math.max(0.5, wide - 1), ROW - 1);
    pen.fillStyle = theme().ink;
    if (wide > 24) pen.fillText(fitting(name, wide - 8), left + 4, y + ROW / 2);
    pen.strokeStyle = theme().pick;
    pen.lineWidth = 2;
    if (isPicked) pen.strokeRect(left + 1, y + 1, Math.max(1, wide - 3), ROW - 3);
  }

  /** Where frames of a depth are on the canvas. */
  #top(depth: number): number {
    return 2 + depth * ROW - view.scrollTop;
  }

  #at(x: number, y: number): number {
    const { from, perPixel } = this.#window;
    const depth = Math.floor((y - this.#top(0)) / ROW);
    const time = from + x * perPixel;
    return this.#stacks.frame.findIndex((_, i) => {
      const start = this.#from[i] as number;
      return this.#depth[i] === depth && start <= time && time < start + (this.#total[i] as number);
    });
  }

  #hover(x: number, y: number): void {
    const i = this.#at(x, y);
    const text = i < 0 ? undefined : `${this.#nameOf(i)}  ${timeText(this.#total[i] as number)}`;
    showTip(text, x, this.#surface.width, () => y + 16);
  }

  #nameOf(i: number): string {
    return this.#stacks.frames[this.#stacks.frame[i] as number]?.name ?? '';
  }

  /** -1: everything. */
  #pick(node: number, isZoomed: boolean): void {
    this.#picked = { node, zoom: isZoomed ? node : this.#picked.zoom };
    const top = this.#top(this.#depth[node] ?? 0);
    if (node >= 0) view.scrollTop += Math.min(0, top) + Math.max(0, top + ROW - this.#surface.height);
    this.draw();
    this.describe();
  }

  describe(): void {
    const { node } = this.#picked;
    const { frames, frame, self, calls, samples } = this.#stacks;
    const about = frames[frame[node] as number];
    const time = this.#total[node] ?? 0;
    const pairs = [
      ['time', `${timeText(time)}, ${((100 * time) / Math.max(1, this.#all)).toFixed(2)} % of all`],
      ['self', timeText(self[node] ?? 0)],
      ['calls', calls[node]],
      ['samples here', samples[node]],
      ['at', placeOf(about?.file, about?.line)],
    ] as const;
    const list = pairs.flatMap(([title, text]) => (text ? [[title, String(text)] as const] : []));
    byId('details').replaceChildren(...(about ? [el('h2', {}, about.name), listOf(list)] : []));
  }

  #key(event: KeyboardEvent): void {
    const { node } = this.#picked;
    const { parent } = this.#stacks;
    const sibling = (step: 1 | -1): number => {
      const alike = this.#childrenOf(parent[node] ?? -1);
      return alike[alike.indexOf(node) + step] ?? node;
    };
    const to: Readonly<Record<string, () => number>> = {
      ArrowDown: () => this.#childrenOf(node)[0] ?? node,
      ArrowUp: () => parent[node] ?? -1,
      ArrowLeft: () => sibling(-1),
      ArrowRight: () => sibling(1),
      Enter: () => node,
      Escape: () => -1,
    };
    const next = to[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.#pick(next(), event.key === 'Enter' || event.key === 'Escape');
  }

  /** From left to right, those with time. */
  #childrenOf(caller: number): number[] {
    const found = [...this.#stacks.parent.keys()].filter((i) => this.#stacks.parent[i] === caller);
    return found
      .filter((i) => (this.#total[i] as number) > 0)
      .sort((a, b) => (this.#from[a] as number) - (this.#from[b] as number));
  }
}
