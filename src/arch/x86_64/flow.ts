import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { CodeFlow, FlowStep } from '../code-flow.js';
import { decode, type Instruction } from './decode.js';

/** See {@link CodeFlow}. The decoder must be loaded (`prepare`). */
export const codeFlow: CodeFlow = {
  steps(code, start) {
    const steps: FlowStep[] = [];
    for (let offset = 0; ; ) {
      const address = addOffset(start, offset);
      const instruction = decode(code, address, offset);
      if (instruction === undefined || instruction.op === 'unknown') return steps;
      const { length, target } = instruction;
      const kind = kindOf(instruction);
      const writesFrame = kind === 'next' && mayWrite(instruction);
      const names = named(instruction, address);
      const framePointer = framePointerOf(instruction);
      steps.push({ address, length, kind, target, names, writesFrame, accesses: accesses(instruction), framePointer });
      offset += length;
    }
  },
  memory(code, at) {
    const instruction = decode(code, at);
    const place = instruction?.operands.find((operand) => operand.kind === 'memory');
    if (!instruction || place?.kind !== 'memory' || place.index !== undefined || place.segment !== undefined)
      return undefined;
    const { base, displacement } = place;
    const isAtomic = /^(lock|xchg)\b/.test(instruction.op);
    if (base === 'rip')
      return { register: undefined, offset: at + BigInt(instruction.length + displacement), isAtomic };
    const offset = BigInt(displacement);
    return { register: base, offset: base === undefined ? BigInt.asUintN(64, offset) : offset, isAtomic };
  },
};

function kindOf({ op, flow, target, operands }: Instruction): FlowStep['kind'] {
  switch (flow) {
    case 'jump': {
      const [to] = operands;
      // Through a word of a vtable: a call in place of a return.
      if (to?.kind === 'memory' && to.index === undefined) return 'return';
      return target === undefined ? 'indirect' : 'jump';
    }
    case 'branch':
    case 'call':
    case 'return':
      return flow;
    default:
      if (/^(ud\d\w*|int3)$/.test(op)) return 'end';
      return operands[0]?.kind === 'memory' && operands[0].base !== 'rsp' && !onlyReads.test(op) ? 'store' : 'next';
  }
}

function framePointerOf({ op, operands: [to, from] }: Instruction): FlowStep['framePointer'] {
  if (to?.kind === 'memory') return to.base === 'rbp' ? 'by' : undefined;
  const isIt = op === 'mov' && to?.kind === 'register' && from?.kind === 'register';
  return isIt && to.name === 'rbp' && from.name === 'rsp' ? 'makes' : undefined;
}

function mayWrite({ op, operands }: Instruction): boolean {
  return op.startsWith('push') || (operands[0]?.kind === 'memory' && !onlyReads.test(op));
}

function accesses({ op, operands }: Instruction): boolean {
  if (op === 'lea' || op === 'nop') return false;
  return operands.some((operand) => operand.kind === 'memory' && operand.base !== 'rsp');
}

/** What has memory as its first operand and does not write it. */
const onlyReads = /^(cmp|test|bt|nop|endbr|prefetch|push|mul|imul|div|idiv|fld|fild|ldmxcsr|fxrstor|xrstor|clflush)/;

/** Of `lea` from the instruction pointer, of a call through a word there, and of a jump through a table. */
function named({ op, flow, operands, length }: Instruction, at: Addr): Addr | undefined {
  const memory = operands.find((operand) => operand.kind === 'memory');
  if (memory?.kind !== 'memory') return undefined;
  if ((op === 'lea' || flow === 'call') && memory.base === 'rip') return addOffset(at, length + memory.displacement);
  const isTable = flow === 'jump' && memory.index !== undefined && memory.base === undefined;
  return isTable ? addr(BigInt.asUintN(64, BigInt(memory.displacement))) : undefined;
}
