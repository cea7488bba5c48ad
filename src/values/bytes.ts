import { addr } from '../base/addr.js';
import { littleEndian } from '../dwarf/index.js';
import { fieldName, isTuple, scalarValue } from './reader.js';
import type { FieldShape, Shape } from './shape.js';
import type { StructValue, Value } from './value.js';

/** Types nest deeper than this only in damaged files. */
const deepest = 16;

/**
 * The value of these bytes, without reading memory: a pointer is its address. If bytes are missing, it is
 * `optimized-out`.
 */
export function valueOfBytes(shape: Shape, bytes: Uint8Array, depth = 0): Value {
  const type = shape.name;
  const size = shape.size ?? 0;
  if (depth > deepest) return { kind: 'cut', type, reason: 'depth' };
  if (bytes.length < size) return { kind: 'optimized-out', type };
  const word = (offset: number): bigint => littleEndian(bytes.subarray(offset, offset + 8));
  switch (shape.kind) {
    case 'unit':
      return { kind: 'struct', type, name: '', variant: undefined, form: 'tuple', fields: [] };
    case 'integer':
    case 'float':
    case 'bool':
    case 'char':
    case 'enumeration':
      return scalarValue(shape, bytes.subarray(0, size));
    case 'pointer':
      return pointer(shape, word(0));
    case 'slice':
    case 'dyn':
    case 'union':
      return struct(shape, { name: '', fields: shape.fields }, bytes, depth);
    case 'struct': {
      const view = shape.view();
      // `NonNull`, `Pin`, `Cell`, an atomic: only a wrapper of its content.
      if (view?.kind === 'through') return valueOfBytes(view.type(), bytes.subarray(view.offset), depth + 1);
      return struct(shape, { name: shape.short, fields: shape.fields }, bytes, depth);
    }
    case 'enum': {
      const { discriminant, variants, short } = shape;
      let variant = variants.length === 1 ? variants[0] : undefined;
      if (discriminant !== undefined) {
        const tag = littleEndian(bytes.subarray(discriminant.offset, discriminant.offset + discriminant.size));
        variant =
          variants.find((v) => v.values?.some((r) => tag >= r.low && tag <= r.high)) ??
          variants.find((v) => v.values === undefined);
        if (variant === undefined) return { kind: 'invalid', type, reason: `discriminant 0x${tag.toString(16)}` };
      }
      if (variant === undefined) return { kind: 'invalid', type, reason: 'an enum without variants' };
      const name = short === '' ? variant.name : `${short}::${variant.name}`;
      const fields = [...shape.fields, ...variant.fields()];
      return struct(shape, { name, fields, variant: variant.name }, bytes, depth);
    }
    case 'array': {
      const element = shape.element();
      const stride = element.size ?? 0;
      const count = stride === 0 ? 0 : Math.min(shape.count ?? 0, Math.floor(bytes.length / stride));
      const elements = Array.from({ length: count }, (_, i) =>
        valueOfBytes(element, bytes.subarray(i * stride), depth + 1),
      );
      return { kind: 'sequence', type, name: '', length: shape.count ?? 0, elements };
    }
    case 'opaque':
      return { kind: 'bytes', type, bytes: bytes.subarray(0, size) };
  }
}

function pointer(shape: Shape & { kind: 'pointer' }, address: bigint): Value {
  const { name: type, style } = shape;
  return { kind: 'pointer', type, style, address: addr(address), target: undefined, dyn: undefined, symbol: undefined };
}

/** What a struct, or a variant of an enum, consists of. */
interface StructContent {
  readonly name: string;
  readonly fields: readonly FieldShape[];
  readonly variant?: string;
}

function struct(shape: Shape, { name, fields, variant }: StructContent, bytes: Uint8Array, depth: number): StructValue {
  return {
    kind: 'struct',
    type: shape.name,
    name,
    variant,
    form: shape.kind === 'union' ? 'union' : isTuple(fields) ? 'tuple' : 'named',
    fields: fields.map((field) => {
      const inner = field.type();
      const value: Value =
        field.bits === undefined
          ? valueOfBytes(inner, bytes.subarray(field.offset), depth + 1)
          : { kind: 'cut', type: inner.name, reason: 'size' };
      return { name: fieldName(field.name), value };
    }),
  };
}
