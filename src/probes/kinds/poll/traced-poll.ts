// What is kept of an open poll, and what its bytes and registers say of it.
import {
  type FutureState,
  type FutureType,
  type Guard,
  type InlinedPoll,
  type InnerFuture,
  NEVER,
  onlyHeld,
} from '../../../async/futures/index.js';
import { type Addr, addOffset } from '../../../base/addr.js';
import type { AddressMap } from '../../../base/address-map.js';
import { littleEndian } from '../../../base/little-endian.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import {
  type Call,
  type FutureLook,
  type HitMemory,
  type MemoryRequest,
  type Moment,
  type OpenCall,
  Reading,
  type TracedCall,
} from '../../../calls/index.js';
import type {
  AwaitLink,
  FutureRef,
  GuestNanos,
  PollBegin,
  PollResult,
  RootRef,
  StackEntry,
} from '../../../trace/index.js';
import type { Conditions } from '../../expressions/comparison.js';
import type { PolledPlace } from './implied-drops.js';
import { type InlinedChain, mayInline } from './inlined-chain.js';
import { partsOf } from './plan.js';
import type { PolledInside } from './polled-inside.js';
import type { PollProbe } from './resolve.js';
import type { TaskPoll } from './task-polls.js';

/** A poll function or a place where one was inlined, and the Futures that it polls. */
export interface Probed {
  readonly future: FutureType;
  readonly ref: FutureRef;
  readonly isAround: boolean;
  /** Which polls emit events; undefined: all. */
  readonly when: Conditions | undefined;
  /** What is known of the poll function; undefined where it was inlined. */
  readonly fn: PollProbe | undefined;
  /** Where it was inlined; undefined if it is a function. */
  readonly copy: InlinedPoll | undefined;
  /** Where its result is, if that is in a register. */
  readonly tag: ResultRegister | undefined;
  /** Those that this poll function belongs to. */
  readonly futures: readonly FutureType[];
  /** The same, each by itself, if these are several. */
  readonly among: readonly Probed[];
  /** Each poll that returns is Pending. */
  readonly isNeverReady: boolean;
  /** Bytes of them that are read. */
  readonly parts: ReturnType<typeof partsOf>;
  /** What a task is called by that is such a Future; undefined: by itself. */
  readonly wraps: Wrapping | undefined;
  /** The Future whose result is theirs, and where it lies in them. */
  readonly handedOn: ReturnType<typeof handedOn>;
  /** Whether Futures may be inlined into them; undefined until the first is polled. */
  inlines: boolean | undefined;
  /** Roots that are alive, by address and space: one that is polled again is the same root. */
  readonly roots: AddressMap<RootRef>;
}

/** What a task is called by, inside its own Future. */
export interface Wrapping extends Pick<Probed, 'future' | 'ref' | 'roots'> {
  /** From the task's Future. */
  readonly offset: number;
  readonly way: readonly InnerFuture[];
}

/** What {@link CallTracer} keeps about an open poll. */
export interface TracedPoll extends TracedCall {
  readonly isPoll: true;
  /** The event of its begin, when it was emitted. */
  emitted: PollBegin | undefined;
  readonly probe: Probed;
  /** Where the Future exists as long as it is not Ready, if its poll was inlined. */
  readonly guards: readonly Guard[];
  /** It emits no events. */
  readonly isAround: boolean;
  readonly self: Addr;
  readonly root: RootRef;
  readonly began: GuestNanos;
  readonly before: FutureState | undefined;
  /** Where the result will be, if not in registers. */
  readonly resultAt: Addr | undefined;
  readonly inlined: InlinedChain | undefined;
  readonly hart: number;
  /** Other values of the entry, until the begin is emitted. */
  entry: Entry | undefined;
  /** What it has polled that is pending; null for several. */
  inside: PolledInside | undefined | null;
  /** The result of the last poll inside it of the Future whose result is its own. */
  held: PollResult | undefined;
  /** The values of its return, until they are emitted. */
  exit: Exit | undefined;
}

