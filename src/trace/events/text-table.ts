import { type ColumnsOptions, textTable as columnsTable, shownFile, visible, wrapped } from '../../text/index.js';
import { awaitText } from './await-place.js';

export interface TableOptions extends ColumnsOptions {
  readonly width: number;
  /** The heading of the places; `file:line` where it is left out, and there are some. */
  readonly places?: string;
  /** Places are sentences, which keep their begin where there is no room. */
  readonly areSentences?: boolean;
}

/** One line of a table: numbers as text, then a name and a place. */
export interface TableLine {
  readonly numbers: readonly string[];
  readonly name: string;
  readonly file: string | null;
  readonly line: number | null;
  /** What of a library is awaited at that place. */
  readonly inside?: string | undefined;
}

/** The width of tables in a file, which has no columns: a line with a longer name is longer. */
export const FILE_WIDTH = 200;

const GAP = '  ';

/** Numbers at the left, then names and places. */
export function textTable(
  head: readonly string[],
  nameTitle: string,
  lines: readonly TableLine[],
  { places, areSentences = false, ...options }: TableOptions,
): string {
  const rows = lines.map(({ numbers, name, file, line, inside }) => {
    const place = { file: file ?? undefined, line: line ?? undefined, inside };
    return [...numbers, name, awaitText(place, shownFile) ?? ''];
  });
  const isPlaced = places !== undefined || rows.some((row) => row.at(-1) !== '');
  const titles = [...head.map((title) => `${title}>`), `${nameTitle}~`];
  const placeTitle = `${places ?? 'file:line'}${areSentences ? ':' : '/'}`;
  return columnsTable(isPlaced ? [...titles, placeTitle] : titles, rows, options);
}

/** Sentences below a table, broken between words in a terminal. Lines end in newlines. */
export function tableNotes(notes: readonly (string | false)[], { width }: TableOptions): string {
  return notes
    .filter((note) => note !== false)
    .flatMap((note) => (width < FILE_WIDTH ? wrapped(visible(note), width, '   ') : visible(note)))
    .map((line) => `${line}\n`)
    .join('');
}

/** Whether there is room for `text` columns of names and places. */
export function hasRoom(
  head: readonly string[],
  lines: readonly Pick<TableLine, 'numbers'>[],
  { width }: TableOptions,
  text: number,
): boolean {
  const widths = head.map((title, i) =>
    lines.reduce((most, { numbers }) => Math.max(most, numbers[i]?.length ?? 0), title.length),
  );
  return widths.reduce((sum, each) => sum + each + GAP.length, text) <= width;
}

/** A time for people: `0 ns`, `999 ns`, `12.3 us`, `1.2 ms`, `3.4 s`. */
export function timeText(nanos: number): string {
  if (nanos < 1000) return `${nanos} ns`;
  // The limits are where one decimal would round up to 1000.0.
  if (nanos < 999_950) return `${(nanos / 1e3).toFixed(1)} us`;
  if (nanos < 999_950_000) return `${(nanos / 1e6).toFixed(1)} ms`;
  return `${(nanos / 1e9).toFixed(1)} s`;
}

/** `< 2.5 ms` for a time that is only known to be less. */
export function boundText(nanos: number, isBound: boolean | undefined): string {
  return isBound ? `< ${timeText(nanos)}` : timeText(nanos);
}

/** `1.6 ms +- 0.4`, both in one unit; `< 2.5 ms` if the error is as large as the time. */
export function timeWithError(nanos: number, error: number | undefined): string {
  if (!error) return timeText(nanos);
  if (error >= nanos) return boundText(nanos + error, true);
  const text = timeText(nanos);
  const unit = units[text.split(' ').at(-1) as keyof typeof units];
  return `${text} +- ${unit === 1 ? error : (error / unit).toFixed(1)}`;
}

const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
