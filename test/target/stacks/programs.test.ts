// Which of several programs is in some memory. The witness is the memory itself: that of one program, in whole or in part.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { type Addr, addOffset, addr } from '../../../src/base/addr.js';
import type { MemoryReader } from '../../../src/base/memory-reader.js';
import { ElfFile } from '../../../src/elf/index.js';
import { Programs } from '../../../src/target/stacks/index.js';
import { elfPath } from '../../qemu/guests/guests.js';

const PAGE = 4096n;

/** The pages of a program, as a kernel maps them; without those that `isAbsent` leaves out. */
function memoryOf(elf: ElfFile, isAbsent: (page: bigint) => boolean = () => false): MemoryReader {
  return {
    read: async (address: Addr, length: number) => {
      const bytes = new Uint8Array(length);
      let isMapped = false;
      for (let at = 0; at < length; at++) {
        const place = addOffset(address, at);
        const byte = isAbsent(place & -PAGE) ? undefined : elf.bytesAt(place, 1);
        isMapped ||= byte !== undefined;
        bytes.set(byte ?? [0], at);
      }
      return isMapped ? bytes : undefined;
    },
  };
}

const symbol = (elf: ElfFile, name: string): Addr => elf.symbols.named(name)[0]?.address ?? addr(0n);

for (const arch of ['rv', 'x86'] as const) {
  t.test(`${arch}: programs at the same addresses`, async (t) => {
    const alpha = await ElfFile.open(elfPath(`${arch}-spaces-alpha`));
    const beta = await ElfFile.open(elfPath(`${arch}-spaces-beta`));
    const programs = new Programs([alpha, beta]);
    const at = symbol(alpha, 'twin');
    t.equal(symbol(beta, 'twin'), at, 'a function that is the same code at the same address');
    t.strictSame(await programs.at(at, memoryOf(alpha)), [alpha]);
    t.strictSame(await programs.at(at, memoryOf(beta)), [beta]);
    t.strictSame(await programs.at(addOffset(at, 0x10_0000), memoryOf(beta)), [], 'no code of theirs is there');
    const kernel = await ElfFile.open(elfPath(`${arch}-spaces`));
    t.strictSame(await programs.at(at, memoryOf(kernel)), [], 'another program there');
    const nothing = memoryOf(beta, () => true);
    t.strictSame(await programs.at(at, nothing), [], 'nothing is mapped: none');
    t.notOk(programs.areSame(alpha, beta));
  });
}

t.test('programs whose pages are the same where one runs', async (t) => {
  const path = elfPath('rv-spaces-alpha');
  const alpha = await ElfFile.open(path);
  const bytes = Buffer.from(readFileSync(path));
  // One instruction of `mix`, in the second page of the only code segment, which begins at this offset of the file.
  const offset = Number(alpha.segments[0]?.offset) + Number(symbol(alpha, 'mix') - alpha.entry);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 0xff, offset);
  const other = ElfFile.parse(bytes, 'other');
  const programs = new Programs([alpha, other]);
  t.strictSame(await programs.at(alpha.entry, memoryOf(alpha)), [alpha], 'other pages decide');
  t.strictSame(await programs.at(alpha.entry, memoryOf(other)), [other]);
  const start = alpha.entry & -PAGE;
  const first = memoryOf(alpha, (page) => page !== start);
  t.strictSame(await programs.at(alpha.entry, first), [alpha, other], 'nothing of the others is mapped: both');
  t.notOk(programs.areSame(alpha, other));
});

t.test('a program that another one is the beginning of', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const path = elfPath('rv-spaces-alpha');
  const whole = await ElfFile.open(path);
  // The same segment and section, cut off before `descend`: the first program header, and the header of .text.
  const bytes = Buffer.from(readFileSync(path));
  const length = BigInt(symbol(whole, 'descend') - whole.entry);
  const segment = Number(bytes.readBigUInt64LE(32));
  bytes.writeBigUInt64LE(length, segment + 32);
  bytes.writeBigUInt64LE(length, segment + 40);
  const [, text] = whole.sections;
  t.equal(text?.name, '.text');
  bytes.writeBigUInt64LE(length, Number(bytes.readBigUInt64LE(40)) + 64 + 32);
  writeFileSync(join(folder, 'part.elf'), bytes);
  const part = await ElfFile.open(join(folder, 'part.elf'));
  const programs = new Programs([part, whole]);
  const at = symbol(whole, 'work');
  t.strictSame(await programs.at(at, memoryOf(whole)), [whole], 'what only the longer one has is there');
  const cut: MemoryReader = memoryOf(part);
  const strict = await programs.at(at, cut);
  t.strictSame(strict, [part], 'the page has not the rest of the longer one');
  t.notOk(programs.areSame(part, whole));
  const copy = ElfFile.parse(readFileSync(path), 'copy');
  t.ok(programs.areSame(whole, copy));
});