/** What differs between a poll function's polls and inlined ones. */
export interface Opened {
  readonly probe: Probed;
  readonly self: Addr;
  readonly look: FutureLook | undefined;
  readonly isAround: boolean;
  readonly resultAt: Addr | undefined;
  readonly guards: readonly Guard[];
  readonly entry: Entry;
  /** The poll around it whose task this one belongs to; undefined if it is a task itself. */
  readonly within: PollCall | undefined;
  /** Who makes this poll; undefined if the debug info does not say. */
  readonly made: TaskPoll | undefined;
}

export type PollCall = OpenCall<TracedCall> & { readonly payload: TracedPoll };

export interface Entry {
  /** The poller, if it is recorded. */
  readonly stack: readonly StackEntry[] | undefined;
  /** The enclosing poll, whose inlined Futures are followed, and its Future now. */
  readonly outer: PollCall | undefined;
  readonly outerLook: FutureLook | undefined;
}

interface Exit {
  readonly hart: number;
  readonly look: FutureLook | undefined;
  readonly result: PollResult;
}

export const noGuards: readonly Guard[] = [];
export const onlyMoment: Entry = { stack: undefined, outer: undefined, outerLook: undefined };

/**
 * What a Future without states of its own consists of, if that is one Future in its own bytes with the same output. A
 * wrapper that counts polls is such a Future. When what it holds is ready, so is the wrapper. As long as that is
 * pending, the wrapper may give up. Only that of a task itself is taken to go on, because nothing else says so. Of one
 * inside another Future, that one shows later whether it still awaits the wrapper. Undefined for any other, because one
 * that holds several, or has another output, is often ready when what it holds is not: a timeout is.
 */
export function handedOn(future: FutureType): { readonly future: FutureType; readonly offset: number } | undefined {
  const [held] = future.states.length > 0 ? [] : onlyHeld(future);
  return held && held.future.output !== undefined && held.future.output === future.output ? held : undefined;
}

/**
 * Ready or Pending: from a compiler-made Future's own state; for any other from the tag of the `Poll<T>` it
 * returned.
 */
export function resultOf(
  open: TracedPoll,
  { registers }: Moment,
  look: FutureLook | undefined,
  memory: HitMemory,
): PollResult {
  const { fn, tag, isNeverReady } = open.probe;
  if (isNeverReady) return look?.state?.name === 'Panicked' ? 'panicked' : 'pending';
  if (open.guards.length > 0 && !open.guards.every((guard) => holds(guard, open.self, memory))) return 'ready';
  const state = look?.state;
  // The compiler does not store that it is Ready where nobody would read it.
  if (!fn && state && (state === open.before || !open.before)) {
    return state.name === 'Returned' ? 'ready' : 'unknown';
  }
  if (state) return state.name === 'Returned' ? 'ready' : state.name === 'Panicked' ? 'panicked' : 'pending';
  if (!fn?.poll.result) return 'unknown';
  if (open.resultAt === undefined) {
    const isReady = tag?.isReady(registers);
    return isReady === undefined ? 'unknown' : isReady ? 'ready' : 'pending';
  }
  const { offset, size, isReady } = fn.poll.result;
  const bytes = memory.at(open.resultAt, fn.poll.resultSize)?.bytes;
  if (!bytes || bytes.length < offset + size) return 'unknown';
  return isReady(littleEndian(bytes, offset, size)) ? 'ready' : 'pending';
}

/** Whether a poll is one of its task's own Future, or of what that lies in. */
export function isRoot({ root, self, probe: { ref, wraps } }: TracedPoll): boolean {
  if (wraps) return root.future === wraps.ref && root.address === addOffset(self, wraps.offset);
  return root.future === ref && root.address === self;
}

/** A poll has ended: its result may be that of the poll around it. */
export function handOn({ payload: { self, probe }, parent }: PollCall, result: PollResult): void {
  const outer = pollAround(parent)?.payload;
  const held = outer?.probe.handedOn;
  if (outer && held?.future === probe.future && self === addOffset(outer.self, held.offset)) outer.held = result;
}

