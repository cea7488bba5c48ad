// What QEMU's x86 machines boot with -kernel, and where that kernel's first instruction will be: - an ELF with the
// note XEN_ELFNOTE_PHYS32_ENTRY (Xen, public/elfnote.h): owner "Xen", type 18, a physical address of 4 or 8 bytes - a
// bzImage (Linux, Documentation/arch/x86/boot.rst): "HdrS" at 0x202, LOADED_HIGH in loadflags at 0x211, code32_start
// at 0x214 Refused: all else (multiboot, disks, firmware), because it is not known where such a machine reads its
// memory map.
import { closeSync, openSync, readSync } from 'node:fs';
import { type Addr, addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { messageOf } from '../base/errors.js';
import type { Refusal } from '../base/refusal.js';
import { ElfFile, SHT } from '../elf/index.js';

export interface BootImage {
  readonly kind: 'pvh' | 'bzimage';
  /** Physical address of its first instruction in 32-bit mode. There a register points to the memory map. */
  readonly entry: Addr;
}

const XEN_ELFNOTE_PHYS32_ENTRY = 18;
const LOADED_HIGH = 1;

/** Reads the file of `-kernel`. */
export async function bootImage(path: string): Promise<BootImage | Refusal> {
  try {
    const head = firstBytes(path, 0x218);
    if (head.length >= 4 && head[0] === 0x7f && head[1] === 0x45) {
      const entry = pvhEntry(await ElfFile.open(path));
      if (entry !== undefined) return { kind: 'pvh', entry };
      return { refused: `${path} has no PVH entry note` };
    }
    const header = new ByteReader(head, path);
    if (head.length === 0x218 && header.at(0x202).u32() === 0x53726448 && (header.at(0x211).u8() & LOADED_HIGH) !== 0) {
      return { kind: 'bzimage', entry: addr(header.at(0x214).u32()) };
    }
    return { refused: `${path} is neither an ELF with a PVH entry note nor a bzImage` };
  } catch (error) {
    return { refused: `${path} cannot be read: ${messageOf(error)}` };
  }
}

function firstBytes(path: string, length: number): Uint8Array {
  const fd = openSync(path, 'r');
  try {
    const bytes = new Uint8Array(length);
    return bytes.subarray(0, readSync(fd, bytes, 0, length, 0));
  } finally {
    closeSync(fd);
  }
}

function pvhEntry(elf: ElfFile): Addr | undefined {
  for (const section of elf.sections) {
    if (section.type !== SHT.NOTE) continue;
    const bytes = elf.rawSection(section);
    if (bytes === undefined) continue;
    const reader = new ByteReader(bytes, section.name);
    while (reader.remaining >= 12) {
      const nameSize = reader.u32();
      const size = reader.u32();
      const type = reader.u32();
      const padded = nameSize + (-nameSize & 3);
      if (padded + size > reader.remaining) break;
      const name = reader.take(padded);
      const value = reader.take(size);
      reader.skip(Math.min(-size & 3, reader.remaining));
      const isXen = Buffer.from(name.subarray(0, nameSize)).toString('latin1') === 'Xen\0';
      if (isXen && type === XEN_ELFNOTE_PHYS32_ENTRY && size >= 4)
        return addr(new ByteReader(value, section.name).u32());
    }
  }
  return undefined;
}
