// Where `line:FILE:LINE` finds its places, against the breakpoints that gdb sets on the same lines.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { architectureOf } from '../../../src/arch/index.js';
import { addr } from '../../../src/base/addr.js';
import { RsptraceError } from '../../../src/base/errors.js';
import { DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { parseProbe } from '../../../src/probes/index.js';
import { line } from '../../../src/probes/kinds/line.js';
import { addressesOf, enginePlan, prepare } from '../../../src/record/index.js';
import type { PlaceRef, ProbeFact } from '../../../src/trace/index.js';
import { elfPath } from '../../qemu/guests/guests.js';
import { scratchFolder } from '../../support/command.js';
import { usually } from '../../support/long.js';

const addresses = async (path: string, probe: string): Promise<bigint[]> =>
  addressesOf(await prepare(path, [parseProbe(probe)]));

/** The addresses of gdb's breakpoints, by line. */
function gdbPlaces(t: Test, path: string, lines: readonly string[]): Map<string, bigint[]> {
  const script = join(scratchFolder(t), 'places.py');
  const places = "print('@@' + line + ' ' + ' '.join(hex(place.address) for place in gdb.Breakpoint(line).locations))";
  writeFileSync(script, `import gdb\nfor line in ${JSON.stringify(lines)}:\n    ${places}\n`);
  const out = execFileSync('gdb-multiarch', ['-nx', '-batch', path, '-x', script], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const rows = out.split('\n').flatMap((row) => (row.startsWith('@@') ? [row.slice(2).trim().split(' ')] : []));
  return new Map(rows.map(([line = '', ...found]) => [line, found.map(BigInt)]));
}

for (const name of usually(['rv-o0', 'rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: every line of two files`, async (t) => {
    const elf = await ElfFile.open(elfPath(name));
    const arch = architectureOf(elf.machine);
    if (!arch) throw new Error('no architecture');
    await arch.prepare();
    const starts = new Set([...elf.symbols].map(({ address }) => BigInt(address)));
    const debug = DebugInfo.load(elf);
    const found = new Map<string, readonly bigint[]>();
    for (const file of ['src/work.rs', 'src/stats.rs']) {
      for (let at = 1; at < 320; at++) {
        try {
          const probe = line.parse({ text: '', excludes: false, argument: undefined, rest: `${file}:${at}` });
          found.set(`${file}:${at}`, (await line.resolve({ elf, arch, debug }, [probe])).addresses);
        } catch (error) {
          if (!(error instanceof RsptraceError) || error.code !== 'PROBE_NO_MATCH') throw error;
        }
      }
    }
    t.ok(found.size > 80);
    const gdb = gdbPlaces(t, elfPath(name), [...found.keys()]);
    let same = 0;
    for (const [at, places] of found) {
      const known = gdb.get(at) ?? [];
      if (places.length === known.length && places.every((place) => known.includes(place))) same++;
      // gdb goes behind a function's prologue.
      const others = places.filter((place) => !known.includes(place) && !starts.has(place));
      t.same(others, [], `${at}: gdb has them too`);
      t.ok(places.length <= known.length, `${at}: gdb has as many at least`);
    }
    t.ok(same >= found.size * 0.8, `${same} of ${found.size} are the same`);
  });
}

t.test('the path may be given in part, and more than one probe may name a place', async (t) => {
  const path = elfPath('rv-o2');
  const [place, ...others] = await addresses(path, 'line:src/work.rs:35');
  t.ok(place);
  t.same(others, []);
  for (const file of ['work.rs', './src/work.rs', '/labkern/src/work.rs'])
    t.same(await addresses(path, `line:${file}:35`), [place], file);
  t.same(await addresses(path, 'line: work.rs : 35'), [place]);
  const { plans } = enginePlan(
    await prepare(
      path,
      ['line:work.rs:35', 'line:src/work.rs:35'].map((text) => parseProbe(text)),
    ),
  );
  t.match(plans, [{ address: place, name: 'work.rs:35 in labkern::work::deep7', inside: { window: {} } }]);
  t.equal(plans.length, 1);
  t.match(plans[0]?.others, [{ name: 'src/work.rs:35 in labkern::work::deep7', subject: 'src/work.rs:35' }]);
});

t.test('what is not there is refused with a way out', async (t) => {
  const path = elfPath('rv-o2');
  const cases: [probe: string, message: RegExp, hint: RegExp][] = [
    ['line:work.rs:9999', /line 9999/, /nearest lines: \d+$/],
    ['line:stats.rs:40', /line 40/, /nearest lines: \d+, \d+$/],
    ['line:wrok.rs:35', /a file wrok\.rs/, /src\/work\.rs/],
    ['line:ork.rs:35', /a file ork\.rs/, /src\/work\.rs/],
    ['line:nothing_at_all.c:1', /a file nothing/, /as the debug info has it/],
  ];
  for (const [probe, message, hint] of cases)
    await t.rejects(addresses(path, probe), { code: 'PROBE_NO_MATCH', message, hint }, probe);
  for (const wrong of [
    'line:',
    'line:work.rs',
    'line:work.rs:',
    'line:35',
    'line::35',
    'line:work.rs:0',
    'line:a.rs:x',
  ])
    t.throws(() => parseProbe(wrong), { code: 'PROBE_SYNTAX' }, wrong);
  for (const wrong of ['!line:work.rs:35', 'line(x):work.rs:35'])
    t.throws(() => parseProbe(wrong), { code: 'PROBE_SYNTAX', message: /must begin with/ }, wrong);
});

t.test('hits are lower bounds where records may be lost, or a place was switched off on the way', async (t) => {
  const by = { function: 'app::run', file: 'a.rs', line: 7 };
  const place: PlaceRef = { key: 0, name: 'a.rs:7', category: 'line', address: addr(0x1000), by };
  const same: PlaceRef = { ...place, key: 1, name: 'src/a.rs:7' };
  const report = line.report({ places: [place, same], partial: new Set(), patches: new Map(), addresses: [] });
  for (const each of [place, same]) report.sink?.event({ type: 'place', time: 1, hart: 0, place: each } as never);
  const others = [{ name: 'src/a.rs:7 in app::run', subject: 'src/a.rs:7' }];
  const fact = (engine: ProbeFact['engine']): ProbeFact[] => [
    { name: 'a.rs:7 in app::run', subject: 'a.rs:7', others, address: place.address, engine, why: undefined },
  ];
  const shown = (engine: ProbeFact['engine'], lost: { missing?: number; tailLost?: boolean } = {}) => {
    const outcome = { engines: fact(engine), ...lost } as never;
    const [row, again] = (report.json(outcome) as { lines: { hits: number; at_least?: true }[] }).lines;
    t.equal(again?.at_least, row?.at_least, 'by another path the line is the same');
    const isMarked = /^ *>=1 /m.test(report.tables(outcome, { color: false, width: 200 })[0] ?? '');
    return [row?.hits, row?.at_least ?? false, isMarked];
  };
  t.same(shown('target'), [1, false, false]);
  t.same(shown('target', { missing: 2 }), [1, true, true]);
  t.same(shown('target', { tailLost: true }), [1, true, true]);
  t.same(shown('stop', { missing: 2 }), [1, false, false]);
  t.same(shown('none'), [1, true, true], 'its row is there because it had hits before');
});

t.test('hits are lower bounds where the compiler has copied the line in its block', async (t) => {
  const folder = scratchFolder(t);
  const source = `volatile long sink;
__attribute__((noinline)) void turns(long *a, long n) {
  for (long i = 0; i < n; i++)
    sink = a[i];
}
__attribute__((noinline)) long add(long a,
  long b) { return a + b; }
int main(int argc, char **argv) {
  long all[100] = { 0 };
  turns(all, 100);
  for (int i = 0; i < argc; i++)
    sink = add(add(argc, 1),
      add(2, argc));
  if (argc > 1) sink = 1; else sink = argv[0][0];
  return 0;
}`;
  const found = async (at: number, ...flags: string[]) => {
    const path = join(folder, `lines${flags.length}`);
    execFileSync('gcc', ['-g', ...flags, '-x', 'c', '-', '-o', path], { input: source });
    const program = await prepare(path, [parseProbe(`line:<stdin>:${at}`)]);
    const [{ found }] = program.kinds as unknown as [{ found: Parameters<typeof line.report>[0] }];
    const report = line.report(found);
    const { lines } = report.json({ engines: [] } as never) as { lines: { at_least?: true }[] };
    const [table = ''] = report.tables({ engines: [] } as never, { color: false, width: 200 });
    t.equal(
      /the first is counted/.test(table),
      lines.some((row) => row.at_least),
    );
    return lines.map((row) => row.at_least ?? false);
  };
  t.same(await found(4, '-O2', '-funroll-loops'), [true], 'each turn has its code');
  t.same(await found(4), [false]);
  t.same(await found(3), [true], 'what begins a loop comes once, and its condition each turn');
  t.same(await found(12), [false], 'a call whose arguments are in two lines');
  t.same(await found(14), [false], 'both ways begin with the condition');
});
