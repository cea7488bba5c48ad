import type { FieldShape, Shape, StructShape } from '../values/index.js';

/** A part of a value that is passed in a register of its own. */
export interface Scalar {
  readonly offset: number;
  readonly size: number;
  readonly float: boolean;
}

/** Types nest deeper than this only in damaged files. */
const deepest = 16;

/**
 * The one or two scalars that rustc passes a type as, or undefined for a block of bytes. Source:
 * rustc_abi/src/layout.rs, `BackendRepr::Scalar` and `ScalarPair`. Empty for a type without size.
 *
 *   u32, &T, NonNull<T>, struct Id(u32)   one
 *   &[T], &str, &dyn T, (u8, u32), Option<u64>   two, the first in memory first
 *   [u64; 2], (u8, u8, u8), Option<(u32, u32)>   undefined
 */
export function scalarsOf(shape: Shape, depth = 0): readonly Scalar[] | undefined {
  const { size } = shape;
  if (size === undefined || depth > deepest) return undefined;
  if (size === 0) return [];
  switch (shape.kind) {
    case 'integer':
    case 'bool':
    case 'char':
    case 'enumeration':
    case 'pointer':
      return size <= 8 ? [{ offset: 0, size, float: false }] : undefined;
    case 'float':
      return size <= 8 ? [{ offset: 0, size, float: true }] : undefined;
    case 'slice':
      return pair(word(shape.pointer), word(shape.length));
    case 'dyn':
      return pair(word(shape.pointer), word(shape.vtable));
    case 'struct':
      return ofFields(shape.fields, size, depth);
    case 'enum':
      return ofEnum(shape, size, depth);
    case 'union':
      return isMaybeUninit(shape) ? ofFields(shape.fields, size, depth) : undefined;
    case 'unit':
    case 'array':
    case 'opaque':
      return undefined;
  }
}

/** All members of a C type that have bytes of their own; undefined where members share bytes, or that is not known. */
export function leavesOf(shape: Shape, at = 0, depth = 0): readonly Scalar[] | undefined {
  const { size } = shape;
  if (size === undefined || depth > deepest) return undefined;
  switch (shape.kind) {
    case 'struct':
      return flat(
        shape.fields.map(({ bits, offset, type }) => (bits ? undefined : leavesOf(type(), at + offset, depth + 1))),
      );
    case 'array': {
      const element = shape.element();
      const each = element.size;
      // Two words of numbers may be a vector, which has one register.
      if (!each || size > 8) return undefined;
      return flat(Array.from({ length: size / each }, (_, i) => leavesOf(element, at + i * each, depth + 1)));
    }
    case 'integer':
    case 'bool':
    case 'char':
    case 'enumeration':
    case 'pointer':
    case 'float':
      return [{ offset: at, size, float: shape.kind === 'float' }];
    default:
      return undefined;
  }
}

/** One to four numbers of one size and nothing else (AAPCS64, "Homogeneous Floating-point Aggregate"). */
export function isHomogeneous(leaves: readonly Scalar[]): boolean {
  const size = leaves[0]?.size;
  return leaves.length <= 4 && leaves.every((leaf) => leaf.float && leaf.size === size);
}

function flat(parts: readonly (readonly Scalar[] | undefined)[]): readonly Scalar[] | undefined {
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}

/**
 * Whether a type without scalars ({@link scalarsOf}) is surely a block of bytes. A union may be passed as its members
 * are or not: that depends on attributes which debug info does not say.
 */
export function isSurelyBlock(shape: Shape, depth = 0): boolean {
  if (depth > deepest) return false;
  const sureIn = (fields: readonly FieldShape[]): boolean => {
    const sized = sizedFields(fields, shape.size ?? 0).map((field) => field.type());
    // More than two members are never scalars.
    const isKnown = (type: Shape): boolean =>
      scalarsOf(type, depth + 1) !== undefined || isSurelyBlock(type, depth + 1);
    return sized.length > 2 || sized.every(isKnown);
  };
  switch (shape.kind) {
    case 'array':
      return true;
    case 'struct':
      return sureIn(shape.fields);
    case 'union':
      return isMaybeUninit(shape) && sureIn(shape.fields);
    case 'enum':
      return shape.variants.every((variant) => sureIn([...shape.fields, ...variant.fields()]));
    default:
      return false;
  }
}

/** Passed as what it may hold (`#[repr(transparent)]`). */
function isMaybeUninit({ short }: Pick<StructShape, 'short'>): boolean {
  return /^MaybeUninit<|^MaybeUninit$/.test(short);
}

/** No value of it can be made: `!`, `Infallible`, and what holds one. */
function isUninhabited(shape: Shape, depth = 0): boolean {
  if (depth > deepest) return false;
  const holdsOne = (fields: readonly FieldShape[]): boolean =>
    fields.some((field) => isUninhabited(field.type(), depth + 1));
  if (shape.kind === 'struct') return holdsOne(shape.fields);
  if (shape.kind !== 'enum') return false;
  return shape.variants.every((variant) => holdsOne(variant.fields()));
}

