// Sections that are one by their names, and what unpacking one costs: what a damaged file says of both is refused before memory is taken.
import t from 'tap';
import { Budget } from '../../src/base/budget.js';
import { ElfFile } from '../../src/elf/index.js';
import { decompressSection } from '../../src/elf/section-table.js';
import { writeElf } from '../support/elf-writer.js';

const NAME = '.debug_info.dwo';
const SECTION_HEADERS = 0x28;
const NOBITS = 8;

function dwo(pieces: readonly { readonly text: string; readonly type?: number }[]): Buffer {
  const sections = pieces.map(({ text, type = 1 }) => ({ name: NAME, bytes: Buffer.from(text), type }));
  return Buffer.from(writeElf({ type: 1, sections }));
}

t.test('sections of a .dwo file with the same name are one, without those that have no bytes', async (t) => {
  const elf = ElfFile.parse(
    dwo([{ text: 'none', type: NOBITS }, { text: 'ab' }, { text: 'xy', type: NOBITS }, { text: 'c' }]),
    'x.dwo',
  );
  t.equal(Buffer.from(elf.section(NAME) ?? []).toString(), 'abc');
  t.ok(elf.budget.used.memory > 0);
  t.equal(ElfFile.parse(dwo([{ text: 'none', type: NOBITS }]), 'x.dwo').section(NAME), undefined);
});

t.test('sections that are larger together than the file overlap', async (t) => {
  const file = dwo(Array.from({ length: 1000 }, () => ({ text: 'abcd' })));
  const headers = Number(file.readBigUInt64LE(SECTION_HEADERS));
  for (let i = 1; i <= 1000; i++) {
    file.writeBigUInt64LE(0n, headers + i * 64 + 24);
    file.writeBigUInt64LE(BigInt(file.length), headers + i * 64 + 32);
  }
  for (let again = 0; again < 2; again++)
    t.throws(() => ElfFile.parse(file, 'x.dwo').section(NAME), {
      code: 'ELF_DAMAGED',
      message: /1000 sections .* overlap/,
    });
});

t.test('an announced size of 2 GiB is charged', async (t) => {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(1, 0);
  header.writeBigUInt64LE(2n ** 31n, 8);
  const raw = Buffer.concat([header, Buffer.alloc(2 ** 31 / 64)]);
  const budget = new Budget('file', 100 << 20, 1);
  t.throws(() => decompressSection(raw, '.debug_info', budget), { code: 'ELF_DAMAGED' });
  // An eighth of it, of the work that a file of 100 MiB may take.
  t.ok(Math.abs(budget.used.work - 2 ** 28 / (20e6 + (100 << 20) * 32)) < 1e-6, `${budget.used.work}`);
});
