import type { Addr } from '../../../base/addr.js';
import type { Breakpoint } from '../../../rsp/index.js';
import type { WatchAccess } from '../../../trace/index.js';
import type { WatchPlace } from './resolve.js';

/** One watchpoint in the target, and what is known about the bytes under it. */
export interface Watchpoint {
  readonly place: WatchPlace;
  /** Its number, from 0. */
  readonly index: number;
  breakpoint: Breakpoint;
  /** The last bytes that were read there. */
  known: Uint8Array | undefined;
}

/** An access that the target has reported. */
export interface Access {
  readonly point: Watchpoint;
  readonly old: Uint8Array | undefined;
  readonly value: Uint8Array | undefined;
  readonly hart: number;
  readonly time: number;
  readonly pc: Addr;
  /** `pc` is the instruction itself; else it is the one after it. */
  readonly exact: boolean;
}

/** What a watchpoint of this type reports. */
export function accessOf({ type }: Breakpoint): WatchAccess {
  return type === 3 ? 'r' : type === 4 ? 'rw' : 'w';
}
