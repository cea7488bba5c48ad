import type { FutureType } from './types.js';

/**
 * A Rust type for people: the compiler's names for async bodies as their functions, paths cut to their last segment, default
 * allocators left out. `labkern::futs::Recv<labkern::work::leaf_io::{async_fn_env#0}>` is `Recv<leaf_io>`.
 */
export function shortType(name: string): string {
  // Every run of letters is a match, so that none is gone over twice: names of a damaged file are long.
  return readable(name).replace(/[\w$#{}]+(?:::[\w$#{}]+)*/g, (path) => {
    const parts = path.split('::');
    const last = parts.at(-1) as string;
    // A block or closure is told by what stands around it.
    return last.startsWith('{') ? parts.slice(-2).join('::') : last;
  });
}

function readable(name: string): string {
  return name
    .replace(/::\{async_(?:fn|closure)_env#\d+\}/g, '')
    .replace(/\{(async_block|closure)_env(#\d+)\}/g, '{$1$2}')
    .replace(/::\{async_fn#\d+\}/g, '')
    .replaceAll(', alloc::alloc::Global', '');
}

/** `impl Future for Pin<P>` and its like pass polls on: of interest is what they point to. */
export function isPointer(future: FutureType): boolean {
  return future.kind === 'impl' && /^(core::pin::Pin<|alloc::boxed::Box<|&mut )/.test(future.instance);
}

/** Names that tell Futures apart: the path, and where several share it or it says little, the instance's generic arguments. */
export class FutureNames {
  readonly #uses = new Map<string, number>();

  constructor(all: readonly FutureType[]) {
    for (const { future } of all) this.#uses.set(future, (this.#uses.get(future) ?? 0) + 1);
  }

  of(future: FutureType): string {
    if (future.instance.startsWith('&')) return shortType(future.instance);
    if ((this.#uses.get(future.future) ?? 0) < 2 && !isPointer(future)) return future.future;
    return `${future.future}${genericsOf(future.instance)}`;
  }

  /** The same, cut to the last segment of its path. */
  short(future: FutureType): string {
    return shortType(this.of(future));
  }
}

/** The generic arguments of an instance, shortened; of a method also those of what it is a method of. */
function genericsOf(instance: string): string {
  const arguments_: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < instance.length; i++) {
    const c = instance[i];
    if (c === '<' && depth++ === 0) start = i;
    else if (c === '>' && instance[i - 1] !== '-' && --depth === 0) {
      arguments_.push(shortType(instance.slice(start, i + 1)));
    }
  }
  return arguments_.join('');
}
