import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { type FdtRange, type GuestRam, readMemoryTree } from '../target/index.js';
import { deviceTree } from './hide-in-device-tree.js';
import { machines } from './machines/index.js';
import { largestRam } from './machines/machine.js';
import { RamPiece } from './ram-piece.js';
import { accessTo, firstUsed } from './region-access.js';
import { LARGE_PAGE } from './scratch.js';

const PT_LOAD = 1;
/** One large page for code and one for data. */
const SIZE = 2 * LARGE_PAGE;
/** A PC's firmware has its tables at the very end, a riscv loader the device tree: so far down it is tried. */
const LOWEST = 24 * 2 ** 20;

/**
 * The highest RAM that nobody has used: every byte of it is zero, as QEMU gives RAM to its guest. The guest may use it
 * later, so it is watched. The target is stopped.
 */
export async function topOfRam(session: Session, elf: ElfFile, ram: GuestRam | undefined): Promise<RamPiece | Refusal> {
  if ((await session.stub()).name !== 'qemu-system') return { refused: 'the stub is not that of a machine of QEMU' };
  const physical = await session.physicalMemory();
  const tree = readMemoryTree((await session.monitor('info mtree -f')) ?? '');
  const largest = largestRam(tree);
  if (physical === undefined || largest === undefined) return { refused: 'QEMU does not say where its RAM is' };
  const find = machines.find((machine) => machine.hasDeviceTree?.(tree))?.deviceTree;
  const found = find && (await deviceTree(physical, find));
  const taken: FdtRange[] = [
    ...(found && !isRefusal(found) && found.blob !== undefined
      ? [{ base: found.at, size: BigInt(found.blob.length) }]
      : []),
    ...elf.segments
      .filter(({ type }) => type === PT_LOAD)
      .map((each) => ({ base: each.physical, size: BigInt(each.memorySize) })),
  ];
  const lowest = largest.end - BigInt(LOWEST);
  let used: Addr | undefined;
  for (const { base, size } of freeOf(largest.start, largest.end, taken).toReversed()) {
    for (let start = base + size - BigInt(SIZE); start >= base && start >= lowest; start -= BigInt(LARGE_PAGE)) {
      const at = addr(start);
      const region = { address: at, physical: at, size: SIZE };
      const access = await accessTo(session, region, { ram, isData: true });
      const dirty = await firstUsed(access, SIZE);
      if (dirty === undefined) return pieceAt(session, at, ram);
      used ??= addOffset(at, dirty);
    }
  }
  return {
    refused:
      used === undefined
        ? 'the program or the device tree is there'
        : `the guest uses it: there is something at ${hex(used)}`,
  };
}

function pieceAt(session: Session, start: Addr, ram: GuestRam | undefined): RamPiece {
  const what = 'the end of RAM';
  return new RamPiece(session, { start, size: SIZE, owned: false, what, note: '', isWatched: true, ram });
}

/** The rest of [start, end), in multiples of large pages. */
export function freeOf(start: bigint, end: bigint, taken: readonly FdtRange[]): { base: Addr; size: bigint }[] {
  const large = BigInt(LARGE_PAGE);
  const free: { base: Addr; size: bigint }[] = [];
  let at = start;
  const add = (to: bigint): void => {
    const from = ((at + large - 1n) / large) * large;
    const size = (to / large) * large - from;
    if (size > 0n) free.push({ base: addr(from), size });
  };
  for (const { base, size } of [...taken].sort((a, b) => (a.base < b.base ? -1 : 1))) {
    if (base >= end) break;
    if (base > at) add(base);
    if (base + size > at) at = base + size;
  }
  if (at < end) add(end);
  return free;
}
