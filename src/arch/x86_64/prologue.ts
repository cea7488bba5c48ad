import { type Addr, addOffset } from '../../base/addr.js';
import { codeFrames } from '../frames/code-frames.js';
import { type FrameDecoder, type Outcome, stop } from '../frames/frame-analysis.js';
import type { CodeFrameModel, CodeRange } from '../frames/frame-model.js';
import { ADDRESS, CONSTANT, FrameState, plus, sum, type Value } from '../frames/frame-state.js';
import { decode, type Instruction, type Operand } from './decode.js';
import { wholeRegisters } from './registers.js';

/**
 * x86-64 frames from code: System V ABI, AMD64 supplement, sections 3.2.1 "Registers", 3.2.2 "The Stack Frame" and
 * figure 3.36 (DWARF numbers); Intel SDM volume 3, section 6.14.2 "64-Bit Mode Stack Frame" (what an interrupt
 * pushes).
 *
 *     CFA ->  | caller's frame |            entry + 32 | ss       |
 *      -8     | return address | <- entry           24 | rsp      |
 *     -16     | caller's rbp   |   rbp = CFA - 16   16 | rflags   |
 *                                                    8 | cs       |
 *                                                    0 | rip      |  under it, for some exceptions, an error code
 */
const RCX = 2;
const RSP = 7;
const RBP = 6;
const RIP = 16;
/** An index beyond the registers: what the last instruction compared rsp with. */
const COMPARED = 17;

const dwarfOrder = 'rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15'.split(' ');

/** Every spelling of a general register, to its DWARF number. */
const numberOf = new Map<string, number>(
  [...wholeRegisters].map(([part, whole]): [string, number] => [part, dwarfOrder.indexOf(whole)]),
);
for (const [number, high] of ['ah', 'dh', 'ch', 'bh'].entries()) numberOf.set(high, number);

const clobbered = [0, 1, 2, 4, 5, 8, 9, 10, 11];
const preserved = [3, RBP, 12, 13, 14, 15];
const own = (base: number): Value => ({ base, offset: 0 });
const at = (offset: number): Value => ({ base: RSP, offset });

/** The state after a call. For an interrupt, its frame lies `above` bytes over the stack pointer. */
const called = FrameState.entry(17).with(RIP, undefined).with(COMPARED, undefined).store(own(RSP), 8, own(RIP));
function interrupted(above: number): FrameState {
  return FrameState.entry(17)
    .with(RIP, undefined)
    .with(COMPARED, undefined)
    .store(at(above), 8, own(RIP))
    .store(at(above + 24), 8, own(RSP));
}

const decoder: FrameDecoder<Instruction> = {
  numbers: Array.from({ length: 17 }, (_, index) => index),
  longestCall: 8,
  entry: called,
  decode: ({ start, bytes }: CodeRange, offset) => decode(bytes, addOffset(start, offset), offset),
  isKnown: ({ op }) => op !== 'unknown',
  execute,
  addresses,
  isReturn: ({ op, operands }) => op === 'ret' && operands.length === 0,
  isPadding: ({ op }) => op === 'nop' || op === 'int3',
};

export const frames: CodeFrameModel = codeFrames({
  fixed: [],
  registerCount: 16,
  stackPointer: RSP,
  framePointer: RBP,
  returnAddress: RIP,
  preserved,
  special: new Map(),
  cfaAtEntry: 8,
  aboveFramePointer: 16,
  decoder,
  mayReturnFromTrap,
  seekStackSwitches(code) {
    const found: number[] = [];
    for (let offset = 0; offset + 3 <= code.length; offset++) {
      const [rex, op, modrm] = [code[offset] as number, code[offset + 1], code[offset + 2] as number];
      if ((rex & 0xf8) === 0x48 && ((op === 0x8b && toStack(rex, modrm)) || (op === 0x89 && fromRegister(rex, modrm))))
        found.push(offset);
    }
    return found;
  },
});

/** `mov rsp, ...`: the register of a ModRM byte is rsp, its source not rbp. */
function toStack(rex: number, modrm: number): boolean {
  return (rex & 4) === 0 && (modrm & 0x38) === 0x20 && modrm !== 0xe5;
}

/** `mov rsp, register`, spelt the other way round. */
function fromRegister(rex: number, modrm: number): boolean {
  return (rex & 1) === 0 && (modrm & 0xc7) === 0xc4 && modrm !== 0xec;
}

/** `iretq`: 0xcf behind a REX.W prefix. Without one it is no return of 64-bit code. */
function mayReturnFromTrap(code: Uint8Array): boolean {
  for (let at = code.indexOf(0xcf, 1); at > 0; at = code.indexOf(0xcf, at + 1))
    if (((code[at - 1] as number) & 0xf8) === 0x48) return true;
  return false;
}

