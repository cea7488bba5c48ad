import { type Addr, addOffset } from '../../base/addr.js';
import type { Step } from '../inject/code-path.js';
import { decode } from './decode.js';
import { timeCsrs } from './record-code.js';

/** See `ProbeCode.step`. A call is stepped over. */
export function step(code: Uint8Array, start: Addr, offset: number): Step | undefined {
  const instruction = decode(code, offset);
  if (instruction === undefined) return undefined;
  const { length } = instruction;
  const at = addOffset(start, offset);
  const plain = { length, jumps: undefined, branches: undefined, readsTime: false };
  switch (instruction.form) {
    case 'jump':
      return instruction.rd === 0 ? { ...plain, jumps: addOffset(at, instruction.imm) } : plain;
    case 'jump-register': {
      if (instruction.rd !== 0) return plain;
      const before = offset < 4 ? undefined : decode(code, offset - 4);
      const paired = before?.op === 'auipc' && before.length === 4 && before.rd === instruction.rs1;
      return { ...plain, jumps: paired ? addOffset(at, before.imm - 4 + instruction.imm) : 'away' };
    }
    case 'branch':
      return { ...plain, branches: addOffset(at, instruction.imm) };
    case 'csr':
      return { ...plain, readsTime: instruction.csr === timeCsrs.time || instruction.csr === timeCsrs.cycle };
    default:
      return plain;
  }
}
