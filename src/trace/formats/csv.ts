// Comma-separated values (RFC 4180), with a head: a row a call, a poll or an instant. The columns: `spanColumns` of
// ./spans.ts. A field with a comma, a quote or a break of line stands in quotes; what is not known is empty.
// One that a spreadsheet would take for a formula has an apostrophe before it.
import { startOf } from '../../base/file-head.js';
import { madeOnce } from '../../base/made-once.js';
import { visible } from '../../text/index.js';
import type { Format } from './format.js';
import { type Span, type SpanSubject, spanColumns, spanLines } from './spans.js';

const HEAD = spanColumns.join(',');

/** CSV. */
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
const subjects = new WeakMap<SpanSubject, string>();

function rowOf({ type, time_ns, duration_ns, hart, thread, depth, subject, result, detail }: Span): string {
  const about = madeOnce(subjects, subject, () => {
    const { name, instance, address, file, line, task } = subject;
    return [name, instance, address, file, line?.toString(), task].map(cell).join(',');
  });
  const numbers = `${time_ns},${duration_ns ?? ''},${hart ?? ''},${thread ?? ''},${depth ?? ''}`;
  return `${cell(type)},${numbers},${about},${cell(result)},${cell(detail)}\n`;
}

/** What a spreadsheet would work out: names come from the program, and numbers are what they are. */
function isFormula(text: string): boolean {
  return /^[=+\-@]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text);
}

function cell(value = ''): string {
  const text = `${isFormula(value) ? "'" : ''}${visible(value)}`;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
