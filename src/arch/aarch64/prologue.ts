import { codeFrames, restored } from '../frames/code-frames.js';
import { type FrameDecoder, type Outcome, stop } from '../frames/frame-analysis.js';
import type { CodeFrameModel } from '../frames/frame-model.js';
import { ADDRESS, CONSTANT, enteredBy, FrameState, plus, sum, type Value } from '../frames/frame-state.js';
import { decode, type Instruction } from './decode.js';
import type { Memory } from './decode-memory.js';
import { regimeOf } from './privilege.js';
import { FP, LR, SP, ZR } from './registers.js';

// Arm Architecture Reference Manual for A-profile, D8.10 "Pointer authentication": a signature takes the bits of an
// address that its translation does not need, but for bit 55, which says whether it is one of the upper half.

/** Stubs that know the bits give them as registers (gdb's org.gnu.gdb.aarch64.pauth_v2), which have no DWARF number. */
const LOW = 4097;
const HIGH = 4098;
const masks: readonly (readonly [number, string])[] = [
  [LOW, 'pauth_cmask'],
  [HIGH, 'pauth_cmask_high'],
];

/**
 * Without them: all above the 48 bits of the largest usual translation. A smaller one may leave some of a signature.
 */
const above48 = 0xffff_0000_0000_0000n;

/** The address of code without its signature; addresses without one are what they were. */
function unsigned(address: bigint, register: (number: number) => bigint | undefined): bigint {
  const isUpper = ((address >> 55n) & 1n) === 1n;
  const mask = register(isUpper ? HIGH : LOW) ?? register(LOW) ?? above48;
  return isUpper ? address | mask | (1n << 63n) : address & ~mask;
}

/**
 * Frames from code: AAPCS64, "The Frame Pointer" and "General-purpose Registers". A frame record may lie anywhere in
 * its frame:
 *
 *     x29 + 8 | x30          |
 *     x29     | caller's x29 |
 *
 * States have an index for x0 to x30 and sp, one for ELR_EL1, to which a handler returns, and one for what the stack
 * pointer was compared with. No psABI gives ELR_EL1 a DWARF number: it gets one that is free. A handler at EL2 has
 * ELR_EL2 at the same place.
 */
const ELR = 32;
const COMPARED = 33;
const ELR_NUMBER = 4096;
const ELR_NUMBER_EL2 = 4099;
/** op0 3, op1 0, CRn 4, CRm 0, op2 1: the number of ELR_EL1 in msr and mrs. */
const ELR_EL1 = 0xc201;
/** op1 4. */
const ELR_EL2 = 0xe201;

/** x0 to x17, x30; x18 is the platform's. */
const clobbered = [...Array.from({ length: 18 }, (_, register) => register), LR];
const preserved = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FP];

const decoder: FrameDecoder<Instruction> = {
  numbers: [...Array.from({ length: 32 }, (_, index) => index), ELR_NUMBER],
  longestCall: 4,
  entry: FrameState.entry(34).with(COMPARED, undefined),
  decode: ({ bytes }, offset) => decode(bytes, offset),
  execute,
  addresses,
  isReturn: (step) => step.form === 'jump-register' && step.op === 'ret' && step.rn === LR,
  isPadding: (step) => (step.form === 'hint' && step.imm === 0) || (step.form === 'trap' && step.op === 'udf'),
};

export const frames: CodeFrameModel = codeFrames({
  registerCount: 32,
  fixed: [18],
  stackPointer: SP,
  framePointer: FP,
  returnAddress: LR,
  preserved,
  special: new Map([[ELR_NUMBER, 'ELR_EL1'], [ELR_NUMBER_EL2, 'ELR_EL2'], ...masks]),
  ofLevel: regimeOf,
  unsigned,
  cfaAtEntry: 0,
  aboveFramePointer: 16,
  decoder,
  mayReturnFromTrap: (code) => Buffer.from(code.buffer, code.byteOffset, code.length).includes(eret),
  seekStackSwitches(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const found: number[] = [];
    for (let offset = 0; offset + 4 <= code.length; offset += 4) {
      const word = view.getUint32(offset, true);
      // mov sp, xN, which is add sp, xN, #0.
      if ((word & 0xffff_fc1f) >>> 0 === 0x9100_001f && ((word >>> 5) & 31) !== FP) found.push(offset);
    }
    return found;
  },
});

