// JSON Lines (jsonlines.org): an object a call, a poll or an instant, with the members of `Span` (./spans.ts) that are
// known. The first line is about the trace: `{"type":"trace","version":1,...}`.
import { startOf } from '../../base/file-head.js';
import { jsonLine, visibleJson } from '../../text/index.js';
import type { TraceInfo, TraceSink } from '../events/events.js';
import type { Lines } from './call-lines.js';
import type { Format } from './format.js';
import { putQuoted, quote } from './json-text.js';
import { encoded, PiecesOf, PiecesOfText, type TextBytes } from './output/text-bytes.js';
import { type Span, type SpanSubject, Spans } from './spans.js';

/** JSON lines. */
export const jsonLines: Format = {
  name: 'JSON lines',
  extensions: ['.jsonl'],
  about: 'an object a call, poll or instant, for jq, DuckDB and scripts',
  use: 'read it with jq, DuckDB or a script',
  isAppended: true,
  holdsSamples: 'each',
  recognizes: (head) => /^\{"type":"trace","version":\d/.test(startOf(head)),
  open: writeJsonLines,
};

/** Writes JSON lines of events. */
export function writeJsonLines(out: Lines): TraceSink {
  const spans = new Spans(
    (span) => {
      putLine(out.startText(), span);
      out.endText();
    },
    () => out.flush(),
    () => out.close(),
  );
  return Object.assign(spans, { begin: (info: TraceInfo) => out.textRecord(jsonLine(headOf(info))) });
}

function headOf({ program, buildId, arch, clock, isProcess, harts }: TraceInfo): object {
  const { name, resolutionNs, guest } = clock;
  return {
    type: 'trace',
    version: 1,
    program,
    build_id: buildId,
    arch,
    clock: { name, resolution_ns: resolutionNs, guest },
    ...(isProcess ? { process: true } : {}),
    harts,
  };
}

/** The members of a subject, which many lines have. */
const subjects = new PiecesOf<SpanSubject>((subject) => `,${visibleJson(JSON.stringify(subject)).slice(1, -1)}`);
const types = new PiecesOfText((type) => `{"type":${quote(type)},"time_ns":`);
const DURATION = encoded(',"duration_ns":');
const HART = encoded(',"hart":');
const THREAD = encoded(',"thread":');
const DEPTH = encoded(',"depth":');
const RESULT = encoded(',"result":');
const DETAIL = encoded(',"detail":');
const END = encoded('}\n');

function putLine(line: TextBytes, span: Span): void {
  const { duration_ns, hart, thread, depth, result, detail } = span;
  line.piece(types.of(span.type));
  line.number(span.time_ns);
  if (duration_ns !== undefined) putNumber(line, DURATION, duration_ns);
  if (hart !== undefined) putNumber(line, HART, hart);
  if (thread !== undefined) putNumber(line, THREAD, thread);
  if (depth !== undefined) putNumber(line, DEPTH, depth);
  line.piece(subjects.of(span.subject));
  if (result !== undefined) putText(line, RESULT, result);
  if (detail !== undefined) putText(line, DETAIL, detail);
  line.piece(END);
}

function putNumber(line: TextBytes, head: Uint8Array, value: number): void {
  line.piece(head);
  line.number(value);
}

function putText(line: TextBytes, head: Uint8Array, text: string): void {
  line.piece(head);
  putQuoted(line, text);
}
