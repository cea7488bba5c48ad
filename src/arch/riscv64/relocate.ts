import { type Addr, addOffset } from '../../base/addr.js';
import type { Refusal } from '../../base/refusal.js';
import type { Displaced, DisplacedInside, InnerPatch, PatchKind } from '../inject/displaced.js';
import { type Moving, Taken, type TakenCode } from '../inject/taken.js';
import { Assembler, addi, branch, jalr, opposite, T0 } from './assembler.js';
import { decode, type Instruction } from './decode.js';
import { textOf } from './disassembly.js';
import { integerName, integerNumber, RA, SP } from './registers.js';

/**
 * Takes the first instructions out of a function, so that they can be run elsewhere. Of RISC-V instructions only
 * auipc, branches and jumps depend on their address. These are rebuilt, all others are copied byte by byte.
 *
 *     near  jal x0               4 bytes, reaches 1 MiB, keeps every register
 *     far   auipc t0; jalr x0    8 bytes, reaches 2 GiB, destroys t0
 */
export const patchLengths: Readonly<Record<PatchKind, number>> = { near: 4, far: 8 };

export interface Placed {
  readonly instruction: Instruction;
  readonly offset: number;
}

/** Writes one displaced instruction at its new place, in the same number of bytes everywhere. */
export type Move = (assembler: Assembler) => void;

export function displace(code: Uint8Array, start: Addr, kind: PatchKind): Displaced | Refusal {
  const { body, targets } = decoded(code);
  const patchLength = patchLengths[kind];
  const first: Placed[] = [];
  let length = 0;
  for (const placed of body) {
    if (length >= patchLength) break;
    first.push(placed);
    length += placed.instruction.length;
  }
  if (length < patchLength) return { refused: `its code is shorter than the jump (${length} of ${patchLength} bytes)` };
  const reason = entered(targets, length) ?? ownStack(body) ?? (kind === 'far' ? needsT0(body, first) : undefined);
  if (reason !== undefined) return { refused: reason };

  const through = kind === 'far' ? integerName(T0) : undefined;
  const taken = { kind, patchLength, start, code, length, through, hookRefused: hookRefusal(body, targets) };
  const moves = movesOf(first, taken);
  return 'refused' in moves ? moves : new Taken(moving, taken);
}

/** See `ProbeCode.displaceInside`. */
export function displaceInside(
  code: Uint8Array,
  start: Addr,
  place: number,
  { kind, free }: InnerPatch,
): DisplacedInside | Refusal {
  if (kind === 'far' && (free === undefined || integerNumber(free) === undefined))
    return { refused: 'no register is free for a jump far away' };
  const taken = decodeAll(code);
  const last = taken.at(-1);
  if (last === undefined || last.offset + last.instruction.length < code.length)
    return { refused: 'its code is not known' };
  if (code.length < patchLengths[kind]) return { refused: `${code.length} bytes are shorter than the jump` };
  const head = taken.filter(({ offset }) => offset < place);
  const leaving = head.find(({ instruction }) => leaves(instruction));
  if (leaving) {
    const text = textOf(leaving.instruction, addOffset(start, leaving.offset));
    return { refused: `${text} cannot be carried out elsewhere` };
  }
  const through = kind === 'far' ? free : undefined;
  const all = { kind, patchLength: patchLengths[kind], start, code, length: code.length, through };
  const moves = movesOf(taken, all);
  return 'refused' in moves ? moves : new Taken(moving, all, head.length);
}

function movesOf(placed: readonly Placed[], taken: TakenCode): readonly Move[] | Refusal {
  const { start, code, length } = taken;
  const how = howOf(taken);
  const moves: Move[] = [];
  for (const one of placed) {
    const { instruction, offset } = one;
    const at = addOffset(start, offset);
    const move = movesStack(instruction) ?? moveOf(one, at, how, code, length);
    if (typeof move === 'string') return { refused: `${textOf(instruction, at)} ${move}` };
    moves.push(move);
  }
  return moves;
}

function leaves({ form }: Instruction): boolean {
  return form === 'branch' || form === 'jump' || form === 'jump-register';
}

const moving: Moving<Placed> = {
  decode: decodeAll,
  text: ({ instruction, offset }, start) => textOf(instruction, addOffset(start, offset)),
  encode(taken, placed, at, goesOn) {
    const assembler = new Assembler(at);
    const moves = movesOf(placed, taken);
    // None was refused when they were taken, and the code is the same.
    if (!('refused' in moves)) for (const move of moves) move(assembler);
    if (goesOn) jump(assembler, howOf(taken), addOffset(taken.start, taken.length));
    return assembler.finish();
  },
};

