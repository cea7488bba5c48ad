import {
  type Die,
  DW_AT,
  DW_TAG,
  layoutOf,
  littleEndian,
  nameOf,
  sizeOf,
  stripGenerics,
  typeName,
} from '../../dwarf/index.js';

/** A part of a type: how far from its start, and what it is. */
export interface Part {
  readonly offset: number;
  readonly size: number;
  readonly type: Die;
}

/** Wrappers nest so deep at most: a descriptor lies ten below a socket of tokio's. */
const MAX_DEPTH = 12;

/**
 * The member that a path of names leads to (`core.task_id`), as the program's own debug info has it.
 * `missing` is given the first name that is not there.
 */
export function memberAt(type: Die, path: string, missing: (what: string) => void = () => {}): Part | undefined {
  let at: Part = { offset: 0, size: sizeOf(type) ?? 0, type };
  for (const name of path.split('.')) {
    const member = layoutOf(at.type).members.find((each) => each.name === name);
    if (member?.type === undefined) {
      // Whatever the type is generic over: said once, not for each of its instances.
      missing(`\`${stripGenerics(typeName(at.type))}\` has no member \`${name}\` in this program's debug info`);
      return undefined;
    }
    at = { offset: at.offset + member.offset, size: sizeOf(member.type) ?? 0, type: member.type };
  }
  return at;
}

/** The first part, at any depth of members, whose type has this name (without generic arguments and modules). */
export function partCalled(type: Die, name: string, depth = 0): Part | undefined {
  if (baseName(type) === name) return { offset: 0, size: sizeOf(type) ?? 0, type };
  if (depth > MAX_DEPTH || type.tag !== DW_TAG.structure_type) return undefined;
  const { members, variantPart } = layoutOf(type);
  for (const member of [...members, ...(variantPart?.variants.flatMap((variant) => variant.members) ?? [])]) {
    const inner = member.type && partCalled(member.type, name, depth + 1);
    if (inner) return { ...inner, offset: inner.offset + member.offset };
  }
  return undefined;
}

function baseName(type: Die): string {
  return stripGenerics(nameOf(type) ?? '');
}

/** An unsigned number of 1 to 8 bytes, little-endian. */
export function numberAt(bytes: Uint8Array, { offset, size }: Pick<Part, 'offset' | 'size'>): bigint {
  return littleEndian(bytes, offset, Math.min(size, 8));
}

/** The first pointer in a type, through members and variants: of an `Arc`, a `NonNull`, an `Option` of these. */
export function firstPointer(type: Die | undefined, depth = 0): Part | undefined {
  if (type === undefined || depth > MAX_DEPTH) return undefined;
  const target = type.tag === DW_TAG.pointer_type ? type.follow(DW_AT.type) : undefined;
  if (target) return { offset: 0, size: sizeOf(type) ?? 0, type: target };
  if (type.tag !== DW_TAG.structure_type) return undefined;
  const { members, variantPart } = layoutOf(type);
  for (const member of [...members, ...(variantPart?.variants.flatMap((variant) => variant.members) ?? [])]) {
    const inner = firstPointer(member.type, depth + 1);
    if (inner) return { ...inner, offset: inner.offset + member.offset };
  }
  return undefined;
}
