import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import {
  afterLoad,
  bytesOf,
  type EmulatedEffects,
  fromRegisters,
  isStackAddress,
  noMemory,
  unsignedOf,
} from '../effects.js';
import type { Effects, EmulatedInstruction, MemoryAccess } from '../instructions.js';
import { compute, taken, withImmediate } from './arithmetic.js';
import { decode, type Instruction } from './decode.js';
import type { LoadOp, StoreOp } from './opcodes.js';
import { FP, integerName, SP } from './registers.js';

/**
 * Emulates an instruction by register and memory writes. Covered: integer arithmetic, jumps, branches, and loads and
 * stores of the stack. Left to a single-step: CSRs, traps, fences, atomics, and floating point. Accesses through
 * registers other than sp and s0 are also stepped, because a device register must not be accessed with another width
 * or twice. The hit shows whether s0 is a frame pointer: an address outside the stack has no effects, so the caller
 * steps.
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
    case 'load':
      return carryLoad(instruction, next);
    case 'store':
      return carryStore(instruction, next);
    default:
      return undefined;
  }
}

/** x0 reads as zero. */
function from(sources: readonly number[], effects: (a: bigint, b: bigint) => Effects): EmulatedEffects {
  const names = sources.map((source) => (source === 0 ? undefined : integerName(source)));
  return fromRegisters(names, ([a = 0n, b = 0n]) => effects(a, b));
}

function write(rd: number, value: bigint, pc: bigint): Effects {
  const moved = { name: 'pc', value: pc };
  return { registers: rd === 0 ? [moved] : [{ name: integerName(rd), value }, moved], memory: noMemory };
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

/** The address of an access through sp or s0; undefined if it is not on the stack, or a register is not known. */
function onStack(registers: RegisterReader, base: number, offset: number): { readonly address: Addr } | undefined {
  const sp = registers.register(integerName(SP));
  const from = registers.register(integerName(base));
  if (sp === undefined || from === undefined) return undefined;
  const address = addr(from + BigInt(offset));
  return base === SP || isStackAddress(address, sp) ? { address } : undefined;
}

function carryLoad({ rd, rs1, imm, op }: Instruction & { form: 'load' }, next: Addr): EmulatedEffects | undefined {
  if (rs1 !== SP && rs1 !== FP) return undefined;
  const { size, signed } = loadShapes[op];
  return afterLoad(
    (registers) => onStack(registers, rs1, imm),
    size,
    (loaded) => {
      const value = unsignedOf(loaded);
      return write(rd, signed ? BigInt.asUintN(64, BigInt.asIntN(8 * size, value)) : value, next);
    },
  );
}

function carryStore({ rs1, rs2, imm, op }: Instruction & { form: 'store' }, next: Addr): EmulatedEffects | undefined {
  if (rs1 !== SP && rs1 !== FP) return undefined;
  return fromRegisters([rs2 === 0 ? undefined : integerName(rs2)], ([value = 0n], registers) => {
    const place = onStack(registers, rs1, imm);
    const bytes = bytesOf(value, storeSizes[op]);
    return place && { registers: [{ name: 'pc', value: next }], memory: [{ address: place.address, bytes }] };
  });
}

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
