import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { PatchKind } from '../inject/displaced.js';
import { type JumpKind, jumpTo, type Leaving, type Move } from '../inject/movable.js';
import { relocationOf } from '../inject/relocation.js';
import { Assembler, access, farJumpBytes, machine, pop, push, ret, T0 } from './assembler.js';
import { decode, type Instruction } from './decode.js';
import { textOf } from './disassembly.js';
import { authenticating, landingPad, movesFrame, reads, setsStackUp, signing, stays, writes } from './position.js';
import { LR, nameOf, SP, ZR } from './registers.js';

/**
 * Of A64 instructions adr, adrp, literals, branches and jumps depend on their address. These are rebuilt, all others are
 * copied. A landing pad (BTI) stays where it is, and the patch comes behind it.
 *
 *     near  b                     4 bytes, reaches 128 MiB, keeps every register
 *     far   adrp x16; add; ret   12 bytes, reaches 4 GiB, destroys x16
 */
export const patchLengths: Readonly<Record<PatchKind, number>> = { near: 4, far: farJumpBytes };

const literalReturns = 'returns into the bytes that the jump overwrites';

function move({ instruction, offset, at, how, displaced }: Leaving<Instruction>): Move<Assembler> | string {
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
      if (!instruction.link) return (assembler) => jumpTo(assembler, how, target);
      if (!isLast) return literalReturns;
      return (assembler) => {
        assembler.loadAddress(LR, next);
        jumpTo(assembler, how, target);
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

function copy(word: number): Move<Assembler> {
  return (assembler) => assembler.emit(word);
}

/** What a literal has is loaded by its address: into its own register, or one of the stack's for a vector. */
function literal(instruction: Instruction & { form: 'memory' }, from: Addr): Move<Assembler> | string {
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
function branchTo(instruction: Instruction & { form: 'branch' }, target: Addr, how: JumpKind): Move<Assembler> {
  const { word, test } = instruction;
  if (test.kind === 'condition' && test.condition >= 14) return (assembler) => jumpTo(assembler, how, target);
  const over = (4 + patchLengths[how.kind]) / 4;
  const [opposite, fields] =
    test.kind === 'condition' ? [1, 0x00ff_ffe0] : [1 << 24, test.kind === 'zero' ? 0x00ff_ffe0 : 0x0007_ffe0];
  return (assembler) => {
    assembler.emit((((word ^ opposite) & ~fields) | (over << 5)) >>> 0);
    jumpTo(assembler, how, target);
  };
}

export const { displace, displaceInside, loopsToStart, ends, decoded } = relocationOf<Instruction, Assembler>({
  ...{ create: (at) => new Assembler(at), is: machine, decode, patchLengths, reads, writes, move },
  text: ({ word }, at) => textOf(word, at),
  far: { register: T0, name: nameOf(T0) },
  target({ instruction }) {
    if (instruction.form === 'branch') return { distance: instruction.imm, link: false };
    return instruction.form === 'jump' ? { distance: instruction.imm, link: instruction.link } : undefined;
  },
  calls: (one) => (one.form === 'jump' && one.link) || (one.form === 'jump-register' && one.op === 'blr'),
  returnsFromTrap: (one) => one.form === 'trap' && one.op === 'eret',
  returnsBy: (one) => (one.form === 'jump-register' && one.op === 'ret' && one.rn !== LR ? one.rn : undefined),
  setsStackUp: (body) => setsStackUp(body.map(({ instruction }) => instruction)),
  movesStack: (one) => writes(one, SP) && !movesFrame(one),
  landingPad(first) {
    const pad = landingPad(first);
    return pad && { bytes: 4, signs: pad === 'bti' ? undefined : pad };
  },
  mayArrive: (one) => landingPad(one) === 'bti',
  sign: (code, signs) => code.emit(signing[signs]),
  isPadding: (one) => (one.form === 'hint' && one.imm === 0) || one.word === 0,
  mayEnd: ({ form }) => /^(jump|jump-register|trap)$/.test(form),
  leaves(one) {
    if (one.form !== 'jump-register' || one.op === 'blr') return undefined;
    return one.op === 'ret' && one.rn === LR ? 'returns' : 'anywhere';
  },
  /** retaa, retab. */
  beforeReturn(one) {
    if (one.form !== 'jump-register' || !one.isSigned) return [];
    return [authenticating[(one.word & 0x400) === 0 ? 'paciasp' : 'pacibsp']];
  },
  // A linker may let any jump go through code that changes x16.
  jumpOn: (code, _last, _bytes, to) => code.jumpFar(to, T0),
});
