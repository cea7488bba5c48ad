import type { FutureKind } from './refs.js';

/**
 * What a type of the compiler's is the Future of: `work::leaf::{async_fn_env#0}<u8>` of an `async fn`. The type's own
 * name says that, which is the last segment of its path; undefined of all others, also `Fuse<leaf::{async_fn_env#0}>`.
 */
export function asyncKindOf(type: string): Exclude<FutureKind, 'impl'> | undefined {
  // A reference or a pointer to such a type is no such type.
  const found = /^(?![&*])(?:.*::)?\{(async_fn|async_block|async_closure)_env#\d+\}$/s.exec(withoutArguments(type));
  return found?.[1] as Exclude<FutureKind, 'impl'> | undefined;
}

/** Without the generic arguments at its end. */
function withoutArguments(type: string): string {
  if (!type.endsWith('>')) return type;
  let depth = 0;
  for (let at = type.length - 1; at >= 0; at--) {
    // The `>` of `fn() -> u8` closes nothing.
    if (type[at] === '>' && type[at - 1] !== '-') depth++;
    else if (type[at] === '<' && --depth === 0) return type.slice(0, at);
  }
  return type;
}
