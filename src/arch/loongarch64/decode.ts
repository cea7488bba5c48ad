// LoongArch Reference Manual, volume 1, 1.2 "Instruction Encoding" and appendix B. Decoded is what unwinding, control
// flow and emulation need. Of all other instructions it is known which general registers they overwrite.
import { bit, field, signedField, wordAt } from '../instructions.js';
import type { BranchOp, IntegerOp } from '../integer-operations.js';
import { accessOf, type Memory } from './decode-memory.js';
import { branches, ERTN, immediateOps, registerOps, type SystemOp, shifts, systemOps, wordShifts } from './opcodes.js';

export type Instruction = { readonly length: 4; readonly word: number } & Form;

/** Registers are numbers 0 to 31; 0 reads as zero. */
type Form =
  | { readonly form: 'register'; readonly op: IntegerOp; readonly rd: number; readonly rj: number; readonly rk: number }
  | {
      readonly form: 'immediate';
      readonly op: IntegerOp;
      readonly rd: number;
      readonly rj: number;
      readonly imm: number;
    }
  /** lu12i.w. */
  | { readonly form: 'constant'; readonly rd: number; readonly imm: number }
  /** lu32i.d, lu52i.d: the low `low` bits are those of rj, `imm` is above. */
  | {
      readonly form: 'upper';
      readonly rd: number;
      readonly rj: number;
      readonly low: 32 | 52;
      readonly imm: number;
    }
  /** pcaddi, pcaddu12i, pcaddu18i, pcalau12i: `imm` in bytes, to the instruction or to its page. */
  | { readonly form: 'address'; readonly rd: number; readonly imm: number; readonly isPage: boolean }
  /** bstrpick: bits of rj, from the high one to the low one. */
  | {
      readonly form: 'bits';
      readonly rd: number;
      readonly rj: number;
      readonly high: number;
      readonly low: number;
      readonly wide: boolean;
    }
  | Memory
  /** beqz and bnez compare with register 0. */
  | { readonly form: 'branch'; readonly op: BranchOp; readonly rj: number; readonly rk: number; readonly imm: number }
  /** bceqz, bcnez. */
  | { readonly form: 'float-branch'; readonly imm: number }
  | { readonly form: 'jump'; readonly link: boolean; readonly imm: number }
  /** jirl. */
  | { readonly form: 'jump-register'; readonly rd: number; readonly rj: number; readonly imm: number }
  /** csrrd, csrwr, csrxchg: rd gets what the register held, and gives what is written. */
  | { readonly form: 'csr'; readonly op: 'read' | 'write' | 'exchange'; readonly rd: number; readonly csr: number }
  | { readonly form: 'system'; readonly op: SystemOp }
  /** Anything else. `writes`: the general registers that it overwrites. */
  | { readonly form: 'other'; readonly writes: readonly number[] };

/** The instruction at an offset; undefined beyond the bytes. */
export function decode(code: Uint8Array, offset = 0): Instruction | undefined {
  const word = wordAt(code, offset);
  return word === undefined ? undefined : { length: 4, word, ...formOf(word) };
}

/** The general registers that an instruction overwrites. */
export function written(instruction: Instruction): readonly number[] {
  switch (instruction.form) {
    case 'memory': {
      const isLoaded = instruction.access === 'load' || instruction.access === 'both';
      return (isLoaded && !instruction.isFloat) || instruction.exclusive === 'ends' ? [instruction.rt] : [];
    }
    case 'jump':
      return instruction.link ? [1] : [];
    case 'other':
      return instruction.writes;
    default:
      return 'rd' in instruction ? [instruction.rd] : [];
  }
}

const none: Form = { form: 'other', writes: [] };

function formOf(word: number): Form {
  const high = word >>> 26;
  if (high >= 0x10 && high < 0x1c) return branchOf(word, high);
  if (high === 0x1c || high === 0x1d) return isPick(word) ? other(word) : none;
  const rd = field(word, 4, 0);
  switch (high) {
    case 0x00:
      return word < 0x0100_0000 ? ofRegisters(word) : word < 0x0200_0000 ? ofFloat(word) : ofImmediate(word);
    case 0x01:
      return privileged(word);
    case 0x04:
      return { form: 'immediate', op: 'add', rd, rj: field(word, 9, 5), imm: signedField(word, 25, 10) * 0x1_0000 };
    case 0x05: {
      const imm = signedField(word, 24, 5);
      return bit(word, 25) ? { form: 'upper', rd, rj: rd, low: 32, imm } : { form: 'constant', rd, imm: imm * 0x1000 };
    }
    case 0x06:
    case 0x07: {
      const unit = [4, 0x1000, 0x1000, 0x4_0000][field(word, 26, 25)] as number;
      return { form: 'address', rd, imm: signedField(word, 24, 5) * unit, isPage: field(word, 26, 25) === 1 };
    }
    default:
      // 0x2e: loads and stores of parts of words (LBT).
      return accessOf(word) ?? (word >>> 24 === 0x2e ? other(word) : none);
  }
}

