// Comma-separated values (RFC 4180), with a head: a row a call, a poll or an instant. The columns: `spanColumns` of
// ./spans.ts. A field with a comma, a quote or a break of line stands in quotes; what is not known is empty.
import { startOf } from '../../base/file-head.js';
import { visible } from '../../base/visible.js';
import type { Format } from './format.js';
import { type Span, type SpanSubject, Spans, spanColumns } from './spans.js';

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
  open: (file) => {
    const spans = new Spans(
      (span) => file.textRecord(`${rowOf(span)}\n`),
      () => file.flush(),
      () => file.close(),
    );
    return Object.assign(spans, { begin: () => file.textRecord(`${HEAD}\n`) });
  },
};

/** The cells of a subject, which many rows have. */
const subjects = new WeakMap<SpanSubject, string>();

function rowOf({ type, time_ns, duration_ns, hart, thread, depth, subject, result, detail }: Span): string {
  let about = subjects.get(subject);
  if (about === undefined) {
    const { name, instance, address, file, line, task } = subject;
    about = [name, instance, address, file, line, task].map(cell).join(',');
    subjects.set(subject, about);
  }
  const where = `${duration_ns ?? ''},${hart ?? ''},${thread ?? ''},${depth ?? ''}`;
  return `${cell(type)},${time_ns},${where},${about},${cell(result)},${cell(detail)}`;
}

/** Cells that are kept. */
const mostCells = 1 << 14;
const cells = new Map<string, string>();

function cell(value: string | number | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'number') return String(value);
  let found = cells.get(value);
  if (found === undefined) {
    if (cells.size >= mostCells) cells.clear();
    const text = visible(value);
    found = /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    cells.set(value, found);
  }
  return found;
}
