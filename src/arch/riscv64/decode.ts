import { expandCompressed } from './compressed.js';
import * as table from './opcodes.js';

/**
 * The RISC-V Instruction Set Manual, volume I: "Base Instruction Formats" (where the fields lie) and "Expanded
 * Instruction-Length Encoding" (lengths past 4 bytes). Decodes RV64GC except for F and D arithmetic. That decodes as
 * `unknown` with its length, and so do reserved encodings and other extensions.
 *
 *      31      25 24  20 19  15 14  12 11   7 6     0
 *     | funct7   | rs2  | rs1  | f3   | rd   | opcode |
 */
export type Instruction = Encoded & Operation;

interface Encoded {
  /** Bytes in memory. */
  readonly length: number;
  /** From the C extension; the rest of the record describes the expanded instruction. */
  readonly compressed: boolean;
}

/**
 * Registers are numbers 0 to 31. An `imm` is signed; a branch's and a jump's is relative to the instruction's own
 * address.
 */
export type Operation =
  | Form<'register', table.RegisterOp, 'rd' | 'rs1' | 'rs2'>
  | Form<'immediate', table.ImmediateOp, 'rd' | 'rs1' | 'imm'>
  /** `imm` is what is added or loaded: the upper 20 bits in place, sign-extended from 32. */
  | Form<'upper', 'lui' | 'auipc', 'rd' | 'imm'>
  | Form<'jump', 'jal', 'rd' | 'imm'>
  | Form<'jump-register', 'jalr', 'rd' | 'rs1' | 'imm'>
  | Form<'branch', table.BranchOp, 'rs1' | 'rs2' | 'imm'>
  | Form<'load', table.LoadOp, 'rd' | 'rs1' | 'imm'>
  | Form<'store', table.StoreOp, 'rs1' | 'rs2' | 'imm'>
  /** `rd` is a float register, `rs1` an integer one. */
  | Form<'float-load', table.FloatLoadOp, 'rd' | 'rs1' | 'imm'>
  /** `rs2` is a float register, `rs1` an integer one. */
  | Form<'float-store', table.FloatStoreOp, 'rs1' | 'rs2' | 'imm'>
  | (Form<'atomic', table.AtomicOp, 'rd' | 'rs1' | 'rs2'> & { readonly ordering: '' | 'aq' | 'rl' | 'aqrl' })
  /** `source` is a register number, or the five-bit immediate of the ops that end in `i`. */
  | Form<'csr', table.CsrOp, 'rd' | 'csr' | 'source'>
  /** Sets of device input 8, output 4, memory reads 2, writes 1. */
  | Form<'fence', 'fence' | 'fence.tso', 'before' | 'after'>
  | Form<'address-fence', 'sfence.vma', 'rs1' | 'rs2'>
  | Form<'system', table.SystemOp, never>
  /** `bits`: the first 2 or 4 bytes as a number. */
  | Form<'unknown', 'unknown', 'bits'>;

/** Instructions of one form, and the fields that they have. */
type Form<F extends string, Op extends string, Fields extends string> = {
  readonly form: F;
  readonly op: Op;
} & Readonly<Record<Fields, number>>;

/**
 * Length in bytes of an instruction with these first 16 bits; 2 if the length itself is reserved (192 bits or more).
 */
export function lengthOf(first: number): number {
  if ((first & 0b11) !== 0b11) return 2;
  if ((first & 0b1_1100) !== 0b1_1100) return 4;
  if ((first & 0b11_1111) === 0b01_1111) return 6;
  if ((first & 0b111_1111) === 0b011_1111) return 8;
  const parcels = (first >> 12) & 7;
  return parcels === 7 ? 2 : 10 + 2 * parcels;
}

/** The instruction at `offset`; undefined if the bytes end within it. Never throws. */
export function decode(code: Uint8Array, offset = 0): Instruction | undefined {
  const b0 = code[offset];
  const b1 = code[offset + 1];
  if (b0 === undefined || b1 === undefined) return undefined;
  const first = b0 | (b1 << 8);
  const length = lengthOf(first);
  if (offset + length > code.length) return undefined;
  if (length === 2) {
    return encoded(expandCompressed(first) ?? unknown(first), length, (first & 3) !== 3);
  }
  const word = (first | ((code[offset + 2] as number) << 16) | ((code[offset + 3] as number) << 24)) >>> 0;
  const operation = length === 4 ? decodeWord(word) : undefined;
  return encoded(operation ?? unknown(word), length, false);
}

/** Changed in place, because a spread costs more than all of the decoding. No other code has this operation. */
function encoded(operation: Operation, length: number, compressed: boolean): Instruction {
  const whole: Operation & { length?: number; compressed?: boolean } = operation;
  whole.length = length;
  whole.compressed = compressed;
  return whole as Instruction;
}

function unknown(bits: number): Operation {
  return { form: 'unknown', op: 'unknown', bits };
}

const immediateI = (word: number): number => word >> 20;
const immediateS = (word: number): number => ((word >> 25) << 5) | ((word >> 7) & 0x1f);
export const immediateB = (word: number): number =>
  ((word >> 31) << 12) | ((word << 4) & 0x800) | ((word >> 20) & 0x7e0) | ((word >> 7) & 0x1e);
export const immediateJ = (word: number): number =>
  ((word >> 31) << 20) | (word & 0xf_f000) | ((word >> 9) & 0x800) | ((word >> 20) & 0x7fe);

