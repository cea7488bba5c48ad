import { type FileHead, unpackedStart } from '../../../base/file-bytes.js';
import type { Format } from '../format.js';
import { Lanes } from '../lanes.js';
import { Fields } from '../read/fields.js';
import { compressed } from './compressed.js';
import { Packets } from './read/packets.js';
import { PerfettoWriter } from './write/writer.js';

/** Perfetto's own format, packets of Protocol Buffers: ./packets.ts. */
export const perfetto: Format = {
  name: 'Perfetto',
  extensions: ['.pftrace', '.perfetto-trace', '.pftrace.gz', '.perfetto-trace.gz'],
  about: 'timelines of harts, stacks and tasks, for ui.perfetto.dev',
  use: 'rsptrace open shows it',
  isAppended: true,
  packing: compressed,
  holdsSamples: 'each',
  recognizes: isPerfetto,
  open: (file) => new Lanes(new PerfettoWriter(file)),
};

/** Packets that have to follow each other before a file counts as a Perfetto trace; or all that it begins with. */
const ENOUGH = 8;
const START = 64 * 1024;

/** Whether a file is packets one behind the other, which fields fill to their last bytes; or that, packed. */
export function isPerfetto({ bytes }: FileHead): boolean {
  const fields = new Fields();
  let count = 0;
  const packets = new Packets((bytes, from, to) => {
    fields.use(bytes);
    fields.enter(from, to);
    while (fields.next());
    count++;
  });
  try {
    // That may end in the middle of one.
    packets.feed(unpackedStart(bytes).subarray(0, START));
  } catch {
    return count >= ENOUGH;
  }
  return count > 0;
}
