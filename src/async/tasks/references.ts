import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  elementCount,
  genericsOf,
  layoutOf,
  type Member,
  nameOf,
  selectVariant,
  sizeOf,
  stripGenerics,
  typeName,
  type VariantPart,
  variantName,
} from '../../dwarf/index.js';
import { firstPointer, memberAt, membersOf, numberAt } from './layout.js';
import { queuedMessages } from './queued-messages.js';

/** A pointer in a value that lives. */
export interface Reference {
  /** The types around it, the outermost first, without generic arguments: `tokio::sync::mutex::MutexGuard`. */
  readonly within: readonly string[];
  /** What it points to; behind an `Arc` or `Rc` the value, not its counts. */
  readonly target: Pointed;
  /** Where the pointer lies. */
  readonly at: Addr;
  /** Memory does not show whether it is still there: it may have been moved out. */
  readonly maybe: boolean;
}

export interface Pointed {
  readonly type: Die | undefined;
  readonly address: Addr;
  readonly size: number;
}

/** The receiver's side of a channel. */
const QUEUE = 'tokio::sync::mpsc::chan::Rx';
const MAX_DEPTH = 24;
const MAX_ELEMENTS = 1024;
const MAX_BYTES = 1 << 24;

interface Block {
  readonly bytes: Uint8Array;
  readonly start: Addr;
}

interface Walk {
  readonly within: readonly string[];
  readonly maybe: boolean;
  readonly depth: number;
  readonly found: Reference[];
}

/**
 * Finds the pointers that values of some types have. These may lie in the locals of a Future's present state, enums,
 * tuples, arrays, `Box`, `Vec`, and messages that were not received. What a `&` points to belongs to somebody else, and
 * is not searched.
 */
export class References {
  readonly #memory: MemoryReader;
  readonly #wanted: ReadonlySet<string>;
  /** Whether a type may hold a value of those wanted, by the type's offset. */
  readonly #leads = new Map<number, boolean>();
  /** The type of those wanted behind a pointer that a type has within, by the type's offset. */
  readonly #reached = new Map<number, string | undefined>();

  /** Of `&NAME` every pointer is wanted that leads to such a value, or to what this is a part of. */
  constructor(memory: MemoryReader, wanted: ReadonlySet<string>) {
    this.#memory = memory;
    this.#wanted = wanted;
  }

  /** Those in the value of a type at an address. */
  async in(type: Die, at: Addr): Promise<readonly Reference[]> {
    const found: Reference[] = [];
    await this.#behind(type, at, { within: [], maybe: false, depth: 0, found });
    const places = new Map<Addr, Reference>();
    for (const each of found) if (places.get(each.at)?.maybe !== false) places.set(each.at, each);
    return [...places.values()];
  }

  async #behind(type: Die, at: Addr, walk: Walk): Promise<void> {
    const size = sizeOf(type) ?? 0;
    if (size === 0 || size > MAX_BYTES || !this.#mayHold(type)) return;
    const bytes = await this.#memory.read(at, size);
    if (bytes) await this.#visit(type, { bytes, start: at }, 0, walk);
  }

