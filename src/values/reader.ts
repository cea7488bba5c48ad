import { type Addr, addr } from '../base/addr.js';
import { littleEndian } from '../base/little-endian.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { type Die, selectVariant } from '../dwarf/index.js';
import { readView } from './library-views.js';
import { fromMemory, ObjectPlace, type ReadBytes, wordBytes } from './object-place.js';
import type { Shapes } from './program-shapes.js';
import { type EnumShape, type FieldShape, fieldName, isTuple, type Shape } from './shape.js';
import {
  defaultLimits,
  type FieldValue,
  type PointerStyle,
  type StructValue,
  scalarValue,
  textValue,
  type Value,
  type ValueLimits,
} from './value.js';

export interface ReadOptions {
  /** The name of a function, by its address. */
  symbol?(address: Addr): string | undefined;
  /** The concrete type that a vtable is for. */
  concrete?(vtable: Addr): Die | undefined;
  readonly limits?: Partial<ValueLimits>;
  /** Library types are shown as their fields; pointers are not followed, except for slices and strings. */
  readonly raw?: boolean;
}

/** Objects up to this size are read in one read. */
const readAhead = 0x1_0000;
const WORD = 8;

/** Reads the value at a place. Throws only for damaged debug info. Memory that cannot be read is part of the value. */
export function readValue(
  shapes: Shapes,
  memory: MemoryReader,
  shape: Shape,
  place: ObjectPlace,
  options: ReadOptions = {},
): Promise<Value> {
  const reading = { ...options, limits: { ...defaultLimits, ...options.limits }, shapes, known: new Map() };
  return fromMemory((read) => valueAt(shape, place, { ...reading, read }), memory);
}

/** The same with bytes that are there at once. */
export function valueAt(shape: Shape, place: ObjectPlace, options: ReadingOptions): Value {
  return new ValueReading(options).read(shape, place);
}

/**
 * The value of these bytes, without reading memory: a pointer is its address, a slice and what a library type refers to
 * are their words. If bytes are missing, it is `optimized-out`.
 */
export function valueOfBytes(shape: Shape, bytes: Uint8Array): Value {
  if (bytes.length < (shape.size ?? 0)) return { kind: 'optimized-out', type: shape.name };
  return valueAt(shape, ObjectPlace.bytes(bytes), { isFlat: true, read: () => undefined });
}

interface ReadingOptions extends ReadOptions {
  readonly limits?: ValueLimits;
  /** Without them no pointer to a `dyn Trait` is followed. */
  readonly shapes?: Shapes;
  /** Nothing is followed. */
  readonly isFlat?: boolean;
  readonly read: ReadBytes;
  /** What an earlier reading of the same has found. */
  readonly known?: KnownValues;
}

/** What the limits leave, and how many values were begun. */
type Progress = { values: number; bytes: number; begun: number };
/** Values by their numbers, and how far the reading had come behind each. */
type KnownValues = Map<number, { readonly value: Value; readonly behind: Progress }>;

/** One reading: counts what it has read against its limits. */
export class ValueReading {
  readonly limits: ValueLimits;
  readonly #options: ReadingOptions;
  #left: Progress;
  #depth = 0;
  /** Addresses and types of the pointers that are being followed. */
  readonly #following: { readonly address: Addr; readonly type: string }[] = [];

  constructor(options: ReadingOptions) {
    const { limits = defaultLimits } = options;
    this.#options = options;
    this.limits = limits;
    this.#left = { values: limits.values, bytes: limits.bytes, begun: 0 };
  }

