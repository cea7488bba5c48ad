// Stacks through functions whose return addresses trampolines have replaced: the same as without.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import type { ChromeRecord } from '../trace/decode-chrome.js';
import { elfPath, guest, parseLab, qemuArgv } from './guests/guests.js';

const around = ['labkern::exec::poll_task', 'labkern::exec::run'];

/** Each Future's stacks, at any of its polls: functions and lines. */
async function stacksOf(t: Test, name: string, engine: 'auto' | 'stop'): Promise<readonly string[]> {
  const folder = scratchFolder(t);
  const [trace, kept] = [join(folder, 'out.json'), join(folder, 'console')];
  const probes = ['-p', 'poll:level3', ...around.flatMap((path) => ['-p', `fn:${path}`])];
  const args = [
    '--json',
    '--engine',
    engine,
    '--wakes',
    'never',
    '--bt',
    '16',
    ...probes,
    '-o',
    trace,
    '--console',
    kept,
  ];
  const { status, stdout, stderr } = await rsptrace('run', ...args, elfPath(name), '--', ...qemuArgv(name)).ended;
  t.equal(status, 0, stderr.slice(-300));
  t.equal(parseLab(readFileSync(kept, 'latin1')).checksum, guest(name).checksum);
  const { probes: used } = JSON.parse(stdout) as { probes: { function: string; engine: string }[] };
  const hooked = used
    .filter(({ engine }) => engine === 'target')
    .map((probe) => probe.function)
    .filter((name) => !/^drop of | in /.test(name));
  // And these, the Futures that hold the one that is asked for: they tell whose poll it is.
  const holders = ['chain_task', 'generic_task', 'joiner', 'spawn_all::{async_block#0}'].map(
    (f) => `labkern::work::${f}`,
  );
  t.strictSame(hooked.sort(), engine === 'auto' ? [...around, ...holders].sort() : []);
  const records = JSON.parse(readFileSync(trace, 'utf8')) as ChromeRecord[];
  const stacks = records.filter(({ ph, cat, args }) => ph === 'b' && cat === 'future' && args.stack !== undefined);
  t.ok(stacks.length > 200, `${stacks.length} stacks`);
  return [...new Set(stacks.map(({ name, args }) => `${name}: ${String(args.stack)}`))].sort();
}

for (const name of ['rv-o2', 'x86-o2']) {
  t.test(`${name}: --bt through functions that are traced without stops`, async (t) => {
    const [hooked, plain] = [await stacksOf(t, name, 'auto'), await stacksOf(t, name, 'stop')];
    t.ok(
      plain.every((stack) => around.every((path) => stack.includes(` < ${path} at `))),
      'both functions are on every stack',
    );
    t.strictSame(hooked, plain);
  });
}