function decodeWord(word: number): Operation | undefined {
  const rd = (word >> 7) & 31;
  const f3 = (word >> 12) & 7;
  const rs1 = (word >> 15) & 31;
  const rs2 = (word >> 20) & 31;
  const f7 = word >>> 25;
  switch (word & 0x7f) {
    case 0x03: {
      const op = table.loads[f3];
      return op && { form: 'load', op, rd, rs1, imm: immediateI(word) };
    }
    case 0x07: {
      const op = table.floatLoads[f3];
      return op && { form: 'float-load', op, rd, rs1, imm: immediateI(word) };
    }
    case 0x0f:
      return decodeFence(word);
    case 0x13:
      return decodeImmediate(word, f3, rd, rs1);
    case 0x17:
      return { form: 'upper', op: 'auipc', rd, imm: word & ~0xfff };
    case 0x1b:
      return decodeWordImmediate(word, f3, rd, rs1);
    case 0x23: {
      const op = table.stores[f3];
      return op && { form: 'store', op, rs1, rs2, imm: immediateS(word) };
    }
    case 0x27: {
      const op = table.floatStores[f3];
      return op && { form: 'float-store', op, rs1, rs2, imm: immediateS(word) };
    }
    case 0x2f:
      return decodeAtomic(word, f3, rd, rs1, rs2);
    case 0x33: {
      const op = groupOf(table.registerOps, f7)?.[f3];
      return op && { form: 'register', op, rd, rs1, rs2 };
    }
    case 0x37:
      return { form: 'upper', op: 'lui', rd, imm: word & ~0xfff };
    case 0x3b: {
      const op = groupOf(table.wordOps, f7)?.[f3];
      return op && { form: 'register', op, rd, rs1, rs2 };
    }
    case 0x63: {
      const op = table.branches[f3];
      return op && { form: 'branch', op, rs1, rs2, imm: immediateB(word) };
    }
    case 0x67:
      return f3 === 0 ? { form: 'jump-register', op: 'jalr', rd, rs1, imm: immediateI(word) } : undefined;
    case 0x6f:
      return { form: 'jump', op: 'jal', rd, imm: immediateJ(word) };
    case 0x73:
      return decodeSystem(word, f3, rd, rs1, rs2);
    default:
      return undefined;
  }
}

type Group = readonly (table.RegisterOp | undefined)[];

function groupOf(groups: Readonly<Record<'plain' | 'alternate' | 'multiply', Group>>, f7: number): Group | undefined {
  if (f7 === 0) return groups.plain;
  if (f7 === 0x20) return groups.alternate;
  return f7 === 1 ? groups.multiply : undefined;
}

/** Shift amounts take six bits of the immediate, so the upper six tell srli from srai. */
function decodeImmediate(word: number, f3: number, rd: number, rs1: number): Operation | undefined {
  const op = table.immediateOps[f3];
  if (op !== undefined) return { form: 'immediate', op, rd, rs1, imm: immediateI(word) };
  const imm = (word >> 20) & 63;
  const f6 = word >>> 26;
  if (f3 === 1) return f6 === 0 ? { form: 'immediate', op: 'slli', rd, rs1, imm } : undefined;
  if (f6 === 0) return { form: 'immediate', op: 'srli', rd, rs1, imm };
  return f6 === 0x10 ? { form: 'immediate', op: 'srai', rd, rs1, imm } : undefined;
}

function decodeWordImmediate(word: number, f3: number, rd: number, rs1: number): Operation | undefined {
  if (f3 === 0) return { form: 'immediate', op: 'addiw', rd, rs1, imm: immediateI(word) };
  const imm = (word >> 20) & 31;
  const f7 = word >>> 25;
  if (f3 === 1 && f7 === 0) return { form: 'immediate', op: 'slliw', rd, rs1, imm };
  if (f3 !== 5) return undefined;
  if (f7 === 0) return { form: 'immediate', op: 'srliw', rd, rs1, imm };
  return f7 === 0x20 ? { form: 'immediate', op: 'sraiw', rd, rs1, imm } : undefined;
}

const orderings = ['', 'rl', 'aq', 'aqrl'] as const;

function decodeAtomic(word: number, f3: number, rd: number, rs1: number, rs2: number): Operation | undefined {
  const name = table.atomics[word >>> 27];
  if (name === undefined || (f3 !== 2 && f3 !== 3) || (name === 'lr' && rs2 !== 0)) return undefined;
  const ordering = orderings[(word >> 25) & 3] ?? '';
  return { form: 'atomic', op: `${name}.${f3 === 2 ? 'w' : 'd'}`, ordering, rd, rs1, rs2 };
}

/** Fences whose unused fields are not zero are reserved for finer ones. */
function decodeFence(word: number): Operation | undefined {
  if (word === 0x0000_100f) return { form: 'system', op: 'fence.i' };
  if ((word & 0xf_ffff) !== 0x0000_000f) return undefined;
  const before = (word >> 24) & 15;
  const after = (word >> 20) & 15;
  const mode = word >>> 28;
  if (mode === 8 && before === 3 && after === 3) return { form: 'fence', op: 'fence.tso', before, after };
  return mode === 0 ? { form: 'fence', op: 'fence', before, after } : undefined;
}

function decodeSystem(word: number, f3: number, rd: number, rs1: number, rs2: number): Operation | undefined {
  const csr = table.csrs[f3];
  if (csr !== undefined) return { form: 'csr', op: csr, rd, csr: word >>> 20, source: rs1 };
  if (word >>> 25 === 9 && f3 === 0 && rd === 0) return { form: 'address-fence', op: 'sfence.vma', rs1, rs2 };
  const op = table.fixed[word];
  return op && { form: 'system', op };
}
