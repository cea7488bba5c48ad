import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { Refusal } from '../../base/refusal.js';
import type { Displaced, DisplacedInside, InnerPatch, PatchKind } from '../inject/displaced.js';
import { type Moving, Taken, type TakenCode } from '../inject/taken.js';
import { Assembler, access, farJumpBytes, pop, push, ret, T0 } from './assembler.js';
import { decode, type Instruction } from './decode.js';
import { textOf } from './disassembly.js';
import {
  type LandingPad,
  landingPad,
  movesFrame,
  reads,
  returnsFromTrap,
  setsStackUp,
  signing,
  stays,
  writes,
} from './position.js';
import { LR, nameOf, SP, ZR } from './registers.js';

/**
 * Takes the first instructions out of a function, so that they can be run elsewhere. Of A64 instructions adr, adrp,
 * literals, branches and jumps depend on their address. These are rebuilt, all others are copied. A landing pad (BTI)
 * stays where it is, and the patch comes behind it.
 *
 *     near  b                     4 bytes, reaches 128 MiB, keeps every register
 *     far   adrp x16; add; ret   12 bytes, reaches 4 GiB, destroys x16
 */
export const patchLengths: Readonly<Record<PatchKind, number>> = { near: 4, far: farJumpBytes };

export interface Placed {
  readonly instruction: Instruction;
  readonly offset: number;
}

/** Writes one displaced instruction at its new place, in the same number of bytes everywhere. */
export type Move = (assembler: Assembler) => void;

export function displace(code: Uint8Array, start: Addr, kind: PatchKind): Displaced | Refusal {
  const { body, targets } = decoded(code);
  const patchLength = patchLengths[kind];
  const pad = landingPad(body[0]?.instruction);
  const before = pad === undefined ? 0 : 4;
  const first = body.slice(before / 4, (before + patchLength) / 4);
  const length = 4 * first.length;
  if (length < patchLength) return { refused: `its code is shorter than the jump (${length} of ${patchLength} bytes)` };
  const reason =
    entered(targets, before, before + length) ??
    arrival(first, start) ??
    ownStack(body) ??
    (kind === 'far' ? needsT0(body, first) : undefined);
  if (reason !== undefined) return { refused: reason };
  const taken = {
    ...{ kind, patchLength, start: addOffset(start, before), code: code.subarray(before), length },
    through: kind === 'far' ? nameOf(T0) : undefined,
    hookRefused: hookRefusal(body, targets, before),
    signs: signsWith(pad),
  };
  const moves = movesOf(decodeAll(taken.code.subarray(0, length)), taken);
  return 'refused' in moves ? moves : new Taken(moving, taken);
}

function signsWith(pad: LandingPad | undefined): 'paciasp' | 'pacibsp' | undefined {
  return pad === 'bti' ? undefined : pad;
}

/** See `ProbeCode.displaceInside`. */
export function displaceInside(
  code: Uint8Array,
  start: Addr,
  place: number,
  { kind }: InnerPatch,
): DisplacedInside | Refusal {
  if (kind === 'far') return { refused: 'no register is free for a jump far away' };
  const taken = decodeAll(code);
  if (code.length < patchLengths[kind]) return { refused: `${code.length} bytes are shorter than the jump` };
  const head = taken.filter(({ offset }) => offset < place);
  const leaving = head.find(({ instruction }) => leaves(instruction));
  if (leaving) return { refused: `${textAt(leaving, start)} cannot be carried out elsewhere` };
  const pad = arrival(taken, start);
  if (pad !== undefined) return { refused: pad };
  const all = { kind, patchLength: patchLengths[kind], start, code, length: code.length };
  const moves = movesOf(taken, all);
  return 'refused' in moves ? moves : new Taken(moving, all, head.length);
}

function textAt({ instruction, offset }: Placed, start: Addr): string {
  return textOf(instruction.word, addOffset(start, offset));
}

function movesOf(placed: readonly Placed[], taken: TakenCode): readonly Move[] | Refusal {
  const { start, length } = taken;
  const moves: Move[] = [];
  for (const one of placed) {
    const at = addOffset(start, one.offset);
    const move = movesStack(one.instruction) ?? moveOf(one, at, howOf(taken), length);
    if (typeof move === 'string') return { refused: `${textAt(one, start)} ${move}` };
    moves.push(move);
  }
  return moves;
}

function leaves({ form }: Instruction): boolean {
  return form === 'branch' || form === 'jump' || form === 'jump-register';
}

const moving: Moving<Placed> = {
  decode: decodeAll,
  text: textAt,
  encode(taken, placed, at, goesOn) {
    const assembler = new Assembler(at);
    const moves = movesOf(placed, taken);
    if (taken.signs) assembler.emit(signing[taken.signs]);
    // None was refused when they were taken, and the code is the same.
    if (!('refused' in moves)) for (const move of moves) move(assembler);
    if (goesOn) jump(assembler, howOf(taken), addOffset(taken.start, taken.length));
    return assembler.finish();
  },
};

