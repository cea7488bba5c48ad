// What Futures are called, for people.
import { sharedBy } from '../../text/index.js';
import { withoutArguments } from './refs.js';

/** A Future, as far as its name goes; of a row too. */
export interface Named {
  readonly future: string;
  readonly instance: string;
}

/** `core::pin::Pin<P>`, `alloc::boxed::Box<F, A>`, `&mut F`: they only forward polls. */
const POINTER = /^(?:core::pin::Pin<|alloc::boxed::Box<|&(?:mut )?)/;

/** The same without their arguments. */
const POINTER_PATH = /(?:core::pin::Pin|alloc::boxed::Box|^&.*)$/s;

/**
 * What a Future is called. One that only forwards polls is called by what it points to: `work::leaf` for
 * `core::pin::Pin<alloc::boxed::Box<work::leaf::{async_fn_env#0}, alloc::alloc::Global>>`.
 */
export function calledOf({ future, instance }: Named): string {
  const target = targetOf(instance);
  if (target === instance) return future;
  const path = target.startsWith('dyn ') ? target : withoutArguments(target);
  return future.replace(POINTER_PATH, () => readable(path).replaceAll(/::\{async_(?:fn|closure)#\d+\}/g, ''));
}

/** Whether it only forwards polls. */
export function isPointer({ instance }: Pick<Named, 'instance'>): boolean {
  return targetOf(instance) !== instance;
}

function targetOf(instance: string): string {
  let type = instance;
  for (;;) {
    const [pointer] = POINTER.exec(type) ?? [];
    // Of a function's instance the arguments are no end.
    if (pointer === undefined || (pointer.endsWith('<') && `${withoutArguments(type)}<` !== pointer)) return type;
    type = pointer.endsWith('<') ? firstArgument(type.slice(pointer.length)) : type.slice(pointer.length);
  }
}

/** Up to the comma or the `>` that ends a first generic argument. */
function firstArgument(text: string): string {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] as string;
    // The `>` of `fn() -> u8` closes nothing.
    if (letter === '>' && text[at - 1] === '-') continue;
    if (depth === 0 && (letter === ',' || letter === '>')) return text.slice(0, at);
    if ('<(['.includes(letter)) depth++;
    else if ('>)]'.includes(letter)) depth--;
  }
  return text;
}

/** Names for Futures that are shown together: generic arguments where they tell instances apart. */
export function futureNames(all: Iterable<Named>): (one: Named) => string {
  return namesBy(all, ({ instance }) => targetOf(instance));
}

/** The same where one that only forwards polls stands in a line of its own. */
export function linesNames(all: Iterable<Named>): (one: Named) => string {
  return namesBy(all, ({ instance }) => instance);
}

function namesBy(all: Iterable<Named>, typeOf: (one: Named) => string): (one: Named) => string {
  const isShared = sharedBy(all, calledOf, typeOf);
  return (one) => (isShared(one) ? readable(typeOf(one)) : calledOf(one));
}

/** An instance's type as in its source: `work::add<u8, work::leaf>`, without the compiler's names for states. */
export function readable(instance: string): string {
  return instance
    .replaceAll('::{async_fn_env#0}', '')
    .replaceAll(/\{(async_\w+)_env#/g, '{$1#')
    .replaceAll(', alloc::alloc::Global>', '>');
}
