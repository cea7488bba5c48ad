import { codeFrames, restored } from '../frames/code-frames.js';
import { type FrameDecoder, type Outcome, stop } from '../frames/frame-analysis.js';
import type { CodeFrameModel } from '../frames/frame-model.js';
import { ADDRESS, CONSTANT, enteredBy, FrameState, plus, sum, type Value } from '../frames/frame-state.js';
import { decode, type Instruction, written } from './decode.js';
import type { SystemOp } from './opcodes.js';
import { FP, RA, SP } from './registers.js';

/**
 * LoongArch frames from code: LoongArch ELF psABI, "Register Convention" and "Frame Pointer".
 *
 *     CFA ->  | caller's frame |
 *      -8     | ra             |
 *     -16     | caller's fp    |   fp = CFA
 *
 * States have an index for r0 to r31, then one for each CSR that a trap saves or swaps: ERA, to which a handler returns,
 * and SAVE0 to SAVE7, which are the kernel's own. No psABI gives them DWARF numbers: they get ones that are free.
 */
const CSR = 4096;
const ERA = 32;
const csrs: readonly (readonly [name: string, number: number])[] = [
  ['ERA', 0x6],
  ...Array.from({ length: 8 }, (_, index) => [`SAVE${index}`, 0x30 + index] as const),
];
const csrIndex = new Map(csrs.map(([, number], index) => [number, ERA + index]));

/** ra, a0 to a7, t0 to t8. */
const clobbered = [RA, ...Array.from({ length: 17 }, (_, index) => 4 + index)];
const preserved = [FP, 23, 24, 25, 26, 27, 28, 29, 30, 31];
/** What Linux does not keep for a caller: a0, t0 to t8. */
const changedByCall = [4, ...Array.from({ length: 9 }, (_, index) => 12 + index)];

const decoder: FrameDecoder<Instruction> = {
  numbers: Array.from({ length: 32 }, (_, index) => index).concat(csrs.map(([, number]) => CSR + number)),
  longestCall: 4,
  entry: FrameState.entry(ERA + csrs.length).with(0, { base: CONSTANT, offset: 0 }),
  decode: ({ bytes }, offset) => decode(bytes, offset),
  execute,
  addresses,
  isReturn: (step) => step.form === 'jump-register' && step.rd === 0 && step.rj === RA && step.imm === 0,
  // Assemblers fill gaps with nop, which is andi, and lld with break.
  isPadding: (step) => (step.form === 'immediate' && step.rd === 0) || (step.form === 'system' && step.op === 'break'),
};

export const frames: CodeFrameModel = codeFrames({
  registerCount: 32,
  // zero, tp, and the one that is reserved.
  fixed: [0, 2, 21],
  stackPointer: SP,
  framePointer: FP,
  returnAddress: RA,
  preserved,
  special: new Map(csrs.map(([name, number]) => [CSR + number, name])),
  cfaAtEntry: 0,
  aboveFramePointer: 0,
  decoder,
  mayReturnFromTrap: (code) => Buffer.from(code.buffer, code.byteOffset, code.length).includes(ertn),
  seekStackSwitches(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const found: number[] = [];
    for (let offset = 0; offset + 4 <= code.length; offset += 4) {
      if (loadsStack(view.getUint32(offset, true))) found.push(offset);
    }
    return found;
  },
});

const ertn = Buffer.from('00384806', 'hex');

/** `ld.d $sp, ...` and `move $sp, ...`, not by sp and fp, as functions free their frame. */
function loadsStack(word: number): boolean {
  const source = (word >>> 5) & 31;
  if ((word & 31) !== SP || source === SP || source === FP) return false;
  // ld.d, or, addi.d.
  return word >>> 22 === 0xa3 || (word & 0xffff_fc00) >>> 0 === 0x0015_0000 || word >>> 10 === 0x02c0_0000 >>> 10;
}

function execute(instruction: Instruction, state: FrameState, at: number, entry: bigint): Outcome {
  const { values } = state;
  const plain = (next: FrameState): Outcome => ({ next, kind: 'plain' });
  const set = (rd: number, value: Value | undefined): Outcome => plain(rd === 0 ? state : state.with(rd, value));
  switch (instruction.form) {
    case 'register':
      return set(instruction.rd, combined(instruction, values));
    case 'immediate':
      return set(instruction.rd, immediate(instruction, values[instruction.rj]));
    case 'constant':
      return set(instruction.rd, { base: CONSTANT, offset: instruction.imm });
    case 'upper': {
      // A constant that is sign-extended already keeps its value where the upper bits are its sign.
      const low = values[instruction.rj];
      const isSign = low?.base === CONSTANT && instruction.imm === (low.offset < 0 ? -1 : 0);
      return set(instruction.rd, isSign ? low : undefined);
    }
    case 'address': {
      // A page is as far from the entry as the entry is from its own page.
      const base = instruction.isPage ? at - Number((entry + BigInt(at)) & 0xfffn) : at;
      return set(instruction.rd, { base: ADDRESS, offset: base + instruction.imm });
    }
    case 'memory':
      return plain(moved(instruction, state));
    case 'branch':
      return branch(instruction, state, at);
    case 'float-branch':
      return { next: state, target: { offset: at + instruction.imm, state }, kind: 'plain' };
    case 'jump':
      return instruction.link
        ? { next: state.without(clobbered), kind: 'call' }
        : { next: undefined, target: { offset: at + instruction.imm, state }, kind: 'plain' };
    case 'jump-register':
      return jumpRegister(instruction, state);
    case 'csr':
      return plain(csr(instruction, state));
    case 'system':
      return system(instruction.op, state);
    case 'bits':
    case 'other':
      return plain(state.without(written(instruction).filter((register) => register !== 0)));
  }
}

