// Budgets against a kernel that plants faults: which one, a number in RAM says, so that all runs are of the same ELF.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type Ran, rsptrace, scratchFolder } from '../support/command.js';
import { long, usually, variant } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, guest, qemuArgv } from './guests/guests.js';

const folder = scratchFolder(t);
const budget = join(import.meta.dirname, 'budgets/faulty.json');
const probes = ['-p', 'poll:faulty::**', '-p', 'fn:find_devices', '-p', 'fn:mount_root'];
/** Where the kernel looks for the number of a fault. */
const faultAt = { 'rv-faulty': '0x86000000', 'x86-faulty': '0x6000000' } as const;
type Name = keyof typeof faultAt;

interface Verdict {
  readonly section: string;
  readonly subject: string;
  readonly state: string;
  readonly measured: string;
  readonly value: number | null;
  readonly file: string | null;
  readonly line: number | null;
}

interface Checked {
  readonly ok: boolean;
  readonly verdicts: readonly Verdict[];
}

interface Output extends Recording {
  readonly check: Checked;
  readonly panic?: {
    readonly function: string;
    readonly line: number;
    readonly polled: readonly { readonly future: string }[];
  };
}

/** With `probes`, unless the options have others. */
function run(name: Name, fault: number, ...options: readonly string[]): Promise<Ran> {
  const planted = fault === 0 ? [] : ['-device', `loader,addr=${faultAt[name]},data=${fault},data-len=4`];
  const command = ['--', ...qemuArgv(name, planted)];
  const asked = options.includes('-p') ? [] : probes;
  return rsptrace('run', '--deterministic', ...asked, ...options, elfPath(name), ...command).ended;
}

async function json(
  name: Name,
  fault: number,
  ...options: readonly string[]
): Promise<Ran & { readonly output: Output }> {
  const ran = await run(name, fault, '--json', ...options);
  try {
    return { ...ran, output: JSON.parse(ran.stdout) as Output };
  } catch {
    throw new Error(ran.stderr);
  }
}

function broken({ verdicts }: Checked): string[] {
  return verdicts.filter(({ state }) => state === 'broken').map(({ section, subject }) => `${section} ${subject}`);
}

const clean = join(folder, 'clean.pftrace');

t.test(
  'deterministic runs have the same bytes, and the times that the guest measures when it is not traced',
  async (t) => {
    for (const name of usually(['rv-faulty', 'x86-faulty'] as const, (one) => one === 'rv-faulty')) {
      const runs = long ? 20 : 2;
      const hashes = new Set<string>();
      let output: Output | undefined;
      for (let i = 0; i < runs; i++) {
        const path = i === 0 && name === 'rv-faulty' ? clean : join(folder, `${name}.pftrace`);
        const ran = await json(name, 0, '--force', '-o', path, '--budget', budget);
        t.equal(ran.status, 0, ran.stderr);
        t.same(broken(ran.output.check), []);
        t.ok(ran.output.check.verdicts.every(({ state }) => state === 'kept'));
        hashes.add(createHash('sha256').update(readFileSync(path)).digest('hex'));
        output = ran.output;
      }
      t.equal(hashes.size, 1, `${runs} runs of ${name}`);
      const [program, ...args] = qemuArgv(name, ['-icount', 'shift=0,sleep=off', '-smp', '1']);
      let said = '';
      try {
        said = execFileSync(program, args, { encoding: 'latin1', stdio: ['ignore', 'pipe', 'ignore'] });
      } catch (thrown) {
        // isa-debug-exit cannot give 0.
        const { status, stdout } = thrown as { readonly status: number; readonly stdout: string };
        t.equal(status, guest(name).exit);
        said = stdout;
      }
      for (const [, phase, nanos] of said.matchAll(/LAB took (\w+) ns=(\d+)/g)) {
        const measured = output?.functions.find((row) => row.function === `faulty::${phase}`)?.total_ns ?? 0;
        t.ok(
          Math.abs(measured / Number(nanos) - 1) < 0.01,
          `${name} ${phase}: ${measured} traced, ${nanos} by the guest itself`,
        );
      }
    }
  },
);

variant(t, 'deterministic runs are alike, too, where their ring fills again and again', async (t) => {
  const name = 'rv-o2';
  // Under `--long` with everything that the guest has; eight functions fill a smaller ring.
  const [size, probe] = long ? [0x40000, 'fn:**'] : [0x10000, 'fn:deep*'];
  const options = ['--scratch', `0x84000000,${size}`, '-p', probe, '--json', '--force', '-o'];
  const hashes = new Set<string>();
  for (let i = 0; i < (long ? 5 : 2); i++) {
    const path = join(folder, 'rings.pftrace');
    const command = ['--', ...qemuArgv(name)];
    const words = ['run', '--deterministic', ...options, path, elfPath(name), ...command];
    const { records, ring_full } = await rsptrace(...words).json<{
      readonly records: number;
      readonly ring_full: number;
    }>();
    t.ok(records * 256 > 10 * size, `${records} records fill it ten times`);
    t.equal(ring_full, 0, 'a full ring stops the guest: how long it would wait depends on the host');
    hashes.add(createHash('sha256').update(readFileSync(path)).digest('hex'));
  }
  t.equal(hashes.size, 1);
});

