import type { Addr } from '../../base/addr.js';
import type { Budget } from '../../base/budget.js';
import type { Die } from '../../dwarf/index.js';

export type FutureKind = 'async_fn' | 'async_block' | 'async_closure' | 'impl';

/** One type of Future; each generic instance is a type. Expensive parts are read on first use. */
export interface FutureType {
  /**
   * No generic arguments, no `{async_fn#0}`: `labkern::work::level3`, `labkern::work::Disk::seek`,
   * `<labkern::work::Disk as labkern::work::BlockDev>::read`, `labkern::work::fib_box::{async_block#0}`,
   * `labkern::work::device_task::{closure#0}`; of an `impl Future for T` the type, `labkern::futs::YieldN`.
   */
  readonly future: string;
  /** The full type name as DWARF spells it, with generic arguments. */
  readonly instance: string;
  readonly kind: FutureKind;
  /** The crate that it is written in. */
  readonly crate: string;
  /** Where it is declared: the line of `async fn`, of the block, or of `fn poll`. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly size: number;
  readonly align: number | undefined;
  /** For compiler-made Futures, in order of their numbers; empty for `impl`. */
  readonly states: readonly FutureState[];
  readonly discriminant: { readonly offset: number; readonly size: number } | undefined;
  /** Poll functions that exist out of line, one an address. */
  readonly polls: readonly PollFunction[];
  readonly inlined: readonly InlinedPoll[];
  /**
   * Known only because others await it: its poll was inlined, and the optimiser left nothing that names it. How often
   * it is polled only the Future around it shows.
   */
  readonly isTypeOnly: boolean;
  /** Addresses of its vtables as `dyn Future`. */
  readonly vtables: readonly Addr[];
  /**
   * The type of its result, as DWARF spells it; undefined if no poll function is in the debug info. {@link NEVER} where
   * the type has no values.
   */
  readonly output: string | undefined;
  /** For `impl`: its own fields. Those of an enum have their variant's name before them: `Pending.0`. */
  readonly fields: readonly StateLocal[];
  /** For `impl`: the Futures that it holds, whatever its state is. */
  readonly holds: readonly HeldFuture[];
  /** Offset of the type's DIE. */
  readonly typeOffset: number;
}

export interface FutureState {
  /** The discriminant. */
  readonly value: number;
  /** `Unresumed`, `Returned`, `Panicked`, `Suspend0`, ... */
  readonly name: string;
  /** Where the await is (`Suspend*`), or the function's first and last line. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly awaitee: Awaitee | undefined;
  /** What the state keeps, without the awaitee. */
  readonly locals: readonly StateLocal[];
  /** The Futures that it holds in this state, the awaitee first; none if it has returned. */
  readonly holds: readonly HeldFuture[];
}

export interface StateLocal {
  readonly name: string;
  readonly type: string;
  readonly offset: number;
  readonly size: number;
}

export interface Awaitee {
  readonly offset: number;
  readonly size: number;
  readonly typeName: string;
  /** The awaited Future's type; undefined if its `impl Future` is not in the debug info. */
  readonly future: FutureType | undefined;
  /** For an awaitee that is a pointer to a Future. */
  readonly box: BoxedFuture | undefined;
}

/**
 * `Pin<Box<F>>`, `Box<F>`, `&mut F`, `Pin<&mut F>`, and the same of `dyn Future`. Offsets count from the awaitee's
 * start.
 */
export interface BoxedFuture {
  readonly pointer: number;
  /** For `dyn Future`: where the vtable's address lies. */
  readonly vtable: number | undefined;
  readonly typeName: string;
  readonly future: FutureType | undefined;
}

/**
 * A Future that lies directly in another, or that the other points to. Directly: at any depth of structs, enums,
 * tuples and arrays, but not inside a third Future. `hops` lead from block to block of memory. The place itself lies
 * in the last block.
 */
