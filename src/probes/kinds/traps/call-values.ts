import { type ArgumentKind, type CallSignature, namedText } from '../../../arch/index.js';
import { addOffset, addr, hex } from '../../../base/addr.js';
import type { HitMemory, MemoryRequest } from '../../../calls/index.js';
import type { ArgumentValue } from '../../../trace/index.js';
import { formatValue, textValue } from '../../../values/index.js';

/** Bytes of a path that are read, of 4096 that it may have. */
const longestPath = 256;
/** Of a buffer that is written, as `strace` shows. */
const longestText = 32;
/** Bytes of the first read of a path: most are shorter. */
const firstRead = 64;
const page = 4096n;
const currentDirectory = -100n;
/** O_CREAT, and O_TMPFILE without O_DIRECTORY. */
const creates = 0x40_0040n;

/** Memory that the values of a system call's arguments need. Asked again with what was read. */
export function callReads(
  signature: CallSignature | undefined,
  passed: readonly bigint[],
  memory: HitMemory,
): readonly MemoryRequest[] {
  const found: MemoryRequest[] = [];
  signature?.arguments.forEach(({ kind }, index) => {
    const address = passed[index];
    if (!address) return;
    if (kind === 'path') for (const piece of piecesOf(address, memory)) found.push(piece);
    else if (kind === 'text') found.push(textAt(address, passed[index + 1] ?? 0n));
  });
  return found.filter(({ length }) => length > 0);
}

/** The arguments of a system call. Without a signature all that may be some are shown, by their number. */
export function callArguments(
  signature: CallSignature | undefined,
  passed: readonly bigint[],
  memory: HitMemory,
): readonly ArgumentValue[] {
  if (!signature) return passed.map((value, index) => ({ name: `arg${index}`, value: wordText(value) }));
  return signature.arguments.flatMap(({ name, kind }, index) => {
    const value = valueText(kind, index, passed, memory);
    return value === undefined ? [] : [{ name, value }];
  });
}

/** What a system call returns, of whose errors all have negative numbers. */
export function callResult(signature: CallSignature | undefined, result: bigint): string {
  if (!signature) return wordText(result);
  const value = BigInt.asIntN(64, result);
  const isError = value < 0n && value > -page;
  return signature.isAddress && !isError ? hex(BigInt.asUintN(64, result)) : String(value);
}

/** Undefined where the argument is not used. */
function valueText(
  kind: ArgumentKind,
  index: number,
  passed: readonly bigint[],
  memory: HitMemory,
): string | undefined {
  const value = passed[index] ?? 0n;
  if (typeof kind === 'object') return namedText(value, kind);
  switch (kind) {
    case 'path':
      return value === 0n ? 'NULL' : pathText(value, memory);
    case 'text':
      return value === 0n ? 'NULL' : bufferText(value, passed[index + 1] ?? 0n, memory);
    case 'pointer':
      return value === 0n ? 'NULL' : hex(BigInt.asUintN(64, value));
    case 'dirfd':
      return BigInt.asIntN(32, value) === currentDirectory ? 'AT_FDCWD' : String(BigInt.asIntN(32, value));
    case 'fd':
      return String(BigInt.asIntN(32, value));
    case 'int':
      return intText(value);
    case 'unsigned':
      return String(BigInt.asUintN(64, value));
    case 'mode?':
      if (((passed[index - 1] ?? 0n) & creates) === 0n) return undefined;
      return modeText(value);
    case 'mode':
      return modeText(value);
    case 'word':
      return wordText(value);
  }
}

/** A C `int` may be passed without its sign above it. */
function intText(value: bigint): string {
  const bits = BigInt.asUintN(64, value);
  return String(BigInt.asIntN(bits < 1n << 32n ? 32 : 64, value));
}

function modeText(value: bigint): string {
  return `0${BigInt.asUintN(32, value).toString(8)}`;
}

/** Small numbers as such, others as bits. */
function wordText(value: bigint): string {
  const number = BigInt.asIntN(64, value);
  return number > -4096n && number < 65_536n ? String(number) : hex(BigInt.asUintN(64, value));
}

function textAt(address: bigint, length: bigint): MemoryRequest {
  return { address: addr(address), length: Number(length < longestText ? length : longestText) };
}

function bufferText(address: bigint, length: bigint, memory: HitMemory): string {
  const request = textAt(address, length);
  if (request.length === 0) return '""';
  const bytes = memory.bytes(request.address, request.length);
  return typeof bytes === 'string' ? unreadable(address) : text(bytes, Number(length));
}

/** The pieces of a path up to the one with its end; none goes over the end of a page. */
function* piecesOf(address: bigint, memory: HitMemory): Generator<MemoryRequest> {
  for (let read = 0; read < longestPath; ) {
    const at = addOffset(addr(address), read);
    const wanted = read === 0 ? firstRead : longestPath - read;
    const length = Math.min(wanted, Number(page - (at % page)));
    yield { address: at, length };
    const bytes = memory.bytes(at, length);
    if (typeof bytes === 'string' || bytes.includes(0)) return;
    read += length;
  }
}

function pathText(address: bigint, memory: HitMemory): string {
  const read: Uint8Array[] = [];
  for (const { address: at, length } of piecesOf(address, memory)) {
    const bytes = memory.bytes(at, length);
    if (typeof bytes === 'string') return unreadable(address);
    read.push(bytes);
  }
  const all = Buffer.concat(read);
  const end = all.indexOf(0);
  return end < 0 ? text(all, all.length + 1) : text(all.subarray(0, end), end);
}

/** `length`: of all of it. */
function text(bytes: Uint8Array, length: number): string {
  return formatValue(textValue('', bytes, length));
}

function unreadable(address: bigint): string {
  return formatValue({ kind: 'unreadable', type: '', address: addr(address), size: 0 });
}
