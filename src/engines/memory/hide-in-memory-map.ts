// How x86 kernels learn about RAM when QEMU starts them:
//
//   PVH (Xen, public/arch-x86/hvm/start_info.h): at the entry ebx is the address of
//      0x00 magic 336ec578 | version (4 each)   0x0c modules (4) | their list (8): address, size, ... (32 bytes each)
//      0x28 memory map (8) | entries (4) | reserved (4)
//   Linux (Documentation/arch/x86/boot.rst, zero-page.rst): at the entry esi is the address of boot_params, in it
//      0x1e8 e820 entries (1)   0x202 "HdrS"   0x218 ramdisk_image, ramdisk_size (4 each)
//      0x2d0 e820 table, 20 bytes an entry
import { type Addr, addOffset, addr, hex } from '../../base/addr.js';
import { isRefusal, type Refusal } from '../../base/refusal.js';
import type { BootImage } from '../../facts/index.js';
import type { Session, StopReply, TargetMemory } from '../../rsp/index.js';
import { readMap, takeRam, writeMap } from './memory-map.js';

/** How long firmware may take to start the kernel, in milliseconds. */
const bootMs = 30_000;
/** A kernel that is mapped at its load address reaches no further from its text at the beginning of RAM. */
const REACH = 2 ** 31;
const MOST_ENTRIES = 128;
const MOST_MODULES = 64;

interface MapPlace {
  readonly map: Addr;
  readonly stride: number;
  readonly count: number;
  readonly countAt: Addr;
  readonly countBytes: 1 | 4;
  /** The lowest address of an initial RAM disk. */
  readonly disk: number | undefined;
}

export interface HiddenInMap {
  readonly start: Addr;
  readonly size: number;
  /** The memory map as it is now. */
  readonly written: Uint8Array;
}

/**
 * Lets the firmware run to the kernel's entry. Removes `hidden` bytes at the top of the first 2 GiB from the memory
 * map that the kernel will read. Afterwards the target is at the entry, before the first instruction. `before` is
 * what was written before a reset: the firmware does not clear the rest of it.
 */
export async function hideInMemoryMap(
  session: Session,
  image: BootImage,
  hidden: number,
  before?: Uint8Array,
): Promise<HiddenInMap | Refusal> {
  const stopped = await runTo(session, image.entry);
  if (stopped !== undefined) return { refused: stopped };
  const memory = session.memory();
  const place = await (image.kind === 'pvh' ? startInfo(session, memory) : bootParams(session, memory));
  if (isRefusal(place)) return place;
  const { map, stride, count } = place;
  if (count === 0 || count > MOST_ENTRIES) return { refused: `the memory map at ${hex(map)} has ${count} entries` };
  const entries = readMap((await memory.read(map, count * stride)) ?? new Uint8Array(0), stride);
  const taken = entries === undefined ? undefined : takeRam(entries, hidden, Math.min(place.disk ?? REACH, REACH));
  if (taken === undefined)
    return { refused: `the memory map at ${hex(map)} has no ${hidden / 2 ** 20} MiB of RAM to spare` };
  const bytes = writeMap(taken.entries, stride);
  const end = count * stride;
  const room = await memory.read(addOffset(map, end), bytes.length - end);
  if (
    taken.entries.length > MOST_ENTRIES ||
    !room?.every((byte, index) => byte === 0 || byte === before?.[end + index])
  ) {
    return { refused: `the memory map at ${hex(map)} has no room for another entry` };
  }
  const total = new Uint8Array(place.countBytes);
  total[0] = taken.entries.length;
  if (!(await memory.write(map, bytes)) || !(await memory.write(place.countAt, total))) {
    return { refused: `the memory map at ${hex(map)} cannot be written` };
  }
  const back = await memory.read(map, bytes.length);
  if (back === undefined || Buffer.compare(back, bytes) !== 0)
    return { refused: `the memory map at ${hex(map)} does not keep what is written` };
  return { start: addr(taken.start), size: hidden, written: bytes };
}

/** Runs to a physical address while paging is off there. Returns why it was not reached, or undefined. */
async function runTo(session: Session, entry: Addr): Promise<string | undefined> {
  const breakpoint = { type: 1, address: entry, kind: 1 } as const;
  if (!(await session.insertBreakpoint(breakpoint)))
    return `no breakpoint can be set at the kernel's entry ${hex(entry)}`;
  const limit = setTimeout(() => void session.interrupt().catch(() => {}), bootMs);
  let stop: StopReply;
  try {
    stop = await session.resume();
  } finally {
    clearTimeout(limit);
  }
  if (stop.kind !== 'signal') return "the guest ended before its kernel's entry was reached";
  await session.removeBreakpoint(breakpoint);
  const at = await register(session, 'rip');
  return at === entry ? undefined : `the guest did not come to its kernel's entry ${hex(entry)}`;
}

async function startInfo(session: Session, memory: TargetMemory): Promise<MapPlace | Refusal> {
  const at = addr((await register(session, 'rbx')) & 0xffff_ffffn);
  const info = await view(memory, at, 56);
  if (info?.getUint32(0, true) !== 0x336ec578) return { refused: `there is no PVH start info at ${hex(at)}` };
  if (info.getUint32(4, true) < 1) return { refused: 'the PVH start info has no memory map' };
  const modules = info.getUint32(12, true);
  if (modules > MOST_MODULES) return { refused: `the PVH start info tells of ${modules} modules` };
  const list = await view(memory, addr(info.getBigUint64(16, true)), modules * 32);
  if (list === undefined) return { refused: 'the list of PVH modules cannot be read' };
  const starts = Array.from({ length: modules }, (_, index) => Number(list.getBigUint64(index * 32, true)));
  return {
    map: addr(info.getBigUint64(40, true)),
    stride: 24,
    count: info.getUint32(48, true),
    countAt: addOffset(at, 48),
    countBytes: 4,
    disk: modules === 0 ? undefined : Math.min(...starts),
  };
}

async function bootParams(session: Session, memory: TargetMemory): Promise<MapPlace | Refusal> {
  const at = addr((await register(session, 'rsi')) & 0xffff_ffffn);
  const params = await view(memory, at, 0x2d0);
  if (params?.getUint32(0x202, true) !== 0x53726448) return { refused: `there are no boot_params at ${hex(at)}` };
  return {
    map: addOffset(at, 0x2d0),
    stride: 20,
    count: params.getUint8(0x1e8),
    countAt: addOffset(at, 0x1e8),
    countBytes: 1,
    disk: params.getUint32(0x21c, true) === 0 ? undefined : params.getUint32(0x218, true),
  };
}

async function view(memory: TargetMemory, address: Addr, length: number): Promise<DataView | undefined> {
  const bytes = await memory.read(address, length);
  return bytes === undefined ? undefined : new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

async function register(session: Session, name: string): Promise<bigint> {
  const batch = session.batch();
  const reply = batch.readRegister(name);
  await batch.send();
  return reply.value ?? 0n;
}
