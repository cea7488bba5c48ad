import type { DebugInfo } from './debug-info.js';
import type { Die } from './die.js';
import { functionName, splitPath } from './function-names.js';
import { hashText, KIND, KIND_BITS, KIND_MASK, NameRows, scanNames } from './name-scan.js';
import { nameOf, pathOf, stripGenerics } from './names.js';

/** In columns, and while they are sorted. */
const BYTES_OF_NAME = 24;

export type NamedKind = keyof typeof KIND;

/**
 * Names -> entries, over all units: a hash table of DIE offsets in typed arrays, 10 to 12 bytes an entry. It comes
 * from one pass over each unit. Names themselves are not kept: a lookup reads them from the entries that it finds.
 */
export class NameIndex {
  readonly #debug: DebugInfo;
  readonly #mask: number;
  /** The rows of one slot stand side by side: slot i has rows start[i] to start[i + 1], exclusive. */
  readonly #start: Uint32Array;
  readonly #hash: Uint32Array;
  readonly #offset: Uint32Array;

  constructor(debug: DebugInfo) {
    this.#debug = debug;
    const [start = new Uint32Array(2), hash = new Uint32Array(), offset = new Uint32Array()] = debug.columns(
      'names',
      () => tableOf(debug),
    );
    debug.elf.budget.hold(hash.length * BYTES_OF_NAME, 'the names in .debug_info');
    this.#mask = start.length - 2;
    this.#start = start;
    this.#hash = hash;
    this.#offset = offset;
  }

  /** How many entries it leads to, and the bytes that it takes. */
  get size(): { readonly entries: number; readonly bytes: number } {
    const bytes = this.#start.byteLength + this.#hash.byteLength + this.#offset.byteLength;
    return { entries: this.#offset.length, bytes };
  }

  /**
   * All entries of a kind with a name, in the order of the file: every unit that uses a type has its own. The name is
   * the last part of a path or more of it: `Disk`, `work::Disk`, `labkern::work::Disk`. For a method the path is its
   * type's or its trait's. Without generic arguments it finds all instances.
   */
  *find(name: string, kind: NamedKind): Generator<Die> {
    const path = splitPath(name);
    yield* this.#find(path, kind);
    // `<T as Trait>::{vtable}` is one name, not a path.
    if (path.length > 1) yield* this.#find([name], kind);
  }

  *#find(path: readonly string[], kind: NamedKind): Generator<Die> {
    const leaf = path[path.length - 1] as string;
    const wanted = ((hashText(leaf) & ~KIND_MASK) | KIND[kind]) >>> 0;
    const slot = (wanted >>> KIND_BITS) & this.#mask;
    const end = this.#start[slot + 1] as number;
    for (let row = this.#start[slot] as number; row < end; row++) {
      if (this.#hash[row] !== wanted) continue;
      const offset = this.#offset[row] as number;
      const unit = this.#debug.unitAt(offset);
      const found = unit && this.#debug.attempt(unit, () => this.#check(offset, path, kind));
      if (found !== undefined) yield found;
    }
  }

  #check(offset: number, path: readonly string[], kind: NamedKind): Die | undefined {
    const die = this.#debug.die(offset);
    const name = die && nameOf(die);
    if (die === undefined || name === undefined || !isCalled(name, path[path.length - 1] as string)) return undefined;
    if (path.length === 1 || endsWith(pathOf(die), path)) return die;
    // An impl block has no name of its own: the mangled name says whose it is.
    return kind === 'function' && methodPaths(functionName(die)).some((p) => endsWith(p, path)) ? die : undefined;
  }
}

/** The first row of each slot and behind the last one; the hash and the offset of each row. */
function tableOf(debug: DebugInfo): [Uint32Array, Uint32Array, Uint32Array] {
  const rows = new NameRows();
  for (const unit of debug.units) debug.attempt(unit, () => scanNames(unit, rows));
  const hashes = rows.hashes.rows();
  const offsets = rows.offsets.rows();
  const count = hashes.length;
  const slots = 2 ** Math.floor(Math.log2(count + 1));
  const start = new Uint32Array(slots + 1);
  const hash = new Uint32Array(count);
  const offset = new Uint32Array(count);
  const slotOf = (row: number): number => ((hashes[row] as number) >>> KIND_BITS) & (slots - 1);
  // A counting sort, from the last row to the first, so that a slot's rows keep their order.
  for (let i = 0; i < count; i++) (start[slotOf(i)] as number)++;
  for (let i = 0, sum = 0; i <= slots; i++) {
    sum += start[i] as number;
    start[i] = sum;
  }
  for (let i = count - 1; i >= 0; i--) {
    const slot = slotOf(i);
    const at = (start[slot] as number) - 1;
    start[slot] = at;
    hash[at] = hashes[i] as number;
    offset[at] = offsets[i] as number;
  }
  return [start, hash, offset];
}

/** `<a::D as b::R>::read` is also `a::D::read` and `b::R::read`. */
function methodPaths(name: string): string[][] {
  const parts = splitPath(name);
  const [owner = '', ...rest] = parts;
  const middle = owner.lastIndexOf(' as ');
  if (middle < 2 || !owner.startsWith('<') || !owner.endsWith('>')) return [parts];
  const [type, trait] = [owner.slice(1, middle), owner.slice(middle + ' as '.length, -1)];
  return [parts, [...splitPath(type), ...rest], [...splitPath(trait), ...rest]];
}

function isCalled(name: string, wanted: string): boolean {
  return name === wanted || (name.includes('<') && stripGenerics(name) === wanted);
}

function endsWith(path: readonly string[], wanted: readonly string[]): boolean {
  const skipped = path.length - wanted.length;
  return skipped >= 0 && wanted.every((part, i) => isCalled(path[skipped + i] as string, part));
}
