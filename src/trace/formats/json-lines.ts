// JSON Lines (jsonlines.org): an object a call, a poll or an instant, with the members of `Span` (./spans.ts) that are
// known. The first line is about the trace: `{"type":"trace","version":1,...}`.
import { startOf } from '../../base/file-head.js';
import { jsonLine, visibleJson } from '../../base/visible.js';
import type { TraceInfo, TraceSink } from '../events.js';
import type { Format } from './format.js';
import { quote } from './json-text.js';
import { type Span, type SpanSubject, Spans } from './spans.js';
import type { Lines } from './tree.js';

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
    (span) => out.textRecord(lineOf(span)),
    () => out.flush(),
    () => out.close(),
  );
  return Object.assign(spans, { begin: (info: TraceInfo) => out.textRecord(jsonLine(headOf(info))) });
}

function headOf({ program, buildId, arch, clock, harts }: TraceInfo): object {
  const { name, resolutionNs, guest } = clock;
  return {
    type: 'trace',
    version: 1,
    program,
    build_id: buildId,
    arch,
    clock: { name, resolution_ns: resolutionNs, guest },
    harts,
  };
}

/** The members of a subject, which many lines have. */
const subjects = new WeakMap<SpanSubject, string>();

function lineOf({ type, time_ns, duration_ns, hart, thread, depth, subject, result, detail }: Span): string {
  let about = subjects.get(subject);
  if (about === undefined) {
    about = visibleJson(JSON.stringify(subject)).slice(1, -1);
    subjects.set(subject, about);
  }
  let line = `{"type":${quote(type)},"time_ns":${time_ns}`;
  if (duration_ns !== undefined) line += `,"duration_ns":${duration_ns}`;
  if (hart !== undefined) line += `,"hart":${hart}`;
  if (thread !== undefined) line += `,"thread":${thread}`;
  if (depth !== undefined) line += `,"depth":${depth}`;
  line += `,${about}`;
  if (result !== undefined) line += `,"result":${quote(result)}`;
  if (detail !== undefined) line += `,"detail":${quote(detail)}`;
  return `${line}}\n`;
}
