// Arm Architecture Reference Manual for A-profile (DDI 0487), C4.1 "A64 instruction set encoding". Decoded is what
// unwinding, control flow and emulation need. Of all other instructions it is known which general registers they
// overwrite. Little-endian words of 32 bits, also on big-endian machines.
import { bit, field, wordAt } from '../instructions.js';
import { accessOf, type Memory } from './decode-memory.js';

export type Instruction = { readonly length: 4; readonly word: number } & Form;

/** How a second operand is shifted: lsl, lsr, asr, ror, by their numbers. */
export type Shift = 0 | 1 | 2 | 3;

type Form =
  /** add, sub, adds, subs: rn and rd are sp where they are 31, but rd with `flags` is xzr. */
  | ({ readonly form: 'add-immediate'; readonly op: 'add' | 'sub'; readonly imm: number } & Arithmetic)
  | ({ readonly form: 'add'; readonly op: 'add' | 'sub'; readonly rm: number } & Shifted & Arithmetic)
  /** rn and rd may be sp. `option`: how rm is extended: uxtb to uxtx, sxtb to sxtx; then it is shifted left. */
  | ({
      readonly form: 'add-extended';
      readonly op: 'add' | 'sub';
      readonly rm: number;
      readonly option: number;
      readonly amount: number;
    } & Arithmetic)
  | ({ readonly form: 'logical'; readonly op: Logical; readonly rm: number; readonly invert: boolean } & Shifted &
      Arithmetic)
  /** rd may be sp, without `flags`. */
  | ({ readonly form: 'logical-immediate'; readonly op: Logical; readonly imm: bigint } & Arithmetic)
  | {
      readonly form: 'move-wide';
      readonly op: 'movn' | 'movz' | 'movk';
      readonly rd: number;
      readonly imm: number;
      readonly shift: number;
      readonly wide: boolean;
    }
  /** adr, adrp: `imm` in bytes, to the instruction or to its page. */
  | { readonly form: 'address'; readonly rd: number; readonly imm: number; readonly isPage: boolean }
  | Memory
  /** b.cond, cbz, cbnz, tbz, tbnz. */
  | { readonly form: 'branch'; readonly imm: number; readonly test: Test }
  | { readonly form: 'jump'; readonly imm: number; readonly link: boolean }
  | {
      readonly form: 'jump-register';
      readonly op: 'br' | 'blr' | 'ret';
      readonly rn: number;
      readonly isSigned: boolean;
    }
  | { readonly form: 'trap'; readonly op: 'svc' | 'hvc' | 'smc' | 'brk' | 'hlt' | 'eret' | 'udf' }
  /** nop, wfi, bti, paciasp and others that change nothing but maybe the signature of x30. */
  | { readonly form: 'hint'; readonly imm: number }
  /** msr and mrs of the register with this number (op0 to op2, 16 bits). */
  | { readonly form: 'system'; readonly op: 'msr' | 'mrs'; readonly register: number; readonly rt: number }
  /** Anything else. `writes`: the general register that it overwrites, 31 for sp. */
  | { readonly form: 'other'; readonly writes: number | undefined; readonly reads: readonly number[] };

type Logical = 'and' | 'orr' | 'eor';

interface Arithmetic {
  readonly rd: number;
  readonly rn: number;
  /** It sets the condition flags. */
  readonly flags: boolean;
  /** 64 bits. */
  readonly wide: boolean;
}

interface Shifted {
  readonly shift: Shift;
  readonly amount: number;
}

export type Test =
  | { readonly kind: 'condition'; readonly condition: number }
  | { readonly kind: 'zero'; readonly is: boolean; readonly rt: number; readonly wide: boolean }
  | { readonly kind: 'bit'; readonly is: boolean; readonly rt: number; readonly bit: number };

/** The instruction at an offset; undefined beyond the bytes. */
export function decode(code: Uint8Array, offset = 0): Instruction | undefined {
  const word = wordAt(code, offset);
  return word === undefined ? undefined : { length: 4, word, ...formOf(word) };
}

function formOf(word: number): Form {
  switch (field(word, 28, 25)) {
    case 0b1000:
    case 0b1001:
      return dataImmediate(word);
    case 0b1010:
    case 0b1011:
      return control(word);
    case 0b0100:
    case 0b0110:
    case 0b1100:
    case 0b1110:
      return accessOf(word) ?? none;
    case 0b0101:
    case 0b1101:
      return dataRegister(word);
    case 0b0111:
    case 0b1111:
      return { form: 'other', ...floatUses(word) };
    default:
      // SVE and SME, but for the lowest 16 bits: those are udf.
      return word < 0x1_0000 ? { form: 'trap', op: 'udf' } : none;
  }
}

