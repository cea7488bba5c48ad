import { addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { MemoryAccess } from '../instructions.js';
import { decode } from './decode.js';
import { integerName } from './registers.js';

const sizes: Readonly<Record<string, number>> = { b: 1, h: 2, w: 4, d: 8 };

/**
 * Loads, stores and atomics, also of floating point. Undefined for any other instruction, and if the base register is
 * not known.
 */
export function memoryAccess(code: Uint8Array, registers: RegisterReader): MemoryAccess | undefined {
  const instruction = decode(code);
  if (!instruction || !('rs1' in instruction)) return undefined;
  const base = instruction.rs1 === 0 ? 0n : registers.register(integerName(instruction.rs1));
  if (base === undefined) return undefined;
  const at = (imm: number, letter = ''): Pick<MemoryAccess, 'address' | 'length'> => ({
    address: addr(BigInt.asUintN(64, base + BigInt(imm))),
    length: sizes[letter] ?? 8,
  });
  switch (instruction.form) {
    case 'load':
    case 'float-load':
      // lbu, flw: the letter of the size follows the l.
      return { ...at(instruction.imm, /l(\w)/.exec(instruction.op)?.[1]), reads: true, writes: false };
    case 'store':
    case 'float-store':
      return { ...at(instruction.imm, instruction.op.at(-1)), reads: false, writes: true };
    case 'atomic': {
      const reads = !instruction.op.startsWith('sc');
      return { ...at(0, instruction.op.at(-1)), reads, writes: !instruction.op.startsWith('lr') };
    }
    default:
      return undefined;
  }
}
