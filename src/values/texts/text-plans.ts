import { littleEndian } from '../../dwarf/index.js';
import { formatValue, invalidText, pointerText, referenceText, sequenceText, structText } from '../print.js';
import { fieldName, isTuple, readAhead, scalarValue, wordBytes } from '../reader.js';
import type { DynShape, EnumShape, FieldShape, Shape, SliceShape, VariantShape } from '../shape.js';
import { byteText } from './byte-texts.js';
import { lengthAt, once, type Plans, type SequenceText, textAt, viewText } from './library-plans.js';
import { lostText, scalarPlan } from './scalar-plans.js';
import type { TextPlan } from './text-plan.js';
import { found, spotAt } from './text-reading.js';

const wordSize = 8;

type Write = TextPlan['text'];

/** The plan of each shape, made when a value of it is first written. */
export class TextPlans implements Plans {
  readonly #plans = new Map<Shape, TextPlan>();

  of(shape: Shape): TextPlan {
    let plan = this.#plans.get(shape);
    if (plan === undefined) {
      plan = this.#make(shape);
      this.#plans.set(shape, plan);
    }
    return plan;
  }

  #make(shape: Shape): TextPlan {
    const { name, size } = shape;
    const planned = (text: Write): TextPlan => ({ name, size, text });
    switch (shape.kind) {
      case 'unit':
        return planned(() => '()');
      case 'integer':
      case 'float':
      case 'bool':
      case 'char':
      case 'enumeration':
        return scalarPlan(shape);
      case 'pointer':
        return planned(this.#pointer(shape));
      case 'slice':
        return planned(this.#slice(shape));
      case 'dyn':
        return planned(dynText(shape));
      case 'struct':
      case 'union': {
        const view = shape.view();
        return planned(view ? viewText(this, shape, view) : this.#struct(shape.kind, shape.short, shape.fields));
      }
      case 'enum':
        return planned(this.#enum(shape));
      case 'array':
        return planned(this.#array(shape));
      case 'opaque':
        return planned(opaqueText(shape));
    }
  }

  #struct(kind: Shape['kind'], name: string, fields: readonly FieldShape[]): Write {
    const form = kind === 'union' ? 'union' : isTuple(fields) ? 'tuple' : 'named';
    const members = fields.map((field) => this.#member(field));
    const between = form === 'union' ? ' | ' : ', ';
    return (reading, spot, offset) => {
      let content = '';
      let count = 0;
      for (; count < members.length && !(count > 0 && reading.isOut); count++) {
        const { prefix, text } = members[count] as Member;
        content += `${count === 0 ? '' : between}${form === 'tuple' ? '' : prefix}${text(reading, spot, offset) ?? '..'}`;
      }
      return structText(name, form, content, count);
    };
  }

  #member(field: FieldShape): Member {
    const name = fieldName(field.name);
    const prefix = name === '' ? '' : `${name}: `;
    if (field.bits !== undefined) return { prefix, text: bitsText(field) };
    const type = once(() => this.of(field.type()));
    return { prefix, text: (reading, spot, offset) => reading.read(type(), spot, offset + field.offset) };
  }

  #pointer(shape: Shape & { kind: 'pointer' }): Write {
    const { style } = shape;
    const pointee = once(() => {
      const target = style === 'raw' || style === 'fn' ? undefined : shape.target();
      return { plan: target === undefined || target.size === undefined ? undefined : this.of(target) };
    });
    return (reading, spot, offset) => {
      const how = reading.locate(spot, offset, wordSize);
      if (how !== found) return lostText(how);
      const { plan } = pointee();
      if (plan === undefined) return hexOfHalves(reading.half(0), reading.half(4));
      const address = reading.address();
      const target = reading.follow(plan.name, address, () => reading.read(plan, spotAt(address), 0));
      return target === undefined ? pointerText(address) : referenceText(style, target);
    };
  }

  #slice(shape: Shape & SliceShape): Write {
    const { style } = shape;
    const elements = this.sequence(shape, '', shape.element);
    return (reading, spot, offset) => {
      const how = reading.locate(spot, offset + shape.pointer, wordSize);
      if (how !== found) return lostText(how);
      const address = reading.address();
      const length = lengthAt(reading, shape, spot, offset + shape.length);
      if (typeof length !== 'number') return length?.text;
      if (style === 'raw') return pointerText(address);
      if (shape.text) return textAt(reading, address, length) ?? pointerText(address);
      const target = reading.follow(shape.name, address, () => elements(reading, spotAt(address), 0, length));
      return target === undefined ? pointerText(address) : referenceText(style, target);
    };
  }

  #enum(shape: Shape & EnumShape): Write {
    const { discriminant, variants, short } = shape;
    const writers = variants.map((variant) =>
      once(() =>
        this.#struct(shape.kind, short === '' ? variant.name : `${short}::${variant.name}`, [
          ...shape.fields,
          ...variant.fields(),
        ]),
      ),
    );
    if (discriminant === undefined || discriminant.size > wordSize) return this.#wideEnum(shape, writers);
    const choice = once(() => variantChoice(variants));
    return (reading, spot, offset) => {
      const how = reading.locate(spot, offset + discriminant.offset, discriminant.size);
      if (how !== found) return lostText(how);
      const { data, at } = reading;
      const low = bytesAt(data, at, Math.min(discriminant.size, 4));
      const high = bytesAt(data, at + 4, discriminant.size - 4);
      const writer = writers[choice()(low, high)];
      if (writer === undefined) return invalidText(shape.name, `discriminant ${hexOfHalves(low, high)}`);
      return writer()(reading, spot, offset);
    };
  }

  /** One whose variant needs no discriminant, or has one of 128 bits. */
  #wideEnum({ name, discriminant, variants }: Shape & EnumShape, writers: readonly (() => Write)[]): Write {
    if (discriminant === undefined) {
      const [only] = variants.length === 1 ? writers : [];
      return (reading, spot, offset) =>
        only ? only()(reading, spot, offset) : invalidText(name, 'an enum without variants');
    }
    return (reading, spot, offset) => {
      const how = reading.locate(spot, offset + discriminant.offset, discriminant.size);
      if (how !== found) return lostText(how);
      const value = littleEndian(reading.data.subarray(reading.at, reading.at + discriminant.size));
      const writer = writers[variantOfValue(variants, value)];
      if (writer === undefined) return invalidText(name, `discriminant 0x${value.toString(16)}`);
      return writer()(reading, spot, offset);
    };
  }

  #array(shape: Shape & { kind: 'array' }): Write {
    const { count } = shape;
    const elements = this.sequence(shape, '', shape.element);
    if (count === undefined) return () => '[]';
    const isCharacter = once(() => {
      const element = shape.element();
      return { is: element.kind === 'integer' && element.character };
    });
    return (reading, spot, offset) => {
      if (!isCharacter().is) return elements(reading, spot, offset, count);
      const size = Math.min(count, reading.limits.text);
      const how = reading.locate(spot, offset, size);
      if (how !== found) return lostText(how);
      const { data, at } = reading;
      const end = data.subarray(at, at + size).indexOf(0);
      return end < 0 ? elements(reading, spot, offset, count) : byteText(data, at, end, false);
    };
  }

  sequence(owner: Shape, name: string, element: () => Shape): SequenceText {
    const planned = once(() => this.of(element()));
    return (reading, spot, offset, length, place) => {
      const plan = planned();
      const shown = Math.min(length, reading.limits.elements);
      if (place === undefined && plan.size === undefined && shown > 0) {
        return invalidText(owner.name, 'elements of unknown size');
      }
      const stride = plan.size ?? 0;
      const isNear = place === undefined && stride * shown <= readAhead;
      const from = isNear ? reading.ahead(spot, offset, stride * shown) : spot;
      const texts: string[] = [];
      let isWhole = true;
      for (let i = 0; i < shown && (i === 0 || !reading.isOut); i++) {
        const text = reading.read(plan, from, offset + (place === undefined ? i * stride : place(i)));
        // What comes behind it is read all the same, because it counts.
        isWhole &&= text !== undefined;
        if (isWhole && text !== undefined) texts.push(text);
      }
      return sequenceText(name, texts, length);
    };
  }
}

