import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { EmulatedEffects } from '../effects.js';
import type { EmulatedInstruction, MemoryAccess } from '../instructions.js';
import { compute, taken } from '../integer-operations.js';
import { zeroRegister } from '../zero-register.js';
import { decode, type Instruction } from './decode.js';
import { FP, nameOf, RA, SP } from './registers.js';

const { from, load, store, write } = zeroRegister(nameOf, { sp: SP, fp: FP });

/**
 * Emulates an instruction by register and memory writes. Covered: integer arithmetic, jumps, branches, and loads and
 * stores of the stack. Left to a single-step: CSRs, traps, barriers, atomics, floating point and vectors.
 */
export function emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined {
  const instruction = decode(code);
  const carried = instruction && carry(instruction, pc);
  return carried && { length: 4, ...carried };
}

function carry(instruction: Instruction, pc: Addr): EmulatedEffects | undefined {
  const next = addOffset(pc, 4);
  switch (instruction.form) {
    case 'register': {
      const operation = compute[instruction.op];
      return from([instruction.rj, instruction.rk], (a, b) => write(instruction.rd, operation(a, b), next));
    }
    case 'immediate': {
      const operation = compute[instruction.op];
      const b = u64(instruction.imm);
      return from([instruction.rj], (a) => write(instruction.rd, operation(a, b), next));
    }
    case 'constant':
      return from([], () => write(instruction.rd, u64(instruction.imm), next));
    case 'upper': {
      const { rd, rj, low, imm } = instruction;
      return from([rj], (a) =>
        write(rd, BigInt.asUintN(64, (BigInt(imm) << BigInt(low)) | BigInt.asUintN(low, a)), next),
      );
    }
    case 'address': {
      const { rd, imm, isPage } = instruction;
      return from([], () => write(rd, addOffset(isPage ? addr(pc & ~0xfffn) : pc, imm), next));
    }
    case 'bits':
      return bits(instruction, next);
    case 'branch': {
      const holds = taken[instruction.op];
      const target = addOffset(pc, instruction.imm);
      return from([instruction.rj, instruction.rk], (a, b) => write(0, 0n, holds(a, b) ? target : next));
    }
    case 'jump': {
      const target = addOffset(pc, instruction.imm);
      return from([], () => write(instruction.link ? RA : 0, next, target));
    }
    case 'jump-register': {
      const { rd, rj, imm } = instruction;
      return from([rj], (base) => write(rd, next, BigInt.asUintN(64, base + BigInt(imm))));
    }
    case 'memory':
      return access(instruction, next);
    default:
      return undefined;
  }
}

const u64 = (value: number): bigint => BigInt.asUintN(64, BigInt(value));

function bits({ rd, rj, high, low, wide }: Instruction & { form: 'bits' }, next: Addr): EmulatedEffects | undefined {
  if (high < low) return undefined;
  return from([rj], (a) => {
    const part = BigInt.asUintN(high - low + 1, a >> BigInt(low));
    return write(rd, wide ? part : BigInt.asUintN(64, BigInt.asIntN(32, part)), next);
  });
}

function access(memory: Instruction & { form: 'memory' }, next: Addr): EmulatedEffects | undefined {
  const { rt, base, offset, size, signed, isFloat, exclusive } = memory;
  if (isFloat || exclusive !== undefined || offset === undefined) return undefined;
  if (memory.access === 'load') return load(rt, { base, offset, size }, signed, next);
  return memory.access === 'store' ? store(rt, { base, offset, size }, next) : undefined;
}

/** What watchpoints see. Undefined for any other instruction, and if a register that it needs is not known. */
export function memoryAccess(code: Uint8Array, registers: RegisterReader): MemoryAccess | undefined {
  const memory = decode(code);
  if (memory?.form !== 'memory' || memory.access === 'prefetch') return undefined;
  const value = (register: number): bigint | undefined => (register === 0 ? 0n : registers.register(nameOf(register)));
  const base = value(memory.base);
  const distance = memory.index === undefined ? memory.offset : value(memory.index);
  if (base === undefined || distance === undefined) return undefined;
  return {
    address: addr(BigInt.asUintN(64, base + BigInt(distance))),
    length: memory.size,
    reads: memory.access !== 'store',
    writes: memory.access !== 'load',
  };
}
