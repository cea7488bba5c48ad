// Follows what rsptrace says of held Futures through a target's memory: arrays, boxes, vectors and lists, to the last element.

import {
  type FutureSet,
  type FutureType,
  type HeldFuture,
  liveAt,
  liveFutures,
  type NextBlock,
} from '../../src/async/futures/index.js';
import { type Addr, addOffset, hex } from '../../src/base/addr.js';
import type { MemoryReader } from '../../src/base/memory-reader.js';

export interface Place {
  readonly held: HeldFuture;
  readonly future: FutureType;
  readonly address: Addr;
}

/** Where each Future lies that the one at `address` holds directly just now. */
export async function heldPlaces(
  future: FutureType,
  address: Addr,
  memory: MemoryReader,
  set: FutureSet,
): Promise<Place[]> {
  const bytes = await memory.read(address, future.size);
  if (bytes === undefined) throw new Error(`${future.future} at ${hex(address)} cannot be read`);
  const found: Place[] = [];
  const follow = async (held: HeldFuture, next: NextBlock): Promise<void> => {
    const last = next.hop === held.hops.length;
    if (last && held.vtable !== undefined) {
      const target = next.vtable && set.byVtable(next.vtable);
      if (target === undefined) throw new Error(`nothing is known of ${held.typeName} at ${hex(next.pointer)}`);
      found.push({ held, future: target, address: next.pointer });
      return;
    }
    const { to } = next;
    const count = to.kind === 'slice' ? Number(next.count) : 1;
    for (let i = 0, at = next.pointer; i < count && at !== 0n; i++) {
      const place = last ? held : held.hops[next.hop];
      const length = (place?.offset ?? 0) + (last ? held.size : 16) + guarded(held);
      const block = (await memory.read(at, length)) ?? new Uint8Array();
      for (const live of liveAt(held, block, 0, next.hop)) {
        if (live.offset !== undefined && held.future !== undefined) {
          found.push({ held, future: held.future, address: addOffset(at, live.offset) });
        }
        if (live.next !== undefined) await follow(held, live.next);
      }
      if (to.kind === 'slice') at = addOffset(at, to.stride);
      if (to.kind === 'list') {
        const link = await memory.read(addOffset(at, to.next), 8);
        await followList(held, next, link);
      }
    }
  };
  const followList = async (held: HeldFuture, next: NextBlock, link: Uint8Array | undefined): Promise<void> => {
    const pointer = link === undefined ? 0n : Buffer.from(link).readBigUInt64LE();
    if (pointer !== 0n) await follow(held, { ...next, pointer: pointer as Addr });
  };
  for (const { held, offset, next } of liveFutures(future, bytes)) {
    if (offset !== undefined && held.future !== undefined) {
      found.push({ held, future: held.future, address: addOffset(address, offset) });
    }
    if (next !== undefined) await follow(held, next);
  }
  return found;
}

/** Discriminants may stand behind what they guard. */
function guarded(held: HeldFuture): number {
  return [held, ...held.hops].flatMap((place) => place.guards).reduce((end, g) => Math.max(end, g.offset + g.size), 0);
}