t.test('each fault breaks the budget that is meant for it', async (t) => {
  const faults = [
    ['a poll that blocks', 1, ['times poll:faulty::worker max', 'times poll:faulty::worker p99']],
    // The task that waits for ever is dropped at the end.
    ['a lost wake', 2, ['reach ready:faulty::receiver', 'findings dropped-pending of faulty::receiver']],
    [
      'a slower phase',
      4,
      [
        'between fn:faulty::mount_root to return:faulty::mount_root',
        'between fn:faulty::mount_root to return:faulty::mount_root',
      ],
    ],
    ['a leaked task', 5, ['alive faulty::request']],
  ] as const;
  for (const name of usually(['rv-faulty', 'x86-faulty'] as const, (one) => one === 'rv-faulty')) {
    for (const [what, fault, wanted] of faults) {
      const { status, output } = await json(
        name,
        fault,
        '--force',
        '-o',
        join(folder, 'fault.pftrace'),
        '--budget',
        budget,
      );
      t.equal(status, 4, `${name}: ${what}`);
      t.same(broken(output.check), wanted);
    }
  }
});

t.test(
  'a panic is reported with its place, its stack and its task; the status tells it from a broken budget',
  async (t) => {
    for (const name of usually(['rv-faulty', 'x86-faulty'] as const, (one) => one === 'rv-faulty')) {
      const trace = join(folder, 'panic.pftrace');
      const { status, stderr, output } = await json(
        name,
        3,
        '--force',
        '-o',
        trace,
        '--budget',
        budget,
        '--last',
        '1ms',
      );
      t.equal(status, 5);
      t.equal(output.end, 'panicked');
      // On riscv64 functions that panic do not keep who called them, so each needs a breakpoint.
      t.equal(output.panic_breakpoints, name === 'x86-faulty' ? 1 : 9);
      t.match(stderr, /LAB PANIC panicked at src\/faulty.rs:\d+/, 'the guest goes on to say so');
      const line = Number(/faulty\.rs:(\d+)/.exec(stderr)?.[1]);
      t.match(output.panic, { function: 'faulty::check', line });
      t.same(
        output.panic?.polled.map(({ future }) => future),
        ['faulty::checker'],
      );
      t.ok(broken(output.check).includes('guest panic'));
      t.ok(broken(output.check).includes('guest exit status'));
      // The flight recorder has the last millisecond, and what is open in it.
      const events = (await rsptrace('convert', '--force', trace, '-o', join(folder, 'panic.jsonl')).ended).status;
      t.equal(events, 0);
      const kept = readFileSync(join(folder, 'panic.jsonl'), 'utf8')
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text) as { readonly time_ns?: number });
      t.ok((output.left_out ?? 0) > 100 && kept.length < 40, `${kept.length} kept, ${output.left_out} left out`);
    }
    const passed = await run(
      'rv-faulty',
      3,
      '--force',
      '-o',
      join(folder, 'p.pftrace'),
      '--guest-status',
      '-p',
      'fn:mount_root',
    );
    t.equal(passed.status, 1, "the guest's own");
    t.match(passed.stdout, /the guest panicked in faulty::check at \/labkern\/src\/faulty.rs:\d+\n\nhart.*\n +#0 /);
    const ignore = ['--on-panic', 'ignore', '-p', 'fn:mount_root'] as const;
    const ignored = await json('rv-faulty', 3, '--force', '-o', join(folder, 'p.pftrace'), ...ignore);
    t.match([ignored.status, ignored.output.end, ignored.output.panic_breakpoints], [5, 'guest-ended', 0]);
  },
);

