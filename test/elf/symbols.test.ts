// Which symbol an address is in, as gdb's `info symbol` has it.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { elfPath } from '../qemu/guests/guests.js';

/** Labels of assembly, functions, and what lies behind a constant (`anywhere = 1`) or a mark (`__stack_top`). */
const asked: readonly (readonly [guest: string, addresses: readonly bigint[]])[] = [
  ['x86-procs-mill', [0n, 1n, 8n, 0x40n]],
  ['x86-procs-o0-pond', [1n, 8n, 0x30_0000n, 0x30_0008n, 0x7fff_f7fd_0000n]],
  ['rv-spaces', [0x8020_0000n, 0x8020_0002n, 0x8020_0036n]],
  ['x86-o2-long', [0x20_0010n, 0x65_4001n, 0x7fff_f7fd_0000n, 0xffff_ffff_ff60_0000n]],
];

t.test('a label reaches to the next one in its segment, and a constant is no place', async (t) => {
  for (const [guest, addresses] of asked) {
    const file = elfPath(guest);
    const { symbols } = await ElfFile.open(file);
    const words = addresses.flatMap((at) => ['-ex', `info symbol 0x${at.toString(16)}`]);
    const options = ['-batch', '-nx', '-iex', 'set print demangle off'];
    const answers = execFileSync('gdb-multiarch', [...options, ...words, file], { encoding: 'utf8' });
    const names = answers.trimEnd().split('\n');
    t.strictSame(
      addresses.map((at) => symbols.at(addr(at))?.name),
      names.map((line) => /^(\S+) (?:\+ \d+ )?in section/.exec(line)?.[1]),
      `${guest}: ${answers}`,
    );
  }
});

t.test('a mark of an end still names its own address', async (t) => {
  const { symbols } = await ElfFile.open(elfPath('x86-o2-long'));
  const [mark] = symbols.named('__stack_top');
  t.equal(mark?.address, 0x65_4000n);
  t.equal(symbols.at(addr(0x65_4000n))?.name, '__stack_top');
});

t.test('a constant has a name: a linker may give the end of a text as one', async (t) => {
  const { symbols } = await ElfFile.open(elfPath('x86-procs-mill'));
  t.match(symbols.named('anywhere'), [{ address: 1n }]);
  t.notOk([...symbols].some(({ name }) => name === 'anywhere'));
});
