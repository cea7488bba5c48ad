import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { type Die, layoutOf, sizeOf, stripGenerics, typeName } from '../../../dwarf/index.js';
import type { AwaitNode } from '../await-tree.js';
import { firstPointer, memberAt, numberAt, type Part, partCalled } from '../layout.js';
import { behindCounts, type Pointed, References } from '../references.js';
import type { TaskContext } from '../runtime.js';

/** No part of a second has more nanoseconds; in an `Option` more means none. */
const BILLION = 1_000_000_000n;

/** What a Future at the end of an await tree waits for. */
export interface Awaited {
  /**
   * A lock: `Mutex`, `RwLock`, `Semaphore`, `OnceCell`, `Barrier`. A channel: `message`, `room`, `oneshot`, `watch`,
   * `Notify`, `Signal`. The end of others: `task`, `tasks`, `closure` (on a
   * thread of its own). A socket: `readable`, `writable`, `readable or writable`.
   * Time: `timer`. `nothing` (`pending()`), `turn` (it has woken itself).
   */
  readonly kind: string;
  /** Of what it waits for; undefined if nothing stands for it in memory. */
  readonly address: Addr | undefined;
  /** More in words: `due at tick 400`. */
  readonly detail?: string;
  /** Who can end the wait; undefined if memory does not say. */
  readonly enders?: Enders;
  /** By the lock's own state nobody has it, or it was given to who waits here, and needs only be polled. */
  readonly free?: boolean;
  /** It is next to get the lock: for others it is the one that waits `before` them. */
  readonly isFirst?: true;
}

/** How those are found who can end a wait. */
export interface Enders {
  /** What they have to it: `held by`, `reachable by`; `itself` if the end of the task is waited for. */
  readonly how: string;
  /**
   * Types whose owner can end it, if one of its pointers leads to what `key` lies in. `&NAME` is every pointer to such
   * a value or to what it is a part of.
   */
  readonly owners?: readonly string[];
  readonly key?: Addr;
  /** Or the tasks themselves, by the address that stands for each in handles. */
  readonly tasks?: readonly Addr[];
  /** Or the Future that waits before it for the same: by its address, or by that of the lock where it is the first. */
  readonly before?: Addr;
  /** All of them must act, or one is enough. */
  readonly needs: 'all' | 'any';
  /**
   * How many there are, if something counts them; `unknown` if there may be others. `anybody`: these can end it, but
   * need not be about to, and any code may.
   */
  readonly count?: number | 'unknown' | 'anybody';
  /** How many there are in all by the channel's own count, wherever they are. */
  readonly counted?: Counted;
}

/** So many can end a wait, some of which perhaps no task has. */
export interface Counted {
  readonly of: 'sender' | 'receiver';
  readonly count: number;
}

/**
 * Knows the Futures of one kind of lock, channel or timer: an object in a file of `tasks/resources/`. Layouts come
 * from the program's DWARF; where a member is missing, it notes which.
 */
export interface Primitive {
  /** The Futures that wait for it, by their names without generic arguments. */
  readonly futures: readonly string[];
  /** The types whose owners can end a wait. */
  readonly owners?: readonly string[];
  /** Of those of its Futures that hold others, what these wait for is said. */
  readonly isAdapter?: true;
  /** Whether it also waits for what it waits for without them. */
  alsoWaits?(look: Look, node: AwaitNode): Promise<boolean>;
  /** `above` are the Futures that await it, the innermost first. Undefined if it cannot be said. */
  awaited(look: Look, node: AwaitNode, above: readonly AwaitNode[]): Promise<Awaited | undefined>;
}

/** A value in memory. */
export type Value = Pick<Pointed, 'type' | 'address'>;

/** Reads what primitives ask for. */
export class Look {
  readonly context: TaskContext;

  constructor(context: TaskContext) {
    this.context = context;
  }

  /** A Future's own value. */
  self({ future, address }: AwaitNode): Value {
    return { type: future && this.context.debug.die(future.typeOffset), address };
  }

