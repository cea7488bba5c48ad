// Comma-separated values (RFC 4180), with a head: a row a call, a poll or an instant. The columns: `spanColumns` of
// ./spans.ts. A field with a comma, a quote or a break of line stands in quotes; what is not known is empty.
import { startOf } from '../../base/file-head.js';
import { visible } from '../../base/visible.js';
import type { Format } from './format.js';
import { type Span, Spans, spanColumns } from './spans.js';

const HEAD = spanColumns.join(',');

/** CSV. */
export const csv: Format = {
  name: 'CSV',
  extensions: ['.csv'],
  about: 'a row a call, poll or instant, for spreadsheets, DuckDB and pandas',
  use: 'read it with DuckDB, pandas or a spreadsheet',
  isAppended: true,
  holdsSamples: true,
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

function rowOf(span: Span): string {
  let row = '';
  for (const column of spanColumns) row += `${row === '' ? '' : ','}${cell(span[column])}`;
  return row;
}

function cell(value: string | number | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = visible(value);
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
