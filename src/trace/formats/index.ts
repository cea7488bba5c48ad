import { callgrind } from './callgrind.js';
import { chrome } from './chrome/write.js';
import { csv } from './csv.js';
import { firefox } from './firefox.js';
import { flameGraph } from './flame-graph.js';
import { folded } from './folded.js';
import type { Format } from './format.js';
import { ftrace } from './ftrace.js';
import { html } from './html/html.js';
import { jsonLines } from './json-lines.js';
import { parquet } from './parquet.js';
import { perfetto } from './perfetto/perfetto.js';
import { pprof } from './pprof.js';
import { speedscope } from './speedscope/speedscope.js';
import { tree } from './tree.js';
import { uftrace } from './uftrace/write.js';

/** Every format of ours. What is said of formats anywhere comes from here. */
export const formats: readonly Format[] = [
  perfetto,
  html,
  chrome,
  speedscope,
  firefox,
  tree,
  ftrace,
  uftrace,
  folded,
  flameGraph,
  callgrind,
  pprof,
  jsonLines,
  csv,
  parquet,
];

/** The format that a file's name asks for: the longest extension wins, then the first in the list. */
export function formatOf(path: string, known: readonly Format[] = formats): Format | undefined {
  const name = path.toLowerCase();
  let found: Format | undefined;
  let longest = 0;
  for (const format of known) {
    const length = Math.max(0, ...format.extensions.filter((one) => name.endsWith(one)).map((one) => one.length));
    if (length <= longest) continue;
    found = format;
    longest = length;
  }
  return found;
}

/** `.pftrace, .perfetto-trace, .json`. */
export function extensionsText(known: readonly Format[] = formats): string {
  return known.flatMap(({ extensions }) => extensions).join(', ');
}
