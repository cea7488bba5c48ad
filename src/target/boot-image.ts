// What QEMU's x86 machines boot with -kernel, and where that kernel's first instruction will be. QEMU looks for them in
// this order (hw/i386/x86.c, x86_load_linux):
// - a bzImage (Linux, Documentation/arch/x86/boot.rst): "HdrS" at 0x202, LOADED_HIGH in loadflags at 0x211,
//   code32_start at 0x214
// - a Multiboot header (Multiboot Specification 0.6.96, "OS image format") in the first 8 KiB: magic 1badb002, flags
//   and checksum, together 0; entry at 0x1c if bit 16 of the flags is set, else that of the 32-bit ELF
// - an ELF with the note XEN_ELFNOTE_PHYS32_ENTRY (Xen, public/elfnote.h): owner "Xen", type 18, a physical address of
//   4 or 8 bytes
// Refused: all else (disks, firmware), because it is not known where such a machine reads its memory map.
import { closeSync, openSync, readSync } from 'node:fs';
import { type Addr, addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import type { Refusal } from '../base/errors.js';
import { messageOf } from '../base/errors.js';
import { ElfFile } from '../elf/index.js';

export interface BootImage {
  readonly kind: 'pvh' | 'bzimage' | 'multiboot';
  /** Physical address of its first instruction in 32-bit mode. There a register points to the memory map. */
  readonly entry: Addr;
}

const XEN_ELFNOTE_PHYS32_ENTRY = 18;
const LOADED_HIGH = 1;
const MULTIBOOT = { magic: 0x1bad_b002, reach: 8192, size: 48, hasAddresses: 0x1_0000 } as const;
const ELFCLASS32 = 1;

/** Reads the file of `-kernel`. */
export async function bootImage(path: string): Promise<BootImage | Refusal> {
  try {
    const head = firstBytes(path, MULTIBOOT.reach);
    const header = new ByteReader(head, path);
    if (head.length >= 0x218 && header.at(0x202).u32() === 0x53726448 && (header.at(0x211).u8() & LOADED_HIGH) !== 0) {
      return { kind: 'bzimage', entry: addr(header.at(0x214).u32()) };
    }
    const multiboot = multibootEntry(header);
    if (multiboot !== undefined) return { kind: 'multiboot', entry: multiboot };
    if (isElf(head)) {
      const entry = pvhEntry(await ElfFile.open(path));
      if (entry !== undefined) return { kind: 'pvh', entry };
    }
    return { refused: `${path} is no bzImage, and has neither a Multiboot header nor a PVH entry note` };
  } catch (error) {
    return { refused: `${path} cannot be read: ${messageOf(error)}` };
  }
}

function isElf(head: Uint8Array): boolean {
  return head.length >= 4 && head[0] === 0x7f && head[1] === 0x45;
}

/** Undefined if there is no Multiboot header. */
function multibootEntry(file: ByteReader): Addr | undefined {
  const end = file.end - MULTIBOOT.size;
  for (let at = 0; at <= end; at += 4) {
    if (file.at(at).u32() !== MULTIBOOT.magic) continue;
    const flags = file.at(at + 4).u32();
    if (((MULTIBOOT.magic + flags + file.at(at + 8).u32()) | 0) !== 0) continue;
    if ((flags & MULTIBOOT.hasAddresses) !== 0) return addr(file.at(at + 0x1c).u32());
    return file.at(0).u32() === 0x464c_457f && file.at(4).u8() === ELFCLASS32 ? addr(file.at(0x18).u32()) : undefined;
  }
  return undefined;
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
  const note = elf.notes.find(({ name, type }) => name === 'Xen' && type === XEN_ELFNOTE_PHYS32_ENTRY);
  return note && note.bytes.length >= 4 ? addr(new ByteReader(note.bytes, elf.path).u32()) : undefined;
}
