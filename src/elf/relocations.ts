// What a relocation of an object file writes where no instruction is: debug info, call frames, tables of pointers.
//
//   x86-64 psABI, table 4.9; AArch64 ELF ABI, "Static Data relocations"; RISC-V psABI and LoongArch ELF psABI,
//   "Relocations". S: the symbol's value, A: the addend, P: the place, V: what stands there.
//
//   set: S + A      from: S + A - P      add: V + S + A      sub: V - S - A
//
// A LEB128 keeps its length, and 6 bits keep the 2 above them. Left out: all that change instructions.
import { RsptraceError } from '../base/errors.js';

/** `1` to `8`: bytes. `six`: the low bits of a byte, `leb`: an unsigned LEB128. */
type Width = 1 | 2 | 3 | 4 | 8 | 'six' | 'leb';
type Operation = 'set' | 'from' | 'add' | 'sub' | 'none';
type Row = readonly [operation: Operation, width: Width, types: readonly number[]];

/** By e_machine. */
const known: Readonly<Record<number, readonly Row[]>> = {
  62: [
    ['none', 1, [0]],
    ['set', 8, [1, 17]],
    ['set', 4, [10, 11, 21]],
    ['from', 8, [24]],
    ['from', 4, [2, 4]],
  ],
  183: [
    ['none', 1, [0, 256]],
    ['set', 8, [257, 1029]],
    ['set', 4, [258]],
    ['set', 2, [259]],
    ['from', 8, [260]],
    ['from', 4, [261]],
  ],
  243: [
    ['none', 1, [0, 51]],
    ['set', 8, [2, 9]],
    ['set', 4, [1, 8, 56]],
    ['set', 2, [55]],
    ['set', 1, [54]],
    ['set', 'six', [53]],
    ['set', 'leb', [60]],
    ['from', 4, [57]],
    ...sums([33, 34, undefined, 35, 36], [37, 38, undefined, 39, 40]),
    ['sub', 'six', [52]],
    ['sub', 'leb', [61]],
  ],
  258: [
    ['none', 1, [0, 100]],
    ['set', 8, [2, 9]],
    ['set', 4, [1, 8]],
    ['from', 8, [109]],
    ['from', 4, [99]],
    ...sums([47, 48, 49, 50, 51], [52, 53, 54, 55, 56]),
    ['add', 'six', [105]],
    ['sub', 'six', [106]],
    ['add', 'leb', [107]],
    ['sub', 'leb', [108]],
  ],
};

/** Sums and differences of 1, 2, 3, 4 and 8 bytes. */
function sums(add: readonly (number | undefined)[], sub: readonly (number | undefined)[]): Row[] {
  const widths = [1, 2, 3, 4, 8] as const;
  const row = (operation: Operation, types: readonly (number | undefined)[]): Row[] =>
    types.flatMap((type, i): Row[] => (type === undefined ? [] : [[operation, widths[i] ?? 1, [type]]]));
  return [...row('add', add), ...row('sub', sub)];
}

/** What the relocations of one machine do. */
export class Relocations {
  readonly #byType: ReadonlyMap<number, Row>;

  constructor(machine: number) {
    this.#byType = new Map((known[machine] ?? []).flatMap((row) => row[2].map((type) => [type, row])));
  }

  /**
   * Applies one at an offset of a section's bytes. `value` is S + A, `place` is P. False if it is of a type that is
   * not known. Throws `ELF_DAMAGED` past the section's end.
   */
  apply(bytes: DataView, at: number, type: number, value: bigint, place: bigint): boolean {
    const row = this.#byType.get(type);
    if (row === undefined) return false;
    const [operation, width] = row;
    if (operation === 'none') return true;
    const size = width === 'leb' ? lengthOfLeb(bytes, at) : width === 'six' ? 1 : width;
    if (!(size > 0 && at + size <= bytes.byteLength)) {
      throw new RsptraceError('ELF_DAMAGED', `a relocation of type ${type} lies past the end of its section`);
    }
    // Nearly all are such.
    if (operation === 'set' && width === 8) bytes.setBigUint64(at, value, true);
    else if (operation === 'set' && width === 4) bytes.setUint32(at, Number(value & 0xffff_ffffn), true);
    else store(bytes, at, size, width, computed(operation, loaded(bytes, at, size, width), value, place));
    return true;
  }
}

function computed(operation: Operation, old: bigint, value: bigint, place: bigint): bigint {
  if (operation === 'add') return old + value;
  if (operation === 'sub') return old - value;
  return operation === 'from' ? value - place : value;
}

/** 0 if it has no end. */
function lengthOfLeb(bytes: DataView, at: number): number {
  for (let end = at; end < bytes.byteLength && end < at + 10; end++)
    if (bytes.getUint8(end) < 0x80) return end + 1 - at;
  return 0;
}

/** How many bits of each byte belong to the number. */
function bitsOf(width: Width): number {
  return width === 'leb' ? 7 : width === 'six' ? 6 : 8;
}

function loaded(bytes: DataView, at: number, size: number, width: Width): bigint {
  const bits = bitsOf(width);
  let value = 0n;
  for (let i = size - 1; i >= 0; i--)
    value = (value << BigInt(bits)) | BigInt(bytes.getUint8(at + i) & ((1 << bits) - 1));
  return value;
}

function store(bytes: DataView, at: number, size: number, width: Width, value: bigint): void {
  const bits = bitsOf(width);
  const mask = (1 << bits) - 1;
  let rest = BigInt.asUintN(size * bits, value);
  for (let i = at; i < at + size; i++, rest >>= BigInt(bits))
    bytes.setUint8(i, (bytes.getUint8(i) & ~mask) | (Number(rest & 0xffn) & mask));
}
