import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  elementCount,
  genericsOf,
  layoutOf,
  type Member,
  qualifiedName,
  sizeOf,
  typeName,
  type VariantPart,
  variantName,
} from '../../dwarf/index.js';
import { atFirst, type Found, fieldName, HERE, hopped, named, repeated, shifted } from './held-place.js';
import { type FutureOfType, pointerOf } from './pointers.js';
import type { FutureType, Guard, HopTarget } from './types.js';

/**
 * Limits beyond the nesting of wrappers and the number of Futures in any real Future. A damaged file may exceed both.
 */
const MAX_DEPTH = 24;
const MAX_FOUND = 1024;
/** Limit on types that were searched and Futures that were found; real programs have some thousands. */
const MAX_WORK = 500_000;
/** Pointers in a row: `&mut (MaybeDone<Pin<Box<F>>>, ..)` has two. */
const MAX_HOPS = 4;

const NOTHING: readonly Found[] = [];

/**
 * Finds the Futures in types: in place at any depth, behind `Box`, `&mut` and `Pin` of these, in `Vec<F>` and
 * `Box<[F]>`, and in `FuturesUnordered<F>`. A found Future is not searched itself, because what it holds belongs to
 * it.
 */
export class HeldFutures {
  readonly #debug: DebugInfo;
  readonly #futureOf: FutureOfType;
  readonly #known = new Map<number, readonly Found[]>();
  readonly #looking = new Set<number>();
  /**
   * How often a type led back to itself, or too deep. Then the Futures found so far are not all that the types on the
   * way hold.
   */
  #turns = 0;
  #workLeft = MAX_WORK;
  #cut = false;

  constructor(debug: DebugInfo, futureOf: FutureOfType) {
    this.#debug = debug;
    this.#futureOf = futureOf;
  }

  /** The Futures that a value of the type is or holds. */
  in(type: Die | undefined, depth = 0): readonly Found[] {
    if (type === undefined) return NOTHING;
    const known = this.#known.get(type.offset);
    if (known !== undefined) return known;
    if (depth > MAX_DEPTH || this.#looking.has(type.offset)) {
      this.#turns++;
      return NOTHING;
    }
    if (this.#workLeft <= 0) return this.#giveUp('types hold each other too often', NOTHING);
    const turns = this.#turns;
    this.#looking.add(type.offset);
    try {
      const found = this.#bounded(this.#look(type, depth));
      this.#workLeft -= 1 + found.length;
      if (this.#turns === turns || this.#looking.size === 1) this.#known.set(type.offset, found);
      return found;
    } finally {
      this.#looking.delete(type.offset);
    }
  }

  /** Something that is awaited although its poll is not known. */
  unknown(type: Die | undefined): readonly Found[] {
    return [inPlace(type, undefined)];
  }

  /** What the members of a Future's own type hold. */
  inMembersOf(type: Die, depth = 0): readonly Found[] {
    const { members, variantPart } = layoutOf(type);
    const found = members.flatMap((member) => this.#inMember(member, depth));
    if (variantPart !== undefined) found.push(...this.#inVariants(variantPart, depth));
    // A union's members share their bytes, and nothing says which one is valid.
    return this.#bounded(type.tag === DW_TAG.union_type ? found.map((one) => ({ ...one, maybe: true })) : found);
  }

  #look(type: Die, depth: number): readonly Found[] {
    switch (type.tag) {
      case DW_TAG.array_type:
        return this.#inArray(type, depth);
      case DW_TAG.pointer_type:
        return /^(&mut |alloc::boxed::Box<)/.test(type.name ?? '') ? this.behind(type, depth) : NOTHING;
      case DW_TAG.union_type:
        return this.inMembersOf(type, depth);
      case DW_TAG.structure_type:
        return this.#inStruct(type, depth);
      default:
        return NOTHING;
    }
  }

  #inStruct(type: Die, depth: number): readonly Found[] {
    const name = type.name ?? '';
    if (/^(Pin<|alloc::boxed::Box<|&mut )/.test(name)) {
      const behind = this.behind(type, depth);
      if (behind.length > 0) return behind;
    }
    const future = this.#futureOf(type);
    if (future !== undefined) return [inPlace(type, future)];
    if (name.startsWith('Vec<')) return this.#inVec(type, depth);
    if (name.startsWith('FuturesUnordered<')) return this.#inUnordered(type, depth);
    return this.inMembersOf(type, depth);
  }

  #inMember(member: Member, depth: number): Found[] {
    const name = fieldName(member.name);
    return this.in(member.type, depth + 1).map((found) =>
      named(
        name,
        atFirst(found, (place) => shifted(place, member.offset)),
      ),
    );
  }

  #inVariants(part: VariantPart, depth: number): Found[] {
    return part.variants.flatMap((variant) => {
      const found = variant.members.flatMap((member) => this.#inPayload(member, depth));
      if (found.length === 0 || part.discriminant === undefined) return found;
      const others = part.variants.flatMap((other) => other.values ?? []);
      const guard: Guard = {
        ...part.discriminant,
        values: variant.values ?? others,
        within: variant.values !== undefined,
        repeats: 0,
      };
      const name = variantName(variant) ?? '?';
      return found.map((one) =>
        named(
          name,
          atFirst(one, (place) => ({ ...place, guards: [guard, ...place.guards] })),
        ),
      );
    });
  }

  /** A variant's one member is a struct of its fields, named like the variant. */
  #inPayload(member: Member, depth: number): Found[] {
    return this.in(member.type, depth + 1).map((found) => atFirst(found, (place) => shifted(place, member.offset)));
  }

