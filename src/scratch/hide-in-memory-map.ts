// RAM that is removed from the memory map of an x86 kernel, between firmware and kernel.
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import { registerOf, type Session, type StopReply } from '../rsp/index.js';
import type { BootImage } from '../target/index.js';
import { mapPlace } from './boot-protocols.js';
import { writeAllOrNone } from './edited-memory.js';
import { readMap, takeRam, writeMap } from './memory-map.js';

/** How long firmware may take to start the kernel, in milliseconds. */
export const firmwareMs = 30_000;
/** A kernel that is mapped at its load address reaches no further from its text at the beginning of RAM. */
const REACH = 2 ** 31;
const MOST_ENTRIES = 128;

interface HiddenInMap {
  readonly start: Addr;
  readonly size: number;
  /** The memory map as it is now. */
  readonly written: Uint8Array;
}

/**
 * Lets the firmware run to the kernel's entry. Removes `hidden` bytes at the top of the first 2 GiB from the memory
 * map that the kernel will read. Afterwards the target is at the entry, before the first instruction. `before` is
 * what was written before a reset: the firmware does not clear the rest of it. It has `mostMs` milliseconds.
 */
export async function hideInMemoryMap(
  session: Session,
  image: BootImage,
  hidden: number,
  { before, mostMs = firmwareMs }: { readonly before?: Uint8Array | undefined; readonly mostMs?: number } = {},
): Promise<HiddenInMap | Refusal> {
  const stopped = await runTo(session, image, mostMs);
  if (stopped !== undefined) return stopped;
  const memory = session.memory();
  const place = await mapPlace(session, memory, image.kind);
  if (isRefusal(place)) return place;
  const { map, format, count } = place;
  const { stride } = format;
  if (count === 0 || count > MOST_ENTRIES || !Number.isInteger(count))
    return { refused: `the memory map at ${hex(map)} has ${count} entries` };
  const entries = readMap((await memory.read(map, count * stride)) ?? new Uint8Array(0), format);
  const taken = entries && takeRam(entries, hidden, Math.min(place.disk ?? REACH, REACH));
  if (taken === undefined || taken.start < (place.low ?? 0))
    return { refused: `the memory map at ${hex(map)} has no ${hidden / 2 ** 20} MiB of RAM to spare` };
  const bytes = writeMap(taken.entries, format);
  const end = Math.min(count * stride, bytes.length);
  const room = await memory.read(addOffset(map, end), bytes.length - end);
  if (
    taken.entries.length > MOST_ENTRIES ||
    !room?.every((byte, index) => byte === 0 || byte === before?.[end + index])
  )
    return { refused: `the memory map at ${hex(map)} has no room for another entry` };
  const start = addr(taken.start);
  const failed = await writeAllOrNone(memory, [{ address: map, bytes }, ...place.further(taken)]);
  return failed ? { refused: `the memory map: ${failed.refused}` } : { start, size: hidden, written: bytes };
}

/** Runs to a physical address while paging is off there. Returns why it was not reached, or undefined. */
async function runTo(session: Session, { entry }: BootImage, mostMs: number): Promise<Refusal | undefined> {
  const where = `kernel's entry ${hex(entry)}`;
  const breakpoint = { type: 1, address: entry, kind: 1 } as const;
  if (!(await session.insertBreakpoint(breakpoint))) return { refused: `no breakpoint can be set at its ${where}` };
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    void session.interrupt().catch(() => {});
  }, mostMs);
  let stop: StopReply;
  try {
    stop = await session.resume();
  } finally {
    clearTimeout(limit);
  }
  if (stop.kind !== 'signal') return { refused: `the guest ended before it came to its ${where}` };
  await session.removeBreakpoint(breakpoint);
  const at = await registerOf(session, 'rip');
  if (at === entry) return undefined;
  const refused = `the guest did not come to its ${where}`;
  return isLate
    ? {
        refused: `${refused} in ${mostMs / 1000} s`,
        wayOut: "look at the machine's console for what its firmware waits for",
      }
    : { refused };
}
