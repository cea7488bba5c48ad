// RAM that is removed from the memory map of an x86 kernel, between firmware and kernel.
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/refusal.js';
import { registerOf, type Session, type StopReply, type TargetMemory } from '../rsp/index.js';
import { type BootStart, type MapPlace, mapPlace } from './boot-protocols.js';
import { writeAllOrNone } from './edited-memory.js';
import { joinedBehind, readMap, type Taken, takeRam, writeMap } from './memory-map.js';

/** How long firmware may take to start the kernel, in milliseconds. */
export const firmwareMs = 30_000;
/** A kernel that is mapped at its load address reaches no further from its text at the beginning of RAM. */
const REACH = 2 ** 31;
const MOST_ENTRIES = 128;
/** Bytes that are read and cleared at once. A size of hidden RAM is a multiple of it. */
const PIECE = 64 * 2 ** 10;

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
  image: BootStart,
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
  const taken = takeFrom(place, (await memory.read(map, count * stride)) ?? new Uint8Array(0), hidden);
  if (taken === undefined || taken.start < (place.low ?? 0))
    return { refused: `the memory map at ${hex(map)} has no ${hidden / 2 ** 20} MiB of RAM to spare` };
  const bytes = writeMap(taken.entries, format);
  const end = Math.min(count * stride, bytes.length);
  const room = await memory.read(addOffset(map, end), bytes.length - end);
  const isFull = taken.entries.length > (place.isOfBios ? count : MOST_ENTRIES);
  if (isFull || !room?.every((byte, index) => byte === 0 || byte === before?.[end + index]))
    return { refused: `the memory map at ${hex(map)} has no room for another entry` };
  const start = addr(taken.start);
  // Before the table says so: RAM that cannot be cleared stays the guest's.
  if (place.isOfBios && !(await clear(memory, start, hidden)))
    return { refused: `${hidden / 2 ** 20} MiB at ${hex(start)} cannot be cleared of what the BIOS left there` };
  const failed = await writeAllOrNone(memory, [{ address: map, bytes }, ...place.further(taken)]);
  return failed ? { refused: `the memory map: ${failed.refused}` } : { start, size: hidden, written: bytes };
}

const wayOutOf = {
  bios: 'give the machine a disk or a CD to boot from',
  kernel: "look at the machine's console for what its firmware waits for",
} as const;

function takeFrom(place: MapPlace, table: Uint8Array, hidden: number): Taken | undefined {
  const entries = readMap(table, place.format);
  const taken = entries && takeRam(entries, hidden, Math.min(place.disk ?? REACH, REACH));
  return taken && place.isOfBios ? { ...taken, entries: joinedBehind(taken.entries, taken.start) } : taken;
}

/** Writes zeros over what is not zero. No loader takes memory over from a BIOS that says the RAM is free. */
async function clear(memory: TargetMemory, start: Addr, size: number): Promise<boolean> {
  for (let offset = 0; offset < size; offset += PIECE) {
    const address = addOffset(start, offset);
    const bytes = await memory.read(address, PIECE);
    if (bytes === undefined) return false;
    if (bytes.some((byte) => byte !== 0) && !(await memory.write(address, new Uint8Array(PIECE)))) return false;
  }
  return true;
}

/** Runs to a physical address while paging is off there. Returns why it was not reached, or undefined. */
async function runTo(session: Session, { kind, entry }: BootStart, mostMs: number): Promise<Refusal | undefined> {
  const where = kind === 'bios' ? `boot sector at ${hex(entry)}` : `kernel's entry ${hex(entry)}`;
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
    ? { refused: `${refused} in ${mostMs / 1000} s`, wayOut: wayOutOf[kind === 'bios' ? kind : 'kernel'] }
    : { refused };
}
