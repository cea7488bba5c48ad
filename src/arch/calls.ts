/** How functions are called and return (psABI; rustc's own ABI is the same for scalars). */
export interface CallingConvention {
  /** Integer argument registers in order. */
  readonly arguments: readonly string[];
  /** Registers that carry the first and the second scalar of a result. */
  readonly results: readonly [string, string];
  /** Where the return address is when a function's first instruction is about to run. */
  readonly returnAddress:
    | { readonly in: 'register'; readonly name: string }
    | { readonly in: 'stack'; readonly offset: number };
  /** The stack pointer right after the function has returned, computed from the one at its first instruction. */
  stackPointerAfterReturn(atEntry: bigint): bigint;
  /**
   * The register with the address of a result in memory, if it has one of its own; else that is in the first of
   * `arguments`.
   */
  readonly resultAddress?: string;
  /** An integer of two words begins in a register with an even number. */
  readonly alignsPairs?: boolean;
  /** How C passes structs by value. Without it, no argument from the first struct on is read. */
  readonly aggregates?: AggregatePassing;
  /** How a program passes floating-point numbers; undefined if that is not known. */
  floats?(program: ProgramAbi): FloatPassing | undefined;
  /** Functions that are never probed, because they are not called or do not return like others. */
  readonly irregularFunctions?: readonly { readonly name: RegExp; readonly reason: string }[];
}

/**
 * What the psABIs of RISC-V and LoongArch say alike: LP64. `link`: the register of the return address; `widest`: bytes
 * of the widest number with a register of its own, by `e_flags`.
 */
export function lp64(
  link: string,
  floats: Pick<FloatPassing, 'arguments' | 'results'>,
  widest: (flags: number) => number | undefined,
): Pick<CallingConvention, 'returnAddress' | 'stackPointerAfterReturn' | 'aggregates' | 'floats'> {
  return {
    returnAddress: { in: 'register', name: link },
    stackPointerAfterReturn: (atEntry) => atEntry,
    aggregates: { maySplit: true, large: 'by-address' },
    floats: ({ flags }) => ({
      ...floats,
      widest: widest(flags) ?? 0,
      overflow: 'integer-registers',
      structs: 'by-member',
    }),
  };
}

/** What says how a program was compiled. */
interface ProgramAbi {
  /** `e_flags` of its ELF header. */
  readonly flags: number;
  /** A Linux process. */
  readonly isProcess: boolean;
}

/** Floating-point numbers in registers of their own. */
export interface FloatPassing {
  readonly arguments: readonly string[];
  readonly results: readonly string[];
  /** Bytes of the widest number that has a register. Wider ones are passed as integers are. */
  readonly widest: number;
  /** Where a number is that finds none free. */
  readonly overflow: 'integer-registers' | 'stack';
  /**
   * What of a C struct up to two words has a register of its own. By word: each word that holds numbers alone. By
   * member: each, if there are two at most. Homogeneous: each of at most four, all numbers of one size.
   */
  readonly structs: 'by-word' | 'by-member' | 'homogeneous';
}

/** Structs and unions by value without floating-point members. */
export interface AggregatePassing {
  /** A struct of two words may lie half in the last register and half on the stack. */
  readonly maySplit: boolean;
  /** One that finds too few registers takes all that are left of their kind, and lies on the stack. */
  readonly takesAll?: boolean;
  /** Where a struct of more than two words lies: behind a pointer that the caller passes, or on the stack. */
  readonly large: 'by-address' | 'on-stack';
}
