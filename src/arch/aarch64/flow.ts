import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { CodeFlow, FlowStep } from '../code-flow.js';
import { decode, type Instruction } from './decode.js';
import { FP, LR, SP } from './registers.js';

/** See {@link CodeFlow}. Jumps inside of functions are near ones, which need no register. */
export const codeFlow: CodeFlow = {
  steps(code, start) {
    const steps: FlowStep[] = [];
    /** What the last adrp has put into each register. */
    const pages = new Map<number, Addr>();
    for (let offset = 0; offset + 4 <= code.length; offset += 4) {
      const instruction = decode(code, offset) as Instruction;
      steps.push(stepAt(instruction, addOffset(start, offset), pages));
    }
    return steps;
  },
};

function stepAt(instruction: Instruction, address: Addr, pages: Map<number, Addr>): FlowStep {
  const isDirect = instruction.form === 'branch' || instruction.form === 'jump';
  const target = isDirect ? addOffset(address, instruction.imm) : undefined;
  const kind = kindOf(instruction);
  const isMemory = instruction.form === 'memory' && instruction.access !== 'prefetch';
  return {
    ...{ address, length: 4, kind, target },
    names: named(instruction, address, pages),
    stack: stackOf(instruction),
    accesses: isMemory && instruction.rn !== SP,
    writesFrame: isMemory && kind === 'next' && instruction.access !== 'load',
    reservation: instruction.form === 'memory' ? instruction.exclusive : undefined,
    framePointer: framePointerOf(instruction),
  };
}

function framePointerOf(instruction: Instruction): FlowStep['framePointer'] {
  if (instruction.form === 'memory') return instruction.rn === FP ? 'by' : undefined;
  const isIt = instruction.form === 'add-immediate' && instruction.op === 'add' && !instruction.flags;
  return isIt && instruction.rd === FP && instruction.rn === SP ? 'makes' : undefined;
}

/** The number of the stack pointer is also that of zero: the form tells. */
function stackOf(instruction: Instruction): FlowStep['stack'] {
  switch (instruction.form) {
    case 'memory':
      return instruction.rn === SP ? 'uses' : undefined;
    case 'add-immediate':
    case 'add-extended':
      if (instruction.rn === SP) return 'uses';
      return instruction.rd === SP && !instruction.flags ? 'sets' : undefined;
    case 'logical-immediate':
      return instruction.rd === SP && !instruction.flags ? 'sets' : undefined;
    default:
      return undefined;
  }
}

function kindOf(instruction: Instruction): FlowStep['kind'] {
  switch (instruction.form) {
    case 'branch':
      return 'branch';
    case 'jump':
      return instruction.link ? 'call' : 'jump';
    case 'jump-register':
      if (instruction.op === 'blr') return 'call';
      return instruction.op === 'ret' && instruction.rn === LR ? 'return' : 'indirect';
    case 'trap':
      if (instruction.op === 'eret') return 'return';
      return /^(brk|hlt|udf)$/.test(instruction.op) ? 'end' : 'next';
    case 'memory':
      return instruction.access === 'load' || instruction.access === 'prefetch' || instruction.rn === SP
        ? 'next'
        : 'store';
    default:
      return 'next';
  }
}

/** The address that adr makes, or adrp and an add. */
function named(instruction: Instruction, at: Addr, pages: Map<number, Addr>): Addr | undefined {
  if (instruction.form === 'address') {
    if (!instruction.isPage) return addOffset(at, instruction.imm);
    pages.set(instruction.rd, addOffset(addr(at & ~0xfffn), instruction.imm));
    return undefined;
  }
  if (instruction.form !== 'add-immediate' || instruction.flags || instruction.op !== 'add') return undefined;
  const base = pages.get(instruction.rn);
  return base && addOffset(base, instruction.imm);
}
