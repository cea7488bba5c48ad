import type { Addr } from '../../base/addr.js';

/* DWARF 5, 6.4, as .eh_frame has it (LSB Core, "Exception Frames"). */
const DW_CFA_def_cfa = 0x0c;
const DW_CFA_offset = 0x80;
const RSP = 7;
const RETURN = 16;
const cieBytes = 24;
const fdeBytes = 32;

/** The most bytes of {@link unwindTable} for this many exit trampolines. */
export function unwindTableBytes(exits: number): number {
  return exits * (cieBytes + fdeBytes) + 4;
}

/**
 * Call frame information for return addresses that are exit trampolines. The original return address is this many
 * bytes above the stack pointer, and every other register already has the caller's value. Each distance has one CIE,
 * without augmentation, so that addresses are absolute.
 *
 * An unwinder looks up the byte before a return address, so each range begins one byte early.
 */
export function unwindTable(exits: ReadonlyMap<bigint, { readonly offset: number }>): Uint8Array {
  const bytes = new Uint8Array(unwindTableBytes(exits.size));
  const view = new DataView(bytes.buffer);
  const cies = new Map<number, number>();
  let at = 0;
  for (const { offset } of exits.values()) {
    if (cies.has(offset)) continue;
    cies.set(offset, at);
    view.setUint32(at, cieBytes - 4, true);
    // Id 0; version 1, no augmentation, alignments 1 and -8, the return address's column; then the rules, and nops.
    bytes.set([1, 0, 1, 0x78, RETURN, DW_CFA_def_cfa, RSP, ...uleb(offset + 8), DW_CFA_offset | RETURN, 1], at + 8);
    at += cieBytes;
  }
  for (const [exit, { offset }] of exits) {
    view.setUint32(at, fdeBytes - 4, true);
    view.setUint32(at + 4, at + 4 - (cies.get(offset) ?? 0), true);
    view.setBigUint64(at + 8, (exit as Addr) - 1n, true);
    view.setBigUint64(at + 16, 2n, true);
    at += fdeBytes;
  }
  return bytes.slice(0, at + 4);
}

function uleb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...uleb(value >>> 7)];
}