  typeOf(node: AwaitNode): Die | undefined {
    return this.self(node).type;
  }

  /** A member by the names on the way to it; what is missing is noted. */
  part(type: Die, path: string): Part | undefined {
    return memberAt(type, path, (what) => this.context.note(`${what}, so some waits are not told`));
  }

  /** A member of a value; what is missing is noted. */
  member({ type, address }: Value, path: string): Value | undefined {
    const part = type && this.part(type, path);
    return part && { type: part.type, address: addOffset(address, part.offset) };
  }

  /** The first part of a value whose type has this name. */
  within({ type, address }: Value, name: string): Value | undefined {
    const part = type && partCalled(type, name);
    return part && { type: part.type, address: addOffset(address, part.offset) };
  }

  /** The number, or pointer, that a value is, or a member of it. */
  async number(value: Value, path?: string): Promise<bigint | undefined> {
    const at = path === undefined ? value : this.member(value, path);
    return at && this.numberAt(at.address, sizeOf(at.type) ?? 0);
  }

  /** The number, or pointer, at an address. */
  async numberAt(address: Addr, size = 8): Promise<bigint | undefined> {
    const bytes = await this.context.memory.read(address, size);
    return bytes && numberAt(bytes, { offset: 0, size });
  }

  /** All pointers that a Future has in its own bytes. */
  async pointers(node: AwaitNode): Promise<readonly Pointed[]> {
    const type = this.typeOf(node);
    if (type === undefined) return [];
    const found = await new References(this.context.memory, new Set([nameOfType(type)])).in(type, node.address);
    return found.map(({ target }) => target);
  }

  /** The first of these to a value of one of these types. */
  async pointerTo(node: AwaitNode, types: readonly string[]): Promise<Pointed | undefined> {
    return (await this.pointers(node)).find(({ type }) => types.includes(nameOfType(type)));
  }

  /** What pointers in members lead to, one behind the other: the first is in the Future, or its method's `self`. */
  async behind(node: AwaitNode, ...way: readonly string[]): Promise<Pointed | undefined> {
    let at: Pointed | undefined;
    for (const [step, name] of way.entries()) {
      if (step === 0 && name === 'self') at = await this.selfOf(node);
      else {
        const value = step === 0 ? this.self(node) : (at ?? this.self(node));
        at = this.member(value, name) && (await this.pointerIn(value, name));
      }
      if (at === undefined) return undefined;
    }
    return at;
  }

  /** What a method's Future has as its `self`: a reference or an `Arc`, which stays in its place. */
  async selfOf(node: AwaitNode): Promise<Pointed | undefined> {
    const type = this.typeOf(node);
    const part = type && layoutOf(type).variantPart;
    const states = part?.variants.flatMap((variant) => variant.members[0]?.type ?? []) ?? [];
    for (const state of states) {
      const found = await this.pointerIn({ type: state, address: node.address }, 'self');
      if (found) return found;
    }
    return undefined;
  }

  /** What the pointer in a member leads to: `self`, `chan`. */
  async pointerIn({ type, address }: Value, path: string): Promise<Pointed | undefined> {
    const part = type && memberAt(type, path);
    const pointer = part && firstPointer(part.type);
    const at = part && pointer && part.offset + pointer.offset;
    const target = at === undefined ? undefined : await this.numberAt(addOffset(address, at));
    return target ? behindCounts(pointer?.type, addr(target)) : undefined;
  }
}

/** A Future that waits for the clock; `due`: until when, in words. */
export function timer(futures: readonly string[], due: (look: Look, node: AwaitNode) => Promise<string | undefined>) {
  const awaited: Primitive['awaited'] = async (look, node) => {
    const at = await due(look, node);
    return { kind: 'timer', address: undefined, detail: at === undefined ? undefined : `due at ${at}` };
  };
  return { futures, awaited };
}

/**
 * The seconds of the system's monotonic clock that an `Instant` in a Future stands for, with three digits. `paths`: in
 * the versions of its crate.
 */
