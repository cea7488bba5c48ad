import { type Addr, addOffset, hex } from '../../base/addr.js';
import { CodeBuffer } from '../inject/code-buffer.js';
import { type Condition, conditions } from './flags.js';
import { RSP, type Size } from './registers.js';

/**
 * Intel SDM volume 2, chapter 2 "Instruction Format". Assembles the instructions of 64-bit mode that trampolines use.
 *
 *     | F0, 66 or 64 | REX | opcode | ModRM | SIB | disp8/32 | immediate |
 *
 * Registers have their instruction-encoding numbers, 0 to 15. All jumps and rip-relative operands have 32 bits, so
 * that no length depends on an address. Throws RangeError for what an instruction cannot encode: a displacement, a
 * constant, a target out of reach.
 */
export type Place =
  | { readonly base: number; readonly offset: number; readonly index?: number; readonly scale?: 1 | 2 | 4 | 8 }
  /** At an address within 2 GiB, or at a label; encoded relative to rip. */
  | { readonly at: Addr | Label }
  /** In the segment of fs, which holds a thread's own data under the psABI. */
  | { readonly fs: number };

type Operand = number | Place;
type Operation = 'add' | 'or' | 'adc' | 'sbb' | 'and' | 'sub' | 'xor' | 'cmp';

/** A place in the code, known when it is bound. */
export class Label {
  offset: number | undefined;
}

/** The parts of one instruction; `reg` also stands for an opcode's extension. */
interface Parts {
  readonly prefix?: number;
  readonly size: Size;
  readonly opcode: readonly number[];
  readonly reg: number;
  readonly rm: Operand;
  readonly immediate?: { readonly value: bigint; readonly bytes: number };
  /** `reg` is an opcode's extension, so it names no byte register. */
  readonly extended?: true;
}

const operations: readonly Operation[] = ['add', 'or', 'adc', 'sbb', 'and', 'sub', 'xor', 'cmp'];

export class Assembler {
  readonly #start: Addr;
  readonly #code = new CodeBuffer();
  readonly #relatives: { readonly at: number; readonly end: number; readonly target: Addr | Label }[] = [];
  readonly #literals = new Map<bigint, Label>();

  /** `start` is where the first byte will lie. */
  constructor(start: Addr) {
    this.#start = start;
  }

