// Watchpoints through the real command on real kernels, beside functions that are traced without stops: writes against the guest's own counter.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath } from './guests/guests.js';

interface Output extends Recording {
  readonly watches: readonly {
    readonly watch: string;
    readonly writes: number;
    readonly reads: number;
    readonly accesses: number;
    readonly changed: number;
    readonly last: string | null;
  }[];
}

interface ChromeRecord {
  readonly ph: string;
  readonly cat?: string;
  readonly name: string;
  readonly args: Readonly<Record<string, string | boolean | undefined>>;
}

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'x86-o2')) {
  t.test(`${name}: every write of a counter, inside the calls that make them`, async (t) => {
    const probes = ['watch:exec::POLLS', 'fn:labkern::exec::poll_task'].flatMap((probe) => ['-p', probe]);
    const { stdout, lab, trace } = await runLab(t, name, ['--json', ...probes], { file: 'out.json' });
    const polls = lab.exec?.polls ?? 0;
    t.ok(polls > 100);
    const output = JSON.parse(stdout) as Output;
    t.equal(output.end, 'guest-ended');
    t.match(output.functions, [{ function: 'labkern::exec::poll_task', calls: lab.stats.get('poll_task')?.calls }]);
    t.ok(output.records > polls, 'the function is traced without stops');

    const records = JSON.parse(readFileSync(trace, 'utf8')) as ChromeRecord[];
    const hits = records.filter(({ ph, cat }) => ph === 'i' && cat === 'watch');
    const changes = hits.filter((hit) => hit.args.changed === true);
    t.strictSame(
      changes.map((hit) => [hit.args.old, hit.args.value]),
      Array.from({ length: polls }, (_, i) => [String(i), String(i + 1)]),
      'as many as the guest has counted, each from where the one before had left it',
    );
    const writers = [...new Set(changes.map((hit) => hit.args.by))];
    t.equal(writers.length, 1, 'one place in the source does it');
    t.match(writers[0], /^labkern::exec::poll_task at .*src\/exec\.rs:\d+$/);
    // Startup code that clears .bss writes what is there; a boot loader that does it before leaves nothing to see.
    t.equal(hits.length - changes.length, name === 'rv-o2' ? 1 : 0);
    t.match(output.watches, [
      { watch: 'exec::POLLS', writes: hits.length, changed: polls, reads: 0, accesses: 0, last: String(polls) },
    ]);
    let open = 0;
    let outside = 0;
    for (const { ph, cat, args } of records) {
      if (cat === 'call' && ph === 'B') open++;
      if (cat === 'call' && ph === 'E') open--;
      if (cat === 'watch' && ph === 'i' && args.changed === true && open !== 1) outside++;
    }
    t.equal(outside, 0, 'each stands inside the call that made it');
  });
}

t.test('what cannot be is said before anything runs', async (t) => {
  const elf = elfPath('rv-o2');
  const trace = join(scratchFolder(t), 'out.txt');
  const tried = async (...args: string[]) => {
    const { status, stdout, stderr } = await rsptrace('run', '-o', trace, ...args, elf, '--', '/nowhere/qemu').ended;
    return { status, text: stdout + stderr };
  };
  t.match(await tried('-p', 'watch:exec::POLLS', '--engine', 'target'), { status: 1, text: /\[ENGINE_UNAVAILABLE\]/ });
  const planned = await tried('-p', 'watch:exec::POLLS:rw', '--dry-run');
  t.match(planned, { status: 0, text: /0x8060a008 +8 +exec::POLLS +reads and writes/ });
});
