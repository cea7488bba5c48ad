import { type Addr, hex } from '../../base/addr.js';
import type { Label } from '../inject/code-buffer.js';
import { FramedCode, type LoadStore, type Size } from '../inject/framed-code.js';
import { branches, type CsrOp, csrs, type LoadOp, loads, type StoreOp, stores } from './opcodes.js';
import { RA, registerNamed, SP } from './registers.js';

/**
 * The RISC-V Instruction Set Manual, volume I, "Base Instruction Formats". It assembles the instructions of
 * trampolines: of RV64I, A and Zicsr, as 32-bit words; and the few compressed ones of a hop. Registers are numbers 0
 * to 31. An operand that does not fit its field is a RangeError.
 *
 *      31      25 24  20 19  15 14  12 11   7 6     0
 *     | funct7   | rs2  | rs1  | f3   | rd   | opcode |
 */
export const T0 = 5;
export const T1 = 6;
export const T2 = 7;
export const T3 = 28;
export const T4 = 29;
export const T5 = 30;
export const T6 = 31;

export type Branch = NonNullable<(typeof branches)[number]>;

/** `unit` is a power of two. */
function signed(value: number, bits: number, unit: number, what: string): number {
  const above = 32 - bits;
  // Only an integer of that many bits comes out of the shifts unchanged.
  if ((value << above) >> above !== value || (value & (unit - 1)) !== 0)
    throw new RangeError(`${what} ${value} does not fit ${bits} bits in steps of ${unit}`);
  return value;
}

function unsigned(value: number, bits: number, what: string): number {
  const above = 32 - bits;
  if ((value << above) >>> above !== value) throw new RangeError(`${what} ${value} does not fit ${bits} bits`);
  return value;
}

const register = (number: number): number => unsigned(number, 5, 'Register');

function formatI(opcode: number, f3: number, rd: number, rs1: number, imm: number): number {
  const field = signed(imm, 12, 1, 'Immediate') << 20;
  return (field | (register(rs1) << 15) | (f3 << 12) | (register(rd) << 7) | opcode) >>> 0;
}

/** The fields of an R-type instruction that say what it does. */
interface Operation {
  readonly opcode: number;
  readonly f3: number;
  readonly f7: number;
}

const ADD: Operation = { opcode: 0x33, f3: 0, f7: 0 };
const XOR: Operation = { opcode: 0x33, f3: 4, f7: 0 };
const AND: Operation = { opcode: 0x33, f3: 7, f7: 0 };
const SLTU: Operation = { opcode: 0x33, f3: 3, f7: 0 };
const SUB: Operation = { opcode: 0x33, f3: 0, f7: 0x20 };
const AMOADD_D: Operation = { opcode: 0x2f, f3: 3, f7: 0 };
const LR_D: Operation = { opcode: 0x2f, f3: 3, f7: 2 << 2 };
const SC_D_RL: Operation = { opcode: 0x2f, f3: 3, f7: (3 << 2) | 1 };

function formatR({ opcode, f3, f7 }: Operation, rd: number, rs1: number, rs2: number): number {
  return ((f7 << 25) | (register(rs2) << 20) | (register(rs1) << 15) | (f3 << 12) | (register(rd) << 7) | opcode) >>> 0;
}

/** `imm20` is the field itself, signed: bits 31:12. */
function formatU(opcode: number, rd: number, imm20: number): number {
  return ((signed(imm20, 20, 1, 'Upper immediate') << 12) | (register(rd) << 7) | opcode) >>> 0;
}

export const addi = (rd: number, rs1: number, imm: number): number => formatI(0x13, 0, rd, rs1, imm);
export const andi = (rd: number, rs1: number, imm: number): number => formatI(0x13, 7, rd, rs1, imm);
export const xori = (rd: number, rs1: number, imm: number): number => formatI(0x13, 4, rd, rs1, imm);
export const addiw = (rd: number, rs1: number, imm: number): number => formatI(0x1b, 0, rd, rs1, imm);
export const slli = (rd: number, rs1: number, by: number): number =>
  formatI(0x13, 1, rd, rs1, unsigned(by, 6, 'Shift'));
export const srli = (rd: number, rs1: number, by: number): number =>
  formatI(0x13, 5, rd, rs1, unsigned(by, 6, 'Shift'));
export const srai = (rd: number, rs1: number, by: number): number =>
  formatI(0x13, 5, rd, rs1, unsigned(by, 6, 'Shift') | 0x400);
