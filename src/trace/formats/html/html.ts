/*
 * A report as one HTML file, which loads nothing. First comes a page (../../viewer, made by scripts/viewer.mjs), then
 * packed blocks of data (./columns.ts). They are in elements that are no scripts to a browser. Blocks are written as
 * they fill up, so memory does not grow with the trace. The last block has the tables (./tables.ts).
 */
import { startOf } from '../../../base/file-bytes.js';
import type { TraceSink } from '../../events/events.js';
import { tee } from '../../events/sinks.js';
import type { Format } from '../format.js';
import { Lanes } from '../lanes.js';
import type { OutputFile } from '../output/output-file.js';
import { WrittenAtEnd } from '../written-at-end.js';
import { Blocks } from './blocks.js';
import { HtmlLanes } from './html-lanes.js';
import { Tables } from './tables.js';

/** A page with everything. */
export const html: Format = {
  name: 'HTML report',
  extensions: ['.html'],
  about: 'a timeline, tables and flame graphs in one page that needs no network, for any browser',
  use: 'open it in a browser',
  isAppended: false,
  holdsSamples: 'merged',
  recognizes: (head) => /^<!doctype html>.{0,200}<meta name="generator" content="rsptrace">/is.test(startOf(head)),
  open: openHtml,
};

function openHtml(file: OutputFile): TraceSink {
  const blocks = new Blocks(file);
  const tables = new Tables();
  const writer = new HtmlLanes(blocks, (root) => tables.numberOf(root));
  // Tables first: a lane has the number of its task.
  return new WrittenAtEnd(tee([tables, new Lanes(writer)]), file, () => {
    const end = tables.all();
    writer.findings(end.findings);
    blocks.end(end, writer.names);
  });
}