  async #visit(type: Die, block: Block, offset: number, walk: Walk): Promise<void> {
    const isInside = walk.within.some((name) => this.#wanted.has(name));
    if (walk.depth > MAX_DEPTH || (!isInside && !this.#mayHold(type))) return;
    const inner = { ...walk, depth: walk.depth + 1 };
    if (type.tag === DW_TAG.pointer_type) return this.#pointer(type, block, offset, inner, isInside);
    if (type.tag === DW_TAG.array_type) return this.#array(type, block, offset, inner);
    if (type.tag !== DW_TAG.structure_type && type.tag !== DW_TAG.union_type) return;
    const name = stripGenerics(typeName(type));
    if (name === 'alloc::vec::Vec' && !isInside) return this.#vector(type, block, offset, inner);
    const { members, variantPart } = layoutOf(type);
    const here: Walk = {
      ...inner,
      within: [...walk.within, name],
      maybe: walk.maybe || type.tag === DW_TAG.union_type,
    };
    for (const member of members) await this.#member(member, block, offset, here);
    if (name === QUEUE) await this.#queue(type, block, offset, inner);
    if (variantPart) await this.#variants(type, variantPart, block, offset, here);
  }

  async #member(member: Member, block: Block, offset: number, walk: Walk): Promise<void> {
    if (member.type) await this.#visit(member.type, block, offset + member.offset, walk);
  }

  async #variants(type: Die, part: VariantPart, block: Block, offset: number, walk: Walk): Promise<void> {
    const { discriminant } = part;
    const value = discriminant
      ? numberAt(block.bytes, { offset: offset + discriminant.offset, size: discriminant.size })
      : 0n;
    const variant = selectVariant(part.variants, value);
    const [payload] = variant?.members ?? [];
    if (variant === undefined || payload?.type === undefined) return;
    const isFuture = /\{async_(?:fn|block|closure)_env#\d+\}/.test(nameOf(type) ?? '');
    if (!isFuture) return this.#member(payload, block, offset, walk);
    for (const { member, moved } of kept(type, part, variantName(variant) ?? '', payload.type))
      await this.#member(member, block, offset + payload.offset, { ...walk, maybe: walk.maybe || moved });
  }

  async #pointer(type: Die, { bytes, start }: Block, offset: number, walk: Walk, isInside: boolean): Promise<void> {
    if (offset + 8 > bytes.length) return;
    const address = addr(numberAt(bytes, { offset, size: 8 }));
    if (address === 0n) return;
    const target = type.follow(DW_AT.type);
    const reached = this.#reaches(target);
    if (isInside || reached !== undefined) {
      const { maybe, found } = walk;
      const within = reached === undefined ? walk.within : [...walk.within, reached];
      found.push({ within, target: behindCounts(target, address), at: addOffset(start, offset), maybe });
    } else if (target && nameOf(type)?.startsWith('alloc::boxed::Box<')) await this.#behind(target, address, walk);
  }