/** See `ProbeCode.loopsToStart`. */
export function loopsToStart(code: Uint8Array): boolean {
  return decoded(code).targets.some(isLoop);
}

const isLoop = ({ to, link }: Target): boolean => to === 0 && !link;

/** How moved code jumps. A far jump destroys this register, as the patch did. */
interface JumpKind {
  readonly kind: PatchKind;
  readonly through: number;
}

function howOf({ kind, through }: TakenCode): JumpKind {
  return { kind, through: (through === undefined ? undefined : integerNumber(through)) ?? T0 };
}

/** A jump that costs no more than the patch did. */
function jump(assembler: Assembler, { kind, through }: JumpKind, to: Addr): void {
  if (kind === 'near') assembler.jumpNear(to);
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

/** From the start to where the bytes end or have no instruction of known length. */
function decodeAll(code: Uint8Array): Placed[] {
  const body: Placed[] = [];
  for (let offset = 0; ; ) {
    const instruction = decode(code, offset);
    if (instruction === undefined) return body;
    body.push({ instruction, offset });
    offset += instruction.length;
  }
}

export interface Target {
  readonly from: number;
  /** Offset from the function's start. */
  readonly to: number;
  /** Whether it is a call. */
  readonly link: boolean;
}

/** Targets of the function's own direct jumps, branches and calls, including pairs of auipc and jalr. */
function targetsOf(body: readonly Placed[]): Target[] {
  const targets: Target[] = [];
  for (const [index, { instruction, offset }] of body.entries()) {
    if (instruction.form === 'branch') targets.push({ from: offset, to: offset + instruction.imm, link: false });
    if (instruction.form === 'jump')
      targets.push({ from: offset, to: offset + instruction.imm, link: instruction.rd !== 0 });
    const before = body[index - 1];
    if (instruction.form !== 'jump-register' || before?.instruction.op !== 'auipc') continue;
    if (before.instruction.rd !== instruction.rs1) continue;
    const to = before.offset + before.instruction.imm + instruction.imm;
    targets.push({ from: offset, to, link: instruction.rd !== 0 });
  }
  return targets;
}

function entered(targets: readonly Target[], length: number): string | undefined {
  const inside = targets.find(({ to }) => to > 0 && to < length);
  return inside && `a branch ${inside.from} bytes into it leads to byte ${inside.to}, which the jump overwrites`;
}

/** Code that sets up its stack from nothing, or swaps it with a CSR, starts without one. */
function ownStack(body: readonly Placed[]): string | undefined {
  const setsUp = body.some(
    ({ instruction }) => (instruction.form === 'upper' || instruction.form === 'csr') && instruction.rd === SP,
  );
  return setsUp ? 'it sets the stack pointer up, so there may be no stack at its start' : undefined;
}

/** Why t0 is in use: the caller passed something in it, or the first instructions set it. */
function needsT0(body: readonly Placed[], first: readonly Placed[]): string | undefined {
  if (returnsFromTrap(body)) return 'it returns from a trap, so every register is in use at its start';
  if (first.some(({ instruction }) => writes(instruction, T0))) return 'its first instructions set t0';
  return readsAtStart(body, T0) ? 'it uses t0 as it was at its start' : undefined;
}

export const returnsFromTrap = (body: readonly Placed[]): boolean =>
  body.some(({ instruction: { op } }) => op === 'mret' || op === 'sret' || op === 'dret');

/** Other code would find a frame that is pushed for a return which never comes. */
function hookRefusal(body: readonly Placed[], targets: readonly Target[]): string | undefined {
  if (returnsFromTrap(body)) return 'it returns from a trap, not to a return address';
  if (targets.some(isLoop)) return 'it loops to its first instruction, and every turn would push another frame';
  const throughT0 = body.some(
    ({ instruction }) => instruction.op === 'jalr' && instruction.rd === 0 && instruction.rs1 === T0,
  );
  return throughT0 && readsAtStart(body, T0) ? 'it was called with its return address in t0' : undefined;
}

/**
 * Whether the register is read on some way from the start before it is written. A call counts as a write, by the
 * psABI.
 */
function readsAtStart(body: readonly Placed[], register: number): boolean {
  if (!body.some(({ instruction }) => reads(instruction, register))) return false;
  const byOffset = new Map(body.map((placed) => [placed.offset, placed]));
  const seen = new Set<number>();
  const open = [0];
  for (let offset = open.pop(); offset !== undefined; offset = open.pop()) {
    const placed = byOffset.get(offset);
    if (placed === undefined || seen.has(offset)) continue;
    seen.add(offset);
    const { instruction } = placed;
    if (reads(instruction, register)) return true;
    const calls = (instruction.form === 'jump' || instruction.form === 'jump-register') && instruction.rd === RA;
    if (calls || writes(instruction, register)) continue;
    if (instruction.form === 'branch' || instruction.form === 'jump') open.push(offset + instruction.imm);
    const ends = instruction.form === 'jump' || instruction.form === 'jump-register';
    if (!ends) open.push(offset + instruction.length);
  }
  return false;
}

export function reads(instruction: Instruction, register: number): boolean {
  if (instruction.form === 'unknown') return ((instruction.bits >> 15) & 31) === register;
  if (instruction.form === 'csr') return !instruction.op.endsWith('i') && instruction.source === register;
  if ('rs1' in instruction && instruction.rs1 === register) return true;
  return instruction.form !== 'float-store' && 'rs2' in instruction && instruction.rs2 === register;
}

/** Floating-point arithmetic is not decoded. It may read and write the integer registers of those numbers. */
export function writes(instruction: Instruction, register: number): boolean {
  if (instruction.form === 'unknown') return ((instruction.bits >> 7) & 31) === register;
  return instruction.form !== 'float-load' && 'rd' in instruction && instruction.rd === register;
}

/** MADD, MSUB, NMSUB, NMADD and OP-FP: floating-point arithmetic that never depends on the pc. */
const floatOpcodes: ReadonlySet<number> = new Set([0x43, 0x47, 0x4b, 0x4f, 0x53]);

/** The end of a sentence that says why it cannot be run before a jump back through a hop. */
function movesStack(instruction: Instruction): string | undefined {
  const extendsFrame = instruction.form === 'immediate' && instruction.op === 'addi' && instruction.rs1 === SP;
  return writes(instruction, SP) && !extendsFrame ? 'changes stacks, and the jump back may need one' : undefined;
}

/** How an instruction is run elsewhere, or the end of a sentence that says why it cannot be. */
export function moveOf(placed: Placed, at: Addr, how: JumpKind, code: Uint8Array, displaced: number): Move | string {
  const { instruction, offset } = placed;
  const next = addOffset(at, instruction.length);
  const end = offset + instruction.length;
  switch (instruction.form) {
    case 'upper': {
      if (instruction.op === 'lui') break;
      const value = addOffset(at, instruction.imm);
      return (assembler) => assembler.loadAddress(instruction.rd, value);
    }
    case 'jump': {
      const { rd } = instruction;
      const target = addOffset(at, instruction.imm);
      if (rd === 0) return (assembler) => jump(assembler, how, target);
      if (end < displaced) return 'returns into the bytes that the jump overwrites';
      return (assembler) => {
        assembler.loadAddress(rd, next);
        jump(assembler, how, target);
      };
    }
    case 'jump-register': {
      if (instruction.rd === 0) break;
      if (end < displaced) return 'returns into the bytes that the jump overwrites';
      return linkedJump(instruction, next, how);
    }
    case 'branch': {
      const { op, rs1, rs2 } = instruction;
      const target = addOffset(at, instruction.imm);
      return (assembler) => {
        assembler.emit(branch(opposite(op), rs1, rs2, 4 + patchLengths[how.kind]));
        jump(assembler, how, target);
      };
    }
    case 'atomic':
      if (instruction.op.startsWith('lr.')) return 'must stay close to the store that it reserves for';
      if (instruction.op.startsWith('sc.')) return 'must stay close to the load that reserves for it';
      break;
    case 'system':
      if (instruction.op === 'ebreak') return 'means something to a debugger by its place';
      break;
    case 'unknown':
      if (instruction.length !== 4 || !floatOpcodes.has(instruction.bits & 0x7f)) return 'is not known';
      break;
    default:
      break;
  }
  return (assembler) => assembler.raw(code, offset, end);
}

/**
 * A call through a register returns to its original return address. If that register is also the link, another one
 * is used instead.
 */
function linkedJump(
  instruction: Instruction & { form: 'jump-register' },
  returnAddress: Addr,
  { kind, through }: JumpKind,
): Move | string {
  const { rd, rs1, imm } = instruction;
  if (rd !== rs1)
    return (assembler) => {
      assembler.loadAddress(rd, returnAddress);
      assembler.emit(jalr(0, rs1, imm));
    };
  if (kind === 'near') return 'needs a register for its target, and none is free';
  return (assembler) => {
    assembler.emit(addi(through, rs1, imm));
    assembler.loadAddress(rd, returnAddress);
    assembler.emit(jalr(0, through, 0));
  };
}
