import { type Addr, addr } from '../base/addr.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import type { Batch, SignalStop } from '../rsp/index.js';

/** One stop at a probed place, with everything that is read at every stop. */
export interface Hit {
  readonly hart: number;
  readonly pc: Addr;
  readonly stackPointer: bigint;
  /** Its address space, if a program runs in several: calls of different spaces are not related. */
  readonly space?: number | undefined;
  readonly registers: RegisterReader;
  /** Guest nanoseconds. */
  readonly time: number;
  /**
   * The stop is none of a place: the hart's thread begins a system call, or comes back from one, as the stub says.
   * gdbserver takes some for the other: `resultBefore` of the architecture's Linux says which it is.
   */
  readonly systemCall?: 'entry' | 'return' | undefined;
}

export interface MemoryRequest {
  readonly address: Addr;
  readonly length: number;
}

/**
 * Work at a stop that keeps apart from input and output: it yields memory to read, is given the bytes (undefined:
 * cannot be read), and so on until it returns. It yields at least once before anything follows from the stop, perhaps
 * nothing to read: until then the stop may turn out not to be ours, and the work is dropped.
 */
export type Visit<T = Reaction> = Generator<readonly MemoryRequest[], T, readonly (Uint8Array | undefined)[]>;

/** What a tracer does at a hit. `visit` runs while the guest is stopped, `digest` while it runs again. */
export interface Tracer {
  /** What follows from it. */
  visit(hit: Hit): Visit;
  /** Interprets the hit and emits its events. */
  digest(): void;
  /** The target stands at this hit until the promise resolves; undefined where nobody looks. */
  standing?(hit: Hit, memory: MemoryReader): Promise<void> | undefined;
  /** A call is open whose return is a stop. */
  readonly awaitsReturns?: boolean;
  /** The program is gone, replaced by another: no call returns any more. */
  abandon(): void;
}

/** Places where a return is awaited from now on, and those where none is any more. */
export interface Reaction {
  readonly watch: readonly Addr[];
  readonly unwatch: readonly Addr[];
  /** The target is to stop here until the recording ends. */
  readonly stay?: readonly Addr[];
  /** A stop here says nothing any more. */
  readonly spent?: readonly Addr[];
}

/** An engine that traces without stops, and is informed of the other engine's stops. */
export interface StopObserver {
  /** The target runs until the returned function is called. It may interrupt the target meanwhile. */
  runs(): () => void;
  /** Returns true if this observer requested the stop and has handled it. Pending writes are queued in `resume`. */
  handles(stop: SignalStop, resume: Batch): Promise<boolean>;
  /**
   * At every other stop, before it is handled. `emits`: the stop may emit an event. `at`: where, if that is a probe's
   * address or one where a call returns.
   */
  stopped(emits: boolean, at?: Addr): Promise<void>;
}

/** Those that were not made before: what was made and has no answer cannot be read. */
export function newRequests(
  wanted: readonly MemoryRequest[],
  made: readonly MemoryRequest[],
): readonly MemoryRequest[] {
  return wanted.filter((one) => !made.some((each) => each.address === one.address && each.length === one.length));
}

/**
 * Numbers the address spaces of programs that a kernel runs, from 1 in the order of their first hits. 0: the
 * kernel's, or the only one.
 */
export class SpaceNumbers {
  readonly #numbers = new Map<bigint, number>();
  readonly #roots: Addr[] = [];

  /** The number of the space whose page tables have their root at this physical address. */
  of(root: bigint): number {
    let number = this.#numbers.get(root);
    if (number === undefined) {
      number = this.#roots.push(addr(root));
      this.#numbers.set(root, number);
    }
    return number;
  }

  root(number = 0): Addr | undefined {
    return number > 0 ? this.#roots[number - 1] : undefined;
  }
}