  /** Address of the next instruction. */
  get here(): Addr {
    return addOffset(this.#start, this.#code.length);
  }

  bind(label: Label): void {
    label.offset = this.#code.length;
  }

  /** Eight bytes behind the code that hold this value. */
  literal(value: bigint): Place {
    const label = this.#literals.get(value) ?? new Label();
    this.#literals.set(value, label);
    return { at: label };
  }

  /** The code with its literals. Throws RangeError if a target is out of reach. */
  finish(): Uint8Array {
    for (const [value, label] of this.#literals) {
      this.bind(label);
      this.#constant(value, 8);
    }
    for (const { at, end, target } of this.#relatives) {
      const distance = target instanceof Label ? offsetOf(target) - end : this.#distance(target) - end;
      if ((distance | 0) !== distance) {
        const to = target instanceof Label ? addOffset(this.#start, offsetOf(target)) : target;
        throw new RangeError(`${hex(to)} is more than 2 GiB away from ${hex(addOffset(this.#start, end))}`);
      }
      this.#code.setWord(at, distance);
    }
    return this.#code.finish();
  }

  raw(bytes: Uint8Array): void {
    this.#code.raw(bytes, 0, bytes.length);
  }

  /** An instruction with a rip-relative displacement at that byte, which is set to refer to `target` here. */
  relocated(bytes: Uint8Array, displacementAt: number, target: Addr): void {
    const start = this.#code.length;
    this.raw(bytes);
    this.#relatives.push({ at: start + displacementAt, end: start + bytes.length, target });
  }

  move(to: number, from: number): void {
    this.#emit({ size: 8, opcode: [0x89], reg: from, rm: to });
  }

  /** The shortest of three ways: zero-extended, sign-extended and full. Leaves flags unchanged. */
  constant(to: number, value: bigint): void {
    const wanted = BigInt.asUintN(64, value);
    if (wanted >> 32n === 0n) {
      this.#inOpcode(0xb8, to, 4);
      this.#constant(wanted, 4);
    } else if (fits(BigInt.asIntN(64, wanted), 32)) this.storeConstant(to, wanted, 8);
    else {
      this.#inOpcode(0xb8, to, 8);
      this.#constant(wanted, 8);
    }
  }

  /** One and two bytes are zero-extended. */
  load(to: number, from: Place, size: Size = 8): void {
    if (size >= 4) this.#emit({ size, opcode: [0x8b], reg: to, rm: from });
    else this.#emit({ size: 4, opcode: [0x0f, size === 1 ? 0xb6 : 0xb7], reg: to, rm: from });
  }

  /** A register's low bytes as 64 bits. */
  extend(to: number, from: number, size: Size, signed: boolean): void {
    if (size === 8) this.move(to, from);
    else if (size === 4) this.#emit({ size: signed ? 8 : 4, opcode: [signed ? 0x63 : 0x8b], reg: to, rm: from });
    else {
      const opcode = (size === 1 ? 0xb6 : 0xb7) + (signed ? 8 : 0);
      // With REX.W there is a REX prefix, so that numbers 4 to 7 mean the low bytes.
      this.#emit({ size: 8, opcode: [0x0f, opcode], reg: to, rm: from });
    }
  }

  /** bsr: the number of the highest set bit; undefined for 0. */
  highestBit(to: number, from: number): void {
    this.#emit({ size: 8, opcode: [0x0f, 0xbd], reg: to, rm: from });
  }

  store(to: Place, from: number, size: Size = 8): void {
    this.#emit({ size, opcode: [size === 1 ? 0x88 : 0x89], reg: from, rm: to });
  }

  /** movq: the low 8 bytes of xmm0 to xmm7, behind a general register. */
  storeFloat({ base, offset }: { readonly base: number; readonly offset: number }, number: number): void {
    if (number > 7 || (base & 7) === RSP) throw new RangeError(`xmm${number} cannot be stored there`);
    const displacement = [0, 8, 16, 24].map((shift) => (offset >> shift) & 0xff);
    const rex = base > 7 ? [0x41] : [];
    this.raw(new Uint8Array([0x66, ...rex, 0x0f, 0xd6, 0x80 | (number << 3) | (base & 7), ...displacement]));
  }

  /** mov rax, cr0: in ring 0 alone. */
  readControl(): void {
    this.raw(new Uint8Array([0x0f, 0x20, 0xc0]));
  }

  /** With 8 bytes the value must be one that is sign-extended from 32 bits. */
  storeConstant(to: Operand, value: bigint, size: Size): void {
    const opcode = [size === 1 ? 0xc6 : 0xc7];
    this.#emit({ size, opcode, reg: 0, extended: true, rm: to, immediate: immediate(value, size, Math.min(size, 4)) });
  }

  /** lea. */
  address(to: number, of: Place): void {
    this.#emit({ size: 8, opcode: [0x8d], reg: to, rm: of });
  }

  /** Adds to rsp without touching flags. */
  moveStack(bytes: number): void {
    this.address(RSP, { base: RSP, offset: bytes });
  }

  push(from: Operand): void {
    if (typeof from === 'number') this.#inOpcode(0x50, from, 4);
    else this.#emit({ size: 4, opcode: [0xff], reg: 6, extended: true, rm: from });
  }

  pop(to: number): void {
    this.#inOpcode(0x58, to, 4);
  }

  /** At least one operand is not in memory. A constant is sign-extended from 32 bits if `size` is 8. */
  arithmetic(operation: Operation, to: Operand, from: Operand | { readonly constant: bigint }, size: Size = 8): void {
    const number = operations.indexOf(operation);
    if (typeof from === 'object' && 'constant' in from) {
      const short = size > 1 && fits(BigInt.asIntN(8 * size, from.constant), 8);
      const opcode = [size === 1 ? 0x80 : short ? 0x83 : 0x81];
      const operand = immediate(from.constant, size, short ? 1 : Math.min(size, 4));
      this.#emit({ size, opcode, reg: number, extended: true, rm: to, immediate: operand });
    } else if (typeof from === 'number') {
      this.#emit({ size, opcode: [8 * number + (size === 1 ? 0 : 1)], reg: from, rm: to });
    } else if (typeof to === 'number') {
      this.#emit({ size, opcode: [8 * number + (size === 1 ? 2 : 3)], reg: to, rm: from });
    } else throw new RangeError('One operand of an arithmetic instruction must be a register or a constant');
  }

  test(a: number, b: number): void {
    this.#emit({ size: 8, opcode: [0x85], reg: b, rm: a });
  }

  testConstant(register: number, value: number): void {
    const size = value < 0x80 ? 1 : 4;
    const operand = immediate(BigInt(value), size, size);
    const opcode = [size === 1 ? 0xf6 : 0xf7];
    this.#emit({ size, opcode, reg: 0, extended: true, rm: register, immediate: operand });
  }

  decrement(register: number, size: 4 | 8 = 8): void {
    this.#emit({ size, opcode: [0xff], reg: 1, extended: true, rm: register });
  }

  shift(direction: 'left' | 'right' | 'signed right', register: number, count: number): void {
    if (!(count >= 0 && count < 64)) throw new RangeError(`A shift by ${count} does not fit in an instruction`);
    const operand = immediate(BigInt(count), 1, 1);
    const reg = { left: 4, right: 5, 'signed right': 7 }[direction];
    this.#emit({ size: 8, opcode: [0xc1], reg, extended: true, rm: register, immediate: operand });
  }

  /** `lock cmpxchg`: if memory equals rax, memory becomes the register, with ZF; else rax becomes memory's value. */
  compareExchange(to: Place, register: number): void {
    this.#emit({ prefix: 0xf0, size: 8, opcode: [0x0f, 0xb1], reg: register, rm: to });
  }

  /** `lock inc` of 64 bits. */
  increment(what: Place): void {
    this.#emit({ prefix: 0xf0, size: 8, opcode: [0xff], reg: 0, extended: true, rm: what });
  }

  /** `lock add` of 64 bits: sets CF to the carry. */
  addAtOnce(what: Place, register: number): void {
    this.#emit({ prefix: 0xf0, size: 8, opcode: [0x01], reg: register, rm: what });
  }

  jump(to: Addr | Label): void {
    this.#code.byte(0xe9);
    this.#relative(to, 0);
  }

  jumpTo(register: number): void {
    this.#emit({ size: 4, opcode: [0xff], reg: 4, extended: true, rm: register });
  }

  branch(condition: Condition, to: Addr | Label): void {
    this.#code.byte(0x0f);
    this.#code.byte(0x80 + conditions.indexOf(condition));
    this.#relative(to, 0);
  }

  return(): void {
    this.#code.byte(0xc3);
  }

  nop(): void {
    this.#code.byte(0x90);
  }

  /** pushfq. */
  pushFlags(): void {
    this.#code.byte(0x9c);
  }

  /** popfq. */
  popFlags(): void {
    this.#code.byte(0x9d);
  }

  callTo(register: number): void {
    this.#emit({ size: 4, opcode: [0xff], reg: 2, extended: true, rm: register });
  }

  /** xsave64 and xrstor64, of the state components that edx:eax names. */
  extendedState(direction: 'save' | 'restore', at: Place): void {
    this.#emit({ size: 8, opcode: [0x0f, 0xae], reg: direction === 'save' ? 4 : 5, extended: true, rm: at });
  }

  /** syscall: destroys rcx and r11, and rax holds the result. */
  systemCall(): void {
    this.#code.byte(0x0f);
    this.#code.byte(0x05);
  }

  pause(): void {
    this.#code.byte(0xf3);
    this.#code.byte(0x90);
  }

  /** rdtsc: destroys rax and rdx. */
  readTimeStamp(): void {
    this.#code.byte(0x0f);
    this.#code.byte(0x31);
  }

  /** cpuid of the leaf in eax: destroys rax, rbx, rcx and rdx. */
  identify(): void {
    this.#code.byte(0x0f);
    this.#code.byte(0xa2);
  }

  /** Offset from the code's first byte: exact below 2^53. */
  #distance(to: Addr): number {
    return Number(BigInt.asIntN(64, to - this.#start));
  }

  #constant(value: bigint, bytes: number): void {
    for (let rest = value, left = bytes; left > 0; rest >>= 32n, left -= 4)
      this.#word(Number(BigInt.asIntN(32, rest)), Math.min(left, 4));
  }

  #word(value: number, bytes: number): void {
    if (bytes === 4) this.#code.word(value);
    else for (let shift = 0; shift < 8 * bytes; shift += 8) this.#code.byte(value >> shift);
  }

  #relative(target: Addr | Label, bytesBehind: number): void {
    const at = this.#code.length;
    this.#relatives.push({ at, end: at + 4 + bytesBehind, target });
    this.#word(0, 4);
  }

