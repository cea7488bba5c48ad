import type { Addr } from '../base/addr.js';
import { madeOnce } from '../base/made-once.js';
import { editDistance } from '../base/search.js';
import { type DebugInfo, type Die, DW_AT, DW_TAG, qualifiedName, staticCode, stripGenerics } from '../dwarf/index.js';
import type { CodeAddress } from '../elf/index.js';

/** A type or static that a name refers to. */
export interface NamedDie {
  /** With namespaces and generic arguments. */
  readonly name: string;
  readonly die: Die;
}

/** Resolves names of a program, as users write them. */
export class ProgramNames {
  readonly #debug: DebugInfo;
  #vtables: Map<CodeAddress, number> | undefined;
  readonly #statics = new Map<string, readonly NamedDie[]>();

  constructor(debug: DebugInfo) {
    this.#debug = debug;
  }

  /**
   * The types that a name refers to, ordered by name. The name is the whole path (`labkern::exec::Task`) or its end
   * (`exec::Task`, `Task`), with generic arguments or without. A type whose whole path is the name is the only
   * result. The same type in several units counts once.
   */
  types(name: string): NamedDie[] {
    const wanted = cleanName(name);
    return sorted(
      wanted,
      this.#debug.typesNamed(wanted).map((die) => ({ name: qualifiedName(die), die })),
    );
  }

  /** The same for statics, and C's globals; those that the linker discarded do not count. */
  statics(name: string): readonly NamedDie[] {
    return madeOnce(this.#statics, name, () => {
      const byAddress = new Map<CodeAddress, NamedDie>();
      for (const die of this.#debug.variablesNamed(cleanName(name))) {
        const code = staticCode(die);
        if (!this.#debug.elf.isLoaded(code) || byAddress.has(code)) continue;
        byAddress.set(code, { name: qualifiedName(die), die });
      }
      return sorted(cleanName(name), [...byAddress.values()]);
    });
  }

  /** The paths of all statics, and C's globals, that lie in memory, each once. Walks all of the debug info. */
  staticPaths(): readonly string[] {
    const paths = new Set<string>();
    this.#debug.walk((cursor) => {
      if (cursor.tag !== DW_TAG.variable || cursor.name === undefined || cursor.name.includes('{')) return;
      const die = cursor.die();
      if (this.#debug.elf.isLoaded(staticCode(die))) paths.add(qualifiedName(die));
    });
    return [...paths];
  }

  /** Paths of types whose names resemble one that does not exist, the most alike first. */
  typesLike(name: string, count = 5): string[] {
    const wanted = lastPart(stripGenerics(cleanName(name))).toLowerCase();
    const best = new Map<string, { readonly distance: number; readonly offset: number }>();
    this.#debug.walk((cursor) => {
      if (!isNominal(cursor.tag)) return;
      const own = cursor.name;
      if (own === undefined || /^[^\w]/.test(own)) return;
      const base = stripGenerics(own);
      if (best.has(base)) return;
      const distance = unlikeness(lastPart(base).toLowerCase(), wanted);
      if (distance <= Math.min(3, Math.ceil(wanted.length / 2))) best.set(base, { distance, offset: cursor.offset });
    });
    const order = [...best].sort(
      (a, b) => a[1].distance - b[1].distance || a[0].length - b[0].length || (a[0] < b[0] ? -1 : 1),
    );
    return order.slice(0, count).map(([base, { offset }]) => {
      const die = this.#debug.die(offset);
      return die === undefined ? base : stripGenerics(qualifiedName(die));
    });
  }

  /** The type behind a vtable of `dyn Trait`. */
  concrete(vtable: Addr): Die | undefined {
    this.#vtables ??= this.#findVtables();
    const offset = this.#vtables.get(this.#debug.elf.codes.toCode(vtable));
    return offset === undefined ? undefined : this.#debug.die(offset);
  }

  #findVtables(): Map<CodeAddress, number> {
    const found = new Map<CodeAddress, number>();
    this.#debug.walk((cursor) => {
      // rustc puts vtables right below the unit.
      if (cursor.tag !== DW_TAG.variable || cursor.depth !== 1 || cursor.name?.endsWith('::{vtable}') !== true) return;
      const code = staticCode(cursor.die());
      const type = cursor.follow(DW_AT.type)?.reference(DW_AT.containing_type);
      if (type !== undefined && this.#debug.elf.isLoaded(code) && !found.has(code)) found.set(code, type);
    });
    return found;
  }
}

function sorted(name: string, found: readonly NamedDie[]): NamedDie[] {
  const exact = found.filter((f) => f.name === name);
  const kept = exact.length > 0 ? exact : found;
  return kept.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.die.offset - b.die.offset));
}

function isNominal(tag: number): boolean {
  switch (tag) {
    case DW_TAG.structure_type:
    case DW_TAG.class_type:
    case DW_TAG.union_type:
    case DW_TAG.enumeration_type:
    case DW_TAG.typedef:
      return true;
    default:
      return false;
  }
}

/** `struct task_struct` as C says it, and spaces around. */
function cleanName(name: string): string {
  return name
    .trim()
    .replace(/^(struct|enum|union)\s+/, '')
    .replace(/^::/, '');
}

function lastPart(path: string): string {
  const at = path.lastIndexOf('::');
  return at < 0 ? path : path.slice(at + 2);
}

/** How many letters differ; a name that contains the other counts as one. More than 3 is 4. */
function unlikeness(a: string, b: string): number {
  if (b.length >= 3 && a.includes(b)) return 1;
  return Math.abs(a.length - b.length) > 3 ? 4 : Math.min(editDistance(a, b), 4);
}