  read(shape: Shape, at: ObjectPlace): Value {
    const number = this.#left.begun++;
    const before = this.#options.known?.get(number);
    if (before) this.#left = { ...before.behind };
    if (before) return before.value;
    if (this.#depth >= this.limits.depth) return { kind: 'cut', type: shape.name, reason: 'depth' };
    const { size } = shape;
    const isLarge = (size ?? 0) > this.limits.object && at.address !== undefined;
    if (--this.#left.values < 0 || isLarge) return { kind: 'cut', type: shape.name, reason: 'size' };
    this.#depth++;
    const place = size !== undefined && size > 0 && size <= readAhead ? this.ahead(at, size) : at;
    const found = this.#whole(shape, place);
    this.#depth--;
    this.#options.known?.set(number, { value: found, behind: { ...this.#left } });
    return found;
  }

  /** The place with `size` bytes read ahead, as far as the limit on bytes allows. */
  ahead(place: ObjectPlace, size: number): ObjectPlace {
    if (place.isKnown(size) || size > this.#left.bytes) return place;
    this.#left.bytes -= size;
    return place.readAhead(size, this.#options.read);
  }

  /** `size` bytes; if they are not available, a value that says why. */
  bytes(shape: Shape, place: ObjectPlace, size: number): Uint8Array | Value {
    const known = place.known(size);
    if (known) return known;
    if (size > this.#left.bytes) return { kind: 'cut', type: shape.name, reason: 'size' };
    this.#left.bytes -= size;
    const found = place.bytesBy(size, this.#options.read);
    if (found instanceof Uint8Array) return found;
    if (found.missing === 'optimized-out') return { kind: 'optimized-out', type: shape.name };
    return { kind: 'unreadable', type: shape.name, address: found.address, size: found.size };
  }

  /** An unsigned number. */
  number(shape: Shape, place: ObjectPlace, size = WORD): bigint | Value {
    const found = place.knownNumber(size) ?? this.bytes(shape, place, size);
    return found instanceof Uint8Array ? littleEndian(found) : found;
  }

  #whole(shape: Shape, place: ObjectPlace): Value {
    const type = shape.name;
    switch (shape.kind) {
      case 'unit':
        return { kind: 'struct', type, name: '', variant: undefined, form: 'tuple', fields: [] };
      case 'integer':
      case 'float':
      case 'bool':
      case 'char':
      case 'enumeration': {
        const bytes = this.bytes(shape, place, shape.size ?? 0);
        return bytes instanceof Uint8Array ? scalarValue(shape, bytes) : bytes;
      }
      case 'pointer':
        return this.#pointer(shape, place);
      case 'slice':
      case 'dyn':
        if (this.#options.isFlat) return this.#struct(shape, '', shape.fields, place);
        return shape.kind === 'slice' ? this.#slice(shape, place) : this.#dyn(shape, place);
      case 'struct':
      case 'union': {
        const { raw, isFlat } = this.#options;
        const view = raw ? undefined : shape.view();
        if (view !== undefined && !(isFlat && view.kind !== 'through')) return readView(this, shape, view, place);
        return this.#struct(shape, shape.short, shape.fields, place);
      }
      case 'enum':
        return this.#enum(shape, place);
      case 'array':
        return this.#array(shape, place);
      case 'opaque': {
        if (shape.size === undefined) return { kind: 'invalid', type, reason: 'a type of unknown size' };
        const bytes = this.bytes(shape, place, Math.min(shape.size, this.limits.text));
        return bytes instanceof Uint8Array ? { kind: 'bytes', type, bytes } : bytes;
      }
    }
  }

  #fields(fields: readonly FieldShape[], place: ObjectPlace): FieldValue[] {
    const found: FieldValue[] = [];
    for (const field of fields) {
      // One that is cut stands for all that are left out behind it.
      if (this.#left.values < 0 && found.length > 0) break;
      const [shape, at] = [field.type(), place.inside(field.offset)];
      const value = field.bits === undefined ? this.read(shape, at) : this.#bitField(shape, field.bits, at);
      found.push({ name: fieldName(field.name), value });
    }
    return found;
  }

  #bitField(shape: Shape, { offset, size }: NonNullable<FieldShape['bits']>, place: ObjectPlace): Value {
    if (!(size > 0 && size <= 64) || this.#left.values-- <= 0) return { kind: 'cut', type: shape.name, reason: 'size' };
    const bytes = this.bytes(shape, place, Math.ceil((offset + size) / 8));
    if (!(bytes instanceof Uint8Array)) return bytes;
    const bits = (littleEndian(bytes) >> BigInt(offset)) & ((1n << BigInt(size)) - 1n);
    const signed = 'signed' in shape && shape.signed;
    const wide = signed ? BigInt.asUintN((shape.size ?? 8) * 8, BigInt.asIntN(size, bits)) : bits;
    return scalarValue(shape, wordBytes(wide, shape.size ?? 8));
  }

  #struct(
    shape: Shape,
    name: string,
    fields: readonly FieldShape[],
    place: ObjectPlace,
    variant?: string,
  ): StructValue {
    const form = shape.kind === 'union' ? 'union' : isTuple(fields) ? 'tuple' : 'named';
    return { kind: 'struct', type: shape.name, name, variant, form, fields: this.#fields(fields, place) };
  }

  #enum(shape: Shape & EnumShape, place: ObjectPlace): Value {
    const { discriminant, variants } = shape;
    let variant = variants.length === 1 ? variants[0] : undefined;
    if (discriminant !== undefined) {
      const value = this.number(shape, place.inside(discriminant.offset), discriminant.size);
      if (typeof value !== 'bigint') return value;
      variant = selectVariant(variants, value);
      if (variant === undefined)
        return { kind: 'invalid', type: shape.name, reason: `discriminant 0x${value.toString(16)}` };
    }
    if (variant === undefined) return { kind: 'invalid', type: shape.name, reason: 'an enum without variants' };
    const name = shape.short === '' ? variant.name : `${shape.short}::${variant.name}`;
    const own = variant.fields();
    const fields = shape.fields.length === 0 ? own : [...shape.fields, ...own];
    return this.#struct(shape, name, fields, place, variant.name);
  }

  #array(shape: Shape & { kind: 'array' }, place: ObjectPlace): Value {
    const element = shape.element();
    const { count } = shape;
    if (count === undefined) return { kind: 'sequence', type: shape.name, name: '', length: 0, elements: [] };
    if (!this.#options.raw && element.kind === 'integer' && element.character)
      return this.#characters(shape, place, count);
    return this.sequence(shape, '', element, place, count);
  }

  /** A C array of characters, up to its zero; one without is an array of numbers. */
  #characters(shape: Shape & { kind: 'array' }, place: ObjectPlace, count: number): Value {
    const bytes = this.bytes(shape, place, Math.min(count, this.limits.text));
    if (!(bytes instanceof Uint8Array)) return bytes;
    const end = bytes.indexOf(0);
    if (end < 0) return this.sequence(shape, '', shape.element(), place, count);
    return textValue(shape.name, bytes.subarray(0, end), end);
  }

  /** Elements one behind the other. */
  sequence(shape: Shape, name: string, element: Shape, place: ObjectPlace, length: number): Value {
    const shown = Math.min(length, this.limits.elements);
    if (element.size === undefined && shown > 0)
      return { kind: 'invalid', type: shape.name, reason: 'elements of unknown size' };
    const stride = element.size ?? 0;
    const from = stride * shown <= readAhead ? this.ahead(place, stride * shown) : place;
    return this.elements(shape, name, element, length, (i) => from.inside(i * stride));
  }

  elements(shape: Shape, name: string, element: Shape, length: number, placeOf: (index: number) => ObjectPlace): Value {
    const elements: Value[] = [];
    const shown = Math.min(length, this.limits.elements);
    for (let i = 0; i < shown && (i === 0 || this.#left.values > 0); i++) elements.push(this.read(element, placeOf(i)));
    return { kind: 'sequence', type: shape.name, name, length, elements };
  }

  /** A string of `length` bytes, of which at most the limit is read. */
  text(shape: Shape, address: Addr, length: number): Value {
    const size = Math.min(length, this.limits.text);
    if (size === 0) return textValue(shape.name, new Uint8Array(0), length);
    const bytes = this.bytes(shape, ObjectPlace.memory(address), size);
    return bytes instanceof Uint8Array ? textValue(shape.name, bytes, length) : bytes;
  }

  #slice(shape: Shape & { kind: 'slice' }, place: ObjectPlace): Value {
    const address = this.number(shape, place.inside(shape.pointer));
    if (typeof address !== 'bigint') return address;
    const length = this.length(shape, place.inside(shape.length));
    if (typeof length !== 'number') return length;
    const at = addr(address);
    let target: Value | undefined;
    if (shape.style !== 'raw') {
      target = shape.text
        ? this.text(shape, at, length)
        : this.follow(shape, at, () => this.sequence(shape, '', shape.element(), ObjectPlace.memory(at), length));
      if (target.kind === 'text') return target;
    }
    return this.pointerValue(shape, shape.style, at, target);
  }

  /** A length or count as the target keeps it; more than 2^53 is no length. */
  length(shape: Shape, place: ObjectPlace): number | Value {
    const length = this.number(shape, place);
    if (typeof length !== 'bigint') return length;
    if (length > BigInt(Number.MAX_SAFE_INTEGER))
      return { kind: 'invalid', type: shape.name, reason: `length 0x${length.toString(16)}` };
    return Number(length);
  }

  #dyn(shape: Shape & { kind: 'dyn' }, place: ObjectPlace): Value {
    const address = this.number(shape, place.inside(shape.pointer));
    if (typeof address !== 'bigint') return address;
    const vtable = this.number(shape, place.inside(shape.vtable));
    if (typeof vtable !== 'bigint') return vtable;
    const concrete = this.concrete(addr(vtable));
    const at = addr(address);
    const target =
      concrete === undefined || this.#options.raw || shape.style === 'raw'
        ? undefined
        : this.follow(concrete, at, () => this.read(concrete, ObjectPlace.memory(at)));
    return {
      ...this.pointerValue(shape, shape.style, at, target),
      dyn: { trait: shape.trait, vtable: addr(vtable), concrete: concrete?.name },
    };
  }

  /** The type behind a vtable. */
  concrete(vtable: Addr): Shape | undefined {
    const die = this.#options.concrete?.(vtable);
    return die === undefined ? undefined : this.#options.shapes?.of(die);
  }

  #pointer(shape: Shape & { kind: 'pointer' }, place: ObjectPlace): Value {
    const word = this.number(shape, place);
    if (typeof word !== 'bigint') return word;
    const [address, { style }, target] = [addr(word), shape, shape.target()];
    const isFollowed =
      !this.#options.raw && !this.#options.isFlat && (style === 'ref' || style === 'mut' || style === 'box');
    const followed =
      isFollowed && target?.size !== undefined
        ? this.follow(target, address, () => this.read(target, ObjectPlace.memory(address)))
        : undefined;
    return this.pointerValue(shape, style, address, followed);
  }

  /** Reads what a pointer points to, unless that value is being read already. */
  follow(target: Shape, address: Addr, read: () => Value): Value {
    const type = target.name;
    if (this.#following.some((one) => one.address === address && one.type === type))
      return { kind: 'cut', type, reason: 'cycle' };
    this.#following.push({ address, type });
    const found = read();
    this.#following.pop();
    return found;
  }

  pointerValue(
    shape: Shape,
    style: PointerStyle,
    address: Addr,
    target: Value | undefined,
  ): Value & { kind: 'pointer' } {
    const symbol = style === 'fn' && address !== 0n ? this.#options.symbol?.(address) : undefined;
    return { kind: 'pointer', type: shape.name, style, address, target, dyn: undefined, symbol };
  }
}
