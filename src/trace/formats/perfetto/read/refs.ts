import { type Addr, addr } from '../../../../base/addr.js';
import { madeOnce } from '../../../../base/made-once.js';
import type { AwaitLink, FunctionRef, FutureRef, SampledFrame, StackEntry, StateRef } from '../../../events/events.js';
import { asyncKindOf } from '../../../events/refs.js';
import type { InternedFrame, Place } from './sequence.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const unknown: Place = { file: undefined, line: undefined };

/** What of a Future leaves no mark, because the compiler inlined it. */
export interface Hidden {
  readonly polls?: boolean;
  readonly drops?: boolean;
}

/**
 * Functions, Futures, states and chains by the texts of a trace: one object each, as events have them. The place of a
 * function or a Future that is learnt later is added to the object.
 */
export class Refs {
  /** By name, instance and address. */
  readonly #functions = new Map<string, Map<string, Map<Addr, Writable<FunctionRef>>>>();
  /** By name and instance. */
  readonly #futures = new Map<string, Map<string, Writable<FutureRef>>>();
  readonly #states = new Map<string, StateRef>();
  readonly #chains = new Map<string, readonly AwaitLink[]>();
  readonly #frames = new Map<InternedFrame, SampledFrame>();
  #functionCount = 0;
  #futureCount = 0;

  function(what: Omit<FunctionRef, 'key' | 'file' | 'line'>, place: Place | undefined): FunctionRef {
    const { name, instance, address } = what;
    const instances = madeOnce(this.#functions, name, newMap<string, Map<Addr, Writable<FunctionRef>>>);
    const addresses = madeOnce(instances, instance, newMap<Addr, Writable<FunctionRef>>);
    const found = madeOnce(addresses, address, () => ({ key: this.#functionCount++, ...what, ...unknown }));
    learnPlace(found, place);
    return found;
  }

  frame(interned: InternedFrame): SampledFrame {
    return madeOnce(this.#frames, interned, () => ({ ...interned, instance: interned.name }));
  }

  /** `hides`: what of it leaves no mark. */
  future(name: string, instance: string | undefined, place: Place | undefined, hides: Hidden = {}): FutureRef {
    const instances = madeOnce(this.#futures, name, newMap<string, Writable<FutureRef>>);
    const full = instance ?? name;
    const found = madeOnce(instances, full, (): Writable<FutureRef> => {
      return { key: this.#futureCount++, future: name, instance: full, kind: asyncKindOf(full) ?? 'impl', ...unknown };
    });
    learnPlace(found, place);
    if (hides.polls) found.inlined = true;
    if (hides.drops) found.hidesDrops = true;
    return found;
  }

  /** `Suspend0 at src/work.rs:34`, `Returned`. */
  state(text: string): StateRef {
    return madeOnce(this.#states, text, () => {
      const [name, place] = cutAtPlace(text);
      return { name, ...placeOf(place) };
    });
  }

  /** `a::outer at src/a.rs:3 > a::inner (Unresumed) > b`. */
  chain(text: string): readonly AwaitLink[] {
    return madeOnce(this.#chains, text, () => text.split(' > ').map(linkOf));
  }
}

function newMap<K, V>(): Map<K, V> {
  return new Map();
}

function learnPlace(of: Writable<Place>, place: Place | undefined): void {
  if (place === undefined || of.file !== undefined) return;
  of.file = place.file;
  of.line = place.line;
}

/** A name and the place behind ` at `. Paths may have that word again, names have it not. */
function cutAtPlace(text: string): [name: string, place: string | undefined] {
  const at = text.indexOf(' at ');
  return at < 0 || at + 4 === text.length ? [text, undefined] : [text.slice(0, at), text.slice(at + 4)];
}

/** What it awaits is known by name alone, so the name is given as that of a type. */
function linkOf(text: string): AwaitLink {
  const [atName, place] = cutAtPlace(text);
  const [, inName, state] = /^(.+) \(([^()]*)\)$/s.exec(text) ?? [];
  const base = { future: undefined, address: undefined };
  if (place !== undefined) return { ...base, typeName: atName, state: { name: '', ...placeOf(place) } };
  if (inName !== undefined && state !== undefined)
    return { ...base, typeName: inName, state: { name: state, ...unknown } };
  return { ...base, typeName: text, state: undefined };
}

/** `src/work.rs:34`, `src/work.rs`. */
function placeOf(text: string | undefined): Place {
  if (text === undefined) return unknown;
  const [, file, line] = /^(.*):(\d+)$/s.exec(text) ?? [];
  return file === undefined ? { file: text, line: undefined } : { file, line: Number(line) };
}

/** `work::leaf at src/work.rs:3 < exec::poll_task < ??`. */
export function stackOf(text: string): StackEntry[] {
  return text.split(' < ').map(entryOf);
}

/** `exec::poll_task at src/exec.rs:88`. */
export function entryOf(text: string): StackEntry {
  const [name, place] = cutAtPlace(text);
  return { function: name === '??' ? undefined : name, ...placeOf(place) };
}

/** `0x80412340` behind a name and ` @`, or undefined. */
export function addressOf(text: string | undefined): Addr | undefined {
  return text !== undefined && /^0x[0-9a-f]{1,16}$/.test(text) ? addr(BigInt(text)) : undefined;
}
