// Traces of other programs that are large or have several sessions: what is called in them is known from how each was made.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { openTrace, readTrace, type TraceEvent } from '../../../../src/trace/index.js';
import { info, nanos } from '../../stories.js';
import { folder, readBack, write } from '../../written.js';

/** How often each function is called, and the seconds of CPU that reading took. */
async function callsIn(path: string) {
  const calls = new Map<string, number>();
  const nothing = { begin: () => {}, hart: () => {}, flush: () => {}, end: () => {} };
  const before = process.cpuUsage();
  const { otherPackets } = await readTrace(path, {
    ...nothing,
    event: (event) => {
      if (event.type !== 'call-begin') return;
      const { name } = event.function;
      calls.set(name, (calls.get(name) ?? 0) + 1);
    },
  });
  return { calls, otherPackets, seconds: process.cpuUsage(before).user / 1e6 };
}

t.test('uftrace: a program that executes itself lies elsewhere then, and has its names there too', async (t) => {
  const source = join(folder, 'again.c');
  const program = join(folder, 'agén');
  writeFileSync(
    source,
    `#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void leaf(int n) { sink += n; }
int main(int count, char **words) {
  for (int n = 0; n < 20; n++) leaf(n);
  if (count < 2) execl(words[0], words[0], "again", (char *)0);
  return 0;
}`,
  );
  execFileSync('gcc', ['-O1', '-pg', '-o', program, source]);
  const recorded = join(folder, 'again.uftrace');
  const options = ['--no-event', '--no-libcall', '--no-pager', '-d', recorded];
  execFileSync('uftrace', ['record', ...options, program], { stdio: 'ignore' });
  const { calls } = await callsIn(recorded);
  t.equal(calls.get('leaf'), 40);
  t.equal(calls.get('main'), 2);
  t.equal(calls.size, 2, [...calls.keys()].join());
});

/** A directory of uftrace with so many functions, each called once; and one call behind them. */
function manyFunctions(count: number): string {
  const path = join(folder, 'many.uftrace');
  mkdirSync(path);
  const head = Buffer.alloc(40);
  head.write('Ftrace!\0', 'latin1');
  head.set([4, 0, 0, 0, 40, 0, 1, 2, 0x22], 8);
  const base = 0x5555_0000_0000;
  const addressOf = (i: number): number => base + 16 * i;
  const records = Array.from({ length: 2 * (count + 1) }, (_, i) => {
    const record = Buffer.alloc(16);
    record.writeUInt32LE(i);
    record.writeUInt16LE((i % 2) | (5 << 3), 8);
    record.writeUIntLE(addressOf(i >> 1), 10, 6);
    return record;
  });
  const hex = (value: number): string => value.toString(16).padStart(16, '0');
  const symbols = Array.from({ length: count }, (_, i) => `${hex(16 * i)} T f${i}\n`).join('');
  const files = {
    info: head,
    '1.dat': Buffer.concat(records),
    'sid-0123456789abcdef.map': `${hex(base)}-${hex(addressOf(count + 256))} r-xp 00000000 00:00 0 /p\n`,
    'p.sym': `# symbols: ${count}\n${symbols}${hex(16 * count)} ? __sym_end\n`,
  };
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(path, name), bytes);
  return path;
}

t.test('uftrace: 30,000 functions, and what is behind the last has an address alone', async (t) => {
  const { calls, seconds } = await callsIn(manyFunctions(30_000));
  t.equal(calls.size, 30_001);
  t.equal(calls.get('f29999'), 1);
  t.equal(calls.get(`0x${(0x5555_0000_0000 + 16 * 30_000).toString(16)}`), 1);
  // A second; 8 when each was looked for from the last symbol on.
  t.ok(seconds < 5, `${seconds} s`);
});

t.test("Chrome's: 30,000 slices that never end, each with a whole one inside", async (t) => {
  const path = join(folder, 'open.json');
  const events = Array.from({ length: 30_000 }, (_, i) => [
    { ph: 'B', pid: 1, tid: 1, ts: 10 * i, name: 'open' },
    { ph: 'X', pid: 1, tid: 1, ts: 10 * i + 1, dur: 5, name: 'whole' },
    { ph: 'X', pid: 1, tid: 1, ts: 10 * i + 2, dur: 3, name: 'inside' },
    { ph: 'X', pid: 1, tid: 1, ts: 10 * i + 4, dur: 3, name: 'across' },
  ]);
  writeFileSync(path, JSON.stringify(events.flat()));
  const { calls, otherPackets, seconds } = await callsIn(path);
  t.same(
    [...calls],
    [
      ['open', 30_000],
      ['whole', 30_000],
      ['inside', 30_000],
    ],
  );
  t.equal(otherPackets, 30_000, 'what is neither inside nor next to another is counted');
  t.ok(seconds < 5, `${seconds} s`);
});

t.test('an instant is a row of its own kind, also if its category is called as one of rows', async (t) => {
  const instant = (cat: string, ts: number) => ({ ph: 'i', s: 't', pid: 1, tid: 2, name: 'mark', cat, ts });
  const json = join(folder, 'instants.json');
  writeFileSync(json, JSON.stringify([instant('call', 1), instant('gap', 2), instant('net', 3)]));
  await readTrace(json, openTrace(join(folder, 'instants.csv')));
  const [, ...rows] = readFileSync(join(folder, 'instants.csv'), 'utf8').trimEnd().split('\n');
  t.same(
    rows.map((row) => row.split(',')[0]),
    ['instant', 'instant', 'net'],
  );
  await readTrace(json, openTrace(join(folder, 'instants.pftrace')));
  t.same(
    (await readBack('instants.pftrace')).map(({ type }) => type),
    ['place', 'place', 'place'],
  );
});

t.test('a line that no file has is none in Parquet, whose numbers of lines have 32 bits', async (t) => {
  const at = { hart: 0, depth: 0, arguments: [], around: undefined };
  const fn = { key: 0, name: 'f', instance: 'f', address: addr(1n), file: 'a.rs', line: 2 ** 31 };
  const begin: TraceEvent = { type: 'call-begin', ...at, time: nanos(1), function: fn };
  const bytes = write('line.parquet', [begin]);
  t.equal(bytes.subarray(-4).toString(), 'PAR1');
});

t.test('a directory of uftrace that is to be overwritten stays until a trace begins', async (t) => {
  const path = join(folder, 'older.uftrace');
  const sink = openTrace(path);
  sink.begin(info);
  sink.end();
  const names = readdirSync(path).sort();
  t.ok(names.includes('info'));
  openTrace(path, { force: true }).end();
  t.same(readdirSync(path).sort(), names);
  writeFileSync(join(path, '77.dat'), '');
  openTrace(path, { force: true }).begin(info);
  t.same(readdirSync(path), []);
});

t.test('what uftrace has of the kernel and of perf is left out, and counted', async (t) => {
  const path = join(folder, 'kernel.uftrace');
  const sink = openTrace(path);
  sink.begin(info);
  sink.end();
  for (const name of ['kernel-cpu0.dat', 'kernel-cpu1.dat', 'perf-cpu0.dat', 'kernel_header'])
    writeFileSync(join(path, name), 'x');
  t.equal((await callsIn(path)).otherPackets, 3);
});