const eret = Buffer.from('e0039fd6', 'hex');

function execute(instruction: Instruction, state: FrameState, at: number, entry: bigint): Outcome {
  const { values } = state;
  const plain = (next: FrameState): Outcome => ({ next, kind: 'plain' });
  switch (instruction.form) {
    case 'add-immediate': {
      const { rd, rn, imm, op, flags, wide } = instruction;
      const value = wide ? plus(values[rn], op === 'sub' ? -imm : imm) : undefined;
      // A comparison has xzr in place of sp.
      return plain(flags && rd === ZR ? state.with(COMPARED, undefined) : state.with(rd, value));
    }
    case 'add':
    case 'add-extended':
      return plain(set(compared(state, instruction), instruction, combined(instruction, values)));
    case 'logical':
      return plain(set(state, instruction, copied(instruction, values)));
    case 'logical-immediate':
      return plain(set(state, instruction, undefined));
    case 'move-wide':
      return plain(instruction.rd === ZR ? state : state.with(instruction.rd, constant(instruction, values)));
    case 'address': {
      // A page is as far from the entry as the entry is from its own page.
      const base = instruction.isPage ? at - Number((entry + BigInt(at)) & 0xfffn) : at;
      const value = { base: ADDRESS, offset: base + instruction.imm };
      return plain(instruction.rd === ZR ? state : state.with(instruction.rd, value));
    }
    case 'memory':
      return plain(moved(instruction, state));
    case 'branch':
      return branch(instruction, state, at);
    case 'jump':
      return instruction.link
        ? { next: state.without(clobbered), kind: 'call' }
        : { next: undefined, target: { offset: at + instruction.imm, state }, kind: 'plain' };
    case 'jump-register':
      if (instruction.op === 'blr') return { next: state.without(clobbered), kind: 'call' };
      return instruction.op === 'ret' ? stop : jump(state, values[instruction.rn]);
    case 'trap':
      return trap(instruction.op, state);
    case 'system':
      return plain(system(instruction, state));
    case 'hint':
      return plain(state);
    case 'other':
      return plain(state.without(instruction.writes === undefined ? [COMPARED] : [instruction.writes, COMPARED]));
  }
}

type Form<F extends Instruction['form']> = Extract<Instruction, { form: F }>;

/** The loop that touches a large frame page by page ends when sp has reached a register. */
function compared(state: FrameState, { form, rn, rm, op, flags }: Form<'add' | 'add-extended'>): FrameState {
  if (!flags) return state;
  const end = form === 'add-extended' && rn === SP && op === 'sub' ? state.values[rm] : undefined;
  return state.with(COMPARED, end?.base === SP ? end : undefined);
}

const EQ = 0;
const NE = 1;

function branch({ test, imm }: Form<'branch'>, state: FrameState, at: number): Outcome {
  const end = state.values[COMPARED];
  const reached = end === undefined ? state : state.with(SP, end);
  const condition = test.kind === 'condition' ? test.condition : undefined;
  return {
    next: condition === NE ? reached : state,
    target: { offset: at + imm, state: condition === EQ ? reached : state },
    kind: 'plain',
  };
}

/** 31 is sp in extended arithmetic and in logic with immediates that set no flags, else xzr. */
function set(
  state: FrameState,
  { form, rd, flags }: Form<'add' | 'add-extended' | 'logical' | 'logical-immediate'>,
  value: Value | undefined,
): FrameState {
  const isStack = !flags && (form === 'add-extended' || form === 'logical-immediate');
  return rd === ZR && !isStack ? state : state.with(rd, value);
}

const zero: Value = { base: CONSTANT, offset: 0 };

function combined(instruction: Form<'add' | 'add-extended'>, values: FrameState['values']): Value | undefined {
  const { form, rn, rm, amount, op, wide } = instruction;
  if (!wide || amount !== 0) return undefined;
  const a = rn === ZR && form === 'add' ? zero : values[rn];
  const b = rm === ZR ? zero : values[rm];
  return sum(a, b, op === 'sub');
}

