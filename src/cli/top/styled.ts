import { styleText } from 'node:util';
import { clipEnd, padEndTo } from '../../text/index.js';
import { isColored } from '../terminal.js';

export type Style = Parameters<typeof styleText>[0];

/** Without colours where the terminal has none, or NO_COLOR is set. */
export function styled(style: Style, text: string): string {
  const isPlain = style === 'inverse' || style === 'bold';
  return isPlain || isColored() ? styleText(style, text, { validateStream: false }) : text;
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
