import { padEndTo, textWidth } from './text-width.js';
import { visible } from './visible.js';

/**
 * Columns of text under a title line; a title that ends in `>` is of numbers, set flush right. Each line ends in a
 * newline.
 */
export function textTable(titles: readonly string[], rows: readonly (readonly string[])[], color: boolean): string {
  const cells = rows.map((row) => row.map(visible));
  const right = titles.map((title) => title.endsWith('>'));
  const heads = titles.map((title) => title.replace(/>$/, ''));
  const widths = heads.map((head, i) =>
    cells.reduce((width, row) => Math.max(width, textWidth(row[i] ?? '')), textWidth(head)),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (right[i] ? cell.padStart(widths[i] ?? 0) : padEndTo(cell, widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  const head = line(heads);
  return `${[color ? `\x1b[1m${head}\x1b[0m` : head, ...cells.map(line)].join('\n')}\n`;
}
