/*
 * `TracePacket.compressed_packets` (trace_packet.proto): packets of a Trace, one behind the other, in zlib's format
 * (RFC 1950). A reader takes what is in it as if it stood there. Perfetto's own recorder writes it if it is asked to
 * compress.
 */
import { deflateSync, inflateSync } from 'node:zlib';
import { PACKET, TRACE_PACKET } from './fields.js';
import { LEN, putVarint, varintLength } from './protobuf.js';

/** A trace repeats itself: more effort makes it hardly smaller. */
const LEVEL = 1;
const TAG = (TRACE_PACKET.compressedPackets << 3) | LEN;
/** The most bytes that are unpacked of one packet. */
const LONGEST = 64 * 1024 * 1024;
const CHUNK = 1024 * 1024;

/** One packet that holds these. */
export function compressed(packets: Uint8Array): Uint8Array {
  const content = deflateSync(packets, { level: LEVEL, chunkSize: CHUNK });
  const head = new Uint8Array(16);
  const length = varintLength(TAG) + varintLength(content.length) + content.length;
  head[0] = (PACKET << 3) | LEN;
  let at = putVarint(head, putVarint(head, 1, length), TAG);
  at = putVarint(head, at, content.length);
  return Buffer.concat([head.subarray(0, at), content]);
}

/** The packets that a packet holds; undefined if it holds none. Throws what `inflate` says. */
export function uncompressed(bytes: Uint8Array, from: number, to: number): Uint8Array | undefined {
  if (bytes[from] !== ((TAG & 0x7f) | 0x80) || bytes[from + 1] !== TAG >>> 7) return undefined;
  // Its length is not read, because the content is the rest of the packet.
  let at = from + 2;
  while (at < to && (bytes[at] as number) >= 0x80) at++;
  return inflateSync(bytes.subarray(at + 1, to), { maxOutputLength: LONGEST, chunkSize: CHUNK });
}
