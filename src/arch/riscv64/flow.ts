import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { CodeFlow, FlowStep } from '../code-flow.js';
import type { Instruction } from './decode.js';
import { RA, SP } from './registers.js';
import { decoded } from './relocate.js';

/** See {@link CodeFlow}. */
export const codeFlow: CodeFlow = {
  steps(code, start) {
    const { body, targets } = decoded(code);
    const direct = new Map(targets.map(({ from, to }) => [from, addOffset(start, to)]));
    /** What the last `lui` or `auipc` has put into each register. */
    const upper = new Map<number, Addr>();
    return body.map(({ instruction, offset }): FlowStep => {
      const address = addOffset(start, offset);
      const target = direct.get(offset);
      const names = named(instruction, address, upper);
      return { address, length: instruction.length, kind: kindOf(instruction, target), target, names };
    });
  },
};

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
