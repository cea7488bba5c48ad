// How many columns of a terminal text takes: names may be of any script.
import stringWidth from 'string-width';

/** What takes a column a character: text of programs, and what is cut off of it. */
const NARROW = /^[ -~\u2026]*$/;

export function textWidth(text: string): number {
  return NARROW.test(text) ? text.length : stringWidth(text);
}

export function padEndTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

/** Keeps the end: the last parts of a path say the most. */
export function clipStart(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  if (NARROW.test(text)) return `…${text.slice(text.length - width + 1)}`;
  const letters = [...text];
  return `…${longest(letters, width, (count) => letters.slice(letters.length - count))}`;
}

/** Keeps the begin. */
export function clipEnd(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  if (NARROW.test(text)) return `${text.slice(0, Math.max(0, width - 1))}…`;
  const letters = [...text];
  return `${longest(letters, width, (count) => letters.slice(0, count))}…`;
}

/** The longest part that leaves a column for the mark, by halves, because each is measured whole. */
function longest(letters: readonly string[], width: number, part: (count: number) => readonly string[]): string {
  let [least, most] = [0, letters.length];
  while (least < most) {
    const count = Math.ceil((least + most) / 2);
    if (textWidth(part(count).join('')) <= width - 1) least = count;
    else most = count - 1;
  }
  return part(least).join('');
}

/**
 * A source file and line, with as many of its folders as there is room for: `…/net/mod.rs:4`. Of other text the end is
 * kept.
 */
export function clipPlace(text: string, width: number): string {
  if (textWidth(text) <= width || text.includes(' ')) return clipStart(text, width);
  // The mark and the slash behind it are two columns.
  let place = text;
  while (textWidth(place) > width - 2 && place.includes('/')) place = place.slice(place.indexOf('/') + 1);
  return textWidth(place) > width - 2 ? clipStart(text, width) : `…/${place}`;
}

/** Lines of words that are at most so wide, if no word is wider; all but the first behind `indent`. */
export function wrapped(text: string, width: number, indent: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<=\S) (?=\S)/)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && textWidth(longer) > width) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  return [...lines, line];
}
