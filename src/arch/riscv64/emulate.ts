import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { EmulatedEffects } from '../effects.js';
import type { EmulatedInstruction, MemoryAccess } from '../instructions.js';
import { compute, taken } from '../integer-operations.js';
import { zeroRegister } from '../zero-register.js';
import { decode, type Instruction } from './decode.js';
import { type LoadOp, type StoreOp, withImmediate } from './opcodes.js';
import { FP, integerName, SP } from './registers.js';

const { from, load, store, write } = zeroRegister(integerName, { sp: SP, fp: FP });

/**
 * Emulates an instruction by register and memory writes. Covered: integer arithmetic, jumps, branches, and loads and
 * stores of the stack. Left to a single-step: CSRs, traps, fences, atomics, and floating point.
 */
export function emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined {
  const instruction = decode(code);
  const carried = instruction && carry(instruction, pc);
  return carried && { length: instruction.length, ...carried };
}

function carry(instruction: Instruction, pc: Addr): EmulatedEffects | undefined {
  const next = addOffset(pc, instruction.length);
  switch (instruction.form) {
    case 'register': {
      const operation = compute[instruction.op];
      return from([instruction.rs1, instruction.rs2], (a, b) => write(instruction.rd, operation(a, b), next));
    }
    case 'immediate': {
      const operation = compute[withImmediate[instruction.op]];
      const b = BigInt.asUintN(64, BigInt(instruction.imm));
      return from([instruction.rs1], (a) => write(instruction.rd, operation(a, b), next));
    }
    case 'upper': {
      // `lpad` (Zicfilp) is auipc of zero: what it checks is in no register.
      if (instruction.op === 'auipc' && instruction.rd === 0) return undefined;
      const value = addOffset(instruction.op === 'lui' ? addr(0) : pc, instruction.imm);
      return from([], () => write(instruction.rd, value, next));
    }
    case 'jump': {
      const target = addOffset(pc, instruction.imm);
      return from([], () => write(instruction.rd, next, target));
    }
    case 'jump-register': {
      const { rd, imm } = instruction;
      return from([instruction.rs1], (base) => write(rd, next, BigInt.asUintN(64, base + BigInt(imm)) & ~1n));
    }
    case 'branch': {
      const holds = taken[instruction.op];
      const target = addOffset(pc, instruction.imm);
      return from([instruction.rs1, instruction.rs2], (a, b) => write(0, 0n, holds(a, b) ? target : next));
    }
    case 'load': {
      const { rd, rs1, imm } = instruction;
      const { size, signed } = loadShapes[instruction.op];
      return load(rd, { base: rs1, offset: imm, size }, signed, next);
    }
    case 'store': {
      const { rs1, rs2, imm } = instruction;
      return store(rs2, { base: rs1, offset: imm, size: storeSizes[instruction.op] }, next);
    }
    default:
      return undefined;
  }
}

const loadShapes: Readonly<Record<LoadOp, { readonly size: number; readonly signed: boolean }>> = {
  lb: { size: 1, signed: true },
  lh: { size: 2, signed: true },
  lw: { size: 4, signed: true },
  ld: { size: 8, signed: true },
  lbu: { size: 1, signed: false },
  lhu: { size: 2, signed: false },
  lwu: { size: 4, signed: false },
};
const storeSizes: Readonly<Record<StoreOp, number>> = { sb: 1, sh: 2, sw: 4, sd: 8 };

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
