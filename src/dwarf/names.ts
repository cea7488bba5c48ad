// What an entry says, or the one that it is an instance of: names, types, what is below it.
import { DW_AT, DW_TAG, tags } from './constants.js';
import type { Die } from './die.js';

/** Deeper than any real nesting of namespaces; a damaged file may nest without end. */
const MAX_DEPTH = 128;
const MAX_HOPS = 8;

/**
 * A DIE's own name. An out-of-line or inlined instance has none: its abstract_origin or specification refers to the
 * entry with the name. rustc writes names with their generic arguments.
 */
export function nameOf(die: Die): string | undefined {
  return through(die, (d) => d.name);
}

/** The mangled name of a function. */
export function linkageNameOf(die: Die): string | undefined {
  return through(die, (d) => d.linkageName);
}

/** The entry that an instance is an instance of: follows abstract_origin and specification to the end. */
export function originOf(die: Die): Die {
  return through(die, (d) => (next(d) === undefined ? d : undefined)) ?? die;
}

/** The first value found in the DIE, or in one that it is an instance of. */
export function through<T>(die: Die, read: (die: Die) => T | undefined): T | undefined {
  let at: Die | undefined = die;
  for (let hops = 0; at !== undefined && hops < MAX_HOPS; hops++) {
    const found = read(at);
    if (found !== undefined) return found;
    at = next(at);
  }
  return undefined;
}

function next(die: Die): Die | undefined {
  return die.follow(DW_AT.abstract_origin) ?? die.follow(DW_AT.specification);
}

/** The names of the namespaces, types and functions around a DIE, outermost first, and its own name last. */
export function pathOf(die: Die): string[] {
  const home = originOf(die);
  const path = [nameOf(home) ?? '?'];
  if (home.unit.isFlat) return path;
  let at: Die | undefined = home;
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    at = at.unit.debug.indexOf(at.unit).scopeOf(at.offset);
    if (at === undefined || UNITS.has(at.tag)) break;
    path.push(nameOf(at) ?? '?');
  }
  return path.reverse();
}

/** `core::option::Option<u64>`: a type's or function's name with its namespaces, as DWARF spells it. */
export function qualifiedName(die: Die): string {
  // Pointers, arrays and base types belong to no namespace, and rustc spells their names in full.
  return pathOf(die).join('::');
}

const UNITS = tags('compile_unit', 'partial_unit', 'type_unit', 'skeleton_unit');

/**
 * A Rust path without generic arguments: `a::F<T>::b::<U>` is `a::F::b`. The angle brackets of a qualified path stay:
 * `<a::D<T> as b::R<U>>::read` is `<a::D as b::R>::read`.
 */
export function stripGenerics(name: string): string {
  if (!name.includes('<') && !name.includes('>')) return name;
  // In pieces, because a test of the end of a text that grows letter by letter copies the text each time.
  const kept: string[] = [];
  let from = 0;
  let depth = 0;
  let qualified = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name.charCodeAt(i);
    if (c === LESS) {
      if (depth === 0 && startsPath(name, i)) qualified++;
      else if (depth++ === 0) {
        const end = i - from >= 2 && name.startsWith('::', i - 2) ? i - 2 : i;
        kept.push(name.slice(from, end));
      }
    } else if (c === GREATER && name.charCodeAt(i - 1) !== DASH) {
      if (depth > 0) {
        if (--depth === 0) from = i + 1;
      } else if (qualified > 0) qualified--;
    }
  }
  if (depth === 0) kept.push(name.slice(from));
  return kept.join('');
}

const LESS = 0x3c;
const GREATER = 0x3e;
const DASH = 0x2d;

/** Whether a `<` begins a qualified path: at the start, or behind what no generic arguments follow. */
function startsPath(name: string, at: number): boolean {
  return at === 0 || ' <([&'.includes(name.charAt(at - 1));
}

/** The type of a variable, of a parameter, or of what a function returns. */
export function typeOf(die: Die): Die | undefined {
  return through(die, (at) => at.follow(DW_AT.type));
}

/** The parameters that a function's own entry lists. */
export function parametersOf(die: Die): Die[] {
  return [...die.children()].filter(({ tag }) => tag === DW_TAG.formal_parameter);
}

/** The types that a generic type or function was made with, by the names of its parameters, in their order. */
export function genericsOf(die: Die): ReadonlyMap<string, Die> {
  const found = through(die, (at) => {
    const types = new Map<string, Die>();
    for (const child of at.children()) {
      const type = child.tag === DW_TAG.template_type_parameter ? child.follow(DW_AT.type) : undefined;
      if (type) types.set(child.name ?? '', type);
    }
    return types.size > 0 ? types : undefined;
  });
  return found ?? new Map();
}

/**
 * The children of a function or scope. In gcc's debug info a C++ parameter pack (`Args... args`) is an entry around its
 * parameters.
 */
export function* unpackedChildren(die: Die): Generator<Die> {
  for (const child of die.children()) {
    if (child.tag === DW_TAG.GNU_formal_parameter_pack) yield* child.children();
    else yield child;
  }
}