/** What writes no register but its first operand; `imul` only if it has another one. */
const writesFirst =
  /^(mov(zx|sx|sxd|aps|ups|apd|upd|dqa|dqu|d|q|ss)|cmov\w+|set\w+|imul|not|neg|and|or|adc|sbb|sh[lr]d?|sar|ro[lr]|bs[fr]|bt[crs]|p?xor[pd]?s?)$/;

const writes = new Map<string, boolean>();

function isWriteOfFirst(op: string): boolean {
  const known = writes.get(op) ?? writesFirst.test(op);
  writes.set(op, known);
  return known;
}

function execute(instruction: Instruction, before: FrameState, offset: number, entry: Addr): Outcome {
  const compared = before.values[COMPARED];
  const isBranch = instruction.flow === 'branch';
  const counted = instruction.op.startsWith('loop') ? before.with(RCX, undefined) : before;
  const state = isBranch ? counted : before.with(COMPARED, undefined);
  switch (instruction.flow) {
    case 'next':
      return plain(instruction, state, offset);
    case 'call':
      return { next: afterCall(state), kind: 'call' };
    case 'interrupt':
      return instruction.op === 'int3' ? stop : { next: state.without([0, 2, 11]), kind: 'plain' };
    case 'return':
      return instruction.op.startsWith('iret') ? trapReturn(state) : stop;
    case 'jump': {
      if (instruction.target === undefined) return { next: undefined, kind: 'indirect' };
      return { next: undefined, target: { offset: relative(instruction.target, entry), state }, kind: 'plain' };
    }
    case 'branch': {
      if (instruction.target === undefined) return { next: state, kind: 'plain' };
      // The loop that touches a large frame page by page ends when rsp has reached a register.
      const reached = compared === undefined ? state : state.with(RSP, compared);
      const { op } = instruction;
      return {
        next: op === 'jne' ? reached : state,
        target: { offset: relative(instruction.target, entry), state: op === 'je' ? reached : state },
        kind: 'plain',
      };
    }
  }
}

function relative(target: Addr, entry: Addr): number {
  return Number(BigInt.asIntN(64, target - entry));
}

/**
 * Helpers that probe a large frame keep rax, which holds the frame's size. When rsp is moved by rax, nothing else can
 * be meant.
 */
function afterCall(state: FrameState): FrameState {
  const keeps = state.values[0]?.base === CONSTANT;
  return state.without(keeps ? clobbered.slice(1) : clobbered);
}

function trapReturn(state: FrameState): Outcome {
  const above = state.values[RSP];
  const entry = above?.base === RSP && above.offset >= 0 ? interrupted(above.offset) : interrupted(0);
  return { next: undefined, kind: 'trap-return', trap: { back: RIP, entry } };
}

function plain(instruction: Instruction, state: FrameState, offset: number): Outcome {
  return { next: effect(instruction, state, offset), kind: 'plain' };
}

function effect(instruction: Instruction, state: FrameState, offset: number): FrameState | undefined {
  const { op, operands } = instruction;
  const [first, second] = operands;
  const sp = state.values[RSP];
  const address: AddressOf = (operand) => addressOf(operand, state, offset, instruction);
  if (op === 'ud2' || op === 'ud1') return undefined;
  switch (op) {
    case 'push':
      return push(state, first?.kind === 'register' ? operandValue(first, state) : undefined, stackBytes(first));
    case 'pushfq':
      return push(state, undefined, 8);
    case 'popfq':
      return state.with(RSP, plus(sp, 8));
    case 'pop': {
      const moved = state.with(RSP, plus(sp, stackBytes(first)));
      return first?.kind === 'register' ? assign(moved, first, first.size === 8 ? state.load(sp) : undefined) : moved;
    }
    case 'leave': {
      const top = state.values[RBP];
      return state.with(RSP, plus(top, 8)).with(RBP, state.load(top));
    }
    case 'enter':
      return state.with(RSP, undefined).with(RBP, undefined);
    case 'mov':
    case 'movabs':
      return move(state, first, second, address);
    case 'lea':
      return first?.kind === 'register' ? assign(state, first, first.size === 8 ? address(second) : undefined) : state;
    case 'add':
    case 'sub':
    case 'inc':
    case 'dec':
      return addition(op, state, first, second, address);
    case 'xor':
      if (first?.kind === 'register' && second?.kind === 'register' && first.name === second.name && first.size >= 4) {
        return assign(state, first, { base: CONSTANT, offset: 0 });
      }
      return clobber(state, first, address);
    case 'cmp': {
      const other = isStackPointer(first) ? second : isStackPointer(second) ? first : undefined;
      return other?.kind === 'register' ? state.with(COMPARED, operandValue(other, state)) : state;
    }
    case 'test':
    case 'bt':
    case 'nop':
      return state;
    case 'xchg':
    case 'xadd':
    case 'mulx':
      return clobber(clobber(state, first, address), second, address);
    case 'cpuid':
      return state.without([0, 1, 2, 3]);
    default:
      if (isWriteOfFirst(op) && (op !== 'imul' || operands.length > 1)) return clobber(state, first, address);
      // One-operand multiplications and divisions, string operations and other implicit results: none of them are
      // registers that functions preserve.
      return clobber(state.without([0, 1, 2, 4, 5]), first, address);
  }
}

