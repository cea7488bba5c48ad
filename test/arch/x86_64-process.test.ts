// Code for processes of Linux: what readelf reads in the table for unwinders, and samples of a clock that are right or damaged. What the code does in
// processes, test/cli/native-target*.test.ts see.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { linuxProcess } from '../../src/arch/x86_64/process.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import { scratchFolder } from '../support/command.js';

t.test('readelf finds every return address in the table, with its rule', async (t) => {
  const folder = scratchFolder(t);
  const exits = new Map([
    [0x5000_1230n, { offset: 24 }],
    [0x5000_1290n, { offset: 40 }],
    [0x7fff_0000_0010n, { offset: 24 }],
    [0x5000_4000n, { offset: 200 }],
  ]);
  const table = linuxProcess.unwindTable(exits);
  t.ok(table.length <= linuxProcess.unwindTableBytes(exits.size));
  t.same([...table.slice(-4)], [0, 0, 0, 0], 'it ends');
  writeFileSync(join(folder, 'table'), table);
  writeFileSync(join(folder, 'empty.c'), '');
  const object = join(folder, 'empty.o');
  execFileSync('gcc', ['-c', '-fno-asynchronous-unwind-tables', '-o', object, join(folder, 'empty.c')]);
  execFileSync('objcopy', ['--add-section', `.eh_frame=${join(folder, 'table')}`, object]);
  const text = execFileSync('readelf', ['--debug-dump=frames-interp', '--wide', object], { encoding: 'utf8' });
  const rules = new Map<string, string>();
  const cies = new Map<string, string>();
  let cie = '';
  for (const line of text.split('\n')) {
    const [, at = ''] = /^([0-9a-f]{8}) .* CIE /.exec(line) ?? [];
    if (at !== '') cie = at;
    const [, of = '', from = '', to = ''] = /FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)/.exec(line) ?? [];
    if (from !== '') rules.set(`${BigInt(`0x${from}`)}..${BigInt(`0x${to}`)}`, cies.get(of) ?? '');
    const [, rule = ''] = /^[0-9a-f]{16} (rsp\+\d+ +c-8)/.exec(line) ?? [];
    if (rule !== '' && !cies.has(cie)) cies.set(cie, rule.replace(/ +/, ' '));
  }
  t.same(
    [...rules],
    [...exits].map(([exit, { offset }]) => [`${exit - 1n}..${exit + 1n}`, `rsp+${offset + 8} c-8`]),
  );
});

t.test('a clock is taken from the samples between whose two readings least time went by', async (t) => {
  const { clock } = linuxProcess;
  const samples = (each: (index: number) => readonly [bigint, bigint, bigint, bigint]): Uint8Array => {
    const bytes = new BigUint64Array(clock.size / 8);
    for (let i = 0; i < bytes.length / 4; i++) bytes.set(each(i), 4 * i);
    return new Uint8Array(bytes.buffer);
  };
  // 3 ticks a nanosecond; the clock is read in the middle, but in most samples something comes in between.
  const late = (i: number): bigint => (i % 7 === 3 ? 0n : 5000n);
  const right = samples((i) => {
    const nanos = 10n ** 9n * 77n + BigInt(i) * 150_000n;
    return [nanos * 3n - 60n, nanos / 10n ** 9n, nanos % 10n ** 9n, nanos * 3n + 60n + late(i)];
  });
  const [first, last] = clock.result(right) ?? [];
  t.equal(first?.ticks, (first?.nanos ?? 0n) * 3n);
  t.equal(last?.ticks, (last?.nanos ?? 0n) * 3n);
  t.ok((last?.nanos ?? 0n) - (first?.nanos ?? 0n) > 4_000_000n);
  t.equal(clock.result(right.subarray(1)), undefined);
  t.equal(clock.result(new Uint8Array(clock.size)), undefined, 'nothing was written');
  t.equal(clock.result(samples(() => [10n, 5n, 0n, 20n])), undefined, 'a clock that stands');
  t.equal(
    clock.result(samples((i) => [BigInt(1000 - i), BigInt(i), 0n, BigInt(1005 - i)])),
    undefined,
    'a counter that runs backwards',
  );
});

t.test('what stands in for an exit trampoline fits into one', async (t) => {
  for (const offset of [24, 40, 56, 120]) {
    const code = probeCode.bareExit(offset, offset + 8);
    t.same([...code], [0x48, 0x8d, 0x64, 0x24, offset, 0xc3], 'lea rsp, [rsp + offset]; ret');
  }
});
