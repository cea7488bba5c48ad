// Comma-separated values (RFC 4180), with a head: a row a call, a poll or an instant. The columns: `spanColumns` of
// ./spans.ts. A field with a comma, a quote or a break of line stands in quotes; what is not known is empty.
// One that a spreadsheet would take for a formula has an apostrophe before it.
import { startOf } from '../../base/file-head.js';
import { visible } from '../../text/index.js';
import type { Format } from './format.js';
import { PiecesOf, PiecesOfText, type TextBytes } from './output/text-bytes.js';
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
      (span) => {
        putRow(file.startText(), span);
        file.endText();
      },
      () => file.flush(),
      () => file.close(),
    );
    return Object.assign(spans, { begin: () => file.textRecord(`${HEAD}\n`) });
  },
};

const COMMA = 0x2c;
const QUOTE = 0x22;
const NEWLINE = 0x0a;

/** The cells of a subject, which many rows have. */
const subjects = new PiecesOf<SpanSubject>(({ name, instance, address, file, line, task }) => {
  const cells = [name, instance, address, file, line === undefined ? undefined : String(line), task];
  return `,${cells.map((text) => (text === undefined ? '' : cell(text))).join(',')},`;
});
const cells = new PiecesOfText(cell);
const types = new PiecesOfText((type) => `${cell(type)},`);

function putRow(row: TextBytes, span: Span): void {
  row.piece(types.of(span.type));
  row.number(span.time_ns);
  putNumber(row, span.duration_ns);
  putNumber(row, span.hart);
  putNumber(row, span.thread);
  putNumber(row, span.depth);
  row.piece(subjects.of(span.subject));
  putCell(row, span.result);
  row.byte(COMMA);
  putCell(row, span.detail);
  row.byte(NEWLINE);
}

function putNumber(row: TextBytes, value: number | undefined): void {
  row.byte(COMMA);
  if (value !== undefined) row.number(value);
}

function putCell(row: TextBytes, text: string | undefined): void {
  if (text === undefined) return;
  const mayPlain = !isFormula(text);
  if (mayPlain && row.plain(text, COMMA, QUOTE)) return;
  // Arguments have commas between them, and mostly no quote.
  if (!mayPlain || !row.plainQuoted(text)) row.piece(cells.of(text));
}

/** What a spreadsheet would work out: names come from the program, and numbers are what they are. */
function isFormula(text: string): boolean {
  return /^[=+\-@]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text);
}

function cell(value: string): string {
  const text = `${isFormula(value) ? "'" : ''}${visible(value)}`;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
