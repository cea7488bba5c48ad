// JSON Lines (jsonlines.org): an object a call, a poll or an instant, with the members of `Span` (./spans.ts) that are
// known. The first line is about the trace: `{"type":"trace","version":1,...}`.
import { startOf } from '../../base/file-bytes.js';
import { jsonLine } from '../../text/index.js';
import type { TraceInfo, TraceSink } from '../events/events.js';
import type { Lines } from './call-lines.js';
import type { Format } from './format.js';
import type { TextPart } from './output/record-block.js';
import { type Span, type SpanSubject, spanLines } from './spans.js';
import { encoded, json, putQuoted, quote } from './text-lines.js';

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

export function writeJsonLines(out: Lines): TraceSink {
  return spanLines(out, (info) => jsonLine(headOf(info)), lineOf);
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
const subjects = new WeakMap<SpanSubject, Uint8Array>();

function lineOf({ type, time_ns, duration_ns, hart, thread, depth, subject, result, detail }: Span): TextPart[] {
  const line: TextPart[] = ['{"type":', quote(type), ',"time_ns":', time_ns];
  if (duration_ns !== undefined) line.push(',"duration_ns":', duration_ns);
  if (hart !== undefined) line.push(',"hart":', hart);
  if (thread !== undefined) line.push(',"thread":', thread);
  if (depth !== undefined) line.push(',"depth":', depth);
  line.push(subjects.get(subject) ?? membersOf(subject));
  if (result !== undefined) {
    line.push(',"result":');
    putQuoted(line, result);
  }
  if (detail !== undefined) {
    line.push(',"detail":');
    putQuoted(line, detail);
  }
  line.push('}\n');
  return line;
}

function membersOf(subject: SpanSubject): Uint8Array {
  const members = encoded(`,${json(subject).slice(1, -1)}`);
  subjects.set(subject, members);
  return members;
}
