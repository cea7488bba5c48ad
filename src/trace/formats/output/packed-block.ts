/** How a format makes one record of a block of whole ones. */
export interface Packing {
  readonly pack: (records: Uint8Array) => Uint8Array;
  /** The first bytes of a record that takes so many bytes and that readers skip, whatever is behind them in it. */
  readonly skipped: (length: number) => Uint8Array;
  /** How many these are. The shortest packed block is longer. */
  readonly skippedHead: number;
}

/** A change of a file: bytes that are written at an offset, or an offset from which on everything is cut off. */
export type FileChange = { readonly at: number; readonly bytes: Uint8Array } | { readonly cutTo: number };

/**
 * Replaces the records from `start` to the end of a file by the block that they are packed in. After each change the
 * file can be read and has every record once, also if only a part of a long write was done. The short writes are as
 * long as the head of a skipped record.
 *
 *        plain records                                 as it was
 *     1. plain records | skip( packed )                the block is written behind, where no reader looks
 *     2. skip( ............. ) packed                  from now on it is read, and the plain records are not
 *     3. skip( packed' | skip ) packed                 written to its place, but for its first bytes
 *     4. packed | skip( ............ )                 the first bytes
 *     5. packed                                        the file is cut
 */
export function* replacement(
  { pack: _, skipped, skippedHead }: Packing,
  { start, end }: { readonly start: number; readonly end: number },
  packed: Uint8Array,
): Generator<FileChange> {
  const padding = Math.max(0, packed.length - (end - start));
  const length = skippedHead + padding + packed.length;
  const hidden = new Uint8Array(length);
  hidden.set(skipped(length));
  hidden.set(packed, skippedHead + padding);
  yield { at: end, bytes: hidden };
  const before = end + skippedHead + padding - start;
  yield { at: start, bytes: skipped(before) };
  const moved = new Uint8Array(packed.length);
  moved.set(packed.subarray(skippedHead));
  moved.set(skipped(before), packed.length - skippedHead);
  yield { at: start + skippedHead, bytes: moved };
  yield { at: start, bytes: packed.subarray(0, skippedHead) };
  yield { cutTo: start + packed.length };
}