const none: Form = { form: 'other', writes: undefined, reads: [] };

function dataImmediate(word: number): Form {
  const wide = bit(word, 31);
  const [rd, rn] = [field(word, 4, 0), field(word, 9, 5)];
  switch (field(word, 25, 23)) {
    case 0b000:
    case 0b001:
      return {
        form: 'address',
        rd,
        imm: (((word << 8) >> 13) * 4 + field(word, 30, 29)) * (wide ? 4096 : 1),
        isPage: wide,
      };
    case 0b010: {
      const imm = field(word, 21, 10) * (bit(word, 22) ? 4096 : 1);
      return { form: 'add-immediate', op: bit(word, 30) ? 'sub' : 'add', rd, rn, imm, flags: bit(word, 29), wide };
    }
    case 0b100: {
      const imm = bitMask(field(word, 22, 22), field(word, 21, 16), field(word, 15, 10), wide);
      const opc = field(word, 30, 29);
      if (imm === undefined) return none;
      return { form: 'logical-immediate', op: logicals[opc] as Logical, rd, rn, imm, flags: opc === 3, wide };
    }
    case 0b101: {
      const op = (['movn', undefined, 'movz', 'movk'] as const)[field(word, 30, 29)];
      if (op === undefined) return none;
      return { form: 'move-wide', op, rd, imm: field(word, 20, 5), shift: 16 * field(word, 22, 21), wide };
    }
    case 0b011:
      // addg, subg; minima and maxima, which know no sp.
      return { form: 'other', writes: rd === 31 && bit(word, 22) ? undefined : rd, reads: [rn] };
    default:
      // Bit fields, extr.
      return { form: 'other', writes: rd === 31 ? undefined : rd, reads: [rn, rd, field(word, 20, 16)] };
  }
}

const logicals: readonly Logical[] = ['and', 'orr', 'eor', 'and'];

/** DecodeBitMasks of the manual. */
function bitMask(n: number, immr: number, imms: number, wide: boolean): bigint | undefined {
  const length = 31 - Math.clz32((n << 6) | (~imms & 0x3f));
  if (length < 1 || (n === 1 && !wide)) return undefined;
  const size = 1 << length;
  const [s, r] = [imms & (size - 1), immr & (size - 1)];
  if (s === size - 1) return undefined;
  const ones = (1n << BigInt(s + 1)) - 1n;
  const element = BigInt.asUintN(size, (ones >> BigInt(r)) | (ones << BigInt(size - r)));
  let mask = 0n;
  for (let at = 0; at < (wide ? 64 : 32); at += size) mask |= element << BigInt(at);
  return mask;
}

function control(word: number): Form {
  if ((word & 0x7c00_0000) >>> 0 === 0x1400_0000)
    return { form: 'jump', imm: ((word << 6) >> 6) * 4, link: bit(word, 31) };
  const imm19 = ((word << 8) >> 13) * 4;
  if ((word & 0xff00_0000) >>> 0 === 0x5400_0000)
    return { form: 'branch', imm: imm19, test: { kind: 'condition', condition: field(word, 3, 0) } };
  const rt = field(word, 4, 0);
  if ((word & 0x7e00_0000) >>> 0 === 0x3400_0000) {
    return { form: 'branch', imm: imm19, test: { kind: 'zero', is: !bit(word, 24), rt, wide: bit(word, 31) } };
  }
  if ((word & 0x7e00_0000) >>> 0 === 0x3600_0000) {
    const at = field(word, 31, 31) * 32 + field(word, 23, 19);
    const test: Test = { kind: 'bit', is: bit(word, 24), rt, bit: at };
    return { form: 'branch', imm: ((word << 13) >> 18) * 4, test };
  }
  switch (word >>> 24) {
    case 0xd4:
      return trap(word);
    case 0xd5:
      return system(word);
    case 0xd6:
    case 0xd7:
      return jumpRegister(word);
    default:
      return none;
  }
}

/** By opc and LL. */
const traps: Readonly<Record<number, Extract<Form, { form: 'trap' }>['op']>> = {
  1: 'svc',
  2: 'hvc',
  3: 'smc',
  32: 'brk',
  64: 'hlt',
};