export function placeOf({ root, probe: { ref }, self }: TracedPoll): PolledPlace {
  return { root, ref, self };
}

export function isShared({ fn }: Probed): boolean {
  return fn !== undefined && fn.among.length > 0;
}

/** The innermost poll of the calls around a place; none in an interrupt that has come in the midst of one. */
export function pollAround(call: Call | undefined): PollCall | undefined {
  for (let at = call; at && !at.payload.isInterrupt; at = at.parent) if (isPoll(at)) return at;
  return undefined;
}

/** A runtime makes a poll: not, if the poll around it was inlined into the runtime's code and makes it. */
export function isTask({ payload }: PollCall, poll: TaskPoll | undefined): boolean {
  const { copy } = payload.probe;
  return poll?.runtime !== undefined && (copy === undefined || !poll.around.has(copy.die.offset));
}

function isPoll(call: Call): call is PollCall {
  return 'isPoll' in call.payload;
}

export function probed(
  { future, ref, isAround }: Pick<PollProbe, 'future' | 'ref' | 'isAround'>,
  futures: readonly FutureType[],
  roots: AddressMap<RootRef>,
): Probed {
  const isNeverReady = future.output === NEVER;
  const parts = partsOf(future);
  const held = handedOn(future);
  const unknown = { when: undefined, fn: undefined, copy: undefined, tag: undefined, inlines: undefined, among: [] };
  return { future, ref, isAround, futures, isNeverReady, parts, roots, handedOn: held, wraps: undefined, ...unknown };
}

/** Whether an enum around a Future still has the variant that holds it; true if that was not read. */
function holds({ offset, size, values, within }: Guard, self: Addr, memory: HitMemory): boolean {
  const bytes = memory.at(addOffset(self, offset), size)?.bytes;
  if (!bytes || bytes.length < size) return true;
  const value = littleEndian(bytes);
  return values.some(({ low, high }) => value >= low && value <= high) === within;
}

export function readsOf({ parts }: Probed, self: Addr): MemoryRequest[] {
  return parts.map(({ from, length }) => ({ address: addOffset(self, from), length }));
}

export function lookAt({ future, parts: [part, more] }: Probed, self: Addr, memory: HitMemory): FutureLook | undefined {
  const first = memory.at(self, part.length);
  const rest = more && memory.at(addOffset(self, more.from), more.length);
  if (!first || !more || !rest) return first?.as(future);
  // As in a record: bytes that are not read show no state.
  const bytes = new Uint8Array(more.from + more.length).fill(0xff);
  bytes.set(first.bytes);
  bytes.set(rest.bytes, more.from);
  return new Reading(bytes).as(future);
}

export function inlines(probe: Probed): boolean {
  probe.inlines ??= mayInline(probe.future);
  return probe.inlines;
}

export const noLinks: readonly AwaitLink[] = [];

/** Tells by the register that holds the tag of a returned `Poll<T>` whether it is ready. */
export class ResultRegister {
  readonly #register: string;
  readonly #isReady: (value: bigint) => boolean;
  /** The same values come again and again, and arithmetic of bigints is slow. */
  #last: { readonly value: bigint; readonly isReady: boolean } | undefined;

  private constructor(register: string, isReady: (value: bigint) => boolean) {
    this.#register = register;
    this.#isReady = isReady;
  }

  /** Undefined if the tag of its polls is in no register. */
  static of({ poll: { result }, resultTag: tag }: PollProbe): ResultRegister | undefined {
    if (!result || !tag) return undefined;
    const { size, isReady } = result;
    const shift = BigInt(tag.shift);
    return new ResultRegister(tag.register, (value) => isReady(BigInt.asUintN(size * 8, value >> shift)));
  }

  /** Undefined if the register is not known. */
  isReady(registers: RegisterReader): boolean | undefined {
    const value = registers.register(this.#register);
    if (value === undefined) return undefined;
    if (this.#last?.value !== value) this.#last = { value, isReady: this.#isReady(value) };
    return this.#last.isReady;
  }
}
