/*
 * Any executor that boxes its tasks. A `Box<dyn Future>` is two words: a pointer to a possible place of a Future, and
 * the address of that Future's vtable.
 *
 * A box that was dropped looks the same while its memory is not used again. The allocator's marks show that, or its
 * lists of free blocks.
 * A box on a stack is held by what a thread blocks on, which is no task.
 * Besides, a box on a heap counts only if something points to it or to what is right before it. An executor's queue
 * does, and so do a task's wakers.
 */

import { type Addr, addOffset, addr, pointsTo } from '../../../base/addr.js';
import { littleEndian } from '../../../base/little-endian.js';
import type { ElfFile } from '../../../elf/index.js';
import type { FutureType } from '../../futures/index.js';
import { freeBlocks } from '../free-memory.js';
import { writableRegions } from '../memory-image.js';
import { type FoundRoot, isIn, type Runtime, type TaskContext } from '../runtime.js';

const WORD = 8n;
/** A task that holds a box begins at most so far before it. */
const REACH = 512n;

/** Every boxed Future, each once, however many words point to it. */
export const boxes: Runtime = {
  name: 'search',
  async roots(context) {
    const found = new Map<string, { future: FutureType; address: Addr; references: Addr[] }>();
    const vtables = new Map<bigint, FutureType>();
    for (const future of context.futures.all) for (const vtable of future.vtables) vtables.set(vtable, future);
    for (const [vtable, places] of context.memory.places(vtables.keys())) {
      const future = vtables.get(vtable);
      if (future === undefined) continue;
      for (const place of places) {
        const before = addr(place - WORD);
        const bytes = isIn(context.dead, place) ? undefined : await context.memory.read(before, Number(WORD));
        const pointer = bytes && littleEndian(bytes);
        if (!pointer || pointer % BigInt(future.align ?? 1) !== 0n) continue;
        const key = `${pointer}:${future.typeOffset}`;
        const known = found.get(key);
        if (known) known.references.push(before);
        else found.set(key, { future, address: addr(pointer), references: [before] });
      }
    }
    const free = found.size > 0 ? await freeBlocks(context) : [];
    const candidates: FoundRoot[] = [];
    for (const root of found.values()) {
      const references = root.references.filter((at) => !isIn(free, at));
      const address = pointsTo(root.address, context.memory.pointerBits);
      const isStale = references.length === 0 || isIn(free, address);
      const { size } = root.future;
      const isGone = isStale || (await context.isFreed(address, size));
      candidates.push(isGone ? { ...root, fate: 'unreferenced' } : { ...root, references });
    }
    return referenced(context, candidates);
  },
};

function referenced(context: TaskContext, candidates: readonly FoundRoot[]): FoundRoot[] {
  const own = heldForSure(context.debug.elf);
  const unsure = candidates.filter(({ fate, references }) => fate === undefined && !references.some(own));
  const starts = context.memory.pointersInto(
    unsure.flatMap(({ references }) => references.map((at) => ({ start: addr(at - REACH), end: addOffset(at, 1) }))),
  );
  const isHeld = (at: Addr): boolean =>
    [...(starts.get(addr(at - REACH)) ?? [])].some((place) => place !== at && !isIn(context.dead, place));
  return candidates.map((root) => {
    const { references, fate } = root;
    if (fate !== undefined) return root;
    if (references.some(own) || references.some(isHeld)) return { ...root, fate: 'live' };
    return { ...root, fate: isOnStack(context, root) ? 'internal' : 'unreferenced' };
  });
}

/** A box that lies in the used part of a stack: what a thread blocks on holds it. */
export function isOnStack({ stacks, dead }: TaskContext, { references }: FoundRoot): boolean {
  return references.some((at) => isIn(stacks, at) && !isIn(dead, at));
}

/** A static of at least so many bytes is an arena that a heap lies in. */
const ARENA = 1 << 16;

/** Statics are never freed, unless they are a heap's arena. */
function heldForSure(elf: ElfFile): (at: Addr) => boolean {
  const regions = writableRegions(elf);
  return (at) => {
    if (!isIn(regions, at)) return false;
    const symbol = elf.symbols.at(at);
    return symbol !== undefined && symbol.size < ARENA;
  };
}
