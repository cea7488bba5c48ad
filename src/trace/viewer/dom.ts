import { shortName } from '../../text/index.js';

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found as T;
}

/** A new element. Texts are never HTML. */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Names and what they are, as a list. */
export function listOf(pairs: readonly (readonly [string, string])[]): HTMLElement {
  return el('dl', {}, ...pairs.flatMap(([name, value]) => [el('dt', {}, name), textOf(value)]));
}

/** Links of an await chain, and frames of a stack, have a line each. */
function textOf(text: string): HTMLElement {
  const lines = text.split(/ (?=[<>] )/);
  return el('dd', {}, ...(lines.length === 1 ? [text] : lines.map((line) => el('div', {}, line))));
}

/** Shows a text next to a place of the page; undefined: none. `top`: of what fits above its end. */
export function showTip(text: string | undefined, x: number, width: number, top: (height: number) => number): void {
  const tip = byId('tip');
  tip.hidden = text === undefined;
  if (text === undefined) return;
  tip.textContent = text;
  tip.style.left = `${Math.min(x + 14, Math.max(0, width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${top(tip.offsetHeight)}px`;
}

export const placeOf = (file: string | null | undefined, line: number | null | undefined): string =>
  file ? (line ? `${file}:${line}` : file) : '';

/** A canvas that is as large as it is shown, in pixels of the page. */
export class Surface {
  readonly canvas: HTMLCanvasElement;
  readonly pen: CanvasRenderingContext2D;
  width = 0;
  height = 0;

  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.pen = canvas.getContext('2d', { alpha: false }) as CanvasRenderingContext2D;
  }

  /** Before each drawing. */
  clear(color: string): void {
    const { clientWidth, clientHeight } = this.canvas;
    const scale = devicePixelRatio;
    const [wide, high] = [Math.round(clientWidth * scale), Math.round(clientHeight * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    this.width = clientWidth;
    this.height = clientHeight;
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.pen.fillStyle = color;
    this.pen.fillRect(0, 0, this.width, this.height);
    this.pen.font = FONT;
    this.pen.textBaseline = 'middle';
  }
}

const FONT = '11px ui-monospace, "DejaVu Sans Mono", monospace';
/** Pixels of a character. */
export const CHARACTER = 6.65;

/** As much of a name as there is room for. */
export function fitting(name: string, pixels: number): string {
  return shortName(name, Math.floor(pixels / CHARACTER));
}

const darkScheme = matchMedia('(prefers-color-scheme: dark)');
let known: Theme | undefined;

export function theme(): Theme {
  if (known?.isDark === darkScheme.matches) return known;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const colors = Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Name, string>;
  known = { ...colors, isDark: darkScheme.matches };
  return known;
}

export function onScheme(changed: () => void): void {
  darkScheme.addEventListener('change', changed);
}

const names = ['back', 'panel', 'line', 'ink', 'soft', 'accent', 'mark', 'pick'] as const;
type Name = (typeof names)[number];
export type Theme = Readonly<Record<Name, string>> & { readonly isDark: boolean };

/** The same for the same name: warm for functions, blue for polls, grey for waits. */
export function colorOf(kind: string, name: string, isDark: boolean): string {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) >>> 0;
  const bright = ((hash >>> 8) % 10) + (isDark ? 35 : 70);
  if (kind === 'wait') return `hsl(${220 + (hash % 40)} 12% ${isDark ? bright - 4 : bright + 8}%)`;
  if (kind === 'gap') return `hsl(0 45% ${isDark ? 32 : 80}%)`;
  return kind === 'poll'
    ? `hsl(${196 + (hash % 44)} ${isDark ? 48 : 70}% ${bright}%)`
    : `hsl(${14 + (hash % 40)} ${isDark ? 48 : 82}% ${bright - 2}%)`;
}
