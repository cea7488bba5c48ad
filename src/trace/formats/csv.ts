// Comma-separated values (RFC 4180), with a head: a row a call, a poll or an instant. The columns: `spanColumns` of
// ./spans.ts. A field with a comma, a quote or a break of line stands in quotes; what is not known is empty.
// One that a spreadsheet would take for a formula has an apostrophe before it.
import { startOf } from '../../base/file-bytes.js';
import { visible } from '../../text/index.js';
import type { Format } from './format.js';
import type { TextPart } from './output/record-block.js';
import { type Span, type SpanSubject, spanColumns, spanLines } from './spans.js';
import { encoded } from './text-lines.js';

const HEAD = spanColumns.join(',');

export const csv: Format = {
  name: 'CSV',
  extensions: ['.csv'],
  about: 'a row a call, poll or instant, for spreadsheets, DuckDB and pandas',
  use: 'read it with DuckDB, pandas or a spreadsheet',
  isAppended: true,
  holdsSamples: 'each',
  recognizes: (head) => startOf(head).startsWith(`${HEAD}\n`),
  open: (file) => spanLines(file, () => `${HEAD}\n`, rowOf),
};

/** The cells of a subject, which many rows have. */
const subjects = new WeakMap<SpanSubject, Uint8Array>();

function rowOf(span: Span): TextPart[] {
  const { subject } = span;
  return [
    cell(span.type),
    ',',
    span.time_ns,
    ',',
    span.duration_ns ?? '',
    ',',
    span.hart ?? '',
    ',',
    span.thread ?? '',
    ',',
    span.depth ?? '',
    subjects.get(subject) ?? cellsOf(subject),
    cell(span.result),
    ',',
    cell(span.detail),
    '\n',
  ];
}

function cellsOf(subject: SpanSubject): Uint8Array {
  const { name, instance, address, file, line, task } = subject;
  const cells = encoded(`,${[name, instance, address, file, line?.toString(), task].map(cell).join(',')},`);
  subjects.set(subject, cells);
  return cells;
}

/** What stands in a cell as it is. */
const PLAIN = /^(?:[!#-*./-<>?A-~ ][!#-+\--~ ]*)?$/;

/** What a spreadsheet would work out: names come from the program, and numbers are what they are. */
function isFormula(text: string): boolean {
  return /^[=+\-@]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text);
}

function cell(value: string | undefined): string {
  if (value === undefined) return '';
  if (PLAIN.test(value)) return value;
  const text = `${isFormula(value) ? "'" : ''}${visible(value)}`;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
