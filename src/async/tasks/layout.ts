import { littleEndian } from '../../base/little-endian.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  layoutOf,
  type Member,
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

/** The members of a type, also of its variants: of an `Option` of a pointer it lies at the same place. */
export function membersOf(type: Die): (Member & { readonly type: Die })[] {
  if (type.tag !== DW_TAG.structure_type && type.tag !== DW_TAG.union_type) return [];
  const { members, variantPart } = layoutOf(type);
  return [...members, ...(variantPart?.variants.flatMap((variant) => variant.members) ?? [])].flatMap((member) =>
    member.type ? [{ ...member, type: member.type }] : [],
  );
}

/** The first part of a type, at any depth of members, of which `find` says what it is. */
function firstPart(type: Die, find: (type: Die) => Part | undefined, depth = 0): Part | undefined {
  const own = find(type);
  if (own) return own;
  if (depth > MAX_DEPTH || type.tag !== DW_TAG.structure_type) return undefined;
  for (const member of membersOf(type)) {
    const inner = firstPart(member.type, find, depth + 1);
    if (inner) return { ...inner, offset: inner.offset + member.offset };
  }
  return undefined;
}

/** The first part whose type has this name (without generic arguments and modules). */
export function partCalled(type: Die, name: string): Part | undefined {
  return firstPart(type, (part) =>
    stripGenerics(nameOf(part) ?? '') === name ? { offset: 0, size: sizeOf(part) ?? 0, type: part } : undefined,
  );
}

/** The first pointer in a type, of an `Arc`, a `NonNull`, an `Option` of these, and what it leads to. */
export function firstPointer(type: Die | undefined): Part | undefined {
  return type && firstPart(type, pointerOfItself);
}

function pointerOfItself(type: Die): Part | undefined {
  const target = type.tag === DW_TAG.pointer_type ? type.follow(DW_AT.type) : undefined;
  return target && { offset: 0, size: sizeOf(type) ?? 0, type: target };
}

/** An unsigned number of 1 to 8 bytes, little-endian. */
export function numberAt(bytes: Uint8Array, { offset, size }: Pick<Part, 'offset' | 'size'>): bigint {
  return littleEndian(bytes, offset, Math.min(size, 8));
}
