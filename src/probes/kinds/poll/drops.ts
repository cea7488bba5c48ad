import { type FutureState, type FutureType, stateOf } from '../../../async/futures/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import { littleEndian } from '../../../base/little-endian.js';
import type { Call, EventOutput, InstantKind, InstantSite, MemoryRequest, Moment } from '../../../calls/index.js';
import { type Cancelled, type FutureRef, isSuspended, type RootRef } from '../../../trace/index.js';
import { entryPlan, loadSize, type PlannedLoad, type ReadPlan } from '../../read-plan.js';
import { Callers, type InstantContext } from './callers.js';
import type { DropFunction, DropTarget } from './drop-functions.js';
import type { ImpliedDrops } from './implied-drops.js';
import { pollAround } from './traced-poll.js';
import type { PollTracer } from './tracer.js';
import type { TaskBook } from './wakes.js';

/** What a tracer of drops knows of Futures. */
interface KnownFutures {
  readonly polls: PollTracer;
  readonly tasks: TaskBook;
  readonly implied: ImpliedDrops;
  ref(future: FutureType): FutureRef;
  /** Whether events are wanted of it. */
  allows(future: FutureType): boolean;
}

/** What a hit has read of one Future that may be dropped. */
interface Dropped {
  readonly target: DropTarget;
  readonly self: Addr;
  readonly state: FutureState | undefined;
}

/** Where they end: the tasks that are polled around, the innermost first, and the address space. */
interface Around extends Pick<RootRef, 'space'> {
  readonly open: ReadonlySet<RootRef>;
}

/**
 * Turns hits at functions that drop Futures into events. A Future was dropped before it was ready if it stands at an
 * await. One written by hand does not show that: it counts only as a task, whose polls have shown it.
 */
export class DropTracer implements InstantKind {
  readonly #functions = new AddressMap<DropFunction>();
  readonly #known: KnownFutures;
  readonly #output: EventOutput;
  readonly #pointer: string;
  readonly #callers: Callers;
  readonly #spaces: InstantContext['spaces'];
  /** The last task that was dropped at an address: what it held is dropped next. */
  readonly #tasks = new AddressMap<RootRef>();
  /** The last of all. */
  #last: RootRef | undefined;

  constructor(functions: readonly DropFunction[], known: KnownFutures, context: InstantContext) {
    for (const fn of functions) this.#functions.set(fn.address, fn);
    this.#known = known;
    this.#output = context.output;
    this.#pointer = context.arch.arguments[0] as string;
    this.#callers = new Callers(context);
    this.#spaces = context.spaces;
  }

  isAt(pc: Addr): boolean {
    return this.#functions.get(pc) !== undefined;
  }

