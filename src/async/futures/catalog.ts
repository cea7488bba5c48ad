import { madeOnce } from '../../base/made-once.js';
import { type Die, DW_AT, qualifiedName, sizeOf } from '../../dwarf/index.js';
import { FutureEntry } from './entry.js';
import type { FutureLookup } from './layout.js';
import type { FutureKind } from './types.js';

/** All Futures of a program. Types are the same if full name and size are equal, whichever unit their DIE is in. */
export class FutureCatalog {
  readonly #lookup: FutureLookup;
  readonly #byKey = new Map<string, FutureEntry>();
  readonly #byType = new Map<number, FutureEntry | undefined>();
  /** Made again when Futures were added since. */
  #byName: { readonly size: number; readonly futures: Map<string, FutureEntry | undefined> } | undefined;
  #sorted: readonly FutureEntry[] | undefined;

  constructor(lookup: FutureLookup) {
    this.#lookup = lookup;
  }

  /** Sorted by name. Asked for when all are added. */
  get all(): readonly FutureEntry[] {
    this.#sorted ??= [...this.#byKey.values()].sort(
      (a, b) => compare(a.future, b.future) || compare(a.instance, b.instance) || a.size - b.size,
    );
    return this.#sorted;
  }

  /** The Future of a type, new or known. */
  add(type: Die, kind: FutureKind): FutureEntry {
    const instance = qualifiedName(type);
    const size = sizeOf(type) ?? 0;
    const key = keyOf(instance, size);
    const future = madeOnce(this.#byKey, key, () => new FutureEntry(this.#lookup, type, kind, instance, size));
    this.#byType.set(type.offset, future);
    return future;
  }

  /** The Future of a type; the same type's DIE in another unit counts too. */
  ofType(type: Die): FutureEntry | undefined {
    if (!this.#byType.has(type.offset)) {
      const name = qualifiedName(type);
      const isDeclared = type.flag(DW_AT.declaration);
      this.#byType.set(type.offset, isDeclared ? this.named(name) : this.#byKey.get(keyOf(name, sizeOf(type) ?? 0)));
    }
    return this.#byType.get(type.offset);
  }

  /** The Future with this full name; undefined if several have it, in different sizes. */
  named(instance: string): FutureEntry | undefined {
    if (this.#byName?.size !== this.#byKey.size) {
      this.#byName = { size: this.#byKey.size, futures: new Map() };
      for (const future of this.#byKey.values()) {
        const { futures } = this.#byName;
        futures.set(future.instance, futures.has(future.instance) ? undefined : future);
      }
    }
    return this.#byName.futures.get(instance);
  }
}

function keyOf(name: string, size: number): string {
  return `${size} ${name}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