  async #array(type: Die, block: Block, offset: number, walk: Walk): Promise<void> {
    const element = type.follow(DW_AT.type);
    const stride = sizeOf(element) ?? 0;
    const count = Math.min(elementCount(type) ?? 0, MAX_ELEMENTS);
    if (element && stride > 0)
      for (let i = 0; i < count; i++) await this.#visit(element, block, offset + i * stride, walk);
  }

  async #vector(type: Die, { bytes }: Block, offset: number, walk: Walk): Promise<void> {
    const element = genericsOf(type).get('T');
    const pointer = memberAt(type, 'buf.inner.ptr') ?? memberAt(type, 'buf.ptr');
    const length = memberAt(type, 'len');
    const stride = sizeOf(element) ?? 0;
    if (!element || !pointer || !length || stride === 0) return;
    const at = addr(numberAt(bytes, { offset: offset + pointer.offset, size: 8 }));
    const count = Number(numberAt(bytes, { ...length, offset: offset + length.offset }));
    for (let i = 0; i < Math.min(count, MAX_ELEMENTS); i++)
      await this.#behind(element, addOffset(at, i * stride), walk);
  }

  /** Whoever receives owns what was sent. */
  async #queue(type: Die, { bytes }: Block, offset: number, walk: Walk): Promise<void> {
    const message = genericsOf(type).get('T');
    const pointer = firstPointer(type);
    if (!message || !pointer || !this.#mayHold(message)) return;
    const chan = addr(numberAt(bytes, { offset: offset + pointer.offset, size: 8 }));
    const pointed = behindCounts(pointer.type, chan);
    if (pointed.type === undefined) return;
    const places = await queuedMessages(this.#memory, { type: pointed.type, address: pointed.address });
    for (const place of places) await this.#behind(message, place, { ...walk, within: [] });
  }

  /** `&NAME` if a pointer to this type leads to a value of that name, as it is or as a part. */
  #reaches(type: Die | undefined, depth = 0): string | undefined {
    if (type === undefined || depth > MAX_DEPTH || type.tag !== DW_TAG.structure_type) return undefined;
    const own = `&${stripGenerics(typeName(type))}`;
    if (this.#wanted.has(own)) return own;
    if (this.#reached.has(type.offset)) return this.#reached.get(type.offset);
    this.#reached.set(type.offset, undefined);
    let found: string | undefined;
    for (const member of layoutOf(type).members) found ??= this.#reaches(member.type, depth + 1);
    this.#reached.set(type.offset, found);
    return found;
  }

  #mayHold(type: Die, depth = 0): boolean {
    const known = this.#leads.get(type.offset);
    if (known !== undefined) return known;
    if (depth > MAX_DEPTH) return false;
    // A type that leads back to itself holds no more than what is found on the way.
    this.#leads.set(type.offset, false);
    const found = this.#looksInto(type, depth);
    this.#leads.set(type.offset, found);
    return found;
  }

  #looksInto(type: Die, depth: number): boolean {
    const into = (each: Die | undefined): boolean => each !== undefined && this.#mayHold(each, depth + 1);
    if (type.tag === DW_TAG.array_type) return into(type.follow(DW_AT.type));
    if (type.tag === DW_TAG.pointer_type) {
      const target = type.follow(DW_AT.type);
      if (this.#reaches(target) !== undefined) return true;
      return (nameOf(type)?.startsWith('alloc::boxed::Box<') ?? false) && into(target);
    }
    if (type.tag !== DW_TAG.structure_type && type.tag !== DW_TAG.union_type) return false;
    const name = stripGenerics(typeName(type));
    if (this.#wanted.has(name)) return true;
    if (name === 'alloc::vec::Vec') return into(genericsOf(type).get('T'));
    if (name === QUEUE && into(genericsOf(type).get('T'))) return true;
    return membersOf(type).some((member) => into(member.type));
  }
}

/** What a state of a compiler-made Future keeps, and what it has perhaps moved elsewhere. */
function kept(
  type: Die,
  part: VariantPart,
  state: string,
  payload: Die,
): readonly { readonly member: Member; readonly moved: boolean }[] {
  if (state === 'Returned' || state === 'Panicked') return [];
  const { members } = layoutOf(payload);
  if (state === 'Unresumed') return members.map((member) => ({ member, moved: false }));
  // The arguments are the members of Unresumed, which every other state lists once more at its end.
  const first = part.variants.find((variant) => variantName(variant) === 'Unresumed')?.members[0]?.type;
  const captured = first ? layoutOf(first).members : [];
  const own = members.length - captured.length;
  const isCaptured = (member: Member, i: number): boolean => i >= own && captured[i - own]?.name === member.name;
  // An `async fn` moves its arguments to variables when it begins. A block uses what it has captured where it lies.
  const isFunction = nameOf(type)?.startsWith('{async_fn_env') ?? false;
  return members.flatMap((member, i) => {
    const moved = isCaptured(member, i);
    return moved && isFunction ? [] : [{ member, moved }];
  });
}

/** The value behind a pointer, without the counts of an `Arc` or `Rc`. */
export function behindCounts(type: Die | undefined, address: Addr): Pointed {
  const name = type && stripGenerics(typeName(type));
  const isCounted = name === 'alloc::sync::ArcInner' || name === 'alloc::rc::RcInner' || name === 'alloc::rc::RcBox';
  const value = isCounted && type ? (memberAt(type, 'data') ?? memberAt(type, 'value')) : undefined;
  return value
    ? { type: value.type, address: addOffset(address, value.offset), size: value.size }
    : { type, address, size: (type && sizeOf(type)) ?? 0 };
}
