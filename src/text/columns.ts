import { clipNames } from './short-name.js';
import { clipEnd, clipPlace, padEndTo, textWidth } from './text-width.js';
import { visible } from './visible.js';

export interface ColumnsOptions {
  /** ANSI colours: for terminals only. */
  readonly color: boolean;
  /** Columns of the terminal; unlimited if left out. */
  readonly width?: number | undefined;
  /** Nothing is shortened: what is too long for the width makes its own line longer. */
  readonly isWhole?: boolean;
}

const GAP = '  ';
/** What names and places keep. A title is never shortened. */
const LEAST = 12;

/** By the last letter of a title. */
const kinds = { '>': 'numbers', '~': 'names', '/': 'places', ':': 'sentences' } as const;

interface Column {
  readonly title: string;
  readonly of: 'numbers' | 'names' | 'places' | 'sentences' | 'text';
}

const places = (clip: typeof clipEnd) => (texts: readonly string[], room: number) =>
  texts.map((text) => clip(text, room));
const whole = (texts: readonly string[]): readonly string[] => texts;
const shortened = {
  ...{ numbers: whole, text: whole, names: clipNames, places: places(clipPlace), sentences: places(clipEnd) },
};

/**
 * Columns of text under a title line. A title that ends in `>` is of numbers, set flush right. Names (`~`), and places
 * (`/`) or sentences (`:`) give way in a narrow terminal, and nothing else does. Each line ends in a newline.
 */
export function textTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  { color, width = Number.POSITIVE_INFINITY, isWhole = false }: ColumnsOptions,
): string {
  const columns = titles.map(columnOf);
  const cells = columns.map((_, i) => rows.map((row) => visible(row[i] ?? '')));
  const room = fitted(columns, cells, width);
  const shown = isWhole ? cells : columns.map(({ of }, i) => shortened[of](cells[i] ?? [], room[i] ?? 0));
  const widths = isWhole ? room : widest(columns, shown);
  const line = (row: readonly string[]): string =>
    columns
      .map(({ of }, i) => {
        const [cell, length] = [row[i] ?? '', widths[i] ?? 0];
        if (of === 'numbers') return cell.padStart(length);
        // What is cut off a line afterwards would be kept with it.
        return i === columns.length - 1 ? cell : padEndTo(cell, length);
      })
      .join(GAP)
      .trimEnd();
  const head = line(columns.map(({ title }) => title));
  const body = rows.map((_, at) => line(shown.map((texts) => texts[at] ?? '')));
  return `${[color ? `\x1b[1m${head}\x1b[0m` : head, ...body].join('\n')}\n`;
}

function columnOf(title: string): Column {
  const of = kinds[title.at(-1) as keyof typeof kinds];
  return of === undefined ? { title, of: 'text' } : { title: title.slice(0, -1), of };
}

function widest(columns: readonly Column[], cells: readonly (readonly string[])[]): number[] {
  return columns.map(({ title }, i) =>
    (cells[i] ?? []).reduce((most, cell) => Math.max(most, textWidth(cell)), textWidth(title)),
  );
}

/** The widths of columns: the widest of what may give way does, until the line fits or all have the least. */
function fitted(columns: readonly Column[], cells: readonly (readonly string[])[], width: number): number[] {
  const widths = widest(columns, cells);
  const least = columns.map(({ title }) => Math.max(LEAST, textWidth(title)));
  const spare = (i: number): number => (widths[i] ?? 0) - (least[i] ?? 0);
  const yielding = [...columns.keys()].filter((i) => !['numbers', 'text'].includes(columns[i]?.of ?? 'text'));
  let over = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1)) - width;
  while (over > 0) {
    const [most] = yielding.filter((i) => spare(i) > 0).sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (most === undefined) break;
    widths[most] = (widths[most] ?? 0) - 1;
    over--;
  }
  return widths;
}

/** `1 probe`, `2 probes`. */
export function plural(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
