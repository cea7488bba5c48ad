import { type Addr, addOffset } from '../../base/addr.js';
import type { PatchKind } from '../inject/displaced.js';
import { type JumpKind, jumpTo, type Leaving, type Move } from '../inject/movable.js';
import { relocationOf } from '../inject/relocation.js';
import { Assembler, addi, branch, jalr, machine, opposite, T0, T1 } from './assembler.js';
import { decode, type Instruction } from './decode.js';
import { textOf } from './disassembly.js';
import { integerName, integerNumber, RA, SP } from './registers.js';

/**
 * Of RISC-V instructions only auipc, branches and jumps depend on their address. These are rebuilt, all others are
 * copied byte by byte.
 *
 *     near  jal x0               4 bytes, reaches 1 MiB, keeps every register
 *     far   auipc t0; jalr x0    8 bytes, reaches 2 GiB, destroys t0
 */
export const patchLengths: Readonly<Record<PatchKind, number>> = { near: 4, far: 8 };

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

/** How an instruction is run elsewhere, or the end of a sentence that says why it cannot be. */
function move({ instruction, offset, at, how, code, displaced }: Leaving<Instruction>): Move<Assembler> | string {
  const next = addOffset(at, instruction.length);
  const end = offset + instruction.length;
  switch (instruction.form) {
    case 'upper': {
      if (instruction.op === 'lui') break;
      // `lpad` (Zicfilp).
      if (instruction.rd === 0) return 'is where an indirect jump may arrive';
      const value = addOffset(at, instruction.imm);
      return (assembler) => assembler.loadAddress(instruction.rd, value);
    }
    case 'jump': {
      const { rd } = instruction;
      const target = addOffset(at, instruction.imm);
      if (rd === 0) return (assembler) => jumpTo(assembler, how, target);
      if (end < displaced) return 'returns into the bytes that the jump overwrites';
      return (assembler) => {
        assembler.loadAddress(rd, next);
        jumpTo(assembler, how, target);
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
        jumpTo(assembler, how, target);
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
): Move<Assembler> | string {
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

export const { displace, displaceInside, loopsToStart, ends, decoded } = relocationOf<Instruction, Assembler>({
  ...{ create: (at) => new Assembler(at), is: machine, decode, text: textOf, patchLengths, reads, writes, move },
  far: { register: T0, name: integerName(T0) },
  target({ instruction }, before) {
    if (instruction.form === 'branch') return { distance: instruction.imm, link: false };
    if (instruction.form === 'jump') return { distance: instruction.imm, link: instruction.rd !== 0 };
    if (instruction.form !== 'jump-register' || before?.instruction.op !== 'auipc') return undefined;
    if (before.instruction.rd !== instruction.rs1) return undefined;
    const distance = before.instruction.imm + instruction.imm - before.instruction.length;
    return { distance, link: instruction.rd !== 0 };
  },
  calls: (one) => (one.form === 'jump' || one.form === 'jump-register') && one.rd === RA,
  returnsFromTrap: ({ op }) => op === 'mret' || op === 'sret' || op === 'dret',
  returnsBy: (one) => (one.form === 'jump-register' && one.rd === 0 && one.rs1 === T0 ? T0 : undefined),
  /** From nothing, or it swaps it with a CSR. */
  setsStackUp: (body) =>
    body.some(({ instruction: one }) => (one.form === 'upper' || one.form === 'csr') && one.rd === SP),
  movesStack: (one) => writes(one, SP) && !(one.form === 'immediate' && one.op === 'addi' && one.rs1 === SP),
  farInside: (free) => (free === undefined || integerNumber(free) === undefined ? undefined : free),
  isPadding: (one) => one.form === 'immediate' && one.op === 'addi' && one.rd === 0,
  mayEnd: ({ form }) => /^(jump|jump-register|system|unknown)$/.test(form),
  leaves: (one) => {
    if (one.form !== 'jump-register' || one.rd !== 0) return undefined;
    return one.rs1 === RA && one.imm === 0 ? 'returns' : 'anywhere';
  },
  jumpOn(code, last, bytes, to) {
    // It is auipc t1; jr t1. If the linker has relaxed it to one jump, t1 is free all the same.
    if (last.form === 'jump') code.jumpFar(to, T1);
    else code.raw(bytes);
  },
});
