// How x86 kernels learn about RAM when QEMU starts them:
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
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import type { Refusal } from '../base/errors.js';
import { registerOf, type Session, type TargetMemory } from '../rsp/index.js';
import type { BootImage } from '../target/index.js';
import type { MapFormat, Taken } from './memory-map.js';

const MOST_MODULES = 64;
const MIB = 2 ** 20;

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
}

/** The target is at the kernel's entry. */
export async function mapPlace(
  session: Session,
  memory: TargetMemory,
  kind: BootImage['kind'],
): Promise<MapPlace | Refusal> {
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

function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

async function view(memory: TargetMemory, address: Addr, length: number): Promise<DataView | undefined> {
  const bytes = await memory.read(address, length);
  return bytes === undefined ? undefined : new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
