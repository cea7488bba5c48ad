// Whose trampolines lie where.
import { type Addr, addOffset } from '../base/addr.js';
import { pieceBefore } from './interrupted.js';
import type { Trampoline } from './place-site.js';
import { inOrder, type Piece } from './ring.js';

/** Code of a trampoline, and the probe that it serves. */
export interface ServedCode extends Piece {
  readonly site: { readonly index: number; readonly plan: { readonly name: string; readonly address: Addr } };
}

/** In the order of memory: also the jumps on the way there. */
export function servedCode(trampolines: readonly Trampoline[]): readonly ServedCode[] {
  return inOrder(
    trampolines.flatMap(({ site, entry, exit, ends, hop }) =>
      [entry, ...(exit ? [exit] : []), ...(hop ? [hop] : []), ...ends].map(({ address, bytes }) => ({
        site,
        address,
        length: bytes.length,
      })),
    ),
  );
}

/** The code at an address. `sorted`: as {@link servedCode} gives it. */
export function servedAt(sorted: readonly ServedCode[], pc: bigint): ServedCode | undefined {
  const last = pieceBefore(sorted, pc + 1n);
  return last && pc < addOffset(last.address, last.length) ? last : undefined;
}
