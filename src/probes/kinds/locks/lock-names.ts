import { type Addr, addOffset, hex } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { addTo } from '../../../base/made-once.js';
import { type DebugInfo, DW_AT, demangle, qualifiedName, staticAddress, stripGenerics } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import { type FunctionRef, lockRef } from '../../../trace/index.js';
import { type FieldShape, type Shape, Shapes } from '../../../values/index.js';
import type { TracerContext } from '../kind.js';
import type { LockType } from './resolve.js';

/** A lock, as far as it is known. */
export interface KnownLock {
  readonly address: Addr;
  /** Bytes of its object. */
  readonly size: number;
  readonly ref: FunctionRef;
  readonly type: string | undefined;
  /** What a glob may match, besides the function that takes it. */
  readonly names: readonly string[];
}

interface Static {
  readonly name: string;
  readonly address: Addr;
  readonly shape: Shape | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** Types that are searched for a lock: variants of Futures in Futures are many, and a damaged one may hold itself. */
const mostSteps = 256;
/** Bytes behind a symbol without a size that are taken to be its own. */
const mostBehind = 4096;
/** Locks that have a name of their own in a trace. */
const mostNames = 4096;

/** Names locks: by the static that one lies in, or by its type. */
export class LockNames {
  readonly #elf: ElfFile;
  readonly #debug: DebugInfo | undefined;
  readonly #shapes: Shapes | undefined;
  readonly #nextKey: () => number;
  readonly #refs = new Map<string, FunctionRef>();
  /** One of each type: a lock of another library's type lies at the beginning of what that one wraps. */
  readonly #locks = new AddressMap<KnownLock[]>();
  readonly #statics = new AddressMap<Static>();

  constructor({ elf, debug, nextKey }: Pick<TracerContext, 'elf' | 'debug' | 'nextKey'>) {
    this.#elf = elf;
    this.#debug = debug;
    this.#shapes = debug && new Shapes(debug);
    this.#nextKey = nextKey;
  }

  /**
   * The lock at an address that a function is called with; `by` is that function's. `isPart`: the address is that of a
   * word inside of the lock. Undefined if no lock of that type is there.
   */
  of(address: Addr, type: LockType | undefined, by: Addr, isPart = false): KnownLock | undefined {
    const known = this.#locks.get(address)?.findLast((one) => type === undefined || one.type === type.name);
    if (known) return known;
    const made = this.#made(address, type, by, isPart);
    if (made) addTo(this.#locks, address, made);
    return made;
  }

  #made(at: Addr, type: LockType | undefined, by: Addr, isPart: boolean): KnownLock | undefined {
    const holder = this.#staticAt(at);
    const way = { type: type?.name, steps: 0, isFollowed: holder?.shape !== undefined && type !== undefined };
    const member = holder?.shape && type && memberAt(holder.shape, Number(at - holder.address), way);
    if (isPart && !member && way.isFollowed) return undefined;
    const address = holder && member ? addOffset(holder.address, member.offset) : at;
    const name = holder ? `${holder.name}${member ? member.path : distance(Number(at - holder.address))}` : undefined;
    const shown = name ?? (type ? stripGenerics(type.name) : hex(at));
    const ref = this.#ref(shown, type?.name, by, holder);
    const names = [shown, ...(holder ? [holder.name] : []), ...(type ? [type.name] : []), hex(address)];
    return { address, size: member?.size ?? type?.size ?? 8, ref, type: type?.name, names: [...new Set(names)] };
  }