export async function deadlineIn(look: Look, node: AwaitNode, ...paths: string[]): Promise<string | undefined> {
  const self = look.self(node);
  const path = paths.find((each) => self.type && memberAt(self.type, each)) ?? paths[0];
  const instant = path === undefined ? undefined : look.member(self, path);
  const time = instant && look.within(instant, 'Timespec');
  if (!time) return undefined;
  const [whole, parts] = [await look.number(time, 'tv_sec'), await look.number(time, 'tv_nsec')];
  if (whole === undefined || parts === undefined || parts >= BILLION) return undefined;
  return `${whole}.${String(parts).padStart(9, '0').slice(0, 3)} s`;
}

/** A type's name without generic arguments. */
export function nameOfType(type: Die | undefined): string {
  return type ? stripGenerics(typeName(type)) : '';
}

/** Whoever has a pointer to it can end the wait; of a static anybody, for code needs no pointer in memory. */
export function reachable(name: string, key: Addr): Enders {
  return { how: 'reachable by', owners: [`&${name}`], key, needs: 'any', count: 'anybody' };
}

/** Locks of one kind: their guards point to them, and so do the Futures that wait. */
interface Guarded {
  readonly kind: 'Mutex' | 'Semaphore';
  /** The types of the locks themselves. */
  readonly locks: readonly string[];
  readonly futures: readonly string[];
  readonly guards: readonly string[];
  /** The member (else `state`) with a bit that a locked one has set, and that bit. */
  readonly lockedIn?: string;
  readonly lockedBit?: bigint;
}

/** What tasks that want this lock wait for: found by the guards that point to it. */
export function guarded({ kind, locks, futures, guards: owners, lockedIn = 'state', lockedBit }: Guarded): Primitive {
  const isFree = async (look: Look, lock: Value): Promise<boolean> => {
    const state = lockedBit === undefined ? undefined : await look.number(lock, lockedIn);
    return state !== undefined && lockedBit !== undefined && (state & lockedBit) === 0n;
  };
  return {
    futures,
    owners,
    async awaited(look, node) {
      const lock = await look.pointerTo(node, locks);
      if (!lock) return undefined;
      const { address } = lock;
      const enders = { how: 'held by', owners, key: address } as const;
      if (kind === 'Semaphore') return { kind, address, enders: { ...enders, needs: 'any', count: 'unknown' } };
      return { kind, address, enders: { ...enders, needs: 'all', count: 1 }, free: await isFree(look, lock) };
    },
  };
}

/** Where messages are waited for, or room for them. */
interface Channel extends Pick<Primitive, 'futures' | 'isAdapter' | 'alsoWaits'> {
  readonly kind: 'message' | 'room' | 'oneshot';
  /** The types of its other ends. */
  readonly owners: readonly string[];
  /** What both ends share. */
  shared(look: Look, node: AwaitNode): Promise<Pointed | undefined>;
  /** The member of that which counts the other ends. */
  readonly count?: string;
  /** There is one other end, which nothing counts. */
  readonly isSingle?: true;
  /** There is one other end. It is gone where one of these bits of `count` is set. */
  readonly goneBits?: bigint;
}

/** What a receiver or a sender waits for. */
export function channel({ kind, owners, shared, count, isSingle, goneBits, ...future }: Channel): Primitive {
  const of = kind === 'room' ? 'receiver' : 'sender';
  const how = kind === 'room' ? 'to be taken from by' : 'to be sent by';
  return {
    ...{ ...future, owners },
    async awaited(look, node) {
      const ends = await shared(look, node);
      if (!ends) return undefined;
      const { address } = ends;
      const word = count === undefined ? undefined : await look.number(ends, count);
      const left = word === undefined ? undefined : goneBits === undefined ? Number(word) : word & goneBits ? 0 : 1;
      const counted = left === undefined ? {} : { counted: { of, count: left } as const };
      const isOne = isSingle ?? goneBits !== undefined;
      const enders = { how, owners, key: address, needs: 'any', count: isOne ? 1 : (left ?? 'unknown') } as const;
      return { kind, address, enders: { ...enders, ...counted } };
    },
  };
}
