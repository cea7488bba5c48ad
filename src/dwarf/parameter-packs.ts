import { DW_TAG } from './constants.js';
import type { Die } from './die.js';

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