/** `mov` of a register is orr with xzr. */
function copied({ op, rn, rm, amount, invert, wide }: Form<'logical'>, values: FrameState['values']) {
  const isMove = op === 'orr' && rn === ZR && amount === 0 && !invert && wide;
  return isMove ? (rm === ZR ? zero : values[rm]) : undefined;
}

function constant({ op, rd, imm, shift }: Form<'move-wide'>, values: FrameState['values']): Value | undefined {
  const number = imm * 2 ** shift;
  const before = values[rd];
  const offset =
    op === 'movz' ? number : op === 'movn' ? -number - 1 : before?.base === CONSTANT ? before.offset : Number.NaN;
  if (op !== 'movk') return Math.abs(offset) < 2 ** 31 ? { base: CONSTANT, offset } : undefined;
  const part = 0xffff * 2 ** shift;
  const joined = Number((BigInt.asUintN(64, BigInt(offset || 0)) & ~BigInt(part)) | BigInt(number));
  return Number.isNaN(offset) || joined >= 2 ** 31 ? undefined : { base: CONSTANT, offset: joined };
}

function moved(memory: Memory, state: FrameState): FrameState {
  const { rn, rt, rt2, size, mode, offset, isVector, status } = memory;
  const base = rn === undefined ? undefined : state.values[rn];
  const behind = offset === undefined ? undefined : plus(base, offset);
  const address = mode === 'post' ? base : behind;
  let next = state;
  const each = rt2 === undefined ? [rt] : [rt, rt2];
  for (const [index, register] of each.entries()) {
    const place = plus(address, index * size);
    if (memory.access === 'store') {
      const value = isVector ? undefined : register === ZR ? zero : state.values[register];
      next = next.store(place, size, value);
    } else if (memory.access !== 'prefetch' && !isVector && register !== ZR) {
      next = next.with(
        register,
        size === 8 && memory.access === 'load' ? restored(frames, state, place, register) : undefined,
      );
    }
  }
  if (status !== undefined && status !== ZR) next = next.with(status, undefined);
  return mode === 'offset' || rn === undefined ? next : next.with(rn, behind);
}

/** A jump to a known address, far or in a table of the function's own. */
function jump(state: FrameState, to: Value | undefined): Outcome {
  if (to?.base === ADDRESS) return { next: undefined, target: { offset: to.offset, state }, kind: 'plain' };
  return { next: undefined, kind: 'indirect' };
}

function trap(op: Form<'trap'>['op'], state: FrameState): Outcome {
  switch (op) {
    case 'eret':
      return { next: undefined, kind: 'trap-return', trap: { back: ELR, entry: enteredBy(decoder.entry, state, SP) } };
    case 'brk':
      // After Linux's WARN the code goes on, after its BUG it does not.
      return { next: state, kind: 'breakpoint' };
    case 'hlt':
    case 'udf':
      return stop;
    case 'svc':
      // Linux answers in x0 and keeps the other registers.
      return { next: state.with(0, undefined), kind: 'plain' };
    default:
      // SMC Calling Convention: x0 to x17.
      return { next: state.without(clobbered.slice(0, 18)), kind: 'plain' };
  }
}

function system({ op, register, rt }: Form<'system'>, state: FrameState): FrameState {
  const isBack = register === ELR_EL1 || register === ELR_EL2;
  if (op === 'mrs') return rt === ZR ? state : state.with(rt, isBack ? state.values[ELR] : undefined);
  return isBack ? state.with(ELR, rt === ZR ? zero : state.values[rt]) : state;
}

function addresses(instruction: Instruction): ReturnType<typeof decoder.addresses> {
  if (instruction.form === 'memory') {
    const { rn, offset, mode } = instruction;
    return rn === undefined ? [] : [{ register: rn, offset: mode === 'post' ? 0 : (offset ?? 0) }];
  }
  if (instruction.form !== 'add-immediate' || instruction.flags) return [];
  const { rd, rn, imm, op } = instruction;
  return rd === SP || rd === FP ? [] : [{ register: rn, offset: op === 'sub' ? -imm : imm }];
}
