import type { Addr } from '../base/addr.js';

/** Where a machine of this architecture begins, also after a reset. */
export interface ResetModel {
  /** The reset vector, from the pc of a hart that has not run yet; undefined if that is no known one. */
  vectorAt(pc: bigint): ResetVectorAt | undefined;
  /** The register that shows the mode of a hart that was reset, and its value then. */
  readonly mode: { readonly register: string; readonly value: bigint };
  /** Which harts begin: all of them; or the first one, which starts the others. */
  readonly begins: 'all' | 'first';
  /** The firmware itself may reset the machine once more, when it finds that it ran before. */
  readonly firmwareResets: boolean;
}

export interface ResetVectorAt {
  /** Stops a hart there. */
  readonly breakpoint: { readonly type: 0 | 1; readonly address: Addr; readonly kind: number };
  /** The pc that a stub reports for a hart there. */
  readonly pc: Addr;
  /** No other code runs there; otherwise {@link ResetModel.mode} decides. */
  readonly isCertain: boolean;
}