const framePointers = new Set(['rsp', 'rbp']);

function addresses({ op, operands }: Instruction, state: FrameState): ReturnType<typeof decoder.addresses> {
  const [to] = operands;
  // It takes its return address off the stack itself.
  const top = state.values[RSP];
  if (op === 'pop' && top?.base === RSP && top.offset >= 0) return [{ register: RSP, offset: 0 }];
  if (op === 'nop' || (op === 'lea' && to?.kind === 'register' && framePointers.has(to.name))) return [];
  return operands.flatMap((operand) => {
    const register = operand.kind === 'memory' ? numberOf.get(operand.base ?? '') : undefined;
    return operand.kind === 'memory' && register !== undefined ? [{ register, offset: operand.displacement }] : [];
  });
}

type AddressOf = (operand: Operand | undefined) => Value | undefined;

function move(state: FrameState, to: Operand | undefined, from: Operand | undefined, address: AddressOf): FrameState {
  if (to?.kind === 'memory')
    return state.store(address(to), to.size, from?.kind === 'register' ? operandValue(from, state) : undefined);
  if (to?.kind !== 'register') return state;
  if (from?.kind === 'memory') return assign(state, to, to.size === 8 ? state.load(address(from)) : undefined);
  return assign(state, to, operandValue(from, state));
}

/** `add`, `sub`, `inc`, `dec`. */
function addition(
  op: string,
  state: FrameState,
  to: Operand | undefined,
  from: Operand | undefined,
  address: AddressOf,
): FrameState {
  if (to?.kind === 'memory') return state.store(address(to), to.size, undefined);
  if (to?.kind !== 'register') return state;
  const by = op === 'inc' || op === 'dec' ? { base: CONSTANT, offset: 1 } : operandValue(from, state);
  const negative = op === 'sub' || op === 'dec';
  return assign(state, to, to.size === 8 ? sum(operandValue(to, state), by, negative) : undefined);
}

function isStackPointer(operand: Operand | undefined): boolean {
  return operand?.kind === 'register' && operand.name === 'rsp';
}

/** What is pushed and popped: also of a segment register eight bytes. */
function stackBytes(operand: Operand | undefined): number {
  return operand?.kind === 'register' && !numberOf.has(operand.name) ? 8 : (operand?.size ?? 8);
}

function push(state: FrameState, value: Value | undefined, size: number): FrameState {
  const top = plus(state.values[RSP], -size);
  return state.with(RSP, top).store(top, size, value);
}

/** A register's or an immediate's value; half a register has none. */
function operandValue(operand: Operand | undefined, state: FrameState): Value | undefined {
  if (operand?.kind === 'immediate') {
    const value = Number(operand.value);
    return Math.abs(value) < 2 ** 31 ? { base: CONSTANT, offset: value } : undefined;
  }
  if (operand?.kind !== 'register') return undefined;
  const value = state.values[numberOf.get(operand.name) ?? -1];
  return operand.size === 8 || (operand.size === 4 && value?.base === CONSTANT && value.offset >= 0)
    ? value
    : undefined;
}

function addressOf(
  operand: Operand | undefined,
  state: FrameState,
  offset: number,
  { length }: Instruction,
): Value | undefined {
  if (operand?.kind !== 'memory' || operand.segment === 'fs' || operand.segment === 'gs') return undefined;
  const { base, index, displacement } = operand;
  if (index !== undefined) return undefined;
  if (base === 'rip') return { base: ADDRESS, offset: offset + length + displacement };
  if (base === undefined) return undefined;
  return plus(state.values[numberOf.get(base) ?? -1], displacement);
}

function assign(
  state: FrameState,
  { name: register, size }: { name: string; size: number },
  value: Value | undefined,
): FrameState {
  const number = numberOf.get(register);
  if (number === undefined) return state;
  return state.with(number, size >= 4 ? value : undefined);
}

function clobber(
  state: FrameState,
  operand: Operand | undefined,
  address: (operand: Operand) => Value | undefined,
): FrameState {
  if (operand?.kind === 'register') return assign(state, operand, undefined);
  return operand?.kind === 'memory' ? state.store(address(operand), operand.size, undefined) : state;
}
