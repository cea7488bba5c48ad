// Types and their layout: DWARF 5, chapter 5. Sizes, names, members with their offsets, and variant parts (section
// 5.7.10), which is how rustc describes enums and the state machines of async code:
//
//   structure_type {
//     variant_part (discr -> member) { member (the discriminant, artificial), variant (discr_value) { member } ... }
//   }
//
// A variant without discr_value and discr_list is the default one: the value of a niche that no other variant claims.
import { DW_AT, DW_DSC, DW_TAG, tags } from './constants.js';
import type { Die } from './die.js';
import { lebEnd, ulebAt } from './form-sizes.js';
import { nameOf, qualifiedName } from './names.js';
import { DW_OP } from './op-codes.js';

export interface Member {
  readonly name: string | undefined;
  /** Bytes from the start of the type; of a bit-field, the byte that its lowest bit is in. */
  readonly offset: number;
  /** Of a bit-field: its lowest bit, counted from the lowest of the byte at `offset`, and its width. */
  readonly bits: { readonly offset: number; readonly size: number } | undefined;
  readonly type: Die | undefined;
  readonly die: Die;
}

/**
 * One alternative of a variant part. `values` is undefined for the default variant; both ends of a range are
 * included.
 */
export interface Variant {
  readonly values: readonly { readonly low: bigint; readonly high: bigint }[] | undefined;
  readonly members: readonly Member[];
}

export interface VariantPart {
  /** Undefined if there is a single variant and nothing to distinguish. */
  readonly discriminant: { readonly offset: number; readonly size: number } | undefined;
  readonly variants: readonly Variant[];
}

export interface Layout {
  readonly size: number;
  readonly align: number | undefined;
  readonly members: readonly Member[];
  readonly variantPart: VariantPart | undefined;
}

const MAX_DEPTH = 32;

/** Bytes of a value of the type; undefined if DWARF does not say (a declaration, an unsized type, a cycle). */
export function sizeOf(type: Die | undefined, depth = 0): number | undefined {
  if (type === undefined || depth > MAX_DEPTH) return undefined;
  const size = type.number(DW_AT.byte_size);
  if (size !== undefined) return size;
  switch (type.tag) {
    case DW_TAG.pointer_type:
    case DW_TAG.reference_type:
    case DW_TAG.rvalue_reference_type:
      return 8;
    case DW_TAG.array_type: {
      const element = sizeOf(type.follow(DW_AT.type), depth + 1);
      const count = elementCount(type);
      return element === undefined || count === undefined ? undefined : element * count;
    }
    default:
      return isAlias(type) || type.tag === DW_TAG.enumeration_type
        ? sizeOf(type.follow(DW_AT.type), depth + 1)
        : undefined;
  }
}

const ALIASES = tags('typedef', 'const_type', 'volatile_type', 'restrict_type', 'atomic_type', 'immutable_type');

/** Another name of a type, or a qualifier. */
export function isAlias({ tag }: Die): boolean {
  return ALIASES.has(tag);
}

/** The number of elements of an array, all dimensions multiplied; undefined where it is open. */
export function elementCount(array: Die): number | undefined {
  let total = 1;
  for (const count of dimensionsOf(array)) {
    if (count === undefined) return undefined;
    total *= count;
  }
  return total;
}

/** The number of elements of each dimension of an array, the outermost first; undefined where it is open. */
export function dimensionsOf(array: Die): (number | undefined)[] {
  const dimensions: (number | undefined)[] = [];
  for (const child of array.children()) {
    if (child.tag !== DW_TAG.subrange_type) continue;
    // Of an array whose length varies it is an expression, or another entry: no number.
    const upper = child.number(DW_AT.upper_bound);
    const isOpen = upper === undefined || upper === 2 ** 64;
    dimensions.push(
      child.number(DW_AT.count) ?? (isOpen ? undefined : upper - (child.number(DW_AT.lower_bound) ?? 0) + 1),
    );
  }
  return dimensions;
}

/** A type as its language writes it, with namespaces. Names of types without their own name are composed. */
export function typeName(type: Die | undefined, depth = 0): string {
  if (type === undefined) return '()';
  if (depth > MAX_DEPTH) return '...';
  if (nameOf(type) !== undefined) return qualifiedName(type);
  const inner = (): string => typeName(type.follow(DW_AT.type), depth + 1);
  switch (type.tag) {
    case DW_TAG.pointer_type:
      return `*${inner()}`;
    case DW_TAG.reference_type:
    case DW_TAG.rvalue_reference_type:
      return `&${inner()}`;
    case DW_TAG.array_type:
      return dimensionsOf(type).reduceRight<string>(
        (element, count) => (count === undefined ? `[${element}]` : `[${element}; ${count}]`),
        inner(),
      );
    case DW_TAG.const_type:
      return `const ${inner()}`;
    case DW_TAG.volatile_type:
      return `volatile ${inner()}`;
    case DW_TAG.subroutine_type:
      return 'fn';
    default:
      return '{unnamed}';
  }
}

