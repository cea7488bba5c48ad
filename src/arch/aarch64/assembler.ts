import { type Addr, hex } from '../../base/addr.js';
import type { Label } from '../inject/code-buffer.js';
import { FramedCode, type LoadStore, type Size } from '../inject/framed-code.js';
import { LR, registerNamed, SP, ZR } from './registers.js';

/**
 * Arm Architecture Reference Manual for A-profile (DDI 0487), C6.2. It assembles the instructions of trampolines, all
 * of them of Armv8.0. None of them changes the condition flags. Registers are numbers 0 to 31: 31 is sp in `addi` and
 * as the base of an access, else xzr. An operand that does not fit its field is a RangeError.
 */
/** IP0 and IP1 of AAPCS64, "General-purpose Registers": code that linkers insert may change them at any call. */
export const T0 = 16;
export const T1 = 17;
export const T2 = 9;
export const T3 = 10;
export const T4 = 11;
export const T5 = 12;
export const T6 = 13;

/** `unit` is a power of two. */
function signed(value: number, bits: number, unit: number, what: string): number {
  const most = 2 ** (bits - 1) * unit;
  if (!(value >= -most && value < most && value % unit === 0))
    throw new RangeError(`${what} ${value} does not fit ${bits} bits in steps of ${unit}`);
  return value / unit;
}

function unsigned(value: number, bits: number, what: string): number {
  if (!(value >= 0 && value < 2 ** bits && Number.isInteger(value)))
    throw new RangeError(`${what} ${value} does not fit ${bits} bits`);
  return value;
}

const register = (number: number): number => unsigned(number, 5, 'Register');

function threeOf(base: number, rd: number, rn: number, rm: number): number {
  return (base | (register(rm) << 16) | (register(rn) << 5) | register(rd)) >>> 0;
}

/** Up to 4095 either way; both may be sp. */
export function addi(rd: number, rn: number, imm: number): number {
  const field = unsigned(Math.abs(imm), 12, 'Immediate');
  return ((imm < 0 ? 0xd100_0000 : 0x9100_0000) | (field << 10) | (register(rn) << 5) | register(rd)) >>> 0;
}

export const add = (rd: number, rn: number, rm: number): number => threeOf(0x8b00_0000, rd, rn, rm);
export const sub = (rd: number, rn: number, rm: number): number => threeOf(0xcb00_0000, rd, rn, rm);
export const and = (rd: number, rn: number, rm: number): number => threeOf(0x8a00_0000, rd, rn, rm);
export const bic = (rd: number, rn: number, rm: number): number => threeOf(0x8a20_0000, rd, rn, rm);
export const orr = (rd: number, rn: number, rm: number): number => threeOf(0xaa00_0000, rd, rn, rm);
export const eor = (rd: number, rn: number, rm: number): number => threeOf(0xca00_0000, rd, rn, rm);
/** Not of sp. */
export const mov = (rd: number, rm: number): number => orr(rd, ZR, rm);

/** `count` bits from `from` on, all ones, as the logical immediate of 64 bits (DecodeBitMasks). */
function onesField(count: number, from: number): number {
  const rotated = (64 - unsigned(from, 6, 'Bit')) % 64;
  return (1 << 22) | (rotated << 16) | (unsigned(count - 1, 6, 'Count') << 10);
}

/** With `count` ones from bit `from` on. */
export const andOnes = (rd: number, rn: number, count: number, from = 0): number =>
  (0x9200_0000 | onesField(count, from) | (register(rn) << 5) | register(rd)) >>> 0;
export const eorOnes = (rd: number, rn: number, count: number, from = 0): number =>
  (0xd200_0000 | onesField(count, from) | (register(rn) << 5) | register(rd)) >>> 0;

function bitField(base: number, rd: number, rn: number, immr: number, imms: number): number {
  return (base | (immr << 16) | (imms << 10) | (register(rn) << 5) | register(rd)) >>> 0;
}

export const lsl = (rd: number, rn: number, by: number): number =>
  bitField(0xd340_0000, rd, rn, (64 - unsigned(by, 6, 'Shift')) % 64, 63 - by);
export const lsr = (rd: number, rn: number, by: number): number =>
  bitField(0xd340_0000, rd, rn, unsigned(by, 6, 'Shift'), 63);
export const asr = (rd: number, rn: number, by: number): number =>
  bitField(0x9340_0000, rd, rn, unsigned(by, 6, 'Shift'), 63);
