import type { Addr } from '../base/addr.js';

/** Where a machine of this architecture begins, and begins again when it is reset. */
export interface ResetModel {
  /** The reset vector, from the pc of a hart that has not run yet; undefined where that is no known one. */
  vectorAt(pc: bigint): ResetVectorAt | undefined;
  /** The register that tells the mode of a hart that was reset, and what it holds then. */
  readonly mode: { readonly register: string; readonly value: bigint };
  /** Which harts begin: all of them, or the first, and the others wait until that starts them. */
  readonly begins: 'all' | 'first';
  /** The firmware itself may reset the machine once more, when it finds that it ran before. */
  readonly firmwareResets: boolean;
}

export interface ResetVectorAt {
  /** Stops a hart there. */
  readonly breakpoint: { readonly type: 0 | 1; readonly address: Addr; readonly kind: number };
  /** As a stub tells the pc of a hart that stands there. */
  readonly pc: Addr;
  /** Nothing else stands there; else {@link ResetModel.mode} has to tell. */
  readonly isCertain: boolean;
}