const other = (word: number): Form => ({ form: 'other', writes: [field(word, 4, 0)] });

/** vpickve2gr, xvpickve2gr: an element of a vector to a general register. */
function isPick(word: number): boolean {
  return [0x72ec_0000, 0x72f0_0000, 0x76ec_0000, 0x76f0_0000].includes((word & 0xfffc_0000) >>> 0);
}

function ofRegisters(word: number): Form {
  const [rd, rj, rk] = [field(word, 4, 0), field(word, 9, 5), field(word, 14, 10)];
  const group = word >>> 15;
  const register = registerOps[group];
  if (register) return { form: 'register', op: register, rd, rj, rk };
  const system = systemOps[group];
  if (system) return { form: 'system', op: system };
  const wordShift = wordShifts[group];
  if (wordShift) return { form: 'immediate', op: wordShift, rd, rj, imm: rk };
  const shift = shifts[group >>> 1];
  if (shift) return { form: 'immediate', op: shift, rd, rj, imm: field(word, 15, 10) };
  if (word >>> 21 === 3 && bit(word, 15))
    return { form: 'bits', rd, rj, high: field(word, 20, 16), low: rk, wide: false };
  if (word >>> 22 === 3)
    return { form: 'bits', rd, rj, high: field(word, 21, 16), low: field(word, 15, 10), wide: true };
  // rdtime writes the counter and its number.
  const isTime = word >>> 10 >= 0x18 && word >>> 10 <= 0x1a;
  return { form: 'other', writes: isTime ? [rd, rj] : [rd] };
}

/** Moves to general registers: movfr2gr, movfrh2gr, movfcsr2gr, movcf2gr. */
function ofFloat(word: number): Form {
  const isMove = [0x4_52d, 0x4_52e, 0x4_52f, 0x4_532, 0x4_537].includes(word >>> 10);
  return isMove ? other(word) : none;
}

function ofImmediate(word: number): Form {
  const [rd, rj] = [field(word, 4, 0), field(word, 9, 5)];
  if (word >>> 22 === 12) return { form: 'upper', rd, rj, low: 52, imm: signedField(word, 21, 10) };
  const found = immediateOps[word >>> 22];
  if (!found) return other(word);
  const imm = found.signed ? signedField(word, 21, 10) : field(word, 21, 10);
  return { form: 'immediate', op: found.op, rd, rj, imm };
}

function privileged(word: number): Form {
  const [rd, rj] = [field(word, 4, 0), field(word, 9, 5)];
  if (word >>> 24 === 4) {
    const op = rj === 0 ? 'read' : rj === 1 ? 'write' : 'exchange';
    return { form: 'csr', op, rd, csr: field(word, 23, 10) };
  }
  if (word === ERTN) return { form: 'system', op: 'ertn' };
  const system = systemOps[word >>> 15];
  if (system) return { form: 'system', op: system };
  // A guest's registers, lddir, iocsrrd.
  const writes = word >>> 24 === 5 || word >>> 18 === 0x190 || word >>> 12 === 0x6480;
  return writes ? other(word) : none;
}

function branchOf(word: number, high: number): Form {
  const [rd, rj] = [field(word, 4, 0), field(word, 9, 5)];
  const low16 = field(word, 25, 10);
  const signed16 = 4 * signedField(word, 25, 10);
  const signed21 = 4 * signedField((rd << 16) | low16, 20, 0);
  const op = branches[high];
  switch (high) {
    case 0x12:
      return bit(word, 9) ? none : { form: 'float-branch', imm: signed21 };
    case 0x13:
      return { form: 'jump-register', rd, rj, imm: signed16 };
    case 0x14:
    case 0x15:
      return { form: 'jump', link: high === 0x15, imm: 4 * signedField((field(word, 9, 0) << 16) | low16, 25, 0) };
    default:
      if (op === undefined) return none;
      return high < 0x12
        ? { form: 'branch', op, rj, rk: 0, imm: signed21 }
        : { form: 'branch', op, rj, rk: rd, imm: signed16 };
  }
}
