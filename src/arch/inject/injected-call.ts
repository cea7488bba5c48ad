import type { Addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { Effects } from '../instructions.js';

/**
 * Makes a hart at a function's first instruction call that function once for rsptrace, before the program's own call.
 */
export interface InjectedCall {
  /**
   * Code for `at`, where our call returns to. It takes what {@link enter} has saved from the stack and goes on with
   * the program's own call. So that call happens whether or not rsptrace is still there. Undefined if the function is
   * out of reach.
   */
  stub(at: Addr, entry: Addr): Uint8Array | undefined;
  /** What to write for the call. `stackPointer` is its value at the stub. Undefined if a register is not known. */
  enter(
    registers: RegisterReader,
    stub: Addr,
    values: readonly [bigint, bigint],
  ): (Effects & { readonly stackPointer: bigint }) | undefined;
  /** Registers that {@link enter} changes. Restoring them and the pc undoes the change. */
  readonly changes: readonly string[];
}