/** The members of a struct, union or enum with its variant part, if it has one. */
export function layoutOf(type: Die): Layout {
  const members: Member[] = [];
  let variantPart: VariantPart | undefined;
  for (const child of type.children()) {
    // In C++ a class that it derives from lies in it as a member does, and a static member is only declared there.
    const isBase = child.tag === DW_TAG.inheritance && !child.has(DW_AT.virtuality);
    if (isBase || (child.tag === DW_TAG.member && !child.flag(DW_AT.declaration))) members.push(memberOf(child));
    else if (child.tag === DW_TAG.variant_part) variantPart ??= readVariantPart(child);
  }
  return { size: sizeOf(type) ?? 0, align: alignmentOf(type), members, variantPart };
}

/** What values of a type are aligned to; undefined if it does not say, or says 0 as only a damaged file does. */
export function alignmentOf(type: Die): number | undefined {
  return type.number(DW_AT.alignment) || undefined;
}

function memberOf(die: Die): Member {
  const type = die.follow(DW_AT.type);
  const name = die.tag === DW_TAG.inheritance && type ? nameOf(type) : die.name;
  return { name, ...placeOf(die), type, die };
}

// DWARF 4 and 5 count a bit-field's bits from the start of the type. Older producers count from the highest bit of
// the unit that has it.
function placeOf(die: Die): Pick<Member, 'offset' | 'bits'> {
  const offset = die.number(DW_AT.data_member_location) ?? plusOffset(die.block(DW_AT.data_member_location));
  const size = die.number(DW_AT.bit_size);
  if (size === undefined) return { offset, bits: undefined };
  const old = die.number(DW_AT.bit_offset);
  let first = die.number(DW_AT.data_bit_offset) ?? 0;
  if (old !== undefined) {
    const unit = die.number(DW_AT.byte_size) ?? sizeOf(die.follow(DW_AT.type)) ?? 0;
    first = offset * 8 + unit * 8 - old - size;
  } else first += offset * 8;
  return { offset: Math.floor(first / 8), bits: { offset: first & 7, size } };
}

// DWARF 2 and 3 write an offset as the expression DW_OP.plus_uconst.
function plusOffset(expression: Uint8Array | undefined): number {
  return expression !== undefined && expression[0] === DW_OP.plus_uconst && expression.length > 1
    ? ulebAt(expression, 1)
    : 0;
}

function readVariantPart(part: Die): VariantPart {
  const wanted = part.reference(DW_AT.discr);
  const variants: Variant[] = [];
  let discriminant: VariantPart['discriminant'];
  for (const child of part.children()) {
    if (child.tag === DW_TAG.member && child.offset === wanted) {
      const size = sizeOf(child.follow(DW_AT.type));
      if (size !== undefined && size > 0 && size <= 16) {
        discriminant = { offset: child.number(DW_AT.data_member_location) ?? 0, size };
      }
    } else if (child.tag === DW_TAG.variant) {
      const members = [...child.children()].filter((d) => d.tag === DW_TAG.member).map(memberOf);
      variants.push({ values: variantValues(child, discriminant?.size ?? 8), members });
    }
  }
  return { discriminant, variants };
}

// Values are compared as unsigned numbers of the discriminant's width, however the producer wrote their sign.
function variantValues(variant: Die, size: number): Variant['values'] {
  const wrap = (value: bigint): bigint => BigInt.asUintN(size * 8, value);
  const single = variant.big(DW_AT.discr_value);
  if (single !== undefined) return [{ low: wrap(single), high: wrap(single) }];
  const list = variant.block(DW_AT.discr_list);
  if (list === undefined) return undefined;
  const values: { low: bigint; high: bigint }[] = [];
  for (let at = 0; at < list.length; ) {
    const kind = list[at];
    const low = wrap(BigInt(ulebAt(list, at + 1)));
    at = lebEnd(list, at + 1);
    if (kind === DW_DSC.range) {
      values.push({ low, high: wrap(BigInt(ulebAt(list, at))) });
      at = lebEnd(list, at);
    } else values.push({ low, high: low });
  }
  return values;
}

/** The variant that a discriminant's value (read as an unsigned number) selects. */
export function selectVariant<V extends Pick<Variant, 'values'>>(variants: readonly V[], value: bigint): V | undefined {
  return (
    variants.find((v) => v.values?.some((r) => value >= r.low && value <= r.high)) ??
    variants.find((v) => v.values === undefined)
  );
}

/** The name of a variant: that of its member's struct (`Suspend0`), or the member's own if that is no struct. */
export function variantName(variant: Variant): string | undefined {
  const member = variant.members[0];
  return (member?.type?.tag === DW_TAG.structure_type ? nameOf(member.type) : undefined) ?? member?.name;
}