  /** So many have a name of their own; the others share the last one. */
  #ref(name: string, type: string | undefined, by: Addr, holder?: Static): FunctionRef {
    // Statics of several files may have one name.
    const text = `${name}: ${type} ${holder?.address}`;
    const known = this.#refs.get(text);
    if (known) return known;
    if (this.#refs.size >= mostNames - 1 && name !== others) return this.#ref(others, undefined, by);
    const { address = by, file, line } = holder ?? {};
    const ref = lockRef(name, { key: this.#nextKey(), type, address, file, line });
    this.#refs.set(text, ref);
    return ref;
  }

  #staticAt(address: Addr): Static | undefined {
    const symbol = this.#elf.symbols.at(address);
    if (!symbol || symbol.type === 'function') return undefined;
    // One without a size reaches to the next one, but not further than that.
    if (symbol.address + BigInt(symbol.size || mostBehind) <= address) return undefined;
    const known = this.#statics.get(symbol.address);
    if (known) return known;
    const plain = stripGenerics(demangle(symbol.name, this.#elf.budget));
    const last = plain.slice(plain.lastIndexOf('::') + 1);
    const die = (last === plain ? [plain] : [plain, last])
      .flatMap((each) => this.#debug?.variablesNamed(each) ?? [])
      .find((each) => staticAddress(each) === symbol.address);
    const declared = die && this.#debug?.attempt(die.unit, () => this.#debug?.declarationOf(die));
    const shape = die && this.#debug?.attempt(die.unit, () => this.#shapes?.of(die.follow(DW_AT.type)));
    const name = die ? qualifiedName(die) : plain;
    const found = { name, address: symbol.address, shape, file: declared?.file, line: declared?.line };
    this.#statics.set(symbol.address, found);
    return found;
  }
}

const others = 'others';

/** What lies in a static: where, from its start, how long it is, and how the program says it. */
interface Member {
  readonly offset: number;
  readonly size: number | undefined;
  readonly path: string;
}

function distance(offset: number): string {
  return offset === 0 ? '' : `+${hex(offset)}`;
}

/** What a static's type is searched for. */
interface Way {
  readonly type: string | undefined;
  steps: number;
  /** Debug info describes all types on it. */
  isFollowed: boolean;
}

/**
 * The member of a type that has the name, around an offset: `proc[3].lock`, of whichever variant. What it alone is
 * wrapped in as a lock stands for it: the `Mutex` around a `RawMutex`. One whose semaphore has a lock does not, nor one
 * that has more than a lock of other data. Undefined if none is found.
 */
function memberAt(shape: Shape, offset: number, way: Way): Member | undefined {
  const own = { offset: 0, size: shape.size, path: '' };
  if (shape.name === way.type) return own;
  if (saysNothing(shape) || ++way.steps > mostSteps) way.isFollowed = false;
  if (way.steps > mostSteps) return undefined;
  for (const part of partsAt(shape, offset)) {
    const inner = memberAt(part.shape, offset - part.offset, way);
    if (!inner) continue;
    const isAlone = way.type?.includes('<') ? inner.size === shape.size : locksIn(shape, way) === 1;
    if (inner.path === '' && isAlone && isWrapper.test(stripGenerics(shape.name))) return own;
    return { ...inner, offset: inner.offset + part.offset, path: `${part.path}${inner.path}` };
  }
  return undefined;
}

const isWrapper = /(Mutex|Lock)$/;

/** How many of its fields are such a lock, or wrap one. */
function locksIn(shape: Shape, way: Way): number {
  const isOne = (field: Shape): boolean =>
    field.name === way.type ||
    (isWrapper.test(stripGenerics(field.name)) && ++way.steps <= mostSteps && locksIn(field, way) > 0);
  return fieldsOf(shape).filter(({ type }) => isOne(type())).length;
}

/** It is not known, or memory for anything: bytes, which Rust may say are not set. */
function saysNothing(shape: Shape): boolean {
  const element = shape.kind === 'array' ? shape.element() : undefined;
  return shape.kind === 'opaque' || (element?.size === 1 && (element.kind === 'integer' || element.kind === 'union'));
}

function partsAt(shape: Shape, at: number): readonly (Omit<Member, 'size'> & { readonly shape: Shape })[] {
  if (shape.kind === 'array') {
    const element = shape.element();
    const index = element.size ? Math.floor(at / element.size) : 0;
    return [{ offset: index * (element.size ?? 0), path: `[${index}]`, shape: element }];
  }
  return fieldsOf(shape).flatMap(({ name, offset, type }) => {
    const field = type();
    if (at < offset || at >= offset + (field.size ?? Number.POSITIVE_INFINITY)) return [];
    return [{ offset, path: name && `.${name.replace(/^__/, '')}`, shape: field }];
  });
}

function fieldsOf(shape: Shape): readonly FieldShape[] {
  if (shape.kind === 'struct' || shape.kind === 'union') return shape.fields;
  return shape.kind === 'enum' ? [...shape.fields, ...shape.variants.flatMap(({ fields }) => fields())] : [];
}