  #inArray(type: Die, depth: number): Found[] {
    const element = type.follow(DW_AT.type);
    const count = elementCount(type);
    const stride = sizeOf(element);
    if (count === undefined || count < 1 || stride === undefined) return [];
    return this.in(element, depth + 1).map((found) =>
      named(
        '[*]',
        atFirst(found, (place) => repeated(place, count, stride)),
      ),
    );
  }

  /** The target type of a `Box`, `&mut` or `Pin` of these. */
  behind(type: Die, depth = 0): readonly Found[] {
    const words = pointerOf(type);
    if (words === undefined) return NOTHING;
    const { pointer, vtable, length, target } = words;
    if (length !== undefined) return this.#slice(target, pointer, length, depth);
    const borrowed = /^(core::pin::Pin<|Pin<)?&mut /.test(type.name ?? '');
    if (vtable === undefined) return hopped(this.in(target, depth + 1), pointer, { kind: 'one' }, borrowed);
    const name = typeName(target);
    if (outputOfDyn(name) === undefined) return NOTHING;
    return hopped([{ ...inPlace(undefined, undefined), typeName: name }], pointer, { kind: 'one' }, borrowed).map(
      (one) => ({ ...one, vtable: vtable - pointer }),
    );
  }

  #slice(element: Die | undefined, pointer: number, length: number, depth: number): readonly Found[] {
    const stride = sizeOf(element);
    if (stride === undefined || stride === 0) return NOTHING;
    return hopped(this.in(element, depth + 1), pointer, { kind: 'slice', length: length - pointer, stride }).map(
      (one) => named('[*]', one),
    );
  }

  /**
   * `Vec<T> { buf: RawVec<T> { .. pointer .. }, len }`: the pointer may be to bytes, so T comes from the type's
   * parameter.
   */
  #inVec(type: Die, depth: number): readonly Found[] {
    if (!qualifiedName(type).startsWith('alloc::vec::Vec<')) return this.inMembersOf(type, depth);
    const { members } = layoutOf(type);
    const length = members.find((m) => m.name === 'len');
    const buffer = members.find((m) => m.name === 'buf');
    const pointer = buffer?.type && firstPointer(buffer.type);
    if (length === undefined || buffer === undefined || pointer === undefined) return NOTHING;
    return this.#slice(genericsOf(type).get('T'), buffer.offset + pointer.offset, length.offset, depth);
  }

  /**
   * futures-util: `FuturesUnordered<F> { head_all: AtomicPtr<Task<F>>, .. }`, where
   * `Task<F> { future: UnsafeCell<Option<F>>, next_all: UnsafeCell<*const Task<F>>, .. }` links all of them.
   */
  #inUnordered(type: Die, depth: number): readonly Found[] {
    const head = layoutOf(type).members.find((m) => m.name === 'head_all');
    const pointer = head?.type && firstPointer(head.type);
    const task = pointer?.target;
    if (head === undefined || pointer === undefined || task === undefined) return NOTHING;
    const { members } = layoutOf(task);
    const next = members.find((m) => m.name === 'next_all');
    const future = members.find((m) => m.name === 'future');
    if (next === undefined || future === undefined) return NOTHING;
    const to: HopTarget = { kind: 'list', next: next.offset };
    return hopped(this.#inMember(future, depth + 1), head.offset + pointer.offset, to);
  }

  #bounded(found: readonly Found[]): readonly Found[] {
    const kept = found.filter((one) => one.hops.length <= MAX_HOPS);
    if (kept.length <= MAX_FOUND) return kept;
    return this.#giveUp(`a type holds more than ${MAX_FOUND} Futures`, kept.slice(0, MAX_FOUND));
  }

  #giveUp(why: string, found: readonly Found[]): readonly Found[] {
    if (!this.#cut) this.#debug.warn(`not all Futures that Futures hold are known: ${why}`);
    this.#cut = true;
    return found;
  }
}

/** The T of `dyn core::future::future::Future<Output=T>`, with or without further bounds; undefined for other types. */
export function outputOfDyn(name: string): string | undefined {
  const key = 'core::future::future::Future<Output=';
  const start = name.indexOf(key);
  if (start < 0 || !/^\(?dyn /.test(name)) return undefined;
  let depth = 0;
  for (let i = start + key.length; i < name.length; i++) {
    const c = name[i];
    if (c === '<') depth++;
    else if (c === '>' && name[i - 1] !== '-' && depth-- === 0) return name.slice(start + key.length, i);
  }
  return undefined;
}

function inPlace(type: Die | undefined, future: FutureType | undefined): Found {
  return {
    ...HERE,
    path: '',
    size: sizeOf(type) ?? 0,
    typeName: future?.instance ?? typeName(type),
    future,
    hops: [],
    vtable: undefined,
    maybe: false,
    borrowed: false,
  };
}

/** The first pointer in a struct, through its first members: `NonNull`, `Unique`, `AtomicPtr`, `UnsafeCell`. */
function firstPointer(type: Die): { readonly offset: number; readonly target: Die | undefined } | undefined {
  let at: Die | undefined = type;
  let offset = 0;
  for (let depth = 0; at !== undefined && depth < MAX_DEPTH; depth++) {
    if (at.tag === DW_TAG.pointer_type) return { offset, target: at.follow(DW_AT.type) };
    const { members }: { members: readonly Member[] } = layoutOf(at);
    const next: Member | undefined =
      members.find((m) => m.name === 'ptr' || m.name === 'inner' || m.name === 'pointer') ??
      members.find((m) => sizeOf(m.type) !== 0);
    offset += next?.offset ?? 0;
    at = next?.type;
  }
  return undefined;
}