interface Member {
  /** The member's name and a colon. */
  readonly prefix: string;
  readonly text: Write;
}

function bitsText(field: FieldShape): Write {
  const shape = field.type();
  const { offset: from, size } = field.bits ?? { offset: 0, size: 0 };
  const isSound = size > 0 && size <= 64;
  const length = Math.ceil((from + size) / 8);
  const signed = 'signed' in shape && shape.signed;
  return (reading, spot, offset) => {
    if (!isSound || !reading.take()) return undefined;
    const how = reading.locate(spot, offset + field.offset, length);
    if (how !== found) return lostText(how);
    const word = littleEndian(reading.data.subarray(reading.at, reading.at + length));
    const bits = (word >> BigInt(from)) & ((1n << BigInt(size)) - 1n);
    const wide = signed ? BigInt.asUintN((shape.size ?? 8) * 8, BigInt.asIntN(size, bits)) : bits;
    return formatValue(scalarValue(shape, wordBytes(wide, shape.size ?? 8)));
  };
}

function dynText(shape: Shape & DynShape): Write {
  return (reading, spot, offset) => {
    const how = reading.locate(spot, offset + shape.pointer, wordSize);
    if (how !== found) return lostText(how);
    const address = reading.address();
    const table = reading.locate(spot, offset + shape.vtable, wordSize);
    if (table !== found) return lostText(table);
    return pointerText(address, { trait: shape.trait, vtable: reading.address(), concrete: undefined });
  };
}

