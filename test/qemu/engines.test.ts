// What the engines promise of stops: none with `--engine target`, and the one that ends a recording with either.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, qemuArgv } from './guests/guests.js';

const file = { file: 'out.txt' };

t.test('with --engine target, what would stop the guest is left out and named', async (t) => {
  // A loop leads into memcmp's first instructions, which a jump would overwrite.
  const probes = ['-p', 'fn:memcmp', '-p', 'fn:labkern::work::deep*', '-p', 'count:memcmp'];
  // Of an option that is given twice the last holds.
  const words = ['run', '--dry-run', '--engine', 'stop', '--engine', 'target', ...probes, elfPath('rv-o2'), '--', 'x'];
  const said = await rsptrace(...words).ended;
  t.match(said.stdout, /^0x[0-9a-f]+ +none +memcmp +a branch/m);
  const { stdout, trace, lab } = await runLab(t, 'rv-o2', ['--json', '--engine', 'target', ...probes], file);
  const { stops, probes: used, functions, counts } = JSON.parse(stdout) as Recording;
  t.match(
    used.filter(({ engine }) => engine !== 'target'),
    [{ function: 'memcmp', engine: 'none', why: /^a branch/ }],
  );
  t.same(counts, [], 'nothing is said of what nobody counted');
  const deepest = functions.find(({ function: name }) => name === 'labkern::work::deep0');
  t.equal(deepest?.calls, lab.stats.get('deep_calls')?.calls);
  t.ok(stops < 3, `${stops} stops: the first hit, and the guest's end`);
  t.match(readFileSync(trace, 'utf8'), /memcmp.*left out: a branch/);
  const table = await runLab(t, 'rv-o2', ['--engine', 'target', ...probes], file);
  t.match(table.stdout, /; 1 probe is left out, since it would stop the target/);
});

t.test('--until ends a recording at a function that is traced as well', async (t) => {
  for (const engine of usually(['auto', 'target'], (one) => one === 'target')) {
    const until = 'labkern::stats::report';
    const options = [
      '--json',
      '--engine',
      engine,
      '--until',
      until,
      '-p',
      'fn:labkern::work::deep0',
      '-p',
      `fn:${until}`,
    ];
    const words = ['run', '-o', join(scratchFolder(t), 'out.txt'), ...options, elfPath('x86-o2'), '--'];
    const { end, probes } = await rsptrace(...words, ...qemuArgv('x86-o2')).json<Recording>();
    t.equal(end, 'until', `engine ${engine}`);
    const ended = probes.find((probe) => probe.function === until);
    t.match(ended, { engine: engine === 'auto' ? 'stop' : 'none', why: 'the recording ends there' });
  }
});

// Of one page all is for records, and code lies in the zeros behind the text: x86-o2 has too few.
const pages = [
  ['rv-o2', '0x87c00000,4K'],
  ['x86-o2', '0x7c00000,8K'],
] as const;
for (const [name, page] of usually(pages, ([one]) => one === 'rv-o2')) {
  t.test(
    `${name}: a small ring is read at interrupts as it fills, but for -icount, where no two would be alike`,
    async (t) => {
      const until = 'labkern::stats::report';
      const probes = ['-p', 'fn:labkern::work::deep0'];
      const wire = join(scratchFolder(t), 'wire.jsonl');
      const given = ['--scratch', page, '--record-wire', wire, '--force', '--until', until, '--keep-running'];
      for (const icount of [[], ['-icount', 'shift=3']]) {
        const words = ['--json', '--engine', 'target', ...given, ...probes];
        const { stdout, lab } = await runLab(t, name, words, { ...file, machine: icount });
        const { end, records, missing, functions } = JSON.parse(stdout) as Recording;
        const calls = lab.stats.get('deep_calls')?.calls ?? 0;
        t.same([end, missing], ['until', 0]);
        t.same(
          functions.map((row) => row.calls),
          [calls],
        );
        const interrupts = readFileSync(wire, 'latin1').match(/"to":"stub","text":"\\u0003"/g) ?? [];
        if (icount.length > 0) t.equal(interrupts.length, 0);
        else t.ok(interrupts.length > 0, `${interrupts.length} interrupts for ${records} records`);
      }
    },
  );
}

interface LogLine {
  readonly msg: string;
  readonly probe?: string;
  readonly at?: string;
  readonly hart?: number;
  readonly ticks?: number;
  readonly engine?: string;
  readonly why?: string;
  readonly source?: string;
}

t.test('--log trace shows every record of the ring, and what was decided before', async (t) => {
  const deepest = 'labkern::work::deep0';
  const options = ['--json', '--engine', 'target', '--log', 'trace', '-p', `fn:${deepest}`, '-p', 'fn:memcmp'];
  const { stderr, lab } = await runLab(t, 'rv-o2', options, file);
  const lines = stderr.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as LogLine] : []));
  const calls = lab.stats.get('deep_calls')?.calls;
  const records = lines.filter(({ msg }) => msg === 'record');
  for (const end of ['entry', 'return'])
    t.equal(records.filter(({ probe, at }) => probe === deepest && at === end).length, calls, end);
  const ticks = records.map((record) => record.ticks ?? Number.NaN);
  t.ok(
    ticks.every((tick, i) => i === 0 || tick >= (ticks[i - 1] ?? 0)),
    'in the order of the clock',
  );
  const said = (message: string): LogLine[] => lines.filter(({ msg }) => msg === message);
  t.match(
    said('engine chosen').filter(({ probe }) => probe === 'memcmp'),
    [{ engine: 'none', why: /^a branch/ }],
  );
  t.match(said('scratch memory found'), [{ source: 'hidden RAM' }]);
  t.match(said('trampoline'), [{ probe: deepest }]);
  t.match(said('patch inserted'), [{ probe: deepest }]);
});
