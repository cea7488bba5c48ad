import { type Addr, addr } from '../base/addr.js';
import { littleEndian, littleEndianBytes } from '../base/little-endian.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { afterLoad, type EmulatedEffects, fromRegisters, isStackAddress, noMemory } from './effects.js';
import type { Effects } from './instructions.js';

/** An access to memory by a register and a distance. */
export interface PlainAccess {
  readonly base: number;
  readonly offset: number;
  /** In bytes. */
  readonly size: number;
}

/**
 * Effects of instructions where register 0 reads as zero, and each instruction writes one register or memory (RISC-V,
 * LoongArch). Accesses through other registers than the stack pointer and the frame pointer have none, so they are
 * single-stepped, because a device register must not be accessed with another width or twice. The hit shows whether the
 * frame pointer is one: an address outside the stack has no effects either.
 */
export function zeroRegister(
  nameOf: (number: number) => string,
  { sp, fp }: { readonly sp: number; readonly fp: number },
) {
  const nameOrZero = (number: number): string | undefined => (number === 0 ? undefined : nameOf(number));

  /** Writes a result and the new pc. */
  function write(rd: number, value: bigint, pc: bigint): Effects {
    const moved = { name: 'pc', value: pc };
    return { registers: rd === 0 ? [moved] : [{ name: nameOf(rd), value }, moved], memory: noMemory };
  }

  function from(sources: readonly number[], effects: (a: bigint, b: bigint) => Effects): EmulatedEffects {
    return fromRegisters(sources.map(nameOrZero), ([a = 0n, b = 0n]) => effects(a, b));
  }

  function placeOf(registers: RegisterReader, { base, offset }: PlainAccess): { readonly address: Addr } | undefined {
    const stack = registers.register(nameOf(sp));
    const start = registers.register(nameOf(base));
    if (stack === undefined || start === undefined) return undefined;
    const address = addr(start + BigInt(offset));
    return base === sp || isStackAddress(address, stack) ? { address } : undefined;
  }

  const isOfFrame = ({ base }: PlainAccess): boolean => base === sp || base === fp;

  function load(rd: number, access: PlainAccess, signed: boolean, next: Addr): EmulatedEffects | undefined {
    if (!isOfFrame(access)) return undefined;
    const { size } = access;
    return afterLoad(
      (registers) => placeOf(registers, access),
      size,
      (loaded) => {
        const value = littleEndian(loaded);
        return write(rd, signed ? BigInt.asUintN(64, BigInt.asIntN(8 * size, value)) : value, next);
      },
    );
  }

  function store(register: number, access: PlainAccess, next: Addr): EmulatedEffects | undefined {
    if (!isOfFrame(access)) return undefined;
    return fromRegisters([nameOrZero(register)], ([value = 0n], registers) => {
      const place = placeOf(registers, access);
      const bytes = littleEndianBytes(value, access.size);
      return place && { registers: [{ name: 'pc', value: next }], memory: [{ address: place.address, bytes }] };
    });
  }

  return { write, from, load, store };
}
