import type { Addr } from '../base/addr.js';

/** A function that matches and still is not probed. */
export interface ExcludedFunction {
  readonly name: string;
  readonly address: Addr;
  readonly reason: string;
}
