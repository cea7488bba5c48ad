import type { FutureType } from './types.js';

/**
 * A Rust type for the user: async bodies have their functions' names, paths are cut to their last segment, default
 * allocators are left out. `labkern::futs::Recv<labkern::work::leaf_io::{async_fn_env#0}>` is `Recv<leaf_io>`.
 */
export function shortType(name: string): string {
  // Every run of letters is a match, so that none is scanned twice: names of a damaged file are long.
  return readable(name).replace(/[\w$#{}]+(?:::[\w$#{}]+)*/g, (path) => {
    const parts = asWritten(path.split('::'));
    const last = parts.at(-1) as string;
    // A block or closure is named by its surroundings.
    return last.startsWith('{') ? parts.slice(-2).join('::') : last;
  });
}

/** What embassy's macro makes of `async fn sensor`: a function `__sensor_task`, and in it the body's. */
const TASK_OF_MACRO = /^__(\w+?)_task(?:_inner_function)?$/;

/** A path with the function's name that its author has written, where a macro has made others of it. */
export function asWritten(path: readonly string[]): readonly string[] {
  const names = path.map((part) => TASK_OF_MACRO.exec(part)?.[1] ?? part);
  return names.filter((name, i) => name === path[i] || name !== names[i - 1]);
}

function readable(name: string): string {
  return name
    .replace(/::\{async_(?:fn|closure)_env#\d+\}/g, '')
    .replace(/\{(async_block|closure)_env(#\d+)\}/g, '{$1$2}')
    .replace(/::\{async_fn#\d+\}/g, '')
    .replaceAll(', alloc::alloc::Global', '');
}

/** `impl Future for Pin<P>` and the like only forward polls: the interesting type is their target. */
export function isPointer(future: FutureType): boolean {
  return future.kind === 'impl' && /^(core::pin::Pin<|alloc::boxed::Box<|&mut )/.test(future.instance);
}

/**
 * Names that distinguish Futures: the path; and the generic arguments, if several Futures share the path or it says
 * little.
 */
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