type Form<F extends Instruction['form']> = Extract<Instruction, { form: F }>;

/** `move` is or with register 0. */
function combined({ op, rj, rk }: Form<'register'>, values: FrameState['values']): Value | undefined {
  if (op === 'add' || op === 'sub') return sum(values[rj], values[rk], op === 'sub');
  return op === 'or' && (rj === 0 || rk === 0) ? values[rj === 0 ? rk : rj] : undefined;
}

function immediate({ op, imm }: Form<'immediate'>, source: Value | undefined): Value | undefined {
  if (op === 'add') return plus(source, imm);
  if (source?.base !== CONSTANT) return undefined;
  switch (op) {
    case 'addw':
      return { base: CONSTANT, offset: (source.offset + imm) | 0 };
    case 'or':
      // The lower part of a constant, behind lu12i.w or register 0.
      return Math.abs(source.offset) < 2 ** 31 ? { base: CONSTANT, offset: source.offset | imm } : undefined;
    case 'sll': {
      const offset = source.offset * 2 ** imm;
      return Math.abs(offset) < 2 ** 31 ? { base: CONSTANT, offset } : undefined;
    }
    default:
      return undefined;
  }
}

function moved(memory: Form<'memory'>, state: FrameState): FrameState {
  const { access, rt, base, offset, size, isFloat } = memory;
  const address = offset === undefined ? undefined : plus(state.values[base], offset);
  if (access === 'prefetch') return state;
  if (access === 'load') {
    if (isFloat || rt === 0) return state;
    return state.with(rt, size === 8 ? restored(frames, state, address, rt) : undefined);
  }
  const isPlain = access === 'store' && !isFloat && memory.exclusive === undefined;
  const next = state.store(address, size, isPlain ? state.values[rt] : undefined);
  return next.without(written(memory).filter((register) => register !== 0));
}

function branch({ op, rj, rk, imm }: Form<'branch'>, state: FrameState, at: number): Outcome {
  // The loop that touches a large frame page by page ends when sp has reached a register.
  const other = rj === SP ? rk : rj;
  const reached = rj === SP || rk === SP ? state.with(SP, state.values[other] ?? state.values[SP]) : state;
  return {
    next: op === 'bne' ? reached : state,
    target: { offset: at + imm, state: op === 'beq' ? reached : state },
    kind: 'plain',
  };
}

function jumpRegister({ rd, rj, imm }: Form<'jump-register'>, state: FrameState): Outcome {
  if (rd !== 0) return { next: state.without(rd === RA ? clobbered : [rd, ...clobbered]), kind: 'call' };
  // pcaddu18i and jirl together are a jump that is too far for one instruction.
  const target = plus(state.values[rj], imm);
  if (target?.base === ADDRESS) return { next: undefined, target: { offset: target.offset, state }, kind: 'plain' };
  return rj === RA ? stop : { next: undefined, kind: 'indirect' };
}

function csr({ op, rd, csr: number }: Form<'csr'>, state: FrameState): FrameState {
  const index = csrIndex.get(number);
  let next = state;
  if (index !== undefined && op !== 'read') next = next.with(index, op === 'write' ? state.values[rd] : undefined);
  return rd === 0 ? next : next.with(rd, index === undefined ? undefined : state.values[index]);
}

function system(op: SystemOp, state: FrameState): Outcome {
  switch (op) {
    case 'ertn':
      return { next: undefined, kind: 'trap-return', trap: { back: ERA, entry: enteredBy(decoder.entry, state, SP) } };
    case 'ud':
    case 'dbcl':
      return stop;
    case 'break':
      // After Linux's WARN the code goes on, after its BUG it does not.
      return { next: state, kind: 'breakpoint' };
    case 'syscall':
      return { next: state.without(changedByCall), kind: 'plain' };
    case 'idle':
      return { next: state, kind: 'plain' };
  }
}

function addresses(instruction: Instruction): ReturnType<typeof decoder.addresses> {
  if (instruction.form === 'memory') return [{ register: instruction.base, offset: instruction.offset ?? 0 }];
  if (instruction.form !== 'immediate' || instruction.op !== 'add') return [];
  const { rd, rj, imm } = instruction;
  return rd === SP || rd === FP ? [] : [{ register: rj, offset: imm }];
}
