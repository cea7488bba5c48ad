// How x86 kernels learn about RAM when QEMU starts them, or a loader that a BIOS reads from a disk:
//
//   PVH (Xen, public/arch-x86/hvm/start_info.h): at the entry ebx is the address of
//      0x00 magic 336ec578 | version (4 each)   0x0c modules (4) | their list (8): address, size, ... (32 bytes each)
//      0x28 memory map (8) | entries (4) | reserved (4)
//   Linux (Documentation/arch/x86/boot.rst, zero-page.rst): at the entry esi is the address of boot_params, in it
//      0x1e8 e820 entries (1)   0x202 "HdrS"   0x218 ramdisk_image, ramdisk_size (4 each)
//      0x2d0 e820 table, 20 bytes an entry
//   Multiboot (Multiboot Specification 0.6.96, "Machine state" and "Boot information format"): at the entry eax is
//      2badb002 and ebx the address of
//      0x00 flags   0x08 KiB of RAM from 1 MiB on   0x14 modules | their list: start, end, ... (16 bytes each)
//      0x2c bytes of the memory map | its address (4 bytes each)
//   BIOS (ACPI 6.5, 15.1 "INT 15H, E820H"): the loader asks for one entry after the other. SeaBIOS answers from a table
//      in its segment at f0000 (src/e820map.c), which is complete when the boot sector's first instruction is to run.
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import type { Refusal } from '../base/refusal.js';
import { registerOf, type Session, type TargetMemory } from '../rsp/index.js';
import type { BootImage } from '../target/index.js';
import { type MapFormat, RAM, readMap, type Taken } from './memory-map.js';

const MOST_MODULES = 64;
const MIB = 2 ** 20;

/** What the target's first instruction is that reads a memory map, and which. */
export interface BootStart {
  readonly kind: BootImage['kind'] | 'bios';
  readonly entry: Addr;
}

/** Where a BIOS loads the first sector of a disk (IBM PC). */
export const BOOT_SECTOR: BootStart = { kind: 'bios', entry: addr(0x7c00) };

/** Where a kernel reads its memory map. */
export interface MapPlace {
  readonly map: Addr;
  readonly format: MapFormat;
  readonly count: number;
  /** What else is said of the map. */
  further(taken: Taken): readonly { readonly address: Addr; readonly bytes: Uint8Array }[];
  /** The lowest address of an initial RAM disk at the top of RAM. */
  readonly disk?: number | undefined;
  /** RAM below is in use. */
  readonly low?: number;
  /** The number of entries cannot be changed, and firmware has left bytes of its own in the RAM. */
  readonly isOfBios?: boolean;
}

/** The target is at the kernel's entry. */
export async function mapPlace(
  session: Session,
  memory: TargetMemory,
  kind: BootStart['kind'],
): Promise<MapPlace | Refusal> {
  if (kind === 'bios') return biosTable(memory);
  if (kind === 'pvh') return startInfo(session, memory);
  return kind === 'bzimage' ? bootParams(session, memory) : multibootInfo(session, memory);
}

async function startInfo(session: Session, memory: TargetMemory): Promise<MapPlace | Refusal> {
  const at = addr(((await registerOf(session, 'rbx')) ?? 0n) & 0xffff_ffffn);
  const info = await view(memory, at, 56);
  if (info?.getUint32(0, true) !== 0x336ec578) return { refused: `there is no PVH start info at ${hex(at)}` };
  if (info.getUint32(4, true) < 1) return { refused: 'the PVH start info has no memory map' };
  const modules = info.getUint32(12, true);
  if (modules > MOST_MODULES) return { refused: `the PVH start info has ${modules} modules` };
  const list = await view(memory, addr(info.getBigUint64(16, true)), modules * 32);
  if (list === undefined) return { refused: 'the list of PVH modules cannot be read' };
  const starts = Array.from({ length: modules }, (_, index) => Number(list.getBigUint64(index * 32, true)));
  return {
    map: addr(info.getBigUint64(40, true)),
    format: { stride: 24, before: 0 },
    count: info.getUint32(48, true),
    further: ({ entries }) => [{ address: addOffset(at, 48), bytes: word(entries.length) }],
    disk: modules === 0 ? undefined : Math.min(...starts),
  };
}

async function bootParams(session: Session, memory: TargetMemory): Promise<MapPlace | Refusal> {
  const at = addr(((await registerOf(session, 'rsi')) ?? 0n) & 0xffff_ffffn);
  const params = await view(memory, at, 0x2d0);
  if (params?.getUint32(0x202, true) !== 0x53726448) return { refused: `there are no boot_params at ${hex(at)}` };
  return {
    map: addOffset(at, 0x2d0),
    format: { stride: 20, before: 0 },
    count: params.getUint8(0x1e8),
    further: ({ entries }) => [{ address: addOffset(at, 0x1e8), bytes: Uint8Array.of(entries.length) }],
    disk: params.getUint32(0x21c, true) === 0 ? undefined : params.getUint32(0x218, true),
  };
}

