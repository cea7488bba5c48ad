import {
  clipEnd,
  clipPlace,
  clipStart,
  foldBrackets,
  padEndTo,
  sharedBy,
  shownFile,
  textWidth,
  visible,
  wrapped,
} from '../../text/index.js';
import { awaitText } from './await-place.js';

export interface TableOptions {
  /** ANSI colours: for terminals only. */
  readonly color: boolean;
  /** Columns of the terminal. Names and places are shortened to fit; numbers never are. */
  readonly width: number;
  /** Nothing is shortened: what is too long for the width makes its own line longer. */
  readonly isWhole?: boolean;
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
const NAME_MIN = 16;
const PLACE_MIN = 12;
/** The share of the line that places keep next to long names. */
const PLACE_SHARE = 1 / 3;

/**
 * Numbers at the left, right-aligned; then names and places, shortened at their start to fit. Lines end in newlines.
 */
export function textTable(
  head: readonly string[],
  nameTitle: string,
  lines: readonly TableLine[],
  options: TableOptions,
): string {
  const widths = numberWidths(head, lines);
  const names = lines.map(({ name }) => visible(name));
  const places = lines.map(({ file, line, inside }) =>
    visible(awaitText({ file: file ?? undefined, line: line ?? undefined, inside }, shownFile) ?? ''),
  );
  const isPlaced = places.some((place) => place !== '');
  const placeTitle = options.places ?? (isPlaced ? 'file:line' : '');
  const room = options.width - widths.reduce((sum, width) => sum + width + GAP.length, 0);
  const [nameWidth, placeWidth] = textWidths([nameTitle, ...names], [placeTitle, ...places], room);
  const clip = options.areSentences ? clipEnd : clipPlace;
  const [shownNames, shownPlaces] = options.isWhole
    ? [names, places]
    : [clipAll(names, nameWidth), places.map((place) => clip(place, placeWidth))];
  const row = (cells: readonly string[], name = '', place = ''): string => {
    const right = cells.map((cell, i) => cell.padStart(widths[i] ?? 0)).join(GAP);
    return `${right}${GAP}${padEndTo(name, nameWidth)}${GAP}${place}`.trimEnd();
  };
  const title = row(head, clipStart(nameTitle, nameWidth), clipStart(placeTitle, placeWidth));
  const body = lines.map(({ numbers }, i) => row(numbers, shownNames[i], shownPlaces[i]));
  return `${[options.color ? `\x1b[1m${title}\x1b[0m` : title, ...body].join('\n')}\n`;
}

/** Sentences below a table, broken between words in a terminal. Lines end in newlines. */
export function tableNotes(notes: readonly (string | false)[], { width }: TableOptions): string {
  return notes
    .filter((note) => note !== false)
    .flatMap((note) => (width < FILE_WIDTH ? wrapped(visible(note), width, '   ') : visible(note)))
    .map((line) => `${line}\n`)
    .join('');
}

function numberWidths(head: readonly string[], lines: readonly Pick<TableLine, 'numbers'>[]): number[] {
  return head.map((title, i) =>
    lines.reduce((most, { numbers }) => Math.max(most, numbers[i]?.length ?? 0), title.length),
  );
}

/** Whether there is room for `text` columns of names and places. */
export function hasRoom(
  head: readonly string[],
  lines: readonly Pick<TableLine, 'numbers'>[],
  { width }: TableOptions,
  text: number,
): boolean {
  return numberWidths(head, lines).reduce((sum, each) => sum + each + GAP.length, text) <= width;
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

/** Shares what is left of the line: the place gives way first, down to its end, then the name. */
function textWidths(names: readonly string[], places: readonly string[], room: number): [number, number] {
  const widest = (texts: readonly string[]): number => texts.reduce((most, text) => Math.max(most, textWidth(text)), 0);
  const [name, place] = [widest(names), widest(places)];
  const forText = room - (place > 0 ? GAP.length : 0);
  const placeWidth = Math.min(place, Math.max(PLACE_MIN, Math.floor(forText * PLACE_SHARE), forText - name));
  return [Math.min(name, Math.max(NAME_MIN, forText - placeWidth)), placeWidth];
}

/** Characters of a clipped text that are too few to say it from others. */
const FEW = 8;

/** Where different texts end alike, their common end is left out: `…ask::__ticker…`, `…ask::__waiter…`. */
function clipAll(names: readonly string[], width: number): string[] {
  const texts = foldedApart(names, width);
  const alike = new Map<string, Set<string>>();
  const endOf = (text: string): string => clipStart(text, Math.max(FEW, width - FEW));
  for (const text of texts) {
    if (textWidth(text) <= width) continue;
    const those = alike.get(endOf(text)) ?? new Set();
    alike.set(endOf(text), those.add(text));
  }
  return texts.map((text) => {
    if (textWidth(text) <= width) return text;
    const those = [...(alike.get(endOf(text)) ?? [])];
    if (those.length < 2) return clipStart(text, width);
    return clipStart(`${text.slice(0, text.length - commonEnd(those))}…`, width);
  });
}

/** Names with brackets folded, unless that makes different ones alike. */
function foldedApart(names: readonly string[], width: number): string[] {
  const fold = (name: string): string => foldBrackets(name, width);
  const isShared = sharedBy(names, fold);
  return names.map((name) => (isShared(name) ? name : fold(name)));
}

/** How long the end is that texts have in common, from the begin of a word on. */
function commonEnd([first = '', ...others]: readonly string[]): number {
  let length = 0;
  while (length < first.length && others.every((text) => text.at(-1 - length) === first.at(-1 - length))) length++;
  const end = first.slice(first.length - length);
  return end.length - Math.max(0, end.search(/[^a-z0-9]/i));
}
