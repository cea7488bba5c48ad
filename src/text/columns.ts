import { clipName } from './short-name.js';
import { clipPlace, padEndTo, textWidth } from './text-width.js';
import { visible } from './visible.js';

export interface ColumnsOptions {
  /** ANSI colours: for terminals only. */
  readonly color: boolean;
  /** Columns of the terminal; unlimited if left out. */
  readonly width?: number | undefined;
}

const GAP = '  ';
/** What names and places keep. A title is never shortened. */
const LEAST = 12;

/** By the last letter of a title. */
const kinds = { '>': 'numbers', '~': 'names', '/': 'places' } as const;

interface Column {
  readonly title: string;
  readonly of: 'numbers' | 'names' | 'places' | 'text';
}

/**
 * Columns of text under a title line. A title that ends in `>` is of numbers, set flush right. Names (`~`) and places
 * (`/`) give way in a narrow terminal, and nothing else does. Each line ends in a newline.
 */
export function textTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  { color, width = Number.POSITIVE_INFINITY }: ColumnsOptions,
): string {
  const columns = titles.map(columnOf);
  const cells = rows.map((row) => row.map(visible));
  const room = fitted(columns, cells, width);
  const shown = cells.map((row) => columns.map(({ of }, i) => shortened(row[i] ?? '', of, room[i] ?? 0)));
  const widths = widest(columns, shown);
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
  return `${[color ? `\x1b[1m${head}\x1b[0m` : head, ...shown.map(line)].join('\n')}\n`;
}

function columnOf(title: string): Column {
  const of = kinds[title.at(-1) as keyof typeof kinds];
  return of === undefined ? { title, of: 'text' } : { title: title.slice(0, -1), of };
}

function shortened(cell: string, of: Column['of'], room: number): string {
  return of === 'names' ? clipName(cell, room) : of === 'places' ? clipPlace(cell, room) : cell;
}

function widest(columns: readonly Column[], cells: readonly (readonly string[])[]): number[] {
  return columns.map(({ title }, i) =>
    cells.reduce((most, row) => Math.max(most, textWidth(row[i] ?? '')), textWidth(title)),
  );
}

/** The widths of columns: the widest of what may give way does, until the line fits or all have the least. */
function fitted(columns: readonly Column[], cells: readonly (readonly string[])[], width: number): number[] {
  const widths = widest(columns, cells);
  const least = columns.map(({ title }) => Math.max(LEAST, textWidth(title)));
  const spare = (i: number): number => (widths[i] ?? 0) - (least[i] ?? 0);
  const yielding = [...columns.keys()].filter((i) => ['names', 'places'].includes(columns[i]?.of ?? ''));
  let over = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1)) - width;
  while (over > 0) {
    const [most] = yielding.filter((i) => spare(i) > 0).sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (most === undefined) break;
    widths[most] = (widths[most] ?? 0) - 1;
    over--;
  }
  return widths;
}