t.test('the console and time limits judge the guest', async (t) => {
  const out = ['-p', 'fn:mount_root', '--force', '-o', join(folder, 'console.pftrace')] as const;
  const good = await json(
    'rv-faulty',
    0,
    ...out,
    '--console-expect',
    'LAB done',
    '--console-fail',
    'LAB PANIC',
    '--time-limit',
    '5m',
  );
  t.equal(good.status, 0);
  t.same(
    good.output.check.verdicts.map(({ state }) => state),
    ['kept', 'kept', 'kept', 'kept'],
  );
  const bad = await json('rv-faulty', 0, ...out, '--console-expect', 'login:', '--console-fail', 'took mount_root');
  t.equal(bad.status, 5);
  t.same(broken(bad.output.check).slice(0, 2), ["guest console 'login:'", "guest console 'took mount_root'"]);
  const late = await json('rv-faulty', 0, ...out, '--guest-time-limit', '1ms');
  t.equal(late.status, 5);
  t.same(broken(late.output.check), ['guest guest time limit']);
  const until = await json('rv-faulty', 2, ...out, '--console-until', 'took find_devices');
  t.equal(until.status, 0, 'who ends the guest does not blame it');
  const short = await json('rv-faulty', 0, ...out, '--time-limit', '1ms');
  t.equal(short.status, 5);
  t.ok(broken(short.output.check).includes('guest time limit'));
});

t.test('a budget is written from a trace, kept by it, and read by other programs', async (t) => {
  const written = join(folder, 'new.json');
  t.equal((await rsptrace('check', clean, '--budget', written, '--update').ended).status, 0);
  const first = JSON.parse(readFileSync(written, 'utf8'));
  t.match(Object.keys(first), ['version', 'reach', 'order', 'counts', 'times', 'between', 'alive', 'findings']);
  const [report, page] = [join(folder, 'junit.xml'), join(folder, 'page.md')];
  const kept = await rsptrace('check', clean, '--budget', written, '--junit', report, '--markdown', page, '--github')
    .ended;
  t.equal(kept.status, 0, kept.stdout);
  t.notMatch(kept.stdout, /::error/);
  const count = /tests="(\d+)" failures="0"/.exec(readFileSync(report, 'utf8'))?.[1];
  t.equal(count, /: (\d+) kept, 0 broken/.exec(kept.stdout)?.[1]);
  writeFileSync(written, JSON.stringify({ ...first, times: { 'fn:mount_root': { max: '1ms' } } }));
  const again = ['check', clean, '--budget', written, '--junit', report, '--markdown', page, '--github'];
  t.match(await rsptrace(...again).ended, { status: 1, stderr: /junit\.xml is there already \[OUTPUT_EXISTS\]/ });
  const late = await rsptrace(...again, '--force').ended;
  t.equal(late.status, 4);
  t.match(
    late.stdout,
    /BROKEN times +fn:mount_root max: 1.6 ms, at .*; wanted: at most 1.0 ms \[\/labkern\/src\/faulty.rs:\d+\]/,
  );
  t.match(late.stdout, /^::error file=\/labkern\/src\/faulty.rs,line=\d+,title=times fn%3Amount_root max::1.6 ms/m);
  t.match(readFileSync(page, 'utf8'), /\| broken \| times \| `fn:mount_root max` \| 1.6 ms/);
  const read =
    'import sys, xml.etree.ElementTree as e; print([c.get("name") for c in e.parse(sys.argv[1]).iter("testcase") if c.find("failure") is not None])';
  t.equal(execFileSync('python3', ['-c', read, report], { encoding: 'utf8' }).trim(), "['fn:mount_root max']");
  // Limits follow the trace, with less head room.
  t.equal((await rsptrace('check', clean, '--budget', written, '--update', '--headroom', '0%').ended).status, 0);
  const other = join(scratchFolder(t), 'other.json');
  writeFileSync(other, '{"version": 1, "never": ["reset"], "times": {"poll:nowhere::**": {"max": "1ms"}}}');
  t.match(
    (await rsptrace('check', clean, '--budget', other, '--update').ended).stdout,
    /limits of never, times written\nleft out, .*: times poll:nowhere::\*\*\na file that is not there yet gets limits/,
  );
  t.match(JSON.parse(readFileSync(written, 'utf8')).times, { 'fn:mount_root': { max: /^1\.\d+ms$|^\d+(us|ns)$/ } });
  t.equal((await rsptrace('check', clean, '--budget', written).ended).status, 0);
});