export const add = (rd: number, rs1: number, rs2: number): number => formatR(ADD, rd, rs1, rs2);
export const xor = (rd: number, rs1: number, rs2: number): number => formatR(XOR, rd, rs1, rs2);
export const and = (rd: number, rs1: number, rs2: number): number => formatR(AND, rd, rs1, rs2);
export const sltu = (rd: number, rs1: number, rs2: number): number => formatR(SLTU, rd, rs1, rs2);
export const sub = (rd: number, rs1: number, rs2: number): number => formatR(SUB, rd, rs1, rs2);
export const lui = (rd: number, imm20: number): number => formatU(0x37, rd, imm20);
export const auipc = (rd: number, imm20: number): number => formatU(0x17, rd, imm20);
export const jalr = (rd: number, rs1: number, offset: number): number => formatI(0x67, 0, rd, rs1, offset);
export const nop = (): number => addi(0, 0, 0);

/** Imm[20|10:1|11|19:12]; `offset` is from the instruction itself. */
export function jal(rd: number, offset: number): number {
  const imm = signed(offset, 21, 2, 'Jump offset');
  const field = ((imm >> 20) << 31) | ((imm & 0x7fe) << 20) | ((imm & 0x800) << 9) | (imm & 0xff000);
  return (field | (register(rd) << 7) | 0x6f) >>> 0;
}

/** Imm[12|10:5] and imm[4:1|11]; `offset` is from the instruction itself. */
export function branch(op: Branch, rs1: number, rs2: number, offset: number): number {
  const imm = signed(offset, 13, 2, 'Branch offset');
  const high = ((imm >> 12) << 31) | ((imm & 0x7e0) << 20);
  const low = ((imm & 0x1e) << 7) | ((imm & 0x800) >> 4);
  return (high | (register(rs2) << 20) | (register(rs1) << 15) | (branches.indexOf(op) << 12) | low | 0x63) >>> 0;
}

export function load(op: LoadOp, rd: number, base: number, offset: number): number {
  return formatI(0x03, loads.indexOf(op), rd, base, offset);
}

export function store(op: StoreOp, value: number, base: number, offset: number): number {
  const imm = signed(offset, 12, 1, 'Offset');
  const fields = (register(value) << 20) | (register(base) << 15) | (stores.indexOf(op) << 12);
  return (((imm >> 5) << 25) | fields | ((imm & 31) << 7) | 0x23) >>> 0;
}

export const ld = (rd: number, base: number, offset: number): number => load('ld', rd, base, offset);
export const sd = (value: number, base: number, offset: number): number => store('sd', value, base, offset);

/** Of a floating-point register: differs from `sd` in the opcode alone. */
export const fsd = (value: number, base: number, offset: number): number => (sd(value, base, offset) | 0x04) >>> 0;

/** `rd` gets the old value at `address`; without an ordering of its own. */
export const amoaddD = (rd: number, value: number, address: number): number => formatR(AMOADD_D, rd, address, value);
export const lrD = (rd: number, address: number): number => formatR(LR_D, rd, address, 0);
/** Release: earlier reads and writes come first. `rd` gets 0 if it was stored. */
export const scDRelease = (rd: number, value: number, address: number): number => formatR(SC_D_RL, rd, address, value);

/** Sets of device input 8, output 4, memory reads 2, writes 1. */
export function fence(before: number, after: number): number {
  return ((unsigned(before, 4, 'Set') << 24) | (unsigned(after, 4, 'Set') << 20) | 0x0f) >>> 0;
}

export function csr(op: CsrOp, rd: number, number: number, source: number): number {
  const field = unsigned(number, 12, 'CSR') << 20;
  return (field | (register(source) << 15) | (csrs.indexOf(op) << 12) | (register(rd) << 7) | 0x73) >>> 0;
}

/** Compressed, 16 bits: c.addi sp,imm; c.sdsp with its offset zero; c.ldsp; c.addi16sp; c.jr ra. */
export const cAddiSp = (imm: number): number => {
  const field = signed(imm, 6, 1, 'Immediate');
  return ((field & 32) << 7) | (2 << 7) | ((field & 31) << 2) | 1;
};
export const cSdsp0 = (value: number): number => 0xe002 | (register(value) << 2);
export const cLdsp = (rd: number, offset: number): number =>
  0x6002 | ((offset & 32) << 7) | (register(rd) << 7) | ((offset & 24) << 2) | ((offset & 448) >> 4);
export const cAddi16Sp = (imm: number): number =>
  0x6101 | ((imm & 512) << 3) | ((imm & 16) << 2) | ((imm & 64) >> 1) | ((imm & 384) >> 4) | ((imm & 32) >> 3);
export const cJrRa = 0x8082;

/** A distance split for `auipc` and a signed 12-bit rest; undefined if it exceeds 2 GiB. */
export function split(distance: number): { readonly high: number; readonly low: number } | undefined {
  const rounded = distance + 0x800;
  if ((rounded | 0) !== rounded) return undefined;
  const high = rounded >> 12;
  return { high, low: distance - (high << 12) };
}

