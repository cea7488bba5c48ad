import { type Addr, addOffset, hex } from '../../base/addr.js';
import { CodeWriter, Label } from '../inject/code-buffer.js';
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

export type Operand = number | Place;

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

/** Encodes instructions one after the other at an address; literals come at the end. */
export class Encoder extends CodeWriter {
  readonly #literals = new Map<bigint, Label>();

  /** Eight bytes behind the code that hold this value. */
  literal(value: bigint): Place {
    const label = this.#literals.get(value) ?? new Label();
    this.#literals.set(value, label);
    return { at: label };
  }

  override finish(): Uint8Array {
    for (const [value, label] of this.#literals) {
      this.bind(label);
      this.immediate(value, 8);
    }
    return super.finish();
  }

  /** An instruction with a rip-relative displacement at that byte, which is set to refer to `target` here. */
  relocated(bytes: Uint8Array, displacementAt: number, target: Addr): void {
    this.#relativeAt(this.code.length + displacementAt, bytes.length - displacementAt, target);
    this.raw(bytes);
  }

  protected immediate(value: bigint, bytes: number): void {
    for (let rest = value, left = bytes; left > 0; rest >>= 32n, left -= 4)
      this.#word(Number(BigInt.asIntN(32, rest)), Math.min(left, 4));
  }

  #word(value: number, bytes: number): void {
    if (bytes === 4) this.code.word(value);
    else for (let shift = 0; shift < 8 * bytes; shift += 8) this.code.byte(value >> shift);
  }

  protected relative(target: Addr | Label, bytesBehind: number): void {
    this.#relativeAt(this.code.length, 4 + bytesBehind, target);
    this.#word(0, 4);
  }

  /** A distance of 32 bits at an offset of the code; it counts from so many bytes behind that. */
  #relativeAt(at: number, behind: number, target: Addr | Label): void {
    const start = addOffset(this.here, -this.code.length);
    this.resolveLater(at, target, (to) => {
      const distance = to - (at + behind);
      if ((distance | 0) === distance) return distance;
      const from = addOffset(start, at + behind);
      throw new RangeError(`${hex(addOffset(start, to))} is more than 2 GiB away from ${hex(from)}`);
    });
  }

  protected bytes(...values: readonly number[]): void {
    for (const value of values) this.code.byte(value);
  }

  /** Opcodes with a register in their low three bits. */
  protected inOpcode(opcode: number, register: number, size: 4 | 8): void {
    this.#rex(size, 0, 0, register, false);
    this.code.byte(opcode | (register & 7));
  }

  #rex(size: Size, reg: number, index: number, base: number, always: boolean): void {
    const rex = (size === 8 ? 8 : 0) | ((reg >> 3) << 2) | ((index >> 3) << 1) | (base >> 3);
    if (rex !== 0 || always) this.code.byte(0x40 | rex);
  }

  protected emit({ prefix, size, opcode, reg, rm, immediate, extended }: Parts): void {
    if (prefix !== undefined) this.code.byte(prefix);
    if (size === 2) this.code.byte(0x66);
    if (typeof rm === 'object' && 'fs' in rm) this.code.byte(0x64);
    const based = typeof rm === 'object' && 'base' in rm ? rm : undefined;
    const base = typeof rm === 'number' ? rm : (based?.base ?? 0);
    const index = based?.index ?? 0;
    // Without REX, numbers 4 to 7 mean ah, ch, dh and bh.
    const lowByte = size === 1 && ((!extended && reg > 3) || (typeof rm === 'number' && rm > 3));
    this.#rex(size, reg, index, base, lowByte);
    for (const byte of opcode) this.code.byte(byte);
    this.#modrm((reg & 7) << 3, rm, immediate?.bytes ?? 0);
    if (immediate !== undefined) this.immediate(immediate.value, immediate.bytes);
  }

  /** Volume 2, tables 2-2 and 2-3. */
  #modrm(reg: number, rm: Operand, bytesBehind: number): void {
    if (typeof rm === 'number') this.code.byte(0xc0 | reg | (rm & 7));
    else if ('at' in rm) {
      this.code.byte(0x05 | reg);
      this.relative(rm.at, bytesBehind);
    } else if ('fs' in rm) {
      this.code.byte(0x04 | reg);
      this.code.byte(0x25);
      this.#displacement(rm.fs, 4);
    } else this.#based(reg, rm);
  }

  #based(reg: number, { base, offset, index, scale = 1 }: Extract<Place, { base: number }>): void {
    if (index === RSP) throw new RangeError('rsp cannot be an index');
    const low = base & 7;
    // Low bits 5 without a displacement would mean rip, or no base.
    const bytes = offset === 0 && low !== 5 ? 0 : (offset << 24) >> 24 === offset ? 1 : 4;
    const mod = bytes === 0 ? 0 : bytes === 1 ? 0x40 : 0x80;
    if (index === undefined && low !== 4) this.code.byte(mod | reg | low);
    else {
      this.code.byte(mod | reg | 4);
      this.code.byte((Math.log2(scale) << 6) | (((index ?? 4) & 7) << 3) | low);
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
