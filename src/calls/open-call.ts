import { type Addr, addr, highHalf, lowHalf } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import type { ThreadRef } from '../trace/index.js';
import type { AsideCalls } from './aside-calls.js';
import { locationOf } from './stack-bounds.js';
import type { Stack, StackSet } from './stack-set.js';

export interface OpenCall<T> {
  readonly payload: T;
  readonly returnAddress: bigint;
  /** The stack pointer when the call has returned, see {@link stackNumber}. */
  readonly stackPointer: number;
  /** The call around it, as far as is known. */
  readonly parent: OpenCall<T> | undefined;
  /** Open calls around this one when it began, 0 for the outermost. */
  readonly depth: number;
  /** The hart that made it. */
  readonly hart: number;
  /** The owner of its stack, once stack switches are known. */
  readonly thread: ThreadRef | undefined;
  /** Its return is a stop; else a trampoline records it. */
  readonly stops: boolean;
  /** It was reported as lost, and has returned now. */
  readonly wasLost: boolean;
}

/** The hart and the address space of something that happens: 0, or nothing, if there is one only. */
export interface Where {
  readonly hart: number;
  readonly space?: number | undefined;
}

/** What a return ends, and what it proves to be gone; both innermost first. */
export interface Left<T> {
  readonly ended: readonly OpenCall<T>[];
  readonly lost: readonly OpenCall<T>[];
}

/** Where a call returns to. */
export interface ReturnPlace {
  readonly returnAddress: bigint;
  readonly stackPointer: number;
  /** A trampoline records the return; without one, a stop does. */
  readonly isCall: boolean;
}

export interface Kept<T> extends OpenCall<T> {
  parent: Kept<T> | undefined;
  wasLost: boolean;
  /** How many calls began before it. */
  readonly number: number;
  /** The lowest stack pointer above it at which something was seen that would have overwritten it on the same stack. */
  passed: number;
}

export interface Space<T> {
  readonly number: number;
  readonly stacks: StackSet<Kept<T>>;
  readonly aside: AsideCalls<Kept<T>>;
}

/**
 * A stack pointer as a number that is exact and in order along a stack, also a byte away from it. Canonical addresses
 * of 48 bits are their own numbers, read as signed. Those beyond, of five levels of tables and in LoongArch's windows,
 * are numbered by stretches of 2^44 bytes: 2^52 and more, and below 2^53.
 */
export function stackNumber(stackPointer: bigint): number {
  return stackNumberOf(lowHalf(stackPointer), highHalf(stackPointer));
}

/** The same of its two halves, each unsigned. */
export function stackNumberOf(low: number, high: number): number {
  const top = high >>> 16;
  if (top === 0 || top === 0xffff) return (high | 0) * 2 ** 32 + low;
  return (mostStretches + stretchAt(high >>> 12)) * stretchBytes + (high & 0xfff) * 2 ** 32 + low;
}

/** The stack pointer of a number. */
export function stackPointerOf(number: number): Addr {
  const index = Math.floor(number / stretchBytes) - mostStretches;
  const high = index < 0 ? undefined : stretches[index];
  return high === undefined ? addr(number) : addr((BigInt(high) << 44n) + BigInt(number % stretchBytes));
}

const stretchBytes = 2 ** 44;
/** No target has stacks in more; pointers further on, which are none, share the last. */
const mostStretches = 256;
/** Bits 63:44 of each, in the order in which they were seen. */
const stretches: number[] = [];

function stretchAt(high: number): number {
  const known = stretches.indexOf(high);
  if (known >= 0) return known;
  return stretches.length < mostStretches ? stretches.push(high) - 1 : mostStretches - 1;
}

export function isApart(stacks: StackSet<Kept<unknown>>, lower: number, upper: number): boolean {
  return stacks.bounds.below(locationOf(upper)) > locationOf(lower);
}

/** The one with the oldest call first. */
export function byAge(a: Stack<Kept<unknown>>, b: Stack<Kept<unknown>>): number {
  return (a.calls[0]?.number ?? 0) - (b.calls[0]?.number ?? 0);
}

/** Something else is in its place, and is no tail call of it. */
export function isGone<T>(
  call: OpenCall<T>,
  returnAddress: bigint,
  payload: T,
  isAgain: (before: T, payload: T) => boolean,
): boolean {
  return call.returnAddress !== returnAddress || isAgain(call.payload, payload);
}

/** The same of a call that begins. */
export function goneBy<T>({
  returnAddress,
  payload,
  isAgain,
}: {
  readonly returnAddress: bigint;
  readonly payload: T;
  readonly isAgain: (before: T, payload: T) => boolean;
}): (call: OpenCall<T>) => boolean {
  return (call) => isGone(call, returnAddress, payload, isAgain);
}

export function ends(call: OpenCall<unknown>, returnAddress: bigint, stackPointer: number): boolean {
  return call.stackPointer === stackPointer && call.returnAddress === returnAddress;
}

/**
 * The index of the outermost call that ends there; the number of calls if none does. Stack pointers decrease inwards.
 */
export function firstEnding(calls: readonly OpenCall<unknown>[], returnAddress: bigint, stackPointer: number): number {
  let first = calls.length;
  for (let i = calls.length - 1; i >= 0; i--) {
    const call = calls[i] as OpenCall<unknown>;
    if (call.stackPointer > stackPointer) break;
    if (ends(call, returnAddress, stackPointer)) first = i;
  }
  return first;
}

/** The stack on which a call ends there. */
export function endingThere<T>(
  stacks: StackSet<Kept<T>>,
  returnAddress: bigint,
  stackPointer: number,
): Stack<Kept<T>> | undefined {
  const endsThere = ({ calls }: Stack<Kept<T>>): boolean =>
    firstEnding(calls, returnAddress, stackPointer) < calls.length;
  const there = stacks.holding(stackPointer);
  if (there && endsThere(there)) return there;
  // A call that came back to a stack may lie near it, if calls of one stack were taken for those of two.
  return stacks.all.find(endsThere);
}

/** How many open calls wait for a stop at an address. */
export class AwaitedReturns {
  readonly #awaited = new AddressMap<number>(64);
  /** The sum of these numbers. */
  #awaiting = 0;

  has(returnAddress: bigint): boolean {
    return (this.#awaited.get(returnAddress) ?? 0) > 0;
  }

  get hasAny(): boolean {
    return this.#awaiting > 0;
  }

  add(returnAddress: bigint): void {
    this.#awaiting++;
    this.#awaited.set(returnAddress, (this.#awaited.get(returnAddress) ?? 0) + 1);
  }

  /** For a call that is neither open nor set aside any more. Until then its return may come and identify its stack. */
  remove({ stops, returnAddress }: Pick<OpenCall<unknown>, 'stops' | 'returnAddress'>): void {
    if (!stops) return;
    this.#awaiting--;
    const others = (this.#awaited.get(returnAddress) ?? 0) - 1;
    if (others > 0) this.#awaited.set(returnAddress, others);
    else this.#awaited.delete(returnAddress);
  }

  clear(): void {
    this.#awaited.clear();
    this.#awaiting = 0;
  }
}
