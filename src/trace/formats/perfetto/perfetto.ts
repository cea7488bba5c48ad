import type { Format } from '../format.js';
import { Lanes } from '../lanes.js';
import { packing } from './compressed.js';
import { isPerfetto } from './recognize.js';
import { PerfettoWriter } from './write/writer.js';

/** Perfetto's own format, packets of Protocol Buffers: ./packets.ts. */
export const perfetto: Format = {
  name: 'Perfetto',
  extensions: ['.pftrace', '.perfetto-trace', '.pftrace.gz', '.perfetto-trace.gz'],
  about: 'timelines of harts, stacks and tasks, for ui.perfetto.dev',
  use: 'open it in ui.perfetto.dev',
  isAppended: true,
  packing,
  holdsSamples: 'each',
  recognizes: isPerfetto,
  open: (file) => new Lanes(new PerfettoWriter(file)),
};
