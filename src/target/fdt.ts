// Flattened device trees: Devicetree Specification 0.4, chapter 5 (big-endian).
//
//   0x00 d00dfeed | totalsize | off_dt_struct | off_dt_strings | off_mem_rsvmap | version | last_comp_version | ...
//   structure: 1 name\0 pad = begin node, 2 = end node, 3 length nameoff value pad = property, 4 = nothing, 9 = end
//
// Read: `reg` of the root's memory nodes and of what is below /reserved-memory, the memory reservation block (address
// (8), size (8), both 0 at its end), `/chosen`'s linux,initrd-start and -end. Refused: offsets outside the blob,
// nesting past 32.
import { RsptraceError } from '../base/errors.js';

interface FdtMemory {
  readonly node: string;
  /** Pairs of the node's `reg`, and where in the blob each size lies, with `sizeBytes` bytes. */
  readonly ranges: readonly { readonly base: bigint; readonly size: bigint; readonly sizeAt: number }[];
  readonly sizeBytes: number;
}

interface FdtContents {
  readonly memory: readonly FdtMemory[];
  /** Physical address behind the last byte of the initial RAM disk. */
  readonly initrdEnd: bigint | undefined;
  /** RAM that the tree declares used: reservations, the initial RAM disk. */
  readonly reserved: readonly FdtRange[];
}

export interface FdtRange {
  readonly base: bigint;
  readonly size: bigint;
}

export const FDT_HEADER = 40;
const MAGIC = 0xd00dfeed;
/** QEMU's own limit. */
const LARGEST = 2 ** 20;
const DEEPEST = 32;

/** Bytes of the device tree that begins with these bytes; undefined if none does. */
export function fdtSize(header: Uint8Array): number | undefined {
  if (header.length < FDT_HEADER) return undefined;
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  const size = view.getUint32(4);
  return view.getUint32(0) === MAGIC && size >= FDT_HEADER && size <= LARGEST ? size : undefined;
}

/** @throws RsptraceError `FDT_DAMAGED` */
export function readFdt(blob: Uint8Array): FdtContents {
  const tree = new Tree(blob);
  const memory: FdtMemory[] = [];
  const reserved = [...tree.reservations()];
  let initrdStart: bigint | undefined;
  let initrdEnd: bigint | undefined;
  let addressCells = 2;
  let sizeCells = 1;
  const regs: { node: string; at: number; length: number }[] = [];
  const reservedRegs: typeof regs = [];
  for (const { path, name, at, length } of tree.properties()) {
    const node = path[1] ?? '';
    if (path.length === 1 && name === '#address-cells') addressCells = tree.cells(at, length);
    else if (path.length === 1 && name === '#size-cells') sizeCells = tree.cells(at, length);
    else if (path.length === 2 && /^memory(@|$)/.test(node) && name === 'reg') regs.push({ node, at, length });
    else if (path.length === 2 && node === 'chosen' && name === 'linux,initrd-start')
      initrdStart = tree.number(at, length);
    else if (path.length === 2 && node === 'chosen' && name === 'linux,initrd-end') initrdEnd = tree.number(at, length);
    else if (path.length === 3 && node === 'reserved-memory' && name === 'reg')
      reservedRegs.push({ node: path[2] ?? '', at, length });
  }
  const baseBytes = addressCells * 4;
  const sizeBytes = sizeCells * 4;
  // Those of /reserved-memory are counted in the cells of the root (Devicetree Specification 3.5).
  const rangesOf = ({ node, at, length }: (typeof regs)[number]): FdtMemory['ranges'] => {
    if (sizeBytes === 0 || length % (baseBytes + sizeBytes) !== 0)
      throw damaged(`the reg of ${node} has ${length} bytes`);
    return Array.from({ length: length / (baseBytes + sizeBytes) }, (_, index) => {
      const start = at + index * (baseBytes + sizeBytes);
      const sizeAt = start + baseBytes;
      return { base: tree.number(start, baseBytes), size: tree.number(sizeAt, sizeBytes), sizeAt };
    });
  };
  for (const reg of regs) memory.push({ node: reg.node, ranges: rangesOf(reg), sizeBytes });
  for (const reg of reservedRegs) reserved.push(...rangesOf(reg));
  if (initrdStart !== undefined && initrdEnd !== undefined && initrdEnd > initrdStart)
    reserved.push({ base: initrdStart, size: initrdEnd - initrdStart });
  return { memory, initrdEnd, reserved };
}

/** Writes a size where {@link readFdt} found one. */
export function writeFdtSize(blob: Uint8Array, at: number, bytes: number, size: bigint): void {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
  if (bytes === 4) view.setUint32(at, Number(size));
  else view.setBigUint64(at, size);
}

class Tree {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #strings: number;

  constructor(blob: Uint8Array) {
    const size = fdtSize(blob);
    if (size === undefined || size > blob.length) throw damaged('its header is not that of one');
    this.#bytes = blob.subarray(0, size);
    this.#view = new DataView(blob.buffer, blob.byteOffset, size);
    this.#strings = this.#u32(12);
  }

  *reservations(): Generator<FdtRange> {
    for (let at = this.#u32(16); ; at += 16) {
      const [base, size] = [this.number(at, 8), this.number(at + 8, 8)];
      if (base === 0n && size === 0n) return;
      yield { base, size };
    }
  }

  *properties(): Generator<{ path: readonly string[]; name: string; at: number; length: number }> {
    const path: string[] = [];
    for (let at = this.#u32(8); ; ) {
      const token = this.#u32(at);
      at += 4;
      if (token === 1) {
        const name = this.#text(at);
        if (path.length === DEEPEST) throw damaged('its nodes are nested too deep');
        path.push(name);
        at += (name.length + 4) & ~3;
      } else if (token === 2) {
        if (path.pop() === undefined) throw damaged('a node ends that has not begun');
      } else if (token === 3) {
        const length = this.#u32(at);
        const name = this.#text(this.#strings + this.#u32(at + 4));
        at += 8;
        if (at + length > this.#bytes.length) throw damaged(`the property ${name} is longer than it`);
        yield { path, name, at, length };
        at += (length + 3) & ~3;
      } else if (token === 9) return;
      else if (token !== 4) throw damaged(`it has the token ${token}`);
    }
  }

  cells(at: number, length: number): number {
    const value = Number(this.number(at, length));
    if (value > 2) throw damaged(`addresses of ${value} cells`);
    return value;
  }

  /** A big-endian number of 0, 4 or 8 bytes. */
  number(at: number, length: number): bigint {
    if (length === 0) return 0n;
    if (length === 4) return BigInt(this.#u32(at));
    if (length !== 8) throw damaged(`a number of ${length} bytes`);
    return (BigInt(this.#u32(at)) << 32n) | BigInt(this.#u32(at + 4));
  }

  #u32(at: number): number {
    if (at < 0 || at + 4 > this.#bytes.length) throw damaged('it points outside itself');
    return this.#view.getUint32(at);
  }

  #text(at: number): string {
    const end = at < this.#bytes.length ? this.#bytes.indexOf(0, at) : -1;
    if (end < 0) throw damaged('a name does not end');
    return Buffer.from(this.#bytes.subarray(at, end)).toString('latin1');
  }
}

function damaged(why: string): RsptraceError {
  return new RsptraceError('FDT_DAMAGED', `The target's device tree cannot be read: ${why}`);
}
