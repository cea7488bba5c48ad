import { type Addr, addr } from '../../../../base/addr.js';
import { madeOnce } from '../../../../base/made-once.js';
import type {
  AwaitLink,
  FunctionRef,
  FutureKind,
  FutureRef,
  SampledFrame,
  StackEntry,
  StateRef,
} from '../../../events/events.js';
import type { InternedFrame, Place } from './sequence.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const unknown: Place = { file: undefined, line: undefined };

/** What of a Future leaves no mark, because the compiler inlined it. */
export interface Hidden {
  readonly polls?: boolean;
  readonly drops?: boolean;
}

/**
 * Functions, Futures, states and chains by the texts of a trace: one object each, as events have them. A place that is
 * learnt later is added to the object.
 */
export class Refs {
  readonly #functions = new Map<string, FunctionRef[]>();
  readonly #futures = new Map<string, Writable<FutureRef>[]>();
  readonly #states = new Map<string, StateRef>();
  readonly #chains = new Map<string, readonly AwaitLink[]>();
  readonly #frames = new Map<InternedFrame, SampledFrame>();
  #functionCount = 0;
  #futureCount = 0;

  function(what: Omit<FunctionRef, 'key' | 'file' | 'line'>, place: Place | undefined): FunctionRef {
    const { name, instance, address } = what;
    const known = madeOnce(this.#functions, name, () => []);
    for (const one of known) if (one.address === address && one.instance === instance) return one;
    const made = { key: this.#functionCount++, ...what, ...(place ?? unknown) };
    known.push(made);
    return made;
  }

  frame(interned: InternedFrame): SampledFrame {
    return madeOnce(this.#frames, interned, () => ({ ...interned, instance: interned.name }));
  }

  /** `hides`: what of it leaves no mark. */
  future(name: string, instance: string | undefined, place: Place | undefined, hides: Hidden = {}): FutureRef {
    const known = madeOnce(this.#futures, name, () => []);
    const full = instance ?? name;
    let found = known.find((one) => one.instance === full);
    if (found === undefined) {
      found = { key: this.#futureCount++, future: name, instance: full, kind: kindOf(full), ...unknown };
      known.push(found);
    }
    if (place !== undefined && found.file === undefined) {
      found.file = place.file;
      found.line = place.line;
    }
    if (hides.polls) found.inlined = true;
    if (hides.drops) found.hidesDrops = true;
    return found;
  }

  /** `Suspend0 at src/work.rs:34`, `Returned`. */
  state(text: string): StateRef {
    return madeOnce(this.#states, text, () => {
      const [, name = text, place] = /^(.*?) at (.+)$/s.exec(text) ?? [];
      return { name, ...placeOf(place) };
    });
  }

  /** `a::outer at src/a.rs:3 > a::inner (Unresumed) > b`. */
  chain(text: string): readonly AwaitLink[] {
    return madeOnce(this.#chains, text, () => text.split(' > ').map(linkOf));
  }
}

function kindOf(instance: string): FutureKind {
  const found = /\{(async_fn|async_block|async_closure)_env#\d+\}/.exec(instance);
  return (found?.[1] as FutureKind | undefined) ?? 'impl';
}

/** What it awaits is known by name alone, so the name is given as that of a type. */
function linkOf(text: string): AwaitLink {
  const [, atName, place] = /^(.+) at (.+)$/s.exec(text) ?? [];
  const [, inName, state] = /^(.+) \(([^()]*)\)$/s.exec(text) ?? [];
  const base = { future: undefined, address: undefined };
  if (atName !== undefined) return { ...base, typeName: atName, state: { name: '', ...placeOf(place) } };
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
  const [, name = text, place] = /^(.*?) at (.+)$/s.exec(text) ?? [];
  return { function: name === '??' ? undefined : name, ...placeOf(place) };
}

/** `0x80412340` behind a name and ` @`, or undefined. */
export function addressOf(text: string | undefined): Addr | undefined {
  return text !== undefined && /^0x[0-9a-f]{1,16}$/.test(text) ? addr(BigInt(text)) : undefined;
}