function opaqueText(shape: Shape): Write {
  const { name, size } = shape;
  if (size === undefined) return () => invalidText(name, 'a type of unknown size');
  return (reading, spot, offset) => {
    const length = Math.min(size, reading.limits.text);
    const how = reading.locate(spot, offset, length);
    if (how !== found) return lostText(how);
    const bytes = reading.data.subarray(reading.at, reading.at + length);
    return formatValue({ kind: 'bytes', type: name, bytes });
  };
}

/** So many bytes as an unsigned number; none if `size` is not above 0. */
function bytesAt(data: Uint8Array, at: number, size: number): number {
  let value = 0;
  for (let i = size - 1; i >= 0; i--) value = value * 256 + (data[at + i] as number);
  return value;
}

function hexOfHalves(low: number, high: number): string {
  return high === 0 ? `0x${low.toString(16)}` : `0x${high.toString(16)}${low.toString(16).padStart(8, '0')}`;
}

/** Which variant a discriminant means, of 64 bits at most, given by its halves. */
function variantChoice(variants: readonly VariantShape[]): (low: number, high: number) => number {
  const small = Array.from({ length: 256 }, (_, value) => variantOfValue(variants, BigInt(value)));
  let [lastLow, lastHigh, last] = [-1, -1, -1];
  return (low, high) => {
    if (high === 0 && low < small.length) return small[low] as number;
    if (low === lastLow && high === lastHigh) return last;
    [lastLow, lastHigh] = [low, high];
    last = variantOfValue(variants, (BigInt(high) << 32n) | BigInt(low));
    return last;
  };
}

/** The index of the variant of that value; -1 if there is none. */
function variantOfValue(variants: readonly VariantShape[], value: bigint): number {
  const named = variants.findIndex((v) => v.values?.some(({ low, high }) => value >= low && value <= high));
  return named >= 0 ? named : variants.findIndex((v) => v.values === undefined);
}
