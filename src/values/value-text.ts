import { type Addr, addr } from '../base/addr.js';
import { type MemoryNeed, ObjectPlace } from './object-place.js';
import { brief, formatValue } from './print.js';
import { textValue, valueReading } from './reader.js';
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
  const text = typeof place === 'bigint' ? undefined : textIn(shape, place);
  if (text) {
    const length = Math.min(text.length, limits.text);
    const bytes = length === 0 ? noBytes : memory.bytes(text.address, length);
    if (bytes === 'unread') return { address: text.address, length };
    if (bytes !== 'unreadable') return formatValue(textValue(shape.name, bytes, text.length));
  }
  const at = typeof place === 'bigint' ? ObjectPlace.memory(place) : ObjectPlace.bytes(place);
  const reading = valueReading(shape, at, { limits });
  let step = reading.next();
  while (!step.done) {
    const bytes = memory.bytes(step.value.address, step.value.length);
    if (bytes === 'unread') return step.value;
    step = reading.next(bytes === 'unreadable' ? undefined : bytes);
  }
  const read = brief(step.value);
  return read && formatValue(read);
}

/** Where a text lies whose words are these bytes: most arguments with memory behind them are `&str`. */
function textIn(shape: Shape, bytes: Uint8Array): MemoryNeed | undefined {
  const view = shape.kind === 'struct' ? shape.view() : shape;
  const isText = (view?.kind === 'slice' && view.style !== 'raw') || view?.kind === 'vec';
  if (!isText || !view.text || bytes.length < (shape.size ?? 0)) return undefined;
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = words.getUint32(view.length, true) + words.getUint32(view.length + 4, true) * 0x1_0000_0000;
  return Number.isSafeInteger(length) ? { address: addr(words.getBigUint64(view.pointer, true)), length } : undefined;
}

const noBytes = new Uint8Array(0);

/** From here on a high half makes a number that is not exact. */
const exact = 1 << 21;

/** An integer of 64 bits from its unsigned halves. */
export function wordText(low: number, high: number, signed: boolean): string {
  const top = signed ? high | 0 : high;
  if (top < exact && top >= -exact) return String(top * 0x1_0000_0000 + low);
  const word = (BigInt(high) << 32n) | BigInt(low);
  return (signed ? BigInt.asIntN(64, word) : word).toString();
}
