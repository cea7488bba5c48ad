import {
  type Die,
  DW_AT,
  DW_TAG,
  layoutOf,
  type Member,
  sizeOf,
  typeName,
  type Variant,
  variantName,
} from '../dwarf/index.js';

export interface DescribedMember {
  readonly name: string;
  /** Bytes from the start of the type. */
  readonly offset: number;
  /** Undefined if it is not known. */
  readonly size: number | undefined;
  readonly align: number | undefined;
  readonly type: string;
  /** For a bit-field: its lowest bit, counted from the lowest of the byte at `offset`, and its width. */
  readonly bits: { readonly offset: number; readonly size: number } | undefined;
}

/** Unused bytes between members, or behind the last one. */
interface Hole {
  readonly offset: number;
  readonly size: number;
}

interface DescribedVariant {
  readonly name: string;
  /** The discriminant's values, both ends included; undefined for the variant of all others. */
  readonly values: readonly { readonly low: bigint; readonly high: bigint }[] | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly members: readonly DescribedMember[];
  readonly holes: readonly Hole[];
}

/** A type's layout, members ordered by their places. */
export interface DescribedType {
  readonly name: string;
  /** `alias`: a typedef of `target`; `other`: a pointer, array or base type. */
  readonly kind: 'struct' | 'union' | 'enum' | 'alias' | 'other';
  readonly size: number | undefined;
  readonly align: number | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly target: string | undefined;
  readonly members: readonly DescribedMember[];
  readonly holes: readonly Hole[];
  /** Of an enum with data. */
  readonly discriminant:
    | { readonly offset: number; readonly size: number; readonly type: string | undefined }
    | undefined;
  readonly variants: readonly DescribedVariant[];
  /** Of an enum without data. */
  readonly enumerators: readonly { readonly name: string; readonly value: bigint }[];
}

/** The parts of a type, for the user. Throws `DWARF_DAMAGED`. */
export function describeType(die: Die, name: string): DescribedType {
  const target = die.tag === DW_TAG.typedef ? die.follow(DW_AT.type) : undefined;
  // C's `typedef struct { .. } name`: the only name that it has.
  if (target !== undefined && target.tag !== DW_TAG.typedef && target.name === undefined && target.hasChildren) {
    return describeType(target, name);
  }
  const { debug } = die.unit;
  const layout = layoutOf(die);
  const size = die.flag(DW_AT.declaration) ? undefined : sizeOf(die);
  const members = layout.members.map(describeMember);
  const part = layout.variantPart;
  const base = {
    name,
    size,
    align: layout.align,
    ...debug.declarationOf(die),
    target: undefined,
    members: members.toSorted(byPlace),
    holes: [] as Hole[],
    discriminant: undefined,
    variants: [] as DescribedVariant[],
    enumerators: [] as DescribedType['enumerators'],
  };
  switch (die.tag) {
    case DW_TAG.union_type:
      return { ...base, kind: 'union' };
    case DW_TAG.enumeration_type:
      return { ...base, kind: 'enum', enumerators: enumeratorsOf(die) };
    case DW_TAG.typedef:
      return { ...base, kind: 'alias', target: typeName(target) };
    case DW_TAG.structure_type:
    case DW_TAG.class_type: {
      if (part === undefined) return { ...base, kind: 'struct', holes: holesOf(members, size) };
      const discriminant = part.discriminant && { ...part.discriminant, type: discriminantType(die) };
      const around: Extent[] = discriminant === undefined ? members : [...members, discriminant];
      const variants = part.variants.map((v) => describeVariant(v, around, size));
      return { ...base, kind: 'enum', discriminant, variants };
    }
    default: {
      const stands = die.tag === DW_TAG.base_type ? undefined : die.follow(DW_AT.type);
      return { ...base, kind: 'other', target: stands && typeName(stands) };
    }
  }
}

function describeMember(member: Member): DescribedMember {
  const { type } = member;
  return {
    name: member.name ?? '',
    offset: member.offset,
    size: type === undefined ? 0 : sizeOf(type),
    align: member.die.number(DW_AT.alignment),
    type: typeName(type),
    bits: member.bits,
  };
}

function describeVariant(variant: Variant, around: readonly Extent[], size: number | undefined): DescribedVariant {
  const [only] = variant.members;
  const inside = only?.type;
  // rustc wraps what a variant holds in a struct of the variant's name.
  const wrapped = variant.members.length === 1 && inside?.tag === DW_TAG.structure_type;
  const members = wrapped
    ? layoutOf(inside).members.map((m) => {
        const described = describeMember(m);
        return { ...described, offset: described.offset + (only?.offset ?? 0) };
      })
    : variant.members.map(describeMember);
  return {
    name: variantName(variant) ?? '?',
    values: variant.values,
    ...(only === undefined ? { file: undefined, line: undefined } : only.die.unit.debug.declarationOf(only.die)),
    members: members.toSorted(byPlace),
    holes: holesOf([...around, ...members], size),
  };
}

function discriminantType(die: Die): string | undefined {
  for (const child of die.children()) {
    if (child.tag === DW_TAG.variant_part) {
      const member = child.follow(DW_AT.discr);
      return member && typeName(member.follow(DW_AT.type));
    }
  }
  return undefined;
}

function enumeratorsOf(die: Die): DescribedType['enumerators'] {
  const found: { name: string; value: bigint }[] = [];
  for (const child of die.children()) {
    const value = child.tag === DW_TAG.enumerator ? child.big(DW_AT.const_value) : undefined;
    if (value !== undefined) found.push({ name: child.name ?? '?', value });
  }
  return found;
}

interface Extent {
  readonly offset: number;
  readonly size: number | undefined;
  readonly bits?: DescribedMember['bits'];
}

function byPlace(a: DescribedMember, b: DescribedMember): number {
  return a.offset - b.offset || (a.bits?.offset ?? 0) - (b.bits?.offset ?? 0) || (a.size ?? 0) - (b.size ?? 0);
}

/** The parts of `size` bytes that no extent covers; nothing if an extent's size is not known. */
function holesOf(extents: readonly Extent[], size: number | undefined): Hole[] {
  if (size === undefined || extents.some((e) => e.size === undefined)) return [];
  const sorted = extents.filter((e) => e.size !== 0).toSorted((a, b) => a.offset - b.offset);
  const holes: Hole[] = [];
  let end = 0;
  for (const { offset, size: bytes = 0, bits } of sorted) {
    if (offset > end) holes.push({ offset: end, size: offset - end });
    const length = bits === undefined ? bytes : Math.ceil((bits.offset + bits.size) / 8);
    end = Math.max(end, offset + length);
  }
  if (end < size) holes.push({ offset: end, size: size - end });
  return holes;
}