  /** Opcodes with a register in their low three bits. */
  #inOpcode(opcode: number, register: number, size: 4 | 8): void {
    this.#rex(size, 0, 0, register, false);
    this.#code.byte(opcode | (register & 7));
  }

  #rex(size: Size, reg: number, index: number, base: number, always: boolean): void {
    const rex = (size === 8 ? 8 : 0) | ((reg >> 3) << 2) | ((index >> 3) << 1) | (base >> 3);
    if (rex !== 0 || always) this.#code.byte(0x40 | rex);
  }

  #emit({ prefix, size, opcode, reg, rm, immediate, extended }: Parts): void {
    if (prefix !== undefined) this.#code.byte(prefix);
    if (size === 2) this.#code.byte(0x66);
    if (typeof rm === 'object' && 'fs' in rm) this.#code.byte(0x64);
    const based = typeof rm === 'object' && 'base' in rm ? rm : undefined;
    const base = typeof rm === 'number' ? rm : (based?.base ?? 0);
    const index = based?.index ?? 0;
    // Without REX, numbers 4 to 7 mean ah, ch, dh and bh.
    const lowByte = size === 1 && ((!extended && reg > 3) || (typeof rm === 'number' && rm > 3));
    this.#rex(size, reg, index, base, lowByte);
    for (const byte of opcode) this.#code.byte(byte);
    this.#modrm((reg & 7) << 3, rm, immediate?.bytes ?? 0);
    if (immediate !== undefined) this.#constant(immediate.value, immediate.bytes);
  }

  /** Volume 2, tables 2-2 and 2-3. */
  #modrm(reg: number, rm: Operand, bytesBehind: number): void {
    if (typeof rm === 'number') this.#code.byte(0xc0 | reg | (rm & 7));
    else if ('at' in rm) {
      this.#code.byte(0x05 | reg);
      this.#relative(rm.at, bytesBehind);
    } else if ('fs' in rm) {
      this.#code.byte(0x04 | reg);
      this.#code.byte(0x25);
      this.#displacement(rm.fs, 4);
    } else this.#based(reg, rm);
  }

  #based(reg: number, { base, offset, index, scale = 1 }: Extract<Place, { base: number }>): void {
    if (index === RSP) throw new RangeError('rsp cannot be an index');
    const low = base & 7;
    // Low bits 5 without a displacement would mean rip, or no base.
    const bytes = offset === 0 && low !== 5 ? 0 : (offset << 24) >> 24 === offset ? 1 : 4;
    const mod = bytes === 0 ? 0 : bytes === 1 ? 0x40 : 0x80;
    if (index === undefined && low !== 4) this.#code.byte(mod | reg | low);
    else {
      this.#code.byte(mod | reg | 4);
      this.#code.byte((Math.log2(scale) << 6) | (((index ?? 4) & 7) << 3) | low);
    }
    this.#displacement(offset, bytes);
  }

  #displacement(offset: number, bytes: number): void {
    if ((offset | 0) !== offset) {
      throw new RangeError(`A displacement of ${offset} does not fit in an instruction`);
    }
    this.#word(offset, bytes);
  }
}

function offsetOf({ offset }: Label): number {
  if (offset === undefined) throw new RangeError('A jump goes to a label that was never bound');
  return offset;
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
