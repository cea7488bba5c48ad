// Numbers and texts as formats of text write them.
import { visibleJson } from '../../text/index.js';

/** Nanoseconds as microseconds with three decimals. */
export function micros(nanos: number): string {
  const rest = nanos % 1000;
  return `${(nanos - rest) / 1000}.${String(rest).padStart(3, '0')}`;
}

/** JSON on one line, in which everything can be seen. What is undefined is left out. */
export function json(value: unknown): string {
  return visibleJson(JSON.stringify(value));
}

/** What needs no escapes as JSON. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** A text as JSON. */
export function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : json(text);
}
