import { type Addr, addr } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/refusal.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { type FdtRange, type GuestRam, readMemoryTree } from '../target/index.js';
import { deviceTree, readTree } from './hide-in-device-tree.js';
import { machines } from './machines/index.js';
import { RamPiece } from './ram-piece.js';
import { LARGE_PAGE } from './scratch.js';

const PT_LOAD = 1;
/** One piece for code and one for data. */
const LEAST = 2n * BigInt(LARGE_PAGE);
/** Its contents are restored at the end; a larger piece would take long. */
const MOST = LEAST;

/**
 * RAM of a machine that was started elsewhere, if no map given to its guest lists it. QEMU says where RAM is; the
 * device tree says which part the guest is told about. Such RAM exists with `-dtb FILE`, if the file's tree lists
 * less than -m gives.
 *
 * Only for machines with a device tree. PCs list all their RAM in e820, except for what the firmware keeps for
 * itself.
 */
export async function unlistedRam(session: Session, elf: ElfFile, pastWire?: GuestRam): Promise<RamPiece | Refusal> {
  const none = (why: string): Refusal => ({ refused: `no RAM is known that the guest is not told of: ${why}` });
  if ((await session.stub()).name !== 'qemu-system') return none('the stub is not that of a machine of QEMU');
  const physical = await session.physicalMemory();
  const tree = readMemoryTree((await session.monitor('info mtree -f')) ?? '');
  if (physical === undefined || tree.length === 0) return none('QEMU does not say where its RAM is');
  if (!machines.some((machine) => machine.hasDeviceTree?.(tree))) {
    const known = machines.filter(({ hasDeviceTree }) => hasDeviceTree).flatMap(({ types }) => types);
    return none(`only the device tree of the machine ${known.join(', ')} is known`);
  }
  const found = await deviceTree(physical);
  const contents = isRefusal(found) ? found : readTree(found.blob);
  if (isRefusal(found) || isRefusal(contents)) return none((isRefusal(found) ? found : (contents as Refusal)).refused);
  const told = contents.memory.flatMap(({ ranges }) => ranges);
  const ram = tree.filter(({ kind }) => kind === 'ram');
  // A tree that was partly overwritten may list what is not there.
  const isWhole = (range: FdtRange): boolean =>
    ram.some(({ start, end }) => range.base >= start && range.base + range.size <= end);
  if (told.length === 0 || !told.every(isWhole)) return none('the device tree tells of other RAM than there is');
  const taken: FdtRange[] = [
    ...told,
    ...contents.reserved,
    { base: found.at, size: BigInt(found.blob.length) },
    ...elf.segments
      .filter(({ type }) => type === PT_LOAD)
      .map((each) => ({ base: each.physical, size: BigInt(each.memorySize) })),
  ];
  const pieces = ram
    .filter(({ start }) => told.some(({ base }) => base >= start))
    .flatMap(({ start, end }) => freeOf(start, end, taken));
  const [best] = pieces.filter(({ size }) => size >= LEAST).sort((a, b) => Number(b.size - a.size));
  if (best === undefined) return none('the device tree tells of all of it');
  const size = best.size < MOST ? best.size : MOST;
  return new RamPiece(session, {
    // Nearest to the kernel.
    start: addr(best.base),
    size: Number(size),
    owned: false,
    what: 'RAM that the device tree does not tell of',
    note: '',
    ram: pastWire,
  });
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
