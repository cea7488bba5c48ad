import { type Addr, addOffset } from '../../base/addr.js';
import type { CodeFlow, FlowStep } from '../code-flow.js';
import { decode, type Instruction, written } from './decode.js';
import { RA, SP } from './registers.js';

/** An instruction, and where its jump or the two of a far one lead. */
interface Placed {
  readonly instruction: Instruction;
  readonly offset: number;
  /** As an offset from the first instruction. */
  readonly target: number | undefined;
  /** An address that it makes of two parts, as an offset from the first instruction. */
  readonly names: number | undefined;
}

/** Instructions of code at an address, of which only the lowest 12 bits count. */
function placed(code: Uint8Array, start: number): Placed[] {
  /** What pcaddu18i, pcaddu12i and pcalau12i have put into each register. */
  const upper = new Map<number, number>();
  const body: Placed[] = [];
  for (let offset = 0; offset + 4 <= code.length; offset += 4) {
    const instruction = decode(code, offset) as Instruction;
    body.push({ instruction, offset, ...leads(instruction, offset, upper) });
    for (const register of written(instruction)) upper.delete(register);
    if (instruction.form !== 'address' || instruction.rd === 0) continue;
    const base = instruction.isPage ? offset - ((start + offset) & 0xfff) : offset;
    upper.set(instruction.rd, base + instruction.imm);
  }
  return body;
}

function leads(
  instruction: Instruction,
  offset: number,
  upper: ReadonlyMap<number, number>,
): Pick<Placed, 'target' | 'names'> {
  switch (instruction.form) {
    case 'branch':
    case 'float-branch':
    case 'jump':
      return { target: offset + instruction.imm, names: undefined };
    case 'jump-register': {
      const base = upper.get(instruction.rj);
      return { target: base === undefined ? undefined : base + instruction.imm, names: undefined };
    }
    case 'immediate': {
      const base = instruction.op === 'add' ? upper.get(instruction.rj) : undefined;
      return { target: undefined, names: base === undefined ? undefined : base + instruction.imm };
    }
    default:
      return { target: undefined, names: undefined };
  }
}

/** See {@link CodeFlow}. */
export const codeFlow: CodeFlow = {
  steps(code, start) {
    const page = Number(start & 0xfffn);
    const at = (offset: number | undefined): Addr | undefined =>
      offset === undefined ? undefined : addOffset(start, offset);
    return placed(code, page).map(({ instruction, offset, target, names }): FlowStep => {
      const kind = kindOf(instruction, target);
      const isMemory = instruction.form === 'memory' && instruction.access !== 'prefetch';
      return {
        ...{ address: addOffset(start, offset), length: 4, kind, target: at(target), names: at(names) },
        accesses: isMemory && instruction.base !== SP,
        writesFrame: isMemory && kind === 'next' && instruction.access !== 'load',
        reservation: instruction.form === 'memory' ? instruction.exclusive : undefined,
      };
    });
  },
};

function kindOf(instruction: Instruction, target: number | undefined): FlowStep['kind'] {
  switch (instruction.form) {
    case 'branch':
    case 'float-branch':
      return 'branch';
    case 'jump':
      return instruction.link ? 'call' : 'jump';
    case 'jump-register':
      if (instruction.rd !== 0) return 'call';
      if (target !== undefined) return 'jump';
      return instruction.rj === RA && instruction.imm === 0 ? 'return' : 'indirect';
    case 'system':
      if (instruction.op === 'ertn') return 'return';
      return /^(break|ud)$/.test(instruction.op) ? 'end' : 'next';
    case 'memory':
      return instruction.access === 'load' || instruction.access === 'prefetch' || instruction.base === SP
        ? 'next'
        : 'store';
    default:
      return 'next';
  }
}
