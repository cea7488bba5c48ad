// Numbers and texts as formats of text write them.
import { visibleJson } from '../../text/index.js';
import type { ClockInfo, TraceInfo } from '../events/events.js';
import { digitsOf, type TextPart } from './output/record-block.js';

/** `000` to `999`. */
export const DIGITS: readonly string[] = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, '0'));
const BLANKS: readonly string[] = Array.from({ length: 200 }, (_, i) => ' '.repeat(i));

export function blanks(count: number): string {
  return BLANKS[count] ?? ' '.repeat(Math.max(0, count));
}

/** Puts a whole number behind others, with blanks before it: in so many characters at least. */
export function putRight(into: TextPart[], value: number, width: number): void {
  into.push(blanks(width - digitsOf(value)), value);
}

/** Nanoseconds as microseconds with three decimals. */
export function micros(nanos: number): string {
  const rest = nanos % 1000;
  return `${(nanos - rest) / 1000}.${DIGITS[rest]}`;
}

export function clockText({ guest, name }: ClockInfo): string {
  return `${guest ? 'guest clock' : 'clock'} ${name}`;
}

/** What a trace is of: `kernel.elf, riscv64, guest clock riscv-time`. */
export function headText({ program, arch, clock }: TraceInfo): string {
  return `${program}, ${arch}, ${clockText(clock)}`;
}

/** A text as it is kept where it comes again and again. */
export function encoded(text: string): Uint8Array {
  return utf8.encode(text);
}

const utf8 = new TextEncoder();

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

/** Puts a text as JSON behind others. */
export function putQuoted(into: TextPart[], text: string): void {
  if (PLAIN.test(text)) into.push('"', text, '"');
  else into.push(json(text));
}