export interface HeldFuture extends Place {
  /** `__awaitee` or a local of the state; an argument of the Future; a field of a Future written by hand. */
  readonly role: 'awaitee' | 'local' | 'captured' | 'field';
  /** `a.Pending.0`, `futures[*]`: from the holder. */
  readonly path: string;
  readonly size: number;
  readonly typeName: string;
  /** Undefined for a `dyn Future`, and for an awaitee whose `impl Future` is not in the debug info. */
  readonly future: FutureType | undefined;
  /** The pointers to follow, from the holder's own bytes on; none if it lies in place. */
  readonly hops: readonly Hop[];
  /** For a `dyn Future`: where the vtable's address lies, counted from the last pointer. */
  readonly vtable: number | undefined;
  /**
   * Memory does not show whether it is (still) there: a local may have been moved out, a union may hold another
   * member.
   */
  readonly maybe: boolean;
}

/** Where something lies in a block of memory. */
export interface Place {
  /** From the block's start; the first place if it is repeated. */
  readonly offset: number;
  /** Arrays around it, the outermost first. */
  readonly repeats: readonly Repeat[];
  /** It exists only if all of these hold. */
  readonly guards: readonly Guard[];
}

export interface Repeat {
  readonly count: number;
  readonly stride: number;
}

/** The discriminant of an enum around it, and the required values. */
export interface Guard {
  /** From the block's start. */
  readonly offset: number;
  readonly size: number;
  /** As unsigned numbers of `size` bytes, both ends included. */
  readonly values: readonly { readonly low: bigint; readonly high: bigint }[];
  /** True: it must be one of `values`; false: none of them (the variant that has a niche's other values). */
  readonly within: boolean;
  /** How many of the place's repeats, from the outermost, apply to the discriminant too. */
  readonly repeats: number;
}

/** A pointer to follow; its own place is where the pointer lies. */
export interface Hop extends Place {
  readonly to: HopTarget;
}

export type HopTarget =
  | { readonly kind: 'one' }
  /**
   * `Vec<T>`, `Box<[T]>`: elements of `stride` bytes. The word at `length`, counted from the pointer, has their
   * number.
   */
  | { readonly kind: 'slice'; readonly length: number; readonly stride: number }
  /** `FuturesUnordered<F>`: nodes linked by the pointer at `next` of each, until it is null. */
  | { readonly kind: 'list'; readonly next: number };

/** The output of a Future that is never Ready. */
export const NEVER = '!';

export interface PollFunction {
  readonly address: Addr;
  readonly end: Addr;
  /** The mangled name. */
  readonly symbol: string | undefined;
  readonly declFile: string | undefined;
  /** The DWARF register that holds `self` at the first instruction; undefined if only the calling convention says. */
  readonly self: { readonly register: number } | undefined;
  /** Bytes of `Poll<T>`. */
  readonly resultSize: number;
  /** The type `Poll<T>`. */
  readonly resultType: Die | undefined;
  /** How Ready and Pending are distinguished in the bytes of `Poll<T>`; undefined if the type does not show it. */
  readonly result: PollResultLayout | undefined;
}

export interface PollResultLayout {
  readonly offset: number;
  readonly size: number;
  /** `value`: the discriminant as an unsigned number of `size` bytes. */
  isReady(value: bigint): boolean;
}

/** A copy of a poll function inside another function. */
export interface InlinedPoll {
  /** The function that it was inlined into. */
  readonly into: string;
  readonly address: Addr;
  /** The `DW_TAG_inlined_subroutine`, and the function around it. */
  readonly die: Die;
  readonly host: Die;
  /** The call: the await. */
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** A Future in a value of some type. */
export interface HeldInPlace extends Place {
  readonly future: FutureType;
}

export interface FutureSet {
  /** Ordered by name, then instance. */
  readonly all: readonly FutureType[];
  readonly warnings: readonly string[];
  /** What reading their file may cost. */
  readonly budget: Budget;
  /** The Future that a `dyn Future` vtable is for, by the debug info or by the poll function that the vtable names. */
  byVtable(address: Addr): FutureType | undefined;
  byPollAddress(address: Addr): FutureType | undefined;
  /** The Future whose poll was inlined as this `DW_TAG_inlined_subroutine`. */
  ofCopy(copy: Pick<Die, 'offset'>): FutureType | undefined;
  /** The Future of a type; the same type's DIE in another unit counts too. */
  ofType(type: Die): FutureType | undefined;
  /** The Futures that a `dyn Future<Output=T>` may be: those with a vtable whose result is a T. */
  behindDyn(typeName: string): readonly FutureType[];
  /** The Futures that a value of this type is, or holds in its own bytes. */
  inPlace(type: Die): readonly HeldInPlace[];
}
