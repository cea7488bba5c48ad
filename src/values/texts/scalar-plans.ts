// Numbers, flags, characters and enums without data. What is common is written from halves of a word; all else goes
// the way that every value goes, through `scalarValue`.
import { formatValue } from '../print.js';
import { scalarValue } from '../reader.js';
import type { Shape } from '../shape.js';
import type { TextPlan } from './text-plan.js';
import { found, nowhere, type Spot, type TextReading } from './text-reading.js';

/** The text of a value whose bytes {@link TextReading.locate} did not find. */
export function lostText(how: number): string | undefined {
  return how === nowhere ? '<optimized out>' : undefined;
}

/** Writes what was located. */
type Write = (reading: TextReading) => string;

/** The plan of an integer, a float, a bool, a char or an enum without data. */
export function scalarPlan(shape: Shape): TextPlan {
  const { name, size } = shape;
  const length = size ?? 0;
  const write = writeOf(shape, length);
  const text = (reading: TextReading, spot: Spot, offset: number): string | undefined => {
    const how = reading.locate(spot, offset, length);
    return how === found ? write(reading) : lostText(how);
  };
  return { name, size, text };
}

function writeOf(shape: Shape, size: number): Write {
  const general: Write = ({ data, at }) => formatValue(scalarValue(shape, data.subarray(at, at + size)));
  switch (shape.kind) {
    case 'integer':
      return integer(size, shape.signed) ?? general;
    case 'bool':
      if (size !== 1) return general;
      return (reading) => {
        const byte = reading.data[reading.at];
        return byte === 0 ? 'false' : byte === 1 ? 'true' : general(reading);
      };
    case 'enumeration': {
      if (size !== 1) return general;
      const names = Array.from({ length: 256 }, (_, byte) => shape.names.get(BigInt(byte)));
      return (reading) => names[reading.data[reading.at] as number] ?? general(reading);
    }
    default:
      return general;
  }
}

function integer(size: number, signed: boolean): Write | undefined {
  switch (size) {
    case 1:
      return ({ data, at }) => {
        const byte = data[at] as number;
        return String(signed ? (byte << 24) >> 24 : byte);
      };
    case 2:
      return ({ data, at }) => {
        const half = (data[at] as number) | ((data[at + 1] as number) << 8);
        return String(signed ? (half << 16) >> 16 : half);
      };
    case 4:
      return (reading) => String(signed ? reading.half(0) | 0 : reading.half(0));
    case 8:
      return (reading) => wordText(reading.half(0), reading.half(4), signed);
    default:
      return undefined;
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
