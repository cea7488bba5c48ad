// Stacks through functions whose return addresses trampolines have replaced: the same as without.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually, variant } from '../support/long.js';
import { stopAt } from '../support/stop-at.js';
import type { ChromeRecord } from '../trace/decode-chrome.js';
import { elfPath, qemuArgv } from './guests/guests.js';

const around = ['labkern::exec::poll_task', 'labkern::exec::run'];

/** Each Future's stacks, at any of its polls: functions and lines. */
async function stacksOf(t: Test, name: string, engine: 'auto' | 'stop'): Promise<readonly string[]> {
  const functions = (engine === 'auto' ? around : []).map((path) => `fn:${path}`);
  const probes = ['poll:sleeper', 'poll:joiner', ...functions].flatMap((probe) => ['-p', probe]);
  const options = ['--json', '--engine', engine, '--wakes', 'never', '--bt', '16', ...probes];
  const { stdout, trace } = await runLab(t, name, options, { file: 'out.json' });
  const { probes: used } = JSON.parse(stdout) as { probes: { function: string; engine: string }[] };
  const hooked = used
    .filter(({ engine }) => engine === 'target')
    .map((probe) => probe.function)
    .filter((name) => !/^drop of | in /.test(name));
  t.strictSame(hooked.sort(), engine === 'auto' ? around : []);
  const records = JSON.parse(readFileSync(trace, 'utf8')) as ChromeRecord[];
  const stacks = records.filter(({ ph, cat, args }) => ph === 'b' && cat === 'future' && args.stack !== undefined);
  t.ok(stacks.length > 20, `${stacks.length} stacks`);
  return [...new Set(stacks.map(({ name, args }) => `${name}: ${String(args.stack)}`))].sort();
}

// The unwinding is the same as below, where it is asked for on either architecture: here with polls, and all under `--long`.
for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'x86-o2')) {
  variant(t, `${name}: --bt through functions that are traced without stops`, async (t) => {
    const [hooked, plain] = [await stacksOf(t, name, 'auto'), await stacksOf(t, name, 'stop')];
    t.ok(
      plain.every((stack) => around.every((path) => stack.includes(` < ${path} at `))),
      'both functions are on every stack',
    );
    t.strictSame(hooked, plain);
  });
}

/** The functions of a hart's stack as gdb shows them, the innermost first, without those that are inlined. */
function gdbStack(socket: string, elf: string): readonly string[] {
  const commands = ['set debuginfod enabled off', 'set print frame-arguments none', `target remote ${socket}`, 'bt'];
  const args = commands.flatMap((command) => ['-ex', command]);
  const text = execFileSync('gdb-multiarch', ['-nx', '-batch', ...args, elf], { encoding: 'utf8', stdio: 'pipe' });
  return text.split('\n').flatMap((line) => /^#\d+ +(?:0x\w+ in )?(.+?) \(/.exec(line)?.[1] ?? []);
}

interface Stacks {
  readonly harts: readonly {
    readonly frames: readonly { readonly function: string; readonly inlined: boolean }[];
    readonly end: { readonly complete: boolean };
  }[];
}

const lasting = [
  ['rv-o2-long', '_start2'],
  ['x86-o2-long', 'start64'],
] as const;
// Of x86_64 test/qemu/stacks-as-gdb.test.ts has one.
for (const [name, outermost] of usually(lasting, ([one]) => one === 'rv-o2-long')) {
  t.test(`${name}: stacks through calls that were open when the recording ended, by bt and by gdb`, async (t) => {
    const qemu = frozenGuest(t, name);
    const outer = ['exec::poll_task', 'exec::run', 'rust_main'].map((path) => `labkern::${path}`);
    const traced = outer.flatMap((path) => ['-p', `fn:${path}`]);
    const trace = join(scratchFolder(t), 'out.pftrace');
    const args = ['-r', qemu.socket, '--json', '-n', '50', ...traced, '-o', trace, elfPath(name)];
    t.match(await rsptrace(...args).json(), { trampolines_stay: true }, 'calls were open');
    await stopAt(qemu.socket, name, 'deep7');
    const bt = await rsptrace('bt', '-r', qemu.socket, '--json', elfPath(name)).ended;
    const [hart] = (JSON.parse(bt.stdout) as Stacks).harts;
    const frames = hart?.frames.filter(({ inlined }) => !inlined).map((frame) => frame.function) ?? [];
    t.same(frames.slice(-4), [...outer, outermost]);
    t.equal(hart?.end.complete, true);
    await stopAt(qemu.socket, name, 'deep7');
    const seen = gdbStack(qemu.socket, elfPath(name));
    t.ok(seen.includes('labkern::work::deep7'), seen.join(' < '));
    // gdb takes the borrowed code for a caller. Behind it, it finds the real one.
    t.same(
      seen.filter((path) => outer.includes(path)),
      outer,
      seen.join(' < '),
    );
    t.ok(seen.includes(outermost), 'to the outermost');
  });
}

for (const name of usually(['rv-faulty', 'x86-faulty'] as const, (one) => one === 'rv-faulty')) {
  t.test(`${name}: a panic has the same stack, however polls are traced`, async (t) => {
    const planted = `loader,addr=${name === 'rv-faulty' ? '0x86000000' : '0x6000000'},data=3,data-len=4`;
    const stackOf = async (engine: string): Promise<unknown> => {
      const trace = join(scratchFolder(t), 'out.pftrace');
      const args = [
        '--json',
        '--engine',
        engine,
        '-p',
        'poll:faulty::checker',
        '-p',
        'fn:faulty::exec::*',
        '-o',
        trace,
      ];
      // By instructions its clock stands at stops: it does not wait longer, with more stops, for a slower host.
      const command = qemuArgv(name, ['-device', planted, '-icount', 'shift=0']);
      const { stdout } = await rsptrace('run', ...args, elfPath(name), '--', ...command).ended;
      const { panic } = JSON.parse(stdout) as { panic: { harts: Stacks['harts'] } };
      return panic.harts.map(({ frames, end }) => ({ frames: frames.map((frame) => frame.function), end }));
    };
    t.same(await stackOf('auto'), await stackOf('stop'));
  });
}
