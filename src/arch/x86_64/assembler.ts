import type { Addr } from '../../base/addr.js';
import type { Label } from '../inject/code-buffer.js';
import { Encoder, type Operand, type Place } from './encoder.js';
import { type Condition, conditions } from './flags.js';
import { RSP, type Size } from './registers.js';

type Operation = 'add' | 'or' | 'adc' | 'sbb' | 'and' | 'sub' | 'xor' | 'cmp';

/**
 * syscall destroys rcx and r11, and rax holds its result; rdtsc destroys rax and rdx, cpuid (of the leaf in eax) rbx and
 * rcx too. cr0 can be read in ring 0 alone.
 */
const plain = {
  nop: [0x90],
  ret: [0xc3],
  pushfq: [0x9c],
  popfq: [0x9d],
  pause: [0xf3, 0x90],
  syscall: [0x0f, 0x05],
  rdtsc: [0x0f, 0x31],
  cpuid: [0x0f, 0xa2],
  'mov rax, cr0': [0x0f, 0x20, 0xc0],
} as const;

const operations: readonly Operation[] = ['add', 'or', 'adc', 'sbb', 'and', 'sub', 'xor', 'cmp'];

/** The instructions that trampolines use. Registers have their instruction-encoding numbers, 0 to 15. */
export class Assembler extends Encoder {
  /** An instruction without operands. */
  plain(name: keyof typeof plain): void {
    this.bytes(...plain[name]);
  }

  move(to: number, from: number): void {
    this.emit({ size: 8, opcode: [0x89], reg: from, rm: to });
  }

  /** The shortest of three ways: zero-extended, sign-extended and full. Leaves flags unchanged. */
  constant(to: number, value: bigint): void {
    const wanted = BigInt.asUintN(64, value);
    if (wanted >> 32n === 0n) {
      this.inOpcode(0xb8, to, 4);
      this.immediate(wanted, 4);
    } else if (fits(BigInt.asIntN(64, wanted), 32)) this.storeConstant(to, wanted, 8);
    else {
      this.inOpcode(0xb8, to, 8);
      this.immediate(wanted, 8);
    }
  }

  /** One and two bytes are zero-extended. */
  load(to: number, from: Place, size: Size = 8): void {
    if (size >= 4) this.emit({ size, opcode: [0x8b], reg: to, rm: from });
    else this.emit({ size: 4, opcode: [0x0f, size === 1 ? 0xb6 : 0xb7], reg: to, rm: from });
  }

  /** A register's low bytes as 64 bits. */
  extend(to: number, from: number, size: Size, signed: boolean): void {
    if (size === 8) this.move(to, from);
    else if (size === 4) this.emit({ size: signed ? 8 : 4, opcode: [signed ? 0x63 : 0x8b], reg: to, rm: from });
    else {
      const opcode = (size === 1 ? 0xb6 : 0xb7) + (signed ? 8 : 0);
      // With REX.W there is a REX prefix, so that numbers 4 to 7 mean the low bytes.
      this.emit({ size: 8, opcode: [0x0f, opcode], reg: to, rm: from });
    }
  }

  /** bsr: the number of the highest set bit; undefined for 0. */
  highestBit(to: number, from: number): void {
    this.emit({ size: 8, opcode: [0x0f, 0xbd], reg: to, rm: from });
  }

  store(to: Place, from: number, size: Size = 8): void {
    this.emit({ size, opcode: [size === 1 ? 0x88 : 0x89], reg: from, rm: to });
  }

  /** movq: the low 8 bytes of xmm0 to xmm7, behind a general register. */
  storeFloat({ base, offset }: { readonly base: number; readonly offset: number }, number: number): void {
    if (number > 7 || (base & 7) === RSP) throw new RangeError(`xmm${number} cannot be stored there`);
    const displacement = [0, 8, 16, 24].map((shift) => (offset >> shift) & 0xff);
    const rex = base > 7 ? [0x41] : [];
    this.raw(new Uint8Array([0x66, ...rex, 0x0f, 0xd6, 0x80 | (number << 3) | (base & 7), ...displacement]));
  }

  /** With 8 bytes the value must be one that is sign-extended from 32 bits. */
  storeConstant(to: Operand, value: bigint, size: Size): void {
    const opcode = [size === 1 ? 0xc6 : 0xc7];
    this.emit({ size, opcode, reg: 0, extended: true, rm: to, immediate: immediate(value, size, Math.min(size, 4)) });
  }

  /** lea. */
  address(to: number, of: Place): void {
    this.emit({ size: 8, opcode: [0x8d], reg: to, rm: of });
  }

  /** Adds to rsp without touching flags. */
  moveStack(bytes: number): void {
    this.address(RSP, { base: RSP, offset: bytes });
  }

