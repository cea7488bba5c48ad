import { type Addr, hex } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { type DebugInfo, DW_AT, demangle, qualifiedName, staticAddress, stripGenerics } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import type { FunctionRef } from '../../../trace/index.js';
import { type Shape, Shapes } from '../../../values/index.js';
import type { TracerContext } from '../kind.js';
import type { LockFunction } from './resolve.js';

/** A lock, as far as it is known. */
export interface KnownLock {
  readonly address: Addr;
  /** Bytes of its object. */
  readonly size: number;
  readonly ref: FunctionRef;
  /** What a glob may match. */
  readonly names: readonly string[];
}

interface Static {
  readonly name: string;
  readonly address: Addr;
  readonly shape: Shape | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

const deepest = 8;
/** Locks that have a name of their own in a trace. */
const mostNames = 4096;

/** Names locks: by the static that one lies in, or by its type. */
export class LockNames {
  readonly #elf: ElfFile;
  readonly #debug: DebugInfo | undefined;
  readonly #shapes: Shapes | undefined;
  readonly #nextKey: () => number;
  readonly #refs = new Map<string, FunctionRef>();
  readonly #locks = new AddressMap<KnownLock>();
  readonly #statics = new AddressMap<Static>();

  constructor({ elf, debug, nextKey }: Pick<TracerContext, 'elf' | 'debug' | 'nextKey'>) {
    this.#elf = elf;
    this.#debug = debug;
    this.#shapes = debug && new Shapes(debug);
    this.#nextKey = nextKey;
  }

  /** The lock at an address that a function is called with. */
  of(address: Addr, { type, probe }: LockFunction): KnownLock {
    const known = this.#locks.get(address);
    if (known && (type === undefined || known.ref.instance.endsWith(type.name))) return known;
    const made = this.#made(address, type, probe.ref);
    this.#locks.set(address, made);
    return made;
  }

  #made(address: Addr, type: LockFunction['type'], by: FunctionRef): KnownLock {
    const holder = this.#staticAt(address);
    const path = holder && this.#pathIn(holder, address, type?.name);
    const name = path ?? (type ? stripGenerics(type.name) : hex(address));
    const at = holder ?? { address: by.address, file: undefined, line: undefined };
    const ref = this.#ref(`lock::${name}`, `lock ${name}: ${type?.name ?? 'unknown'}`, at);
    const names = [name, ...(holder ? [holder.name] : []), ...(type ? [type.name] : []), hex(address), by.name];
    return { address, size: type?.size ?? 8, ref, names: [...new Set(names)] };
  }

  /** So many have a name of their own; the others share the last one. */
  #ref(
    name: string,
    instance: string,
    { address, file, line }: Omit<FunctionRef, 'key' | 'name' | 'instance'>,
  ): FunctionRef {
    const known = this.#refs.get(instance);
    if (known) return known;
    const isFull = this.#refs.size >= mostNames - 1;
    if (isFull && name !== others) return this.#ref(others, 'lock others', { address, file, line });
    const ref = { key: this.#nextKey(), name, instance, address, file, line };
    this.#refs.set(instance, ref);
    return ref;
  }

  #staticAt(address: Addr): Static | undefined {
    const symbol = this.#elf.symbols.at(address);
    if (!symbol || symbol.type === 'function' || symbol.address + BigInt(symbol.size) <= address) return undefined;
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

  /** `CONSOLE`, `proc[3].lock`. */
  #pathIn({ name, address, shape }: Static, at: Addr, type: string | undefined): string {
    const offset = Number(at - address);
    const path = shape && memberAt(shape, offset, type);
    return path === undefined ? `${name}${offset === 0 ? '' : `+${hex(offset)}`}` : `${name}${path}`;
  }
}

const others = 'lock::others';

/** Where in a type one of another name lies, so many bytes from its start: `[3].lock`. Undefined if it is not there. */
function memberAt(shape: Shape, offset: number, type: string | undefined, depth = 0): string | undefined {
  if (offset === 0 && shape.name === type) return '';
  if (depth > deepest) return undefined;
  if (shape.kind === 'array') {
    const element = shape.element();
    if (!element.size) return undefined;
    const index = Math.floor(offset / element.size);
    const inner = memberAt(element, offset - index * element.size, type, depth + 1);
    return inner === undefined ? undefined : `[${index}]${inner}`;
  }
  if (shape.kind !== 'struct') return undefined;
  for (const { name, offset: from, type: of } of shape.fields) {
    const field = of();
    if (offset < from || offset >= from + (field.size ?? 0)) continue;
    const inner = memberAt(field, offset - from, type, depth + 1);
    if (inner !== undefined) return `.${name.replace(/^__/, '')}${inner}`;
  }
  return undefined;
}
