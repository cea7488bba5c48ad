// The ELF that a distribution's kernel was linked as, made again from what boots: its code, its symbols (kallsyms), its BTF.
//
//   riscv64  Image (Linux, Documentation/arch/riscv/boot-image-header.rst): "RSC\5" at 56, all that is loaded from `_start` on
//   aarch64  Image (Documentation/arch/arm64/booting.rst): "ARM\x64" at 56, from `_text` on
//   x86_64   bzImage (Documentation/arch/x86/boot.rst): payload_offset at 0x248, payload_length at 0x24c behind the setup; here an
//            ELF without symbols, packed by lz4 (Documentation/lz4 "legacy frame": 184c2102, then blocks, each with its length before it)
import { writeFileSync } from 'node:fs';
import { ElfFile } from '../../../src/elf/index.js';
import { type KernelSymbol, kallsyms } from './kallsyms.js';

interface Part {
  readonly address: bigint;
  /** In the blob. */
  readonly offset: number;
  readonly size: number;
  readonly flags: number;
}

interface Kernel {
  readonly machine: number;
  readonly blob: Buffer;
  readonly loads: readonly (Part & { readonly physical: bigint; readonly memorySize: number })[];
  readonly sections: readonly (Part & { readonly name: string })[];
  readonly symbols: readonly KernelSymbol[];
}

const ALLOC = 2;
const EXECUTE = 4;

/** Writes the ELF of the kernel that `image` boots. */
export function writeKernelElf(image: Buffer, path: string): void {
  const magic = image.toString('latin1', 56, 60);
  const found = images.find((each) => each.magic === magic);
  const kernel = found ? fromImage(image, found) : fromBzImage(image);
  writeFileSync(path, elfOf(kernel));
}

/** By their magic numbers at 56: `e_machine`, their first symbol and its place, and where QEMU puts the image. */
const images = [
  { magic: 'RSC\x05', machine: 243, first: '_start', at: 0, physical: 0x8020_0000n, linked: 0n },
  // Behind KIMAGE_VADDR of Linux 6.1 with addresses of 48 bits (arch/arm64/include/asm/memory.h).
  {
    magic: 'ARMd',
    machine: 183,
    first: '_stext',
    at: 0x1_0000,
    physical: 0x4020_0000n,
    linked: 0xffff_8000_0801_0000n,
  },
] as const;

function fromImage(
  image: Buffer,
  { machine, first, at: firstAt, physical: base, linked }: (typeof images)[number],
): Kernel {
  const symbols = kallsyms(image, false, linked);
  const at = new Map(symbols.map(({ name, address }) => [name, address]));
  const start = (at.get(first) ?? 0n) - BigInt(firstAt);
  const physical = base - start;
  const part = (from: string, to: string, flags: number): Part => {
    const [low = 0n, high = 0n] = [at.get(from), at.get(to)];
    return { address: low, offset: Number(low - start), size: Number(high - low), flags };
  };
  const loads = [part(first, '_etext', 5), part('_sinittext', '_einittext', 5)];
  return {
    machine,
    blob: image,
    loads: loads.map((load) => ({ ...load, physical: load.address + physical, memorySize: load.size })),
    sections: [
      { name: '.text', ...part(first, '_etext', ALLOC | EXECUTE) },
      { name: '.init.text', ...part('_sinittext', '_einittext', ALLOC | EXECUTE) },
      btfSection(image, start),
    ],
    symbols,
  };
}

/** Found by the header that `pahole` writes (Documentation/bpf/btf.rst): not every kernel's symbols name it. */
function btfSection(image: Buffer, start: bigint): Kernel['sections'][number] {
  const header = Buffer.from('9feb010018000000', 'hex');
  const offset = image.indexOf(header);
  if (offset < 0) throw new Error('the image has no BTF');
  const strings = header.length + 8;
  const size = 24 + image.readUInt32LE(offset + strings) + image.readUInt32LE(offset + strings + 4);
  return { name: '.BTF', address: start + BigInt(offset), offset, size, flags: ALLOC };
}

function fromBzImage(image: Buffer): Kernel {
  const start = ((image[0x1f1] ?? 0) + 1) * 512 + image.readUInt32LE(0x248);
  const blob = unpackLz4(image.subarray(start, start + image.readUInt32LE(0x24c)));
  const elf = ElfFile.parse(blob, 'vmlinux');
  const kept = elf.sections.filter(({ name }) => ['.text', '.init.text', '.BTF'].includes(name));
  return {
    machine: elf.machine,
    blob,
    loads: elf.segments
      .filter(({ type, address }) => type === 1 && address !== 0n)
      .map(({ fileSize, ...load }) => ({ ...load, size: fileSize })),
    sections: kept.map(({ name, flags, address, offset, size }) => ({ name, flags, address, offset, size })),
    symbols: kallsyms(blob, true),
  };
}

