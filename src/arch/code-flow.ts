import type { Addr } from '../base/addr.js';

/** Where control goes inside a function. */
export interface CodeFlow {
  /** Registers that calls do not preserve and that pass no arguments, if a far jump goes through such a register. */
  readonly temporaries?: readonly string[];
  /** Its instructions in the order of memory. They end where bytes are no instruction. */
  steps(code: Uint8Array, start: Addr): readonly FlowStep[];
  /** Where the memory lies that an instruction writes, or reserves; undefined if one register does not say it. */
  memory?(code: Uint8Array, at: Addr): MemoryOperand | undefined;
  /** Whether an instruction writes a register, by its name. */
  writes?(code: Uint8Array, at: Addr, register: string): boolean;
}

/** An address: a register's value and a distance; or a number, without a register. */
export interface MemoryPlace {
  readonly register: string | undefined;
  readonly offset: bigint;
}

export interface MemoryOperand extends MemoryPlace {
  /** The instruction is atomic, or reserves memory. */
  readonly isAtomic: boolean;
}

export interface FlowStep {
  readonly address: Addr;
  readonly length: number;
  /**
   * `branch`: to the target or on. `indirect`: to where a register or a table says. `return`: also a jump that surely
   * leaves the function. `end`: a trap. `store`: writes memory by another register than the stack pointer, and goes on.
   */
  readonly kind: 'next' | 'store' | 'branch' | 'jump' | 'indirect' | 'call' | 'return' | 'end';
  /** Of a direct branch, jump or call. */
  readonly target: Addr | undefined;
  /** An address that it computes: maybe that of a jump table. Of a call through memory, where the word lies. */
  readonly names: Addr | undefined;
  /** The temporaries whose values it needs: a bit each. */
  readonly needs?: number;
  /** Those that it overwrites, or that have no value behind it. */
  readonly overwrites?: number;
  /** It `makes` a frame pointer of the stack pointer, or its memory is given `by` the register for that. */
  readonly framePointer?: 'makes' | 'by' | undefined;
  /** It needs the stack pointer's value; or `sets` a new one. Unknown on x86_64 and loongarch64. */
  readonly stack?: 'uses' | 'sets' | undefined;
  /** It reads or writes memory by a register that is not the stack pointer. */
  readonly accesses?: boolean;
  /** A `next` that may write memory of the frame. */
  readonly writesFrame?: boolean;
  /** It begins a reservation of memory that another instruction ends, or it is the one that ends it. */
  readonly reservation?: 'begins' | 'ends' | undefined;
}
