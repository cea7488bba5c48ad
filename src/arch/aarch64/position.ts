// What an instruction needs of its place and of its registers, beyond what `decode.ts` says of it.
import { field } from '../instructions.js';
import type { Instruction } from './decode.js';
import { FP, LR, SP, ZR } from './registers.js';

/**
 * Instructions at which control may arrive by an indirect call where memory is guarded (BTI): they must stay where they
 * are. `paciasp` and `pacibsp` sign the return address, too.
 */
export type LandingPad = 'bti' | 'paciasp' | 'pacibsp';

/** The pad that code begins with. */
export function landingPad(first: Instruction | undefined): LandingPad | undefined {
  if (first?.form !== 'hint') return undefined;
  if (first.imm === PACIASP) return 'paciasp';
  if (first.imm === PACIBSP) return 'pacibsp';
  return (first.imm & ~6) === BTI && first.imm !== BTI ? 'bti' : undefined;
}

const PACIASP = 25;
const PACIBSP = 27;
/** With `c`, `j` or both in bits 2:1. */
const BTI = 32;
/** Takes part in signatures by the pc (FEAT_PAuth_LR). */
const PACM = 39;

/** Hint instructions that sign x30 for sp, and that take the signature away. */
export const signing = { paciasp: 0xd503_233f, pacibsp: 0xd503_237f } as const;
export const authenticating = { paciasp: 0xd503_23bf, pacibsp: 0xd503_23ff } as const;

/** The end of a sentence that says why an instruction must stay where it is. */
export function stays(instruction: Instruction): string | undefined {
  switch (instruction.form) {
    case 'memory':
      if (instruction.exclusive === 'begins') return 'must stay close to the store that it reserves for';
      return instruction.exclusive === 'ends' ? 'must stay close to the load that reserves for it' : undefined;
    case 'trap':
      return /^(brk|hlt|udf)$/.test(instruction.op) ? 'means something to a debugger by its place' : undefined;
    case 'hint':
      return instruction.imm === PACM ? 'signs by its place' : undefined;
    case 'other':
      return isMovable(instruction.word) ? undefined : 'is not known';
    default:
      return undefined;
  }
}

/** DDI 0487, C4.1, by the groups in which nothing depends on the pc; not the signatures by the pc (FEAT_PAuth_LR). */
function isMovable(word: number): boolean {
  switch (field(word, 28, 25)) {
    case 0b1000:
    case 0b1001:
      // Tags, bit fields and extr.
      return (
        field(word, 25, 23) === 0b011 ||
        field(word, 25, 23) === 0b110 ||
        (field(word, 25, 23) === 0b111 && field(word, 30, 29) === 0)
      );
    case 0b0101:
    case 0b1101: {
      const isOneSource = field(word, 30, 21) === 0b1_0110_1011_0;
      const [group, op] = [field(word, 20, 16), field(word, 15, 10)];
      return !isOneSource || group === 0 || (group === 1 && op <= 0b01_0001);
    }
    case 0b0111:
    case 0b1111:
    case 0b0010:
      return true;
    case 0b1010:
    case 0b1011:
      // Barriers, and sys.
      return word >>> 24 === 0xd5;
    default:
      return false;
  }
}

/** General registers that an instruction may read; of what is not decoded, more than it does. */
export function reads(instruction: Instruction, register: number): boolean {
  switch (instruction.form) {
    case 'add-immediate':
    case 'logical-immediate':
      return instruction.rn === register;
    case 'add':
    case 'add-extended':
    case 'logical':
      return instruction.rn === register || instruction.rm === register;
    case 'move-wide':
      return instruction.op === 'movk' && instruction.rd === register;
    case 'memory': {
      const { rn, rm, rt, rt2, access, isVector, status } = instruction;
      const stored = access !== 'load' && !isVector && (rt === register || rt2 === register);
      return rn === register || rm === register || stored || status === register;
    }
    case 'branch':
      return instruction.test.kind !== 'condition' && instruction.test.rt === register;
    case 'jump-register':
      // An authenticated one has a modifier, too.
      return instruction.rn === register || (instruction.isSigned && field(instruction.word, 4, 0) === register);
    case 'system':
      return instruction.op === 'msr' && instruction.rt === register;
    case 'other':
      return sources(instruction).includes(register);
    case 'hint':
      // Signatures of x17 with x16.
      return register === 16 || register === 17 ? signsIp(instruction.imm) : false;
    default:
      return false;
  }
}

/** Of an instruction that is not decoded. What is not movable may read anything. */
function sources({ word, reads: decoded }: Instruction & { form: 'other' }): readonly number[] {
  const [rd, rn, ra, rm] = [0, 5, 10, 16].map((low) => field(word, low + 4, low)) as [number, number, number, number];
  switch (field(word, 28, 25)) {
    case 0b1000:
    case 0b1001:
      return field(word, 25, 23) === 0b110 ? [rd, rn] : [rn, rm];
    case 0b0101:
    case 0b1101:
      return field(word, 28, 24) === 0b1_1011 ? [rn, rm, ra] : [rd, rn, rm];
    case 0b0111:
    case 0b1111:
    case 0b1010:
    case 0b1011:
      return decoded;
    default:
      return [rd, rn, ra, rm];
  }
}

/** pacia1716 and the like. */
function signsIp(imm: number): boolean {
  return imm >= 8 && imm < 16;
}

/** Whether it surely overwrites a general register, sp included, or may. */
export function writes(instruction: Instruction, register: number): boolean {
  switch (instruction.form) {
    case 'add-immediate':
    case 'add-extended':
    case 'logical-immediate':
      return instruction.rd === register && !(instruction.flags && register === SP);
    case 'add':
    case 'logical':
    case 'move-wide':
    case 'address':
      return instruction.rd === register && register !== ZR;
    case 'memory': {
      const { rn, rt, rt2, access, isVector, status, mode } = instruction;
      if (mode !== 'offset' && rn === register) return true;
      if (register === ZR) return false;
      const loaded = (access === 'load' || access === 'both') && !isVector && (rt === register || rt2 === register);
      return loaded || status === register;
    }
    case 'system':
      return instruction.op === 'mrs' && instruction.rt === register && register !== ZR;
    case 'jump':
      return instruction.link && register === LR;
    case 'jump-register':
      return instruction.op === 'blr' && register === LR;
    case 'hint':
      return register === 17 && signsIp(instruction.imm);
    case 'other':
      return instruction.writes === register;
    default:
      return false;
  }
}

/** A change of sp by a number: the frame grows or shrinks. */
export function movesFrame(instruction: Instruction): boolean {
  if (instruction.form === 'memory') return instruction.rn === SP;
  return instruction.form === 'add-immediate' && instruction.rn === SP;
}

/**
 * Code that takes sp from an address that it names or loads sets its stack up, so it starts without one. `mov sp, x29`
 * and arrays of variable size do not.
 */
export function setsStackUp(body: readonly Instruction[]): boolean {
  const from = body.flatMap((one) =>
    one.form === 'add-immediate' && one.rd === SP && !one.flags && one.rn !== SP && one.rn !== FP ? [one.rn] : [],
  );
  return from.some((register) =>
    body.some(
      (one) =>
        (one.form === 'address' && one.rd === register) ||
        (one.form === 'memory' && one.rn === undefined && one.rt === register),
    ),
  );
}