function word(offset: number): Scalar {
  return { offset, size: 8, float: false };
}

function pair(a: Scalar, b: Scalar): readonly Scalar[] {
  return a.offset < b.offset ? [a, b] : [b, a];
}

/** A pair that lies as two scalars alone would: a stricter alignment makes a block of bytes of it. */
function filling(a: Scalar, b: Scalar, size: number): readonly Scalar[] | undefined {
  const [first, second] = a.offset < b.offset ? [a, b] : [b, a];
  const aligned = (offset: number, to: number): number => Math.ceil(offset / to) * to;
  const end = aligned(second.offset + second.size, Math.max(first.size, second.size));
  return first.offset === 0 && second.offset === aligned(first.size, second.size) && end === size
    ? [first, second]
    : undefined;
}

/**
 * The fields that take bytes. A function itself as a value (`iter.map(Slot::new)`) takes none, and debug info describes
 * it as it does a pointer to one. It has no bytes if eight at its offset would be outside, unaligned, or another's.
 */
function sizedFields(fields: readonly FieldShape[], size: number): readonly FieldShape[] {
  const sized = fields.filter((field) => field.type().size !== 0);
  const isOf = (field: FieldShape, offset: number): boolean =>
    !isFunction(field.type()) && field.offset < offset + 8 && offset < field.offset + (field.type().size ?? 0);
  return sized.filter(({ offset, type }) => {
    if (!isFunction(type())) return true;
    return offset + 8 <= size && offset % 8 === 0 && !sized.some((other) => isOf(other, offset));
  });
}

/** A pointer to a function, or a function itself, which takes no bytes. */
export function isFunction(shape: Shape): boolean {
  return shape.kind === 'pointer' && shape.style === 'fn';
}

/** One field that fills the struct gives its own; two scalars make a pair. Fields without size do not count. */
function ofFields(fields: readonly FieldShape[], size: number, depth: number): readonly Scalar[] | undefined {
  const sized = sizedFields(fields, size);
  if (sized.some(({ bits }) => bits !== undefined)) return undefined;
  const parts = sized.map((field) => scalarsOf(field.type(), depth + 1));
  const [first, second] = parts;
  const [a, b] = sized;
  if (!a || !first) return undefined;
  if (sized.length === 1) return a.offset === 0 && a.type().size === size ? first : undefined;
  if (sized.length !== 2 || !b || first.length !== 1 || second?.length !== 1) return undefined;
  const [x, y] = [moved(first[0], a.offset), moved(second[0], b.offset)];
  return x && y && filling(x, y, size);
}

function ofEnum(shape: Shape & { kind: 'enum' }, size: number, depth: number): readonly Scalar[] | undefined {
  const { discriminant, variants } = shape;
  const fieldsOf = (variant: (typeof variants)[number]): FieldShape[] => [
    ...sizedFields([...shape.fields, ...variant.fields()], size),
  ];
  const all = variants.map(fieldsOf);
  const holding = all.filter((fields) => fields.length > 0);
  if (discriminant === undefined) {
    // rustc gives a variant no room that has no bytes and cannot be (rustc_abi/src/layout.rs, `absent`).
    const there = variants.flatMap((variant, index) => {
      const fields = all[index] ?? [];
      const isAbsent = fields.length === 0 && variant.fields().some((field) => isUninhabited(field.type()));
      return isAbsent ? [] : [fields];
    });
    return there.length === 1 && there[0] ? ofFields(there[0], size, depth) : undefined;
  }
  const tag: Scalar = { ...discriminant, float: false };
  if (holding.length === 0) return tag.size === size || tag.offset === 0 ? [tag] : undefined;
  const niche = holding.find((fields) =>
    fields.some(({ offset, type }) => offset < tag.offset + tag.size && tag.offset < offset + (type().size ?? 0)),
  );
  if (niche !== undefined) return holding.length === 1 ? ofFields(niche, size, depth) : undefined;
  let common: Scalar | undefined;
  for (const fields of holding) {
    const [field] = fields;
    const scalars = field && fields.length === 1 ? scalarsOf(field.type(), depth + 1) : undefined;
    const scalar = scalars?.length === 1 ? moved(scalars[0], field?.offset ?? 0) : undefined;
    if (!scalar) return undefined;
    if (common && (common.offset !== scalar.offset || common.size !== scalar.size || common.float !== scalar.float)) {
      return undefined;
    }
    common = scalar;
  }
  return common && filling(tag, common, size);
}

function moved(scalar: Scalar | undefined, by: number): Scalar | undefined {
  return scalar && { ...scalar, offset: scalar.offset + by };
}
