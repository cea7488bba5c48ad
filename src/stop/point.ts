import type { EmulatedInstruction } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { Breakpoint, Reply } from '../rsp/index.js';

/** A place where the guest stops. */
export interface Point {
  breakpoint: Breakpoint;
  over: EmulatedInstruction | undefined;
  /** The bytes that `over` was made from. */
  code: Uint8Array | undefined;
  /** The code here was read from the target. */
  seen: boolean;
  /** True for a probe's own address: its breakpoint stays inserted. */
  permanent: boolean;
  /** True while some open call returns here. */
  awaited: boolean;
  /** Set where there is no probe: the stop itself is the purpose. */
  pause: (() => void) | undefined;
  intercept: Interception | undefined;
  /** True if the breakpoint was inserted for `intercept` alone. */
  borrowed: boolean;
  /**
   * The stack pointer and what is passed, by hart, or by address space (negative). A step over this place ran into an
   * interrupt or signal handler, so the same hit will be reported once more.
   */
  readonly rearrivals: Map<number, string>;
}

export interface Interception {
  readonly places: readonly Addr[];
  /** Called once, at the first stop at any of them. `moved`: the hart goes on at another place. */
  readonly then: (hart: string | undefined, at: Addr) => Promise<unknown>;
}

/** A breakpoint whose insertion was sent but not yet answered. */
export interface Planted {
  readonly point: Point;
  readonly reply: Reply<boolean>;
}

export function toStep(point: Point): void {
  point.over = undefined;
  point.code = undefined;
  point.seen = true;
}

/** The breakpoint is there for an interception alone from now on: a stop at it says nothing. */
export function borrow(point: Point): void {
  point.borrowed = true;
  point.pause = () => {};
}

/** Returns whether it was there for an interception alone. */
export function giveBack(point: Point): boolean {
  const { borrowed } = point;
  if (borrowed) point.pause = undefined;
  point.borrowed = false;
  return borrowed;
}

/** A point that nobody waits at. */
export function newPoint(
  breakpoint: Breakpoint,
  code: Uint8Array | undefined,
  over: EmulatedInstruction | undefined,
): Point {
  return {
    ...{ breakpoint, over, code, seen: false, permanent: false, awaited: false },
    ...{ pause: undefined, intercept: undefined, borrowed: false, rearrivals: new Map() },
  };
}
