import { styleText } from 'node:util';
import { clipEnd, padEndTo, textTable } from '../../text/index.js';
import { isColored } from '../terminal.js';

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
