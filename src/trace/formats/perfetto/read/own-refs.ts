import { type Addr, addr } from '../../../../base/addr.js';
import { inSpace } from '../../../../base/address-map.js';
import type { FunctionRef, FutureRef, RootRef, StackEntry, StateRef } from '../../../events/events.js';
import { calledOf } from '../../../events/future-names.js';
import { placeOf } from '../../../events/roots.js';
import { aboutOf, rootOf } from '../../../events/text.js';
import type { TrackDescriptor } from './descriptors.js';
import { Refs } from './refs.js';
import { NOTE } from './sequence.js';
import type { TrackEvent } from './track-event.js';

export const noAddress = addr(0n);

const functionKinds = new Map<string | undefined, FunctionRef['kind']>(
  (['lock', 'thread', 'irq', 'fault', 'syscall', 'trap'] as const).map((kind) => [kind, kind]),
);

/** `before`: the one that was at its address before. */
export type Root = { -readonly [K in keyof RootRef]: RootRef[K] } & { hart: number; before: Root | undefined };

/** What events of one's own trace name, by the annotations that say it. */
export class OwnRefs extends Refs {
  /** The newest at each address of a space, and each by its key. */
  readonly #rootsAt = new Map<bigint, Root>();
  readonly #roots = new Map<number, Root>();

  functionOf(event: TrackEvent): FunctionRef {
    const { name, place } = event;
    const what = { kind: functionKinds.get(textNote(event, NOTE.kind)), type: textNote(event, NOTE.type) };
    const instance = textNote(event, NOTE.instance) ?? name;
    return this.function({ name, instance, address: addressNote(event, NOTE.address), ...what }, place);
  }

  /** `place`: where it is declared, if the event says that. */
  futureOf(event: TrackEvent, place?: TrackEvent['place'], name = event.name): FutureRef {
    const { notes } = event;
    const hidden = { polls: notes[NOTE.inlined_polls] === true, drops: notes[NOTE.hides_drops] === true };
    // Of what only forwards polls the event's name is that of what it points to.
    return this.future(textNote(event, NOTE.future) ?? name, textNote(event, NOTE.instance), place, hidden);
  }

  stateOf(event: TrackEvent, note: number): StateRef | undefined {
    const text = textNote(event, note);
    return text === undefined ? undefined : this.state(text);
  }

  /** Of a task's track: `labkern::work::chain_task @0x80412340`. */
  root({ uuid, name, description }: TrackDescriptor): Root {
    const { name: of, ...at } = rootOf(name) ?? { name, address: noAddress };
    const place = placeOf(at);
    const key = (Number(uuid) - 3) / 2;
    const [future, about] = [this.future(of, undefined, undefined), aboutOf(description ?? '')];
    const root: Root = { ...at, key, future, about, hart: 0, before: this.#rootsAt.get(place) };
    this.#rootsAt.set(place, root);
    this.#roots.set(key, root);
    return root;
  }

  /** A task may be polled when the next one is at its address, as stacks go, but not two later: that one's key. */
  forgetBefore({ before }: Root): number | undefined {
    const key = before?.before?.key;
    if (before === undefined || key === undefined) return undefined;
    // A track that is described again has a root anew, with the same key.
    if (this.#roots.get(key) === before.before) this.#roots.delete(key);
    before.before = undefined;
    return key;
  }

  /** The newest at an address; made of its Future's name where it is not known. */
  rootAt(flow: number | undefined, address: Addr, space: Addr | undefined, task: string, hart: number): Root {
    const place = inSpace(address, space);
    const known = this.#rootsAt.get(place);
    if (known !== undefined) return known;
    const key = flow ?? this.#roots.size;
    const root = { key, address, space, future: this.future(task, undefined, undefined), hart, before: undefined };
    this.#rootsAt.set(place, root);
    this.#roots.set(key, root);
    return root;
  }

  rootOfFlow(flow: number | undefined): Root | undefined {
    return flow === undefined ? undefined : this.#roots.get(flow);
  }

  /** The newest root at the address in a task's name. */
  rootNamed(text = ''): Root | undefined {
    const named = rootOf(text);
    return named && this.#rootsAt.get(placeOf(named));
  }
}

/** A task's track says what its Future is called, without the instance: what is polled at its address is that Future. */
export function learnt(root: RootRef | undefined, future: FutureRef, address: bigint): FutureRef {
  const isRoot = root?.address === address && root.future !== future && root.future.future === calledOf(future);
  if (isRoot) (root as Root).future = future;
  return future;
}

export function callerOf(event: TrackEvent): StackEntry {
  return { function: textNote(event, NOTE.function), file: event.place?.file, line: event.place?.line };
}

export function textNote({ notes }: TrackEvent, note: number): string | undefined {
  const value = notes[note];
  return typeof value === 'string' ? value : undefined;
}

export function addressNote({ notes }: TrackEvent, note: number): Addr {
  const value = notes[note];
  return typeof value === 'bigint' ? value : noAddress;
}
