// Whether a file begins like a trace, ours or another tool's:
//
//   Perfetto        a Trace message: packets one behind the other, each field 1, length-delimited
//   Chrome          a JSON array of objects with `ph`, or an object with `traceEvents`
//   our call tree   its first line
import type { FileHead } from '../base/file-head.js';

const PACKET_TAG = 0x0a;
/** Packets that have to follow each other before a file counts as a Perfetto trace. */
const ENOUGH = 8;

/** True for a file that begins like a trace, of whatever tool. */
export function isTrace({ bytes, size }: FileHead): boolean {
  if (isPerfetto(bytes, size)) return true;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 4096)).toString('latin1');
  return isChrome(text) || isCallTree(text);
}

function isPerfetto(bytes: Uint8Array, size: number): boolean {
  let at = 0;
  for (let packets = 0; packets < ENOUGH && at < bytes.length; packets++) {
    const length = varint(bytes, at + 1);
    if (bytes[at] !== PACKET_TAG || length === undefined) return false;
    at = length.end + length.value;
    // Only the first packet must be whole: a later one may lie behind what was read, or be torn.
    if (at > size || at > bytes.length) return packets > 0;
    if (!isMessage(bytes.subarray(length.end, at))) return false;
  }
  return at > 0;
}

/** Fields up to the last byte: Protocol Buffers' "Encoding". */
function isMessage(bytes: Uint8Array): boolean {
  let at = 0;
  while (at < bytes.length) {
    const tag = varint(bytes, at);
    if (tag === undefined || tag.value < 8) return false;
    const end = endOfValue(bytes, tag.end, tag.value % 8);
    if (end === undefined) return false;
    at = end;
  }
  return at === bytes.length;
}

function endOfValue(bytes: Uint8Array, at: number, wireType: number): number | undefined {
  if (wireType === 1) return at + 8;
  if (wireType === 5) return at + 4;
  const number = varint(bytes, at);
  if (number === undefined || wireType === 0) return number?.end;
  return wireType === 2 ? number.end + number.value : undefined;
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

function isChrome(text: string): boolean {
  return (/^\s*\[\s*\{/.test(text) || /^\s*\{\s*"traceEvents"\s*:/.test(text)) && /"ph"\s*:\s*"/.test(text);
}

/** `# kernel.elf, riscv64, guest clock riscv-time`, as `writers/tree.ts` begins. */
function isCallTree(text: string): boolean {
  return /^# .*, \w+, (?:guest )?clock [\w-]+\n/.test(text);
}
