import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { CodeFlow, FlowStep } from '../code-flow.js';
import { T0, T1, T2, T3, T4, T5, T6 } from './assembler.js';
import type { Instruction } from './decode.js';
import { FP, integerName, RA, SP } from './registers.js';
import { decoded, reads, writes } from './relocate.js';

/** t0 to t6. */
const temporaries = [T0, T1, T2, T3, T4, T5, T6];
const every = 2 ** temporaries.length - 1;

/** See {@link CodeFlow}. */
export const codeFlow: CodeFlow = {
  temporaries: temporaries.map(integerName),
  steps(code, start) {
    const { body, targets } = decoded(code);
    const direct = new Map(targets.map(({ from, to }) => [from, addOffset(start, to)]));
    /** What the last `lui` or `auipc` has put into each register. */
    const upper = new Map<number, Addr>();
    let frame = 0;
    return body.map(({ instruction, offset }): FlowStep => {
      const address = addOffset(start, offset);
      const target = direct.get(offset);
      const names = named(instruction, address, upper);
      const kind = kindOf(instruction, target);
      const writesFrame = kind === 'next' && /^(store|float-store|unknown)$/.test(instruction.form);
      const uses = usesOf(instruction, kind);
      const reservation = reservationOf(instruction);
      const accesses = isAccess.test(instruction.form) && 'rs1' in instruction && instruction.rs1 !== SP;
      const { length } = instruction;
      const stack = stackOf(instruction);
      frame ||= -added(instruction, SP);
      const makes = frame > 0 && added(instruction, FP) === frame;
      const framePointer = makes ? 'makes' : accesses && instruction.rs1 === FP ? 'by' : undefined;
      return { address, length, kind, target, names, ...uses, stack, accesses, writesFrame, reservation, framePointer };
    });
  },
  memory(code) {
    const instruction = decoded(code).body[0]?.instruction;
    if (instruction?.form !== 'store' && instruction?.form !== 'atomic') return undefined;
    const isAtomic = instruction.form === 'atomic';
    const offset = instruction.form === 'atomic' ? 0n : BigInt(instruction.imm);
    return { register: integerName(instruction.rs1), offset, isAtomic };
  },
  writes(code, _at, register) {
    const instruction = decoded(code).body[0]?.instruction;
    // What is not decoded may write any.
    if (instruction === undefined || instruction.form === 'unknown') return true;
    return 'rd' in instruction && integerName(instruction.rd) === register;
  },
};

/** How far from the stack pointer an `addi` puts a register; 0 if it does not. */
function added(instruction: Instruction, rd: number): number {
  const isIt = instruction.form === 'immediate' && instruction.op === 'addi' && instruction.rs1 === SP;
  return isIt && instruction.rd === rd ? instruction.imm : 0;
}

const isAccess = /^(load|store|float-load|float-store|atomic)$/;

/** What a trap has left in a CSR is of before, too. */
function stackOf(instruction: Instruction): FlowStep['stack'] {
  if (reads(instruction, SP)) return 'uses';
  if (!writes(instruction, SP)) return undefined;
  return instruction.form === 'csr' ? 'uses' : 'sets';
}

/** Unprivileged ISA, 14.2 "Zalrsc": what `lr` reserves, `sc` writes to, if nothing else reserves meanwhile. */
function reservationOf(instruction: Instruction): FlowStep['reservation'] {
  if (instruction.form !== 'atomic' || !/^(?:lr|sc)\./.test(instruction.op)) return undefined;
  return instruction.op.startsWith('lr.') ? 'begins' : 'ends';
}

function usesOf(
  instruction: Instruction,
  kind: FlowStep['kind'],
): { readonly needs: number; readonly overwrites: number } {
  const set = (is: (register: number) => boolean): number =>
    temporaries.reduce((mask, register, bit) => mask | (is(register) ? 1 << bit : 0), 0);
  const needs = set((register) => reads(instruction, register));
  // What is not decoded may do anything. Calls of routines that save registers are linked in t0. A return from a trap
  // gives every register back to what was interrupted.
  const isOdd =
    instruction.form === 'unknown' ||
    (instruction.form === 'system' && kind === 'return') ||
    (kind === 'call' && !('rd' in instruction && instruction.rd === RA));
  if (isOdd) return { needs: every, overwrites: 0 };
  return { needs, overwrites: kind === 'call' ? every : set((register) => writes(instruction, register)) };
}

function kindOf(instruction: Instruction, target: Addr | undefined): FlowStep['kind'] {
  switch (instruction.form) {
    case 'branch':
      return 'branch';
    case 'jump':
      return instruction.rd === 0 ? 'jump' : 'call';
    case 'jump-register':
      if (instruction.rd !== 0) return 'call';
      if (target !== undefined) return 'jump';
      return instruction.rs1 === RA && instruction.imm === 0 ? 'return' : 'indirect';
    case 'system':
      if (instruction.op === 'ebreak') return 'end';
      return /^[msd]ret$/.test(instruction.op) ? 'return' : 'next';
    case 'unknown':
      // `unimp`.
      return instruction.bits === 0 || instruction.bits === 0xc000_1073 ? 'end' : 'next';
    case 'store':
    case 'float-store':
      return instruction.rs1 === SP ? 'next' : 'store';
    case 'atomic':
      return instruction.op.startsWith('lr.') ? 'next' : 'store';
    default:
      return 'next';
  }
}

/** The address that `lui` or `auipc` and an `addi` make. */
function named(instruction: Instruction, at: Addr, upper: Map<number, Addr>): Addr | undefined {
  if (instruction.form === 'upper') {
    const value = instruction.op === 'auipc' ? addOffset(at, instruction.imm) : addr(BigInt(instruction.imm));
    upper.set(instruction.rd, value);
    return undefined;
  }
  const base = instruction.form === 'immediate' && instruction.op === 'addi' && upper.get(instruction.rs1);
  return base ? addOffset(base, instruction.imm) : undefined;
}
