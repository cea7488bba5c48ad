import { type Addr, addOffset, addr } from '../../base/addr.js';
import { littleEndian } from '../../base/little-endian.js';
import { memberAt } from './layout.js';
import type { Region } from './memory-image.js';
import { isIn, type TaskContext } from './runtime.js';
import type { AddressRange } from './snapshot.js';

/** A `Waker` in memory: two words. */
export interface FoundWaker {
  /** What stands for the task. */
  readonly data: Addr;
  readonly vtable: Addr;
  /** The first function of the vtable. */
  readonly clone: Addr;
}

const WORD = 8;
/** clone, wake, wake_by_ref, drop */
const FUNCTIONS = 4;

/** The wakers whose data lie in some ranges, by the start of each. */
export async function wakersInto(
  context: TaskContext,
  ranges: readonly AddressRange[],
): Promise<ReadonlyMap<Addr, readonly FoundWaker[]>> {
  const { memory, dead } = context;
  const found = new Map<Addr, FoundWaker[]>();
  const distance = toVtable(context);
  if (distance === undefined) return found;
  for (const [start, places] of memory.pointersInto(ranges)) {
    for (const place of places) {
      if (isIn(dead, place)) continue;
      const words = [place, addOffset(place, distance)].map((at) => wordAt(context, at));
      const [to, table] = await Promise.all(words);
      const clone = table && cloneOf(context, addr(table));
      if (!to || !table || !clone) continue;
      found.set(start, [...(found.get(start) ?? []), { data: addr(to), vtable: addr(table), clone }]);
    }
  }
  return found;
}

/**
 * Which of these addresses some word leads to. A word in `ignored` does not count. Nor does one that a waker has left
 * behind. For an `Option<Waker>` that is `None` again keeps its data, and has no vtable. Undefined if nothing says how
 * a waker lies, or if not all memory is known.
 */
export async function ledTo(
  context: TaskContext,
  addresses: readonly Addr[],
  ignored: readonly Region[],
): Promise<ReadonlySet<Addr> | undefined> {
  const { memory, dead, knowsHeaps } = context;
  const distance = toVtable(context);
  if (distance === undefined || !knowsHeaps || memory.unread > 0) return undefined;
  const found = new Set<Addr>();
  for (const [word, places] of memory.places(addresses)) {
    for (const place of places) {
      if (isIn(dead, place) || isIn(ignored, place)) continue;
      const next = await wordAt(context, addOffset(place, distance));
      if (next !== 0n) found.add(addr(word));
    }
  }
  return found;
}

/** How far from its data the vtable of a waker lies; undefined if the debug info does not say. */
function toVtable({ debug }: TaskContext): number | undefined {
  const [raw] = debug.typesNamed('core::task::wake::RawWaker');
  const [data, vtable] = ['data', 'vtable'].map((name) => raw && memberAt(raw, name));
  return data && vtable && vtable.offset - data.offset;
}

/** The first function, if a constant of the program begins with as many addresses of code as a waker has functions. */
function cloneOf({ debug: { elf } }: TaskContext, at: Addr): Addr | undefined {
  const bytes = elf.bytesAt(at, FUNCTIONS * WORD);
  if (bytes === undefined) return undefined;
  const words = Array.from({ length: FUNCTIONS }, (_, i) => littleEndian(bytes, i * WORD, WORD));
  return words.every((word) => elf.isCode(word)) ? addr(words[0] ?? 0n) : undefined;
}

async function wordAt({ memory }: TaskContext, at: Addr): Promise<bigint | undefined> {
  const bytes = await memory.read(at, WORD);
  return bytes && littleEndian(bytes);
}