const opposites: Readonly<Record<Branch, Branch>> = {
  beq: 'bne',
  bne: 'beq',
  blt: 'bge',
  bge: 'blt',
  bltu: 'bgeu',
  bgeu: 'bltu',
};

export const opposite = (op: Branch): Branch => opposites[op];

const widths = {
  1: ['lbu', 'lb', 'sb'],
  2: ['lhu', 'lh', 'sh'],
  4: ['lwu', 'lw', 'sw'],
  8: ['ld', 'ld', 'sd'],
} as const;

function access(op: 'load' | 'signed' | 'store', size: Size, register: number, base: number, offset: number): number {
  const [unsigned, signed, stored] = widths[size];
  return op === 'store'
    ? store(stored, register, base, offset)
    : load(op === 'load' ? unsigned : signed, register, base, offset);
}

export const machine: LoadStore = {
  temporaries: [T0, T1, T2, T3, T4, T5, T6],
  ...{ link: RA, stackPointer: SP, zero: 0, registerNamed },
  reaches: (offset) => offset >= -2048 && offset < 2048,
  ...{ access, addi, add, sub, and, xor, left: slli, right: srli },
  move: (to, from) => addi(to, from, 0),
  extend(to, from, size, isSigned) {
    if (size === 4 && isSigned) return [addiw(to, from, 0)];
    const by = 64 - 8 * size;
    return [slli(to, from, by), (isSigned ? srai : srli)(to, to, by)];
  },
  onesIfBelow: (to, a, b) => [sltu(to, a, b), sub(to, 0, to)],
  lowBits: (to, from, count) => andi(to, from, 2 ** count - 1),
  returnBy: (register) => jalr(0, register, 0),
};

/** Assembles instructions one after the other at an address. */
export class Assembler extends FramedCode {
  readonly is = machine;

  /** 16-bit instructions. */
  emitCompressed(...halves: readonly number[]): void {
    for (const half of halves) this.code.half(half);
  }

  branchBelow(a: number, b: number, to: Label): void {
    this.branch('bltu', a, b, to);
  }

  branchZero(op: 'zero' | 'not-zero', register: number, to: Label): void {
    this.branch(op === 'zero' ? 'beq' : 'bne', register, 0, to);
  }

  branch(op: Branch, rs1: number, rs2: number, to: Label): void {
    this.later(to, (offset) => branch(op, rs1, rs2, offset));
  }

  jump(to: Label): void {
    this.later(to, plainJump);
  }

  /** `jal x0`: keeps every register, reaches 1 MiB. */
  jumpNear(to: Addr): void {
    this.code.word(jal(0, this.distance(to)));
  }

  /** `auipc; jalr`: reaches 2 GiB. `link` gets the address behind it. */
  jumpFar(to: Addr, through: number, link = 0): void {
    const parts = split(this.distance(to));
    if (parts === undefined) throw this.#outOfReach(to);
    this.code.word(auipc(through, parts.high));
    this.code.word(jalr(link, through, parts.low));
  }

  /** An address in 8 bytes of code: relative to the pc; or as a constant, if that is too far and 32 bits are enough. */
  loadAddress(rd: number, address: Addr): void {
    const relative = split(this.distance(address));
    const absolute = relative ?? split(Number(BigInt.asIntN(64, address)));
    if (absolute === undefined) throw this.#outOfReach(address);
    const { high, low } = absolute;
    this.code.word(relative === undefined ? lui(rd, high) : auipc(rd, high));
    this.code.word(addi(rd, rd, low));
  }

  /** A constant, in as many instructions as needed: 32 bits in two, then 12 bits a pair. */
  loadConstant(rd: number, value: bigint): void {
    const wanted = BigInt.asIntN(64, value);
    if (wanted >= -0x800n && wanted < 0x800n) {
      this.emit(addi(rd, 0, Number(wanted)));
      return;
    }
    const low = Number(BigInt.asIntN(12, wanted));
    if (BigInt.asIntN(32, wanted) === wanted) {
      const high = Number(BigInt.asIntN(20, (wanted + 0x800n) >> 12n));
      this.emit(lui(rd, high));
      if (low !== 0) this.emit(addiw(rd, rd, low));
      return;
    }
    let rest = (wanted - BigInt(low)) >> 12n;
    let shift = 12;
    for (; (rest & 1n) === 0n; rest >>= 1n) shift++;
    this.loadConstant(rd, rest);
    this.emit(slli(rd, rd, shift));
    if (low !== 0) this.emit(addi(rd, rd, low));
  }

  #outOfReach(to: Addr): RangeError {
    return new RangeError(`${hex(to)} is out of reach of code at ${hex(this.here)}`);
  }
}

const plainJump = (offset: number): number => jal(0, offset);
