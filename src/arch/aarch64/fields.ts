/** General registers of an instruction that is not decoded; `writes` is undefined if it overwrites none. */
export interface Uses {
  readonly writes: number | undefined;
  readonly reads: readonly number[];
}
