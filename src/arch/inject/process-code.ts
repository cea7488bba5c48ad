import type { Addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { ProbeCode } from './probe-code.js';
import type { HartSource } from './record-parts.js';

/** Code that counts a counter of unknown rate against a timer of known rate. It runs once at a stop, on one hart. */
export interface CounterCalibration {
  /** As a trace names the clock. */
  readonly name: string;
  /** Ticks of the timer per second. */
  readonly referenceHz: number;
  /** Where the machine has the timer; undefined if it has none. Asked through the stub's own commands. */
  reference(monitor: (command: string) => Promise<string | undefined>): Promise<number | undefined>;
  /** `reference`: what the method of that name has found. */
  code(at: Addr, reference: number): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  /** Registers that it changes, to be restored. */
  readonly changes: readonly string[];
  /** The value that a register must have before it runs, if any must. */
  begin(register: { readonly name: string; readonly value: bigint }): bigint | undefined;
  /** At the breakpoint: the counter's present value, and how far both have counted. */
  result(
    registers: RegisterReader,
  ): { readonly counter: number; readonly elapsed: number; readonly reference: number } | undefined;
}

/** Code that counts the counter against the clock of the kernel that a process runs on. */
export interface ClockSamples {
  /** Reaches its breakpoint after some milliseconds, with samples at `samples`. */
  code(at: Addr, samples: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  /** Bytes of the samples. */
  readonly size: number;
  /**
   * The counter and the kernel's monotonic clock in nanoseconds, at two moments; undefined if the samples are not
   * plausible.
   */
  result(samples: Uint8Array): readonly [first: ClockSample, last: ClockSample] | undefined;
}

export interface ClockSample {
  readonly ticks: bigint;
  readonly nanos: bigint;
}

/** What trampolines in a process of Linux need in addition. */
export interface ProcessCode {
  /** How threads are told apart. */
  readonly thread: HartSource;
  /**
   * Like {@link ProbeCode.wait}, but it measures its time: it keeps to `allowed` and `patience`. It makes no system
   * call, because the process may come under a filter of them at any time.
   */
  readonly wait: ProbeCode['wait'];
  /** .eh_frame for exit trampolines' addresses that are return addresses, each with its `returnOffset`. */
  unwindTable(exits: ReadonlyMap<bigint, { readonly offset: number }>): Uint8Array;
  /** The most bytes of it. */
  unwindTableBytes(exits: number): number;
  /**
   * Calls the C function whose address is in the register `function`, saves vector registers at `save`, and reaches
   * its breakpoint.
   */
  readonly call: {
    readonly function: string;
    /** Registers of the first parameters. */
    readonly parameters: readonly string[];
    /** `save`: some 3 KiB at a multiple of 64, which must be zero at first. */
    code(at: Addr, save: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  };
  readonly clock: ClockSamples;
  readonly stackWalk: StackWalk;
}

/** A process's `_Unwind_Backtrace(callback, argument)`, which the callback is to see no trampoline of. */
export interface WrappedWalk {
  readonly walk: Addr;
  /** `_Unwind_GetIP` of the same unwinder. */
  readonly addressOf: Addr;
  /** Where frames are passed over. */
  readonly hidden: { readonly address: Addr; readonly length: number };
  /** A word that counts the walks that have not ended. */
  readonly open: Addr;
}

/** Code to run instead of {@link WrappedWalk.walk}: it calls that with a callback of its own. */
export interface StackWalk {
  readonly bytes: number;
  /** Where the walk returns to, from the code's first byte on; and how far from the stack pointer it returns then. */
  readonly returns: { readonly at: number; readonly offset: number };
  /** The register of the callback. */
  readonly callback: string;
  code(at: Addr, walk: WrappedWalk): { readonly bytes: Uint8Array; readonly returns: Addr; readonly callback: Addr };
}
