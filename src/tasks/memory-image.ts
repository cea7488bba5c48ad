import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { type Addr, addr } from '../base/addr.js';
import { messageOf, RsptraceError } from '../base/errors.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { ElfFile, ET } from '../elf/index.js';

/** A stretch of the target's memory. */
export interface Region {
  readonly start: Addr;
  readonly length: number;
}

/** Memory that was written to a file: it can be read without a target. */
export interface MemoryImage extends MemoryReader, Disposable {
  readonly regions: readonly Region[];
}

interface Stored extends Region {
  readonly offset: number;
}

const PT_LOAD = 1;

/**
 * Opens an ELF core (gABI: its PT_LOAD segments; QEMU's `dump-guest-memory`, Linux's core files). With `base`, opens
 * a raw image of RAM that begins at that address. If a core has no virtual addresses, as QEMU's without paging, its
 * physical ones are used.
 * @throws RsptraceError `CORE_UNREADABLE`, `CORE_NOT_CORE`, `CORE_TRUNCATED`
 */
export async function openMemoryImage(path: string, base: Addr | undefined): Promise<MemoryImage> {
  return image(
    path,
    base === undefined ? await segmentsOf(path) : (size) => [{ start: base, length: size, offset: 0 }],
  );
}

async function segmentsOf(path: string): Promise<() => Stored[]> {
  const elf = await ElfFile.open(path).catch((error: unknown) => {
    if (!(error instanceof RsptraceError)) throw error;
    throw new RsptraceError('CORE_NOT_CORE', `${path} is no ELF core: ${error.message}`, {
      hint: 'for a raw image of RAM say where it begins: --base 0x80000000',
    });
  });
  if (elf.type !== ET.CORE) {
    throw new RsptraceError('CORE_NOT_CORE', `${path} is an ELF, but not a core (e_type ${elf.type})`);
  }
  const loads = elf.segments.filter((segment) => segment.type === PT_LOAD && segment.fileSize > 0);
  const virtual = loads.some((segment) => segment.address !== 0n);
  return () =>
    loads.map(({ address, physical, fileSize, offset }) => ({
      start: virtual ? address : physical,
      length: fileSize,
      offset,
    }));
}

function image(path: string, storedIn: (size: number) => Stored[]): MemoryImage {
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
    async read(address, length) {
      const within = ({ start, length: have }: Stored): boolean =>
        address >= start && address + BigInt(length) <= start + BigInt(have);
      const region = stored.find(within);
      if (!region) return undefined;
      const bytes = new Uint8Array(length);
      const at = region.offset + Number(addr(address - region.start));
      return readSync(fd, bytes, 0, length, at) === length ? bytes : undefined;
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}
