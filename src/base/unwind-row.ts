/**
 * How the caller of one frame is found, valid for some range of instructions: what call frame information says and what
 * code analysis finds out. Registers go by their DWARF numbers, CSRs of RISC-V included (4096 and up).
 */
export interface UnwindRow {
  /** The canonical frame address: a number that stays the same for the whole life of the frame. */
  readonly cfa: CfaRule;
  /** The register (or the column without one) whose value in the caller is where the caller goes on. */
  readonly returnAddress: number;
  /**
   * What is known of the caller's registers. One that is not listed has the same value; the stack pointer is the CFA.
   */
  readonly registers: ReadonlyMap<number, RegisterRule>;
  /** The caller was interrupted: it goes on at the return address itself, not behind a call. */
  readonly interrupted: boolean;
}

export type CfaRule =
  | { readonly kind: 'register'; readonly register: number; readonly offset: number }
  /** A DWARF expression that leaves the CFA on its stack. */
  | { readonly kind: 'expression'; readonly expression: Uint8Array };

/** DWARF 5, section 6.4.1: "Structure of Call Frame Information". */
export type RegisterRule =
  /** Lost. As a return address: there is no caller. */
  | { readonly kind: 'undefined' }
  | { readonly kind: 'same' }
  /** In memory, at CFA + offset. */
  | { readonly kind: 'saved'; readonly offset: number }
  /** Its value is CFA + offset. */
  | { readonly kind: 'cfa'; readonly offset: number }
  | { readonly kind: 'register'; readonly register: number }
  /** In memory, at the address that the expression gives when it starts with the CFA on its stack. */
  | { readonly kind: 'saved-expression'; readonly expression: Uint8Array }
  | { readonly kind: 'expression'; readonly expression: Uint8Array };