/** See `ProbeCode.loopsToStart`. */
export function loopsToStart(code: Uint8Array): boolean {
  const { body, targets } = decoded(code);
  return targets.some(isLoop(landingPad(body[0]?.instruction) === undefined ? 0 : 4));
}

/** To the first instruction, or to the one behind its landing pad. */
const isLoop =
  (before: number) =>
  ({ to, link }: Target): boolean =>
    (to === 0 || to === before) && !link;

/** How moved code jumps. A far jump destroys this register, as the patch did. */
interface JumpKind {
  readonly kind: PatchKind;
  readonly through: number | undefined;
}

function howOf({ kind }: TakenCode): JumpKind {
  return { kind, through: kind === 'far' ? T0 : undefined };
}

/** A jump that costs no more than the patch did. */
function jump(assembler: Assembler, { through }: JumpKind, to: Addr): void {
  if (through === undefined) assembler.jumpNear(to);
  else assembler.jumpFar(to, through);
}

interface Decoded {
  readonly body: readonly Placed[];
  readonly targets: readonly Target[];
}

let last: { readonly code: Uint8Array; readonly found: Decoded } | undefined;

/**
 * A function's instructions and where they lead. Kept for the last function, because several questions about one
 * function follow each other. Its bytes never change.
 */
export function decoded(code: Uint8Array): Decoded {
  if (last?.code === code) return last.found;
  const body = decodeAll(code);
  const found = { body, targets: targetsOf(body) };
  last = { code, found };
  return found;
}

function decodeAll(code: Uint8Array): Placed[] {
  const body: Placed[] = [];
  for (let offset = 0; ; offset += 4) {
    const instruction = decode(code, offset);
    if (instruction === undefined) return body;
    body.push({ instruction, offset });
  }
}

export interface Target {
  readonly from: number;
  /** Offset from the function's start. */
  readonly to: number;
  /** Whether it is a call. */
  readonly link: boolean;
}

/** Targets of the function's own direct jumps, branches and calls. */
function targetsOf(body: readonly Placed[]): Target[] {
  const targets: Target[] = [];
  for (const { instruction, offset } of body) {
    if (instruction.form === 'branch') targets.push({ from: offset, to: offset + instruction.imm, link: false });
    if (instruction.form === 'jump')
      targets.push({ from: offset, to: offset + instruction.imm, link: instruction.link });
  }
  return targets;
}

function entered(targets: readonly Target[], low: number, high: number): string | undefined {
  const inside = targets.find(({ to }) => to > low && to < high);
  return inside && `a branch ${inside.from} bytes into it leads to byte ${inside.to}, which the jump overwrites`;
}

/** A landing pad behind the first instruction is one of a jump table, or of a call that returns twice. */
function arrival(placed: readonly Placed[], start: Addr): string | undefined {
  const pad = placed.find(({ instruction }) => landingPad(instruction) === 'bti');
  return pad && `${textAt(pad, start)} is where an indirect jump may arrive`;
}

function ownStack(body: readonly Placed[]): string | undefined {
  const setsUp = setsStackUp(body.map(({ instruction }) => instruction));
  return setsUp ? 'it sets the stack pointer up, so there may be no stack at its start' : undefined;
}

/** Why x16 is in use: the caller passed something in it, or the first instructions set it. */
function needsT0(body: readonly Placed[], first: readonly Placed[]): string | undefined {
  if (returnsFromTrap(body.map(({ instruction }) => instruction)))
    return 'it returns from a trap, so every register is in use at its start';
  if (first.some(({ instruction }) => writes(instruction, T0))) return 'its first instructions set x16';
  return readsAtStart(body, T0) ? 'it uses x16 as it was at its start' : undefined;
}

/** Other code would find a frame that is pushed for a return which never comes. */
function hookRefusal(body: readonly Placed[], targets: readonly Target[], before: number): string | undefined {
  if (returnsFromTrap(body.map(({ instruction }) => instruction)))
    return 'it returns from a trap, not to a return address';
  if (targets.some(isLoop(before))) return 'it loops to its first instruction, and every turn would push another frame';
  const other = body.find(
    ({ instruction: one }) =>
      one.form === 'jump-register' && one.op === 'ret' && one.rn !== LR && readsAtStart(body, one.rn),
  );
  return other && `it was called with its return address elsewhere than in x30`;
}

/**
 * Whether the register is read on some way from the start before it is written. A call counts as a write, by AAPCS64.
 */