t.test('what is wrong is named', async (t) => {
  const path = join(folder, 'bad.json');
  const given = async (text: string, ...options: readonly string[]): Promise<string> => {
    writeFileSync(path, text);
    const { status, stdout, stderr } = await rsptrace('check', clean, '--budget', path, ...options).ended;
    return `${status} ${stdout}${stderr}`;
  };
  t.match(await given('{ "reach": '), /^1 .*BUDGET_UNREADABLE/s);
  t.match(await given('{ "timse": {} }'), /^1 .*'timse'.*\[BUDGET_INVALID\]\n +did you mean times\?/s);
  t.match(
    await given('{ "times": { "poll:worker": { "maxx": "1ms" } } }'),
    /'times.poll:worker.maxx'.*\n +did you mean max\?/s,
  );
  t.match(
    await given('{ "times": { "poll:worker": { "max": "fast" } } }'),
    /'times.poll:worker.max' is to be a time, not 'fast'/,
  );
  t.match(await given('{ "reach": { "pol:worker": {} } }'), /did you mean poll:\?/);
  t.match(await given('{ "counts": { "fn:a": { "min": 5, "max": 1 } } }'), /a min of 5 above its max of 1/);
  t.match(await given('{ "findings": { "allow": ["long-pol"] } }'), /nearest: long-poll/);
  t.match(await given('{ "version": 7, "never": [] }'), /'version' is 7/);
  t.match(await given('[]'), /is to be an object, not a list/);
  t.match(await given('{}'), /asks for nothing/);
  // A glob that nothing matches is said, and fails where that is asked for.
  const unseen = '{ "times": { "poll:wroker": { "max": "1ms" } }, "never": ["fn:oom"] }';
  t.match(await given(unseen), /^0 .*2 not seen.*nothing in the trace has this name; nearest: .*faulty::worker/s);
  t.match(await given(unseen, '--strict'), /^4 /);
  t.match(await given(unseen, '--headroom', 'much'), /^2 .*--headroom/s);
  t.match(await given(unseen, '--junit', join(folder, 'none/x.xml')), /^1 .*CHECK_CANNOT_WRITE/s);
  t.match(await given(unseen, '--junit', path), /^2 .*OUTPUT_IS_INPUT/s);
  writeFileSync(join(folder, 'cut.pftrace'), readFileSync(clean).subarray(0, 9000));
  const cut = await rsptrace('check', join(folder, 'cut.pftrace'), '--budget', budget).ended;
  t.match(cut.stdout, /trace +whole: its end is missing/);
  t.match(cut.stderr, /is cut off/);
  const none = await run('rv-faulty', 0, '-o', join(folder, 'never.pftrace'), '--budget', join(folder, 'none.json'));
  t.match(none.stderr, /BUDGET_UNREADABLE/);
  t.equal(existsSync(join(folder, 'never.pftrace')), false, 'nothing was started');
});

t.test("as cargo's runner: the ELF is QEMU's -kernel, or alone", async (t) => {
  const out = ['--json', '-p', 'fn:labkern::exec::run', '--force', '-o', join(folder, 'runner.pftrace')] as const;
  // Guests that end however slow their machine is: rv-faulty has 20 ms of its own clock for its work.
  const commands = [qemuArgv('rv-o2'), [elfPath('rv-o2')], [elfPath('x86-o2')]];
  for (const command of usually(commands, (one) => one !== commands[1])) {
    const { status, stdout, stderr } = await rsptrace('run', ...out, '--', ...command).ended;
    t.equal(status, 0, stderr);
    t.equal((JSON.parse(stdout) as Output).functions[0]?.function, 'labkern::exec::run');
    if (command.length === 1) t.match(stderr, /rsptrace: starts qemu-system-\w+ .*-kernel /);
  }
  const flat = ['qemu-system-riscv64', '-kernel', import.meta.filename];
  for (const command of [[import.meta.filename], ['qemu-system-riscv64', '-M', 'virt'], flat]) {
    const { status, stderr } = await rsptrace('run', ...out, '--', ...command).ended;
    t.match(`${status} ${stderr}`, /^2 .*RUN_NO_ELF/s);
  }
  const text = await rsptrace('run', ...out, '--', import.meta.filename).ended;
  t.match(text.stderr, /check\.test\.\w+ is no ELF of 64 bits.*rsptrace run \.\/program/s);
  const absent = await rsptrace('run', ...out, '--', join(folder, 'absent')).ended;
  t.match(`${absent.status} ${absent.stderr}`, /^1 .*ELF_UNREADABLE/s);
  // As kernels are linked that only a flat binary boots: load addresses as high as the virtual ones.
  const high = join(folder, 'high.elf');
  const bytes = readFileSync(elfPath('rv-o2'));
  const [at, size, count] = [Number(bytes.readBigUInt64LE(32)), bytes.readUInt16LE(54), bytes.readUInt16LE(56)];
  const physical = 24;
  for (let i = 0; i < count; i++) bytes.writeUInt32LE(0xffff_ffc0, at + i * size + physical + 4);
  writeFileSync(high, bytes);
  const { status, stderr } = await rsptrace('run', ...out, '--', high).ended;
  t.match(`${status} ${stderr}`, /^1 .*address, 0xffffffc080\w+, where no machine has memory.*objcopy -O binary/s);
  const kvm = await rsptrace(
    'run',
    '--deterministic',
    ...out,
    elfPath('x86-faulty'),
    '--',
    ...qemuArgv('x86-faulty', ['-enable-kvm']),
  ).ended;
  t.match(`${kvm.status} ${kvm.stderr}`, /^2 .*RUN_NOT_DETERMINISTIC/s);
});