  reads({ pc, registers }: Moment): readonly MemoryRequest[] | undefined {
    const fn = this.#functions.get(pc);
    const pointer = fn && registers.register(this.#pointer);
    if (!fn || pointer === undefined) return undefined;
    const length = readLength(fn);
    return length === 0 ? [] : [{ address: addr(pointer), length }];
  }

  hit(
    { pc, hart, registers, space: number }: Moment,
    { around, returnAddress, memory }: InstantSite,
  ): (() => void) | undefined {
    const fn = this.#functions.get(pc);
    const pointer = fn && registers.register(this.#pointer);
    if (!fn || pointer === undefined) return undefined;
    const length = readLength(fn);
    const bytes = length === 0 ? undefined : memory.at(addr(pointer), length)?.bytes;
    if (!drops(fn, bytes)) return undefined;
    const dropped = fn.targets.map((target): Dropped => {
      return { target, self: addOffset(addr(pointer), target.offset), state: stateIn(target, bytes) };
    });
    const open = rootsAround(around);
    const by = pollAround(around)?.payload.root;
    const caller = this.#callers.at(returnAddress);
    const space = this.#spaces?.root(number);
    return () => {
      for (const event of this.#events(fn, dropped, { open, space })) {
        const { time } = this.#output;
        if (this.#known.implied.wasEmitted(event.future, event.address, space)) continue;
        this.#output.emit({ type: 'cancelled', time, hart, ...event, by, caller });
        this.#known.implied.dropped({ ...event, by, space }, hart);
      }
    };
  }

  /** The task and the Future that end here. One may be both. */
  #events(
    fn: DropFunction,
    dropped: readonly Dropped[],
    { open, space }: Around,
  ): Pick<Cancelled, 'root' | 'future' | 'address' | 'state'>[] {
    const { polls, tasks, ref, allows } = this.#known;
    const events: Pick<Cancelled, 'root' | 'future' | 'address' | 'state'>[] = [];
    const own = dropped.filter(({ target }) => target.offset === 0);
    for (const { target, self, state } of dropped) {
      if (state && !isSuspended(state)) continue;
      const future = ref(target.future);
      const { root, isPending, isOld } = tasks.polledAt(inSpace(self, space)) ?? {};
      const isSame = root?.future === future;
      // Nobody but its own poll may drop a part of a task that stays. A runtime itself knows that it is not ready.
      // Where its own end may have been missed, what lies there is its own only if it is of its type.
      if (root && !open.has(root) && ((isPending && (isSame || !isOld)) || fn.when)) {
        events.push({ root, future: root.future, address: root.address, state: isSame ? state : undefined });
        polls.dropped(root);
        this.#tasks.set(inSpace(root.address, root.space), root);
        this.#last = root;
        if (isSame) continue;
      }
      // A runtime drops a task by a function around the one that drops the Future itself.
      const place = inSpace(self, space);
      if (!root && this.#tasks.get(place)?.future === future) {
        // What lies there from now on is another one.
        if (target.offset === 0 && !fn.when) this.#tasks.delete(place);
        continue;
      }
      // Of several types that share one function nothing says which one it is.
      if (!state || fn.when || target.offset > 0 || own.length > 1 || !allows(target.future)) continue;
      events.push({ root: this.#taskOf(self, { open, space }), future, address: self, state });
    }
    return events;
  }

  /** The task that a Future belongs to: one in which it lies, or the one that drops it in its poll. */
  #taskOf(self: Addr, { open, space }: Around): RootRef | undefined {
    const holdsIt = ({ address, future: { size = 0 }, space: own }: RootRef): boolean =>
      own === space && self >= address && self < address + BigInt(size);
    const [innermost] = open;
    // The one that was dropped last comes behind those that run: its memory may be theirs now.
    const all = this.#last ? [...open, this.#last] : [...open];
    return all.find(holdsIt) ?? innermost;
  }

  missed(): void {
    this.#known.tasks.missed();
  }

  forget(): void {
    this.#tasks.clear();
    this.#last = undefined;
  }
}

/** What a trampoline reads: where the Futures stand. It drops what is not suspended, so that this costs no record. */
export function planDrop(fn: DropFunction, pointer: string): ReadPlan {
  const { address, size, name, targets, ofTask, when } = fn;
  const loads = targets.flatMap(({ future: { discriminant }, offset }): PlannedLoad[] => {
    const width = loadSize(discriminant?.size ?? 0);
    return width === undefined ? [] : [{ offset: offset + (discriminant?.offset ?? 0), size: width }];
  });
  if (when) loads.push({ offset: when.offset, size: when.size });
  const plan = entryPlan({ address, codeSize: size, name });
  const reads = loads.length === 0 ? [] : [{ pointer, align: 1, size: readLength(fn), loads }];
  return {
    ...plan,
    entryRegisters: [pointer],
    entryReads: reads,
    when: onlySuspended(fn, pointer),
    notByStops: ofTask ? undefined : 'drops',
  };
}

function onlySuspended({ targets: [target, ...others], when }: DropFunction, register: string): ReadPlan['when'] {
  const { discriminant, states = [] } = target?.future ?? {};
  const width = discriminant && loadSize(discriminant.size);
  const finished = states.filter((state) => !isSuspended(state)).map(({ value }) => value);
  const suspended = states.filter(isSuspended).map(({ value }) => value);
  const first = Math.min(...suspended);
  if (!target || width === undefined || others.length > 0 || when || !finished.every((value) => value < first))
    return [];
  if (suspended.length === 0) return [];
  const behind = { through: [], offset: target.offset + (discriminant?.offset ?? 0) };
  return [{ register, size: width, signed: false, behind, op: 'ge', value: BigInt(first) }];
}

/** Bytes from the address in the first argument. */
function readLength({ targets, when }: DropFunction): number {
  const ends = targets.map(({ offset, future: { discriminant } }) =>
    discriminant ? offset + discriminant.offset + discriminant.size : 0,
  );
  return Math.max(0, when ? when.offset + when.size : 0, ...ends);
}

/** Whether the function drops anything, by what it was called with; false if that was not read. */
function drops({ when }: DropFunction, bytes: Uint8Array | undefined): boolean {
  if (!when) return true;
  return bytes !== undefined && (littleEndian(bytes, when.offset, when.size) & when.bits) !== 0n;
}

function stateIn({ future, offset }: DropTarget, bytes: Uint8Array | undefined): FutureState | undefined {
  return bytes && stateOf(future, bytes, offset);
}

function rootsAround(call: Call | undefined): Set<RootRef> {
  const roots = new Set<RootRef>();
  for (let poll = pollAround(call); poll; poll = pollAround(poll.parent)) roots.add(poll.payload.root);
  return roots;
}
