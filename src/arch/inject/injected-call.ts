import type { Addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { Effects } from '../instructions.js';

/** Has a hart that stands at a function's first instruction call that function once for us before its own call of it. */
export interface InjectedCall {
  /**
   * Code for `at`, where our call returns to: takes what {@link enter} has kept from the stack and goes on with the program's own call. So it comes to that
   * whoever is there to see, or nobody. Undefined where the function is out of reach.
   */
  stub(at: Addr, entry: Addr): Uint8Array | undefined;
  /** What to write for the call; `stackPointer` is what it will be at the stub. Undefined when a register is not known. */
  enter(
    registers: RegisterReader,
    stub: Addr,
    values: readonly [bigint, bigint],
  ): (Effects & { readonly stackPointer: bigint }) | undefined;
  /** Registers that {@link enter} changes: put back together with the pc, they are as they were. */
  readonly changes: readonly string[];
}
