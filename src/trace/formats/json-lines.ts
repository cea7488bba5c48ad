// JSON Lines (jsonlines.org): an object a call, a poll or an instant, with the members of `Span` (./spans.ts) that are
// known. The first line is about the trace: `{"type":"trace","version":1,...}`.
import { startOf } from '../../base/file-head.js';
import { jsonLine } from '../../base/visible.js';
import type { TraceInfo, TraceSink } from '../events.js';
import type { Format } from './format.js';
import { Spans } from './spans.js';
import type { Lines } from './tree.js';

/** JSON lines. */
export const jsonLines: Format = {
  name: 'JSON lines',
  extensions: ['.jsonl'],
  about: 'an object a call, poll or instant, for jq, DuckDB and scripts',
  use: 'read it with jq, DuckDB or a script',
  isAppended: true,
  holdsSamples: true,
  recognizes: (head) => /^\{"type":"trace","version":\d/.test(startOf(head)),
  open: writeJsonLines,
};

/** Writes JSON lines of events. */
export function writeJsonLines(out: Lines): TraceSink {
  const spans = new Spans(
    (span) => out.textRecord(jsonLine(span)),
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
