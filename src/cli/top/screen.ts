// A terminal as a screen of lines: raw keys in, whole screens out, of which only the lines that changed are written.
import { writeSync } from 'node:fs';
import { emitKeypressEvents, type Key } from 'node:readline';
import { styleText } from 'node:util';
import { clipEnd, padEndTo, textTable } from '../../text/index.js';
import { isColored } from '../terminal.js';
import { sizeOf } from '../terminal-size.js';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

interface Uses {
  /** A key by its name (`up`, `return`, `escape`), or the character that it types. */
  onKey(key: string): void;
  /** The lines are wanted, because the size is another one, or the screen is there again. */
  onRedraw(): void;
}

const OPEN = '\x1b[?1049h\x1b[?25l\x1b[2J';
const CLOSE = '\x1b[0m\x1b[?25h\x1b[?1049l';

/** In use from {@link open} to {@link close}. However the process ends, the terminal is as it was. */
export class Screen {
  readonly #uses: Uses;
  #shown: readonly string[] = [];
  #isOpen = false;
  /** What was meant for stderr, which is the same terminal. */
  #held: string[] = [];
  readonly #write = process.stderr.write;

  constructor(uses: Uses) {
    this.#uses = uses;
  }

  get size(): Size {
    const { columns = 80, rows = 24 } = sizeOf(process.stdout);
    return { columns, rows };
  }

  open(): void {
    emitKeypressEvents(process.stdin);
    process.stdin.on('keypress', this.#onKeypress);
    process.stdout.on('resize', this.#onResize);
    process.on('SIGCONT', this.#onContinue);
    process.on('exit', this.#restore);
    this.#take();
  }

  close(): void {
    this.#restore();
    process.stdin.off('keypress', this.#onKeypress);
    process.stdout.off('resize', this.#onResize);
    process.off('SIGCONT', this.#onContinue);
    process.off('exit', this.#restore);
    process.stdin.pause();
  }

  /** The lines of a whole screen; they may have colours, and are as wide as the terminal at most. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const { rows } = this.size;
    const wanted = Array.from({ length: rows }, (_, i) => lines[i] ?? '');
    const changed = wanted.flatMap((line, i) =>
      line === this.#shown[i] ? [] : `\x1b[${i + 1};1H\x1b[0m${line}\x1b[0m\x1b[K`,
    );
    this.#shown = wanted;
    process.stdout.write(changed.join(''));
  }

  #take(): void {
    this.#isOpen = true;
    this.#shown = [];
    process.stdin.setRawMode(true);
    process.stdin.resume();
    process.stdout.write(OPEN);
    process.stderr.write = ((text: string | Uint8Array) =>
      this.#held.push(String(text)) > 0) as typeof process.stderr.write;
  }

  readonly #restore = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      process.stdin.setRawMode(false);
      // At once, because the process may be about to end.
      writeSync(1, CLOSE);
    } catch {
      // The terminal has gone.
    }
    process.stderr.write = this.#write;
    for (const text of this.#held) process.stderr.write(text);
    this.#held = [];
  };

  readonly #onKeypress = (text: string | undefined, { name, ctrl }: Key): void => {
    if (ctrl && name === 'z') this.#suspend();
    else if (ctrl) this.#uses.onKey(`ctrl-${name}`);
    else this.#uses.onKey(named.has(name ?? '') || text === undefined ? (name ?? '') : text);
  };

  #suspend(): void {
    this.#restore();
    process.kill(process.pid, 'SIGTSTP');
  }

  readonly #onContinue = (): void => {
    if (!this.#isOpen) this.#take();
    this.#uses.onRedraw();
  };

  readonly #onResize = (): void => {
    this.#shown = [];
    if (this.#isOpen) process.stdout.write('\x1b[2J');
    this.#uses.onRedraw();
  };
}

/** Keys whose character says less than their name. */
const named: ReadonlySet<string> = new Set([
  ...['up', 'down', 'left', 'right', 'pageup', 'pagedown', 'home', 'end'],
  ...['return', 'enter', 'escape', 'backspace', 'tab', 'delete'],
]);

export type Style = Parameters<typeof styleText>[0];

/** Without colours where the terminal has none, or NO_COLOR is set. */
export function styled(style: Style, text: string): string {
  const isPlain = style === 'inverse' || style === 'bold';
  return isPlain || isColored() ? styleText(style, text, { validateStream: false }) : text;
}

/** A table as wide as the terminal: its titles, and a line a row of cells. */
export function tableOf(
  titles: readonly string[],
  cells: readonly (readonly string[])[],
  columns: number,
  shown: (line: string, index: number) => string = (line) => clipEnd(line, columns),
): string[] {
  const [head = '', ...lines] = textTable(titles, cells, { color: false, width: columns }).trimEnd().split('\n');
  return [styled('bold', clipEnd(head, columns)), ...lines.map(shown)];
}

/** A line of a table as wide as the terminal. */
export function selectable(
  line: string,
  columns: number,
  { isSelected, style }: { readonly isSelected: boolean; readonly style: Style | undefined },
): string {
  const whole = padEndTo(clipEnd(line, columns), columns);
  const shown = style === undefined ? whole : styled(style, whole);
  return isSelected ? styled('inverse', shown) : shown;
}
