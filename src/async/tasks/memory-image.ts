import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { architectureOf } from '../../arch/index.js';
import { type Addr, addOffset, addr } from '../../base/addr.js';
import { messageOf, RsptraceError } from '../../base/errors.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import { ElfFile, type ElfNote, ET } from '../../elf/index.js';

/** A stretch of the target's memory. */
export interface Region {
  readonly start: Addr;
  readonly length: number;
}

/** Memory that was written to a file: it can be read without a target. */
export interface MemoryImage extends MemoryReader, Disposable {
  readonly regions: readonly StoredRegion[];
  /** What the file says of it. */
  readonly notes: readonly ElfNote[];
}

interface StoredRegion extends Region {
  readonly isWritable: boolean;
}

interface Stored extends StoredRegion {
  readonly offset: number;
}

const PF_W = 2;

/**
 * Opens an ELF core (gABI: its PT_LOAD segments; QEMU's `dump-guest-memory`, Linux's core files). With `base`, opens
 * a raw image of RAM that begins at that address. If a core has no virtual addresses, as QEMU's without paging, its
 * physical ones are used. A program that says of its segments where they lie physically has all RAM at that distance,
 * as kernels map it.
 * @throws RsptraceError `CORE_UNREADABLE`, `CORE_NOT_CORE`, `CORE_TRUNCATED`
 */
export async function openMemoryImage(path: string, base: Addr | undefined, program?: Kernel): Promise<MemoryImage> {
  if (base === undefined) return image(path, await coreOf(path, program));
  return image(path, { notes: [], storedIn: (size) => [{ start: base, length: size, offset: 0, isWritable: true }] });
}

type Kernel = Pick<ElfFile, 'loads' | 'machine'>;

interface Dump {
  readonly notes: readonly ElfNote[];
  /** The same memory at other addresses: for what runs before the kernel has its own. */
  readonly aliases?: readonly Stored[];
  storedIn(size: number): Stored[];
}

async function coreOf(path: string, program: Kernel | undefined): Promise<Dump> {
  const elf = await ElfFile.open(path).catch((error: unknown) => {
    if (!(error instanceof RsptraceError)) throw error;
    throw new RsptraceError('CORE_NOT_CORE', `${path} is no ELF core: ${error.message}`, {
      hint: 'for a raw image of RAM say where it begins: --base 0x80000000',
    });
  });
  if (elf.type !== ET.CORE) {
    throw new RsptraceError('CORE_NOT_CORE', `${path} is an ELF, but not a core (e_type ${elf.type})`);
  }
  const loads = elf.loads.filter(({ fileSize }) => fileSize > 0);
  const virtual = loads.some((segment) => segment.address !== 0n);
  const stored = loads.map(({ address, physical, fileSize, offset, flags }) => ({
    start: virtual ? address : physical,
    length: fileSize,
    offset,
    isWritable: (flags & PF_W) !== 0,
  }));
  // QEMU writes either address twice if it follows no page tables.
  const isPhysical = loads.every(({ address, physical }) => !virtual || address === physical);
  const distances = isPhysical && program ? distancesOf(program) : [];
  const moved = distances.flatMap((by) => stored.map((one) => ({ ...one, start: addr(one.start + by) })));
  return {
    notes: elf.notes,
    storedIn: () => (moved.length > 0 ? moved : stored),
    aliases: moved.length > 0 ? stored : [],
  };
}

/** From where QEMU loads segments that are written to, to where the program has them. */
function distancesOf({ loads, machine }: Kernel): bigint[] {
  const loadedAt = architectureOf(machine)?.loadAddress ?? ((physical: bigint) => physical);
  const distances = new Set(loads.filter(isWritten).map(({ address, physical }) => address - loadedAt(physical)));
  return [...distances].filter((distance) => distance !== 0n);
}

function image(path: string, { notes, storedIn, aliases = [] }: Dump): MemoryImage {
  let fd: number;
  let size: number;
  try {
    fd = openSync(path, 'r');
    size = fstatSync(fd).size;
  } catch (error) {
    throw new RsptraceError('CORE_UNREADABLE', `${path} cannot be read: ${messageOf(error)}`);
  }
  const stored = storedIn(size);
  const whole = stored.reduce((end, { offset, length }) => Math.max(end, offset + length), 0);
  if (whole > size) {
    closeSync(fd);
    throw new RsptraceError('CORE_TRUNCATED', `${path} ends after ${size} of ${whole} bytes, so memory is missing`, {
      hint: 'it was cut off as it was written: look at the disk, and at `ulimit -c`',
    });
  }
  return {
    regions: stored,
    notes,
    async read(address, length) {
      // A size may be that of a damaged file.
      if (length > size) return undefined;
      const bytes = new Uint8Array(length);
      // A program's data and what is behind it lie in two segments of a process's core.
      for (let done = 0; done < length; ) {
        const from = addOffset(address, done);
        const holds = ({ start, length: have }: Stored): boolean => from >= start && from < start + BigInt(have);
        const region = stored.find(holds) ?? aliases.find(holds);
        if (!region) return undefined;
        const skip = Number(from - region.start);
        const size = Math.min(length - done, region.length - skip);
        if (readSync(fd, bytes, done, size, region.offset + skip) !== size) return undefined;
        done += size;
      }
      return bytes;
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}

/** Limit on a size, because a damaged header must not cause a read of a stub's whole address space. */
const MOST = 2 ** 30;

/** The program's writable segments with .bss: statics, and in most kernels the heap and the stacks. */
export function writableRegions(elf: ElfFile): Region[] {
  return elf.loads
    .filter(isWritten)
    .map(({ address, memorySize }) => ({ start: address, length: Math.min(memorySize, MOST) }));
}

function isWritten({ flags, memorySize }: ElfFile['loads'][number]): boolean {
  return (flags & PF_W) !== 0 && memorySize > 0;
}

/** The part of a stack below its pointer, down to the beginning of its section or symbol. */
export function deadStack(elf: ElfFile, stackPointer: Addr): Region[] {
  const section = elf.sections.find(
    ({ address, size }) => address !== 0n && stackPointer > address && stackPointer <= address + BigInt(size),
  );
  if (!section) return [];
  const symbol = elf.symbols.at(addr(stackPointer - 1n));
  const start = symbol && symbol.address > section.address ? symbol.address : section.address;
  return [{ start, length: Number(stackPointer - start) }];
}