/** The low `bytes` bytes, with their sign or without. */
export const extend = (rd: number, rn: number, bytes: 1 | 2 | 4, isSigned: boolean): number =>
  bitField(isSigned ? 0x9340_0000 : 0xd340_0000, rd, rn, 0, 8 * bytes - 1);
export const clz = (rd: number, rn: number): number => (0xdac0_1000 | (register(rn) << 5) | register(rd)) >>> 0;

function moveWide(base: number, rd: number, imm: number, part: number): number {
  return (base | (part << 21) | (unsigned(imm, 16, 'Immediate') << 5) | register(rd)) >>> 0;
}

/** To the page of the instruction, `pages` further. */
export function adrp(rd: number, pages: number): number {
  const field = signed(pages, 21, 1, 'Page');
  return (0x9000_0000 | ((field & 3) << 29) | (((field >> 2) & 0x7_ffff) << 5) | register(rd)) >>> 0;
}

export function adr(rd: number, offset: number): number {
  const field = signed(offset, 21, 1, 'Offset');
  return (0x1000_0000 | ((field & 3) << 29) | (((field >> 2) & 0x7_ffff) << 5) | register(rd)) >>> 0;
}

/** By size: loads that clear the bits above, loads that extend a sign, stores; the offset is 12 bits times the size. */
const scaled = {
  load: { 1: 0x3940_0000, 2: 0x7940_0000, 4: 0xb940_0000, 8: 0xf940_0000 },
  signed: { 1: 0x3980_0000, 2: 0x7980_0000, 4: 0xb980_0000, 8: 0xf940_0000 },
  store: { 1: 0x3900_0000, 2: 0x7900_0000, 4: 0xb900_0000, 8: 0xf900_0000 },
} as const;

/** Whether an access has room for this offset. */
export function isNear(offset: number, size: Size): boolean {
  return (offset >= -256 && offset < 256) || (offset >= 0 && offset % size === 0 && offset / size < 4096);
}

/** With a scaled offset, or one of 9 bits (ldur, stur). */
export function access(op: keyof typeof scaled, size: Size, rt: number, base: number, offset: number): number {
  const fields = (register(base) << 5) | register(rt);
  const word = scaled[op][size];
  if (offset >= 0 && offset % size === 0 && offset / size < 4096)
    return (word | ((offset / size) << 10) | fields) >>> 0;
  // Bit 24 says that it is scaled.
  return ((word & ~0x0100_0000) | ((signed(offset, 9, 1, 'Offset') & 0x1ff) << 12) | fields) >>> 0;
}

export const ldr = (rt: number, base: number, offset: number): number => access('load', 8, rt, base, offset);
export const str = (rt: number, base: number, offset: number): number => access('store', 8, rt, base, offset);
/** The low 64 bits of a vector register. */
export const strD = (rt: number, base: number, offset: number): number => (str(rt, base, offset) | 0x0400_0000) >>> 0;
/** `ldr rt, [sp], bytes`. */
export const pop = (rt: number, bytes: number): number =>
  (0xf840_0400 | ((signed(bytes, 9, 1, 'Offset') & 0x1ff) << 12) | (SP << 5) | register(rt)) >>> 0;
/** `str rt, [sp, -bytes]!`. */
export const push = (rt: number, bytes: number): number =>
  (0xf800_0c00 | ((signed(-bytes, 9, 1, 'Offset') & 0x1ff) << 12) | (SP << 5) | register(rt)) >>> 0;

export const ldxr = (rt: number, rn: number): number => (0xc85f_7c00 | (register(rn) << 5) | register(rt)) >>> 0;
/** `rs` gets 0 if it was stored. */
export const stxr = (rs: number, rt: number, rn: number): number =>
  (0xc800_7c00 | (register(rs) << 16) | (register(rn) << 5) | register(rt)) >>> 0;
/** Release: earlier reads and writes come first. */
export const stlxr = (rs: number, rt: number, rn: number): number => (stxr(rs, rt, rn) | 0x8000) >>> 0;
export const stlr = (rt: number, rn: number): number => (0xc89f_fc00 | (register(rn) << 5) | register(rt)) >>> 0;
export const clrex = 0xd503_3f5f;
/** Orders earlier loads before later loads and stores: `dmb ishld`. */
export const dmbLoads = 0xd503_39bf;
export const nop = 0xd503_201f;

/** `number`: op0 to op2, 16 bits, as decoded. */
export const mrs = (rt: number, number: number): number =>
  (0xd520_0000 | (unsigned(number, 16, 'System register') << 5) | register(rt)) >>> 0;