function elfOf({ machine, blob, loads, sections, symbols }: Kernel): Buffer {
  const base = 0x1000;
  const names: string[] = [];
  const entries = Buffer.alloc(24 * (symbols.length + 1));
  let nameAt = 1;
  for (const [index, { address, type, name }] of symbols.entries()) {
    const section = sections.findIndex((each) => address >= each.address && address < each.address + BigInt(each.size));
    const isFunction = 'tTwW'.includes(type) && (sections[section]?.flags ?? 0) & EXECUTE;
    // kallsyms says no sizes.
    let next = index + 1;
    while (symbols[next]?.address === address) next++;
    const size = isFunction ? Number((symbols[next]?.address ?? address) - address) : 0;
    const at = 24 * (index + 1);
    entries.writeUInt32LE(nameAt, at);
    entries[at + 4] = (type === type.toUpperCase() ? 0x10 : 0) | (isFunction ? 2 : 'bBdDrR'.includes(type) ? 1 : 0);
    entries.writeUInt16LE(section < 0 ? 0xfff1 : section + 1, at + 6);
    entries.writeBigUInt64LE(address, at + 8);
    entries.writeBigUInt64LE(BigInt(size), at + 16);
    names.push(name);
    nameAt += name.length + 1;
  }
  const strings = Buffer.from(`\0${names.join('\0')}\0`, 'latin1');
  const sectionNames = ['', ...sections.map(({ name }) => name), '.symtab', '.strtab', '.shstrtab'];
  const sectionStrings = Buffer.from(`${sectionNames.join('\0')}\0`, 'latin1');
  const symbolsAt = Math.ceil((base + blob.length) / 8) * 8;
  const stringsAt = symbolsAt + entries.length;
  const sectionStringsAt = stringsAt + strings.length;
  const headersAt = Math.ceil((sectionStringsAt + sectionStrings.length) / 8) * 8;
  const out = Buffer.alloc(headersAt + 64 * sectionNames.length);

  Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]).copy(out);
  out.writeUInt16LE(2, 16);
  out.writeUInt16LE(machine, 18);
  out.writeUInt32LE(1, 20);
  words(out, 24, loads[0]?.physical ?? 0n, 64, headersAt);
  for (const [index, value] of [64, 56, loads.length, 64, sectionNames.length, sectionNames.length - 1].entries()) {
    out.writeUInt16LE(value, 52 + 2 * index);
  }
  for (const [index, { address, physical, offset, size, flags, memorySize }] of loads.entries()) {
    const at = 64 + 56 * index;
    out.writeUInt32LE(1, at);
    out.writeUInt32LE(flags, at + 4);
    words(out, at + 8, base + offset, address, physical, size, memorySize, 0x1000);
  }
  blob.copy(out, base);
  entries.copy(out, symbolsAt);
  strings.copy(out, stringsAt);
  sectionStrings.copy(out, sectionStringsAt);
  let sectionNameAt = 1;
  const header = (index: number, type: number, link: number, ...values: (number | bigint)[]): void => {
    const at = headersAt + 64 * index;
    out.writeUInt32LE(sectionNameAt, at);
    out.writeUInt32LE(type, at + 4);
    // Flags, address, offset, size; then link and info, alignment, size of an entry.
    words(out, at + 8, ...values.slice(0, 4));
    out.writeUInt32LE(link, at + 40);
    words(out, at + 48, 1, values[4] ?? 0);
    sectionNameAt += (sectionNames[index]?.length ?? 0) + 1;
  };
  sections.forEach(({ flags, address, offset, size }, index) => {
    header(index + 1, 1, 0, flags, address, base + offset, size);
  });
  const first = sections.length + 1;
  header(first, 2, first + 1, 0, 0, symbolsAt, entries.length, 24);
  header(first + 1, 3, 0, 0, 0, stringsAt, strings.length);
  header(first + 2, 3, 0, 0, 0, sectionStringsAt, sectionStrings.length);
  return out;
}

function words(out: Buffer, at: number, ...values: (number | bigint)[]): void {
  for (const [index, value] of values.entries()) out.writeBigUInt64LE(BigInt(value), at + 8 * index);
}

function unpackLz4(packed: Buffer): Buffer {
  if (packed.readUInt32LE(0) !== 0x184c2102) throw new Error('the kernel is not packed by lz4');
  const blocks: Buffer[] = [];
  // Behind the last block stands the size of the whole.
  for (let at = 4; at + 4 < packed.length; ) {
    const size = packed.readUInt32LE(at);
    blocks.push(unpackBlock(packed.subarray(at + 4, at + 4 + size), 8 << 20));
    at += 4 + size;
  }
  return Buffer.concat(blocks);
}

function unpackBlock(packed: Buffer, most: number): Buffer {
  const out = Buffer.alloc(most);
  let from = 0;
  let to = 0;
  const long = (value: number): number => {
    let length = value;
    if (value === 15) {
      for (let more = 255; more === 255; length += more) more = packed[from++] ?? 0;
    }
    return length;
  };
  while (from < packed.length) {
    const token = packed[from++] ?? 0;
    const literals = long(token >> 4);
    packed.copy(out, to, from, from + literals);
    from += literals;
    to += literals;
    if (from >= packed.length) break;
    const distance = packed.readUInt16LE(from);
    from += 2;
    const length = long(token & 15) + 4;
    if (distance >= length) out.copyWithin(to, to - distance, to - distance + length);
    else for (let i = 0; i < length; i++) out[to + i] = out[to + i - distance] ?? 0;
    to += length;
  }
  return out.subarray(0, to);
}