function readsAtStart(body: readonly Placed[], register: number): boolean {
  if (!body.some(({ instruction }) => reads(instruction, register))) return false;
  const seen = new Set<number>();
  const open = [0];
  for (let offset = open.pop(); offset !== undefined; offset = open.pop()) {
    const instruction = body[offset / 4]?.instruction;
    if (instruction === undefined || seen.has(offset)) continue;
    seen.add(offset);
    if (reads(instruction, register)) return true;
    const calls = instruction.form === 'jump' ? instruction.link : isCall(instruction);
    if (calls || writes(instruction, register)) continue;
    if (instruction.form === 'branch' || instruction.form === 'jump') open.push(offset + instruction.imm);
    if (instruction.form !== 'jump' && instruction.form !== 'jump-register') open.push(offset + 4);
  }
  return false;
}

function isCall(instruction: Instruction): boolean {
  return instruction.form === 'jump-register' && instruction.op === 'blr';
}

/** The end of a sentence that says why it cannot be run before a jump back through a hop. */
function movesStack(instruction: Instruction): string | undefined {
  return writes(instruction, SP) && !movesFrame(instruction)
    ? 'changes stacks, and the jump back may need one'
    : undefined;
}

const literalReturns = 'returns into the bytes that the jump overwrites';

/** How an instruction is run elsewhere, or the end of a sentence that says why it cannot be. */
export function moveOf({ instruction, offset }: Placed, at: Addr, how: JumpKind, displaced: number): Move | string {
  const staying = stays(instruction);
  if (staying !== undefined) return staying;
  const { word } = instruction;
  const next = addOffset(at, 4);
  const isLast = offset + 4 >= displaced;
  switch (instruction.form) {
    case 'address': {
      const { rd, isPage, imm } = instruction;
      const value = addOffset(isPage ? addr(at & ~0xfffn) : at, imm);
      // `adr xzr` does nothing, and xzr is no register for an addition.
      if (rd === ZR) return () => {};
      if (!isPage) return (assembler) => assembler.loadAddress(rd, value);
      // What is 4 GiB from there may be out of reach from here.
      return (assembler) =>
        assembler.reachesPage(value) ? assembler.loadPage(rd, value) : assembler.loadConstant(rd, value);
    }
    case 'memory':
      return instruction.rn === undefined ? literal(instruction, addOffset(at, instruction.offset ?? 0)) : copy(word);
    case 'jump': {
      const target = addOffset(at, instruction.imm);
      if (!instruction.link) return (assembler) => jump(assembler, how, target);
      if (!isLast) return literalReturns;
      return (assembler) => {
        assembler.loadAddress(LR, next);
        jump(assembler, how, target);
      };
    }
    case 'jump-register':
      if (instruction.op !== 'blr') return copy(word);
      if (!isLast) return literalReturns;
      if (instruction.isSigned) return 'authenticates where it leads, and must keep its kind of jump';
      if (instruction.rn === LR) return 'needs a register for its target, and none is free';
      return (assembler) => {
        assembler.loadAddress(LR, next);
        // Unlike br it leads to any instruction, wherever memory is guarded.
        assembler.emit(ret(instruction.rn));
      };
    case 'branch':
      return branchTo(instruction, addOffset(at, instruction.imm), how);
    default:
      return copy(word);
  }
}

function copy(word: number): Move {
  return (assembler) => assembler.emit(word);
}

/** What a literal has is loaded by its address: into its own register, or one of the stack's for a vector. */
function literal(instruction: Instruction & { form: 'memory' }, from: Addr): Move | string {
  const { rt, size, signed, isVector, access: kind } = instruction;
  // A hint.
  if (kind === 'prefetch') return () => {};
  if (isVector) {
    // The scaled load of a vector register of 4, 8 or 16 bytes, without an offset, by x16.
    const load = { 4: 0xbd40_0000, 8: 0xfd40_0000, 16: 0x3dc0_0000 }[size as 4 | 8 | 16];
    if (load === undefined) return 'is not known';
    return (assembler) => {
      assembler.emit(push(T0, 16));
      assembler.loadAddress(T0, from);
      assembler.emit((load | (T0 << 5) | rt) >>> 0, pop(T0, 16));
    };
  }
  if (rt === ZR) return 'is not known';
  return (assembler) => {
    assembler.loadAddress(rt, from);
    assembler.emit(signed === undefined ? access('load', size as 4 | 8, rt, rt, 0) : access('signed', 4, rt, rt, 0));
  };
}

/** The opposite branch over a jump. Conditions 14 and 15 always hold. */
function branchTo(instruction: Instruction & { form: 'branch' }, target: Addr, how: JumpKind): Move {
  const { word, test } = instruction;
  if (test.kind === 'condition' && test.condition >= 14) return (assembler) => jump(assembler, how, target);
  const over = (4 + patchLengths[how.kind]) / 4;
  const [opposite, fields] =
    test.kind === 'condition' ? [1, 0x00ff_ffe0] : [1 << 24, test.kind === 'zero' ? 0x00ff_ffe0 : 0x0007_ffe0];
  return (assembler) => {
    assembler.emit((((word ^ opposite) & ~fields) | (over << 5)) >>> 0);
    jump(assembler, how, target);
  };
}
