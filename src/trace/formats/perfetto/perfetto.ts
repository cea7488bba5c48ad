import { type FileHead, unpackedStart } from '../../../base/file-bytes.js';
import type { Format } from '../format.js';
import { Lanes } from '../lanes.js';
import { Fields } from '../read/fields.js';
import { compressed } from './compressed.js';
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

const PACKET_TAG = 0x0a;
/** Packets that have to follow each other before a file counts as a Perfetto trace. */
const ENOUGH = 8;

/** Whether a file is packets one behind the other, each field 1 of a Trace message; or that, packed. */
export function isPerfetto(head: FileHead): boolean {
  const bytes = unpackedStart(head.bytes);
  return arePackets({ bytes, size: bytes === head.bytes ? head.size : Math.max(bytes.length, head.size) });
}

function arePackets({ bytes, size }: FileHead): boolean {
  let at = 0;
  for (let packets = 0; packets < ENOUGH && at < bytes.length; packets++) {
    const length = varint(bytes, at + 1);
    if (bytes[at] !== PACKET_TAG || length === undefined) return false;
    at = length.end + length.value;
    // Only the first packet must be complete: a later one may lie behind the part that was read, or be torn.
    if (at > size || at > bytes.length) return packets > 0;
    if (!isMessage(bytes.subarray(length.end, at))) return false;
  }
  return at > 0;
}

/** Whether fields fill it to the last byte. */
function isMessage(bytes: Uint8Array): boolean {
  const fields = new Fields();
  fields.use(bytes);
  fields.enter(0, bytes.length);
  try {
    while (fields.next());
    return true;
  } catch {
    return false;
  }
}

/** Its value is not exact above 2^53: no length is as long. */
function varint(bytes: Uint8Array, start: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let i = 0; i < 10; i++) {
    const byte = bytes[start + i];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return { value, end: start + i + 1 };
  }
  return undefined;
}