  push(from: Operand): void {
    if (typeof from === 'number') this.inOpcode(0x50, from, 4);
    else this.emit({ size: 4, opcode: [0xff], reg: 6, extended: true, rm: from });
  }

  pop(to: number): void {
    this.inOpcode(0x58, to, 4);
  }

  /** At least one operand is not in memory. A constant is sign-extended from 32 bits if `size` is 8. */
  arithmetic(operation: Operation, to: Operand, from: Operand | { readonly constant: bigint }, size: Size = 8): void {
    const number = operations.indexOf(operation);
    if (typeof from === 'object' && 'constant' in from) {
      const short = size > 1 && fits(BigInt.asIntN(8 * size, from.constant), 8);
      const opcode = [size === 1 ? 0x80 : short ? 0x83 : 0x81];
      const operand = immediate(from.constant, size, short ? 1 : Math.min(size, 4));
      this.emit({ size, opcode, reg: number, extended: true, rm: to, immediate: operand });
    } else if (typeof from === 'number') {
      this.emit({ size, opcode: [8 * number + (size === 1 ? 0 : 1)], reg: from, rm: to });
    } else if (typeof to === 'number') {
      this.emit({ size, opcode: [8 * number + (size === 1 ? 2 : 3)], reg: to, rm: from });
    } else throw new RangeError('One operand of an arithmetic instruction must be a register or a constant');
  }

  test(a: number, b: number): void {
    this.emit({ size: 8, opcode: [0x85], reg: b, rm: a });
  }

  testConstant(register: number, value: number): void {
    const size = value < 0x80 ? 1 : 4;
    const operand = immediate(BigInt(value), size, size);
    const opcode = [size === 1 ? 0xf6 : 0xf7];
    this.emit({ size, opcode, reg: 0, extended: true, rm: register, immediate: operand });
  }

  decrement(register: number, size: 4 | 8 = 8): void {
    this.emit({ size, opcode: [0xff], reg: 1, extended: true, rm: register });
  }

  shift(direction: 'left' | 'right' | 'signed right', register: number, count: number): void {
    if (!(count >= 0 && count < 64)) throw new RangeError(`A shift by ${count} does not fit in an instruction`);
    const operand = immediate(BigInt(count), 1, 1);
    const reg = { left: 4, right: 5, 'signed right': 7 }[direction];
    this.emit({ size: 8, opcode: [0xc1], reg, extended: true, rm: register, immediate: operand });
  }

  /** `lock cmpxchg`: if memory equals rax, memory becomes the register, with ZF; else rax becomes memory's value. */
  compareExchange(to: Place, register: number): void {
    this.emit({ prefix: 0xf0, size: 8, opcode: [0x0f, 0xb1], reg: register, rm: to });
  }

  /** `lock inc` of 64 bits. */
  increment(what: Place): void {
    this.emit({ prefix: 0xf0, size: 8, opcode: [0xff], reg: 0, extended: true, rm: what });
  }

  /** `lock add` of 64 bits: sets CF to the carry. */
  addAtOnce(what: Place, register: number): void {
    this.emit({ prefix: 0xf0, size: 8, opcode: [0x01], reg: register, rm: what });
  }

  jump(to: Addr | Label): void {
    this.bytes(0xe9);
    this.relative(to, 0);
  }

  jumpTo(register: number): void {
    this.emit({ size: 4, opcode: [0xff], reg: 4, extended: true, rm: register });
  }

  branch(condition: Condition, to: Addr | Label): void {
    this.bytes(0x0f, 0x80 + conditions.indexOf(condition));
    this.relative(to, 0);
  }

  callTo(register: number): void {
    this.emit({ size: 4, opcode: [0xff], reg: 2, extended: true, rm: register });
  }

  /** xsave64 and xrstor64, of the state components that edx:eax names. */
  extendedState(direction: 'save' | 'restore', at: Place): void {
    this.emit({ size: 8, opcode: [0x0f, 0xae], reg: direction === 'save' ? 4 : 5, extended: true, rm: at });
  }
}

/** A value that an operation of `size` bytes reads from `bytes` bytes, sign-extended. */
function immediate(value: bigint, size: Size, bytes: number): { value: bigint; bytes: number } {
  if (BigInt.asUintN(8 * size, value) !== value && !fits(value, 8 * size)) {
    throw new RangeError(`${value} has more than ${size} bytes`);
  }
  if (!fits(BigInt.asIntN(8 * size, value), 8 * bytes)) {
    throw new RangeError(`${value} does not fit in an instruction's ${bytes} bytes`);
  }
  return { value, bytes };
}

function fits(value: bigint, bits: number): boolean {
  return BigInt.asIntN(bits, value) === value;
}