/** A return through a register. Unlike `br` it needs no landing pad where it leads (BTI). */
export const ret = (rn: number): number => (0xd65f_0000 | (register(rn) << 5)) >>> 0;

export const b = (offset: number): number => (0x1400_0000 | (signed(offset, 26, 4, 'Distance') & 0x3ff_ffff)) >>> 0;

/** `cbz`, `cbnz`; of one bit `tbz`, `tbnz`. */
export function branch(op: 'zero' | 'not-zero', rt: number, offset: number): number {
  const word = op === 'zero' ? 0xb400_0000 : 0xb500_0000;
  return (word | ((signed(offset, 19, 4, 'Distance') & 0x7_ffff) << 5) | register(rt)) >>> 0;
}

export function branchBit(op: 'zero' | 'not-zero', rt: number, bit: number, offset: number): number {
  const at = unsigned(bit, 6, 'Bit');
  const word = (op === 'zero' ? 0x3600_0000 : 0x3700_0000) | ((at >> 5) << 31) | ((at & 31) << 19);
  return (word | ((signed(offset, 14, 4, 'Distance') & 0x3fff) << 5) | register(rt)) >>> 0;
}

/** Instructions, and bytes, of a far jump. */
export const farJumpBytes = 12;

export const machine: LoadStore = {
  temporaries: [T0, T1, T2, T3, T4, T5, T6],
  ...{ link: LR, stackPointer: SP, zero: ZR, registerNamed },
  ...{ reaches: isNear, access, addi, add, sub, and, xor: eor, left: lsl, right: lsr },
  extend: (to, from, size, isSigned) => [extend(to, from, size, isSigned)],
  /** The sign of their difference compares them. */
  onesIfBelow: (to, a, b) => [sub(to, a, b), asr(to, to, 63)],
  ...{ move: mov, lowBits: andOnes, returnBy: ret },
};

/** Assembles instructions one after the other at an address. */
export class Assembler extends FramedCode {
  readonly is = machine;

  branchZero(op: 'zero' | 'not-zero', rt: number, to: Label): void {
    this.later(to, (offset) => branch(op, rt, offset));
  }

  branchBelow(a: number, b: number, to: Label): void {
    this.emit(sub(a, a, b));
    this.branchBit('not-zero', a, 63, to);
  }

  branchBit(op: 'zero' | 'not-zero', rt: number, bit: number, to: Label): void {
    this.later(to, (offset) => branchBit(op, rt, bit, offset));
  }

  jump(to: Label): void {
    this.later(to, b);
  }

  /** `b`: keeps every register, reaches 128 MiB. */
  jumpNear(to: Addr): void {
    this.code.word(b(this.distance(to)));
  }

  /** `adrp; add; ret`: reaches 4 GiB. */
  jumpFar(to: Addr, through: number): void {
    this.loadAddress(through, to);
    this.code.word(ret(through));
  }

  /** An address in 8 bytes of code, up to 4 GiB away. */
  loadAddress(rd: number, address: Addr): void {
    this.loadPage(rd, address);
    this.code.word(addi(rd, rd, Number(address & 0xfffn)));
  }

  /** The first address of its page, in 4 bytes of code. */
  loadPage(rd: number, address: Addr): void {
    if (!this.reachesPage(address))
      throw new RangeError(`${hex(address)} is out of reach of code at ${hex(this.here)}`);
    this.code.word(adrp(rd, this.#pagesTo(address)));
  }

  /** Whether {@link loadPage} can be used here. */
  reachesPage(address: Addr): boolean {
    const pages = this.#pagesTo(address);
    return pages >= -(2 ** 20) && pages < 2 ** 20;
  }

  #pagesTo(address: Addr): number {
    return Number((address >> 12n) - (this.here >> 12n));
  }

  /** A constant, in as many instructions as it has halves that are not all zeros, or not all ones. */
  loadConstant(rd: number, value: bigint): void {
    const halves = [0, 1, 2, 3].map((part) => Number((value >> BigInt(16 * part)) & 0xffffn));
    const isInverted = halves.filter((half) => half === 0xffff).length > halves.filter((half) => half === 0).length;
    const filler = isInverted ? 0xffff : 0;
    let isFirst = true;
    for (const [part, half] of halves.entries()) {
      if (half === filler && !(isFirst && part === 3)) continue;
      if (!isFirst) this.emit(moveWide(0xf280_0000, rd, half, part));
      else this.emit(moveWide(isInverted ? 0x9280_0000 : 0xd280_0000, rd, isInverted ? half ^ 0xffff : half, part));
      isFirst = false;
    }
  }
}
