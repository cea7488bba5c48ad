import type { Addr } from '../base/addr.js';
import { type MemoryNeed, ObjectPlace, type ReadBytes, Unread } from './object-place.js';
import { brief, formatValue } from './print.js';
import { valueAt } from './reader.js';
import type { Shape } from './shape.js';
import type { ValueLimits } from './value.js';

/** Memory as far as it is known. `unread`: nobody has asked for it yet, and it can be asked for. */
export interface KnownMemory {
  bytes(address: Addr, length: number): Uint8Array | 'unreadable' | 'unread';
}

/**
 * The text of the value at an address, or of what all of its bytes mean, without what was not read of it. Functions and
 * concrete types behind vtables have no names. Undefined if nothing of it was read. What must be read first, if that is
 * not known yet.
 */
export function valueText(
  shape: Shape,
  place: Addr | Uint8Array,
  memory: KnownMemory,
  limits: ValueLimits,
): string | MemoryNeed | undefined {
  const at = typeof place === 'bigint' ? ObjectPlace.memory(place) : ObjectPlace.bytes(place);
  const read: ReadBytes = (address, length) => {
    const bytes = memory.bytes(address, length);
    if (bytes === 'unread') throw new Unread({ address, length });
    return bytes === 'unreadable' ? undefined : bytes;
  };
  try {
    const value = brief(valueAt(shape, at, { limits, read }));
    return value && formatValue(value);
  } catch (error) {
    if (error instanceof Unread) return error.need;
    throw error;
  }
}

/** From here on a high half makes a number that is not exact. */
const exact = 1 << 21;

/** An integer of 64 bits from its unsigned halves. */
export function wordText(low: number, high: number, signed: boolean): string {
  const top = signed ? high | 0 : high;
  if (top < exact && top >= -exact) return String(top * 0x1_0000_0000 + low);
  const word = (BigInt(high) << 32n) | BigInt(low);
  return (signed ? BigInt.asIntN(64, word) : word).toString();
}
