import { visibleJson } from '../../text/index.js';
import type { TextBytes } from './output/text-bytes.js';

/** Texts that are kept as JSON. */
const mostQuoted = 1 << 14;
const quoted = new Map<string, string>();

/** A text as JSON. The same few come again and again. */
export function quote(text: string): string {
  let found = quoted.get(text);
  if (found === undefined) {
    if (quoted.size >= mostQuoted) quoted.clear();
    found = visibleJson(JSON.stringify(text));
    quoted.set(text, found);
  }
  return found;
}

/** Writes a text as JSON. */
export function putQuoted(into: TextBytes, text: string): void {
  if (!into.plainJson(text)) into.text(quote(text));
}

/** What `args` of an event may hold; what is undefined is left out. */
export type Args = Readonly<Record<string, string | number | boolean | undefined>>;

/** The fields that say what an event is of. */
export function named(category: string, name: string, args: Args): string {
  return `"cat":"${category}","name":${quote(name)},"args":${visibleJson(JSON.stringify(args))}`;
}