function trap(word: number): Form {
  const op = traps[(field(word, 23, 21) << 5) | field(word, 4, 0)];
  return op === undefined ? none : { form: 'trap', op };
}

function system(word: number): Form {
  const rt = field(word, 4, 0);
  if ((word & 0xffff_f01f) >>> 0 === 0xd503_201f) return { form: 'hint', imm: field(word, 11, 5) };
  if (field(word, 23, 20) === 1 || field(word, 23, 20) === 3)
    return { form: 'system', op: field(word, 21, 21) === 1 ? 'mrs' : 'msr', register: field(word, 20, 5), rt };
  const isRead = bit(word, 21);
  return { form: 'other', writes: isRead && rt !== 31 ? rt : undefined, reads: isRead ? [] : [rt] };
}

/** Also the forms that authenticate what they jump to: braa, blrab, retaa, eretaa. */
function jumpRegister(word: number): Form {
  const opc = field(word, 24, 21);
  const isSigned = field(word, 15, 10) >= 2;
  const op = (['br', 'blr', 'ret', undefined, 'eret'] as const)[opc & 7];
  if (op === undefined) return none;
  if (op === 'eret') return { form: 'trap', op };
  // retaa and retab name no register.
  return { form: 'jump-register', op, rn: op === 'ret' && isSigned ? 30 : field(word, 9, 5), isSigned };
}

function dataRegister(word: number): Form {
  const wide = bit(word, 31);
  const [rd, rn, rm] = [field(word, 4, 0), field(word, 9, 5), field(word, 20, 16)];
  const high = field(word, 28, 24);
  if (high === 0b01010) {
    const opc = field(word, 30, 29);
    const shifted = { shift: field(word, 23, 22) as Shift, amount: field(word, 15, 10) };
    const op = logicals[opc] as Logical;
    return { form: 'logical', op, rd, rn, rm, invert: bit(word, 21), ...shifted, flags: opc === 3, wide };
  }
  if (high === 0b01011) {
    const rest = { op: bit(word, 30) ? 'sub' : 'add', rd, rn, rm, flags: bit(word, 29), wide } as const;
    return bit(word, 21)
      ? { form: 'add-extended', option: field(word, 15, 13), amount: field(word, 12, 10), ...rest }
      : { form: 'add', shift: field(word, 23, 22) as Shift, amount: field(word, 15, 10), ...rest };
  }
  // irg.
  if ((word & 0xffe0_fc00) >>> 0 === 0x9ac0_1000) return { form: 'other', writes: rd, reads: [rn, rm] };
  // Conditional compares and setf have no result.
  const isCompare = high === 0b11010 && (field(word, 23, 21) === 2 || (field(word, 23, 21) === 0 && bit(word, 13)));
  const reads = [rn, rm, ...(high === 0b11011 ? [field(word, 14, 10)] : [])];
  return { form: 'other', writes: isCompare || rd === 31 ? undefined : rd, reads };
}

/** Scalar and vector instructions, of which conversions and moves of elements have general registers. */
function floatUses(word: number): Uses {
  const [rd, rn] = [field(word, 4, 0), field(word, 9, 5)];
  // Conversion between floating-point and integer or fixed-point numbers, fmov; 1 and up in bits 18:16 tell which way.
  const isConversion = (word & 0x5f20_fc00) >>> 0 === 0x1e20_0000 || (word & 0x5f20_0000) >>> 0 === 0x1e00_0000;
  if (isConversion) {
    const toGeneral = [0, 1, 4, 5, 6].includes(field(word, 18, 16));
    const fromGeneral = [2, 3, 7].includes(field(word, 18, 16));
    return { writes: toGeneral && rd !== 31 ? rd : undefined, reads: fromGeneral ? [rn] : [] };
  }
  // smov, umov; dup and ins read one.
  const copy = ((word & 0xbfe0_fc00) >>> 0) - 0x0e00_0000;
  if (copy === 0x2c00 || copy === 0x3c00) return { writes: rd === 31 ? undefined : rd, reads: [] };
  return { writes: undefined, reads: copy === 0x0c00 || (word & 0xffe0_fc00) === 0x4e00_1c00 ? [rn] : [] };
}

/** General registers of an instruction that is not decoded; `writes` is undefined if it overwrites none. */
interface Uses {
  readonly writes: number | undefined;
  readonly reads: readonly number[];
}