const multiboot = { magic: 0x2bad_b002, hasSizes: 1, hasModules: 8, hasMap: 64, stride: 24 } as const;

async function multibootInfo(session: Session, memory: TargetMemory): Promise<MapPlace | Refusal> {
  const at = addr(((await registerOf(session, 'rbx')) ?? 0n) & 0xffff_ffffn);
  const isMultiboot = (((await registerOf(session, 'rax')) ?? 0n) & 0xffff_ffffn) === BigInt(multiboot.magic);
  const info = isMultiboot ? await view(memory, at, 52) : undefined;
  if (info === undefined) return { refused: `there is no Multiboot information at ${hex(at)}` };
  const flags = info.getUint32(0, true);
  if ((flags & multiboot.hasMap) === 0) return { refused: 'the Multiboot information has no memory map' };
  const modules = (flags & multiboot.hasModules) === 0 ? 0 : info.getUint32(0x14, true);
  if (modules > MOST_MODULES) return { refused: `the Multiboot information has ${modules} modules` };
  const list = await view(memory, addr(BigInt(info.getUint32(0x18, true))), modules * 16);
  if (list === undefined) return { refused: 'the list of Multiboot modules cannot be read' };
  const ends = Array.from({ length: modules }, (_, index) => list.getUint32(index * 16 + 4, true));
  const upper = info.getUint32(8, true);
  return {
    map: addr(BigInt(info.getUint32(0x30, true))),
    format: { stride: multiboot.stride, before: 4 },
    count: info.getUint32(0x2c, true) / multiboot.stride,
    further: ({ entries, start }) => [
      { address: addOffset(at, 0x2c), bytes: word(entries.length * multiboot.stride) },
      ...((flags & multiboot.hasSizes) === 0
        ? []
        : [{ address: addOffset(at, 8), bytes: word(Math.min(upper, (start - MIB) / 1024)) }]),
    ],
    // They lie behind the kernel.
    low: Math.max(0, ...ends),
  };
}

/** The BIOS's segment; the top of RAM below 640 KiB, where its table's first entry ends at the latest. */
const BIOS = { start: addr(0xf_0000), size: 0x1_0000, lowRam: 0xa_0000, stride: 20, mostEntries: 32 } as const;

async function biosTable(memory: TargetMemory): Promise<MapPlace | Refusal> {
  const segment = await memory.read(BIOS.start, BIOS.size);
  if (segment === undefined) return { refused: `the BIOS at ${hex(BIOS.start)} cannot be read` };
  const tables = tablesIn(segment);
  const [first] = tables;
  if (first === undefined || tables.length > 1)
    return { refused: `the BIOS at ${hex(BIOS.start)} has ${tables.length} tables that could be its memory map` };
  return {
    map: addOffset(BIOS.start, first.at),
    format: { stride: BIOS.stride, before: 0 },
    count: first.count,
    further: () => [],
    isOfBios: true,
  };
}

/**
 * Each table of sorted ranges that begins with RAM at 0, of which less than 640 KiB are said, and has RAM at 1 MiB. An
 * entry without a type ends it.
 */
export function tablesIn(segment: Uint8Array): { readonly at: number; readonly count: number }[] {
  const found: { at: number; count: number }[] = [];
  for (let at = 0; at + BIOS.stride <= segment.length; at += 4) {
    const table = segment.subarray(at, at + BIOS.mostEntries * BIOS.stride);
    if (table[16] !== RAM || table[0] !== 0 || table[1] !== 0) continue;
    const entries = readMap(table.subarray(0, endOf(table)), { stride: BIOS.stride, before: 0 }) ?? [];
    const [low] = entries;
    if (low?.start !== 0 || low.size === 0 || low.size > BIOS.lowRam) continue;
    const isSorted = entries.every(({ start }, index) => index === 0 || start > (entries[index - 1]?.start ?? 0));
    if (isSorted && entries.some(({ start, type }) => start === MIB && type === RAM))
      found.push({ at, count: entries.length });
  }
  return found;
}

/** Where the first entry without a type begins, whatever lies behind it. */
function endOf(table: Uint8Array): number {
  let end = 0;
  while (end + BIOS.stride <= table.length && table.subarray(end + 16, end + 20).some((byte) => byte !== 0))
    end += BIOS.stride;
  return end;
}

function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

async function view(memory: TargetMemory, address: Addr, length: number): Promise<DataView | undefined> {
  const bytes = await memory.read(address, length);
  return bytes === undefined ? undefined : new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
