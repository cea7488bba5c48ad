import type { Spot, TextReading } from './text-reading.js';

/** How the text of a type's values is written: worked out once, from the type's shape. */
export interface TextPlan {
  /** Of the type, as DWARF spells it. */
  readonly name: string;
  /** Bytes; undefined if the size is not known. */
  readonly size: number | undefined;
  /**
   * The text of the value at an offset of a spot. Undefined if nothing of it was read. Called by
   * {@link TextReading.read} alone, which knows the limits.
   */
  text(reading: TextReading, spot: Spot, offset: number): string | undefined;
}
