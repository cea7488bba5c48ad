// What is below an entry, or below the one that it is an instance of.
import { DW_AT, DW_TAG } from './constants.js';
import type { Die } from './die.js';
import { through } from './names.js';

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
