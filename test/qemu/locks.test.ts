// Locks, against the guest's own counts of how often each was taken, was not free, and was not taken.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import { Watched } from '../support/task-book.js';
import { elfPath, qemuArgv } from './guests/guests.js';

interface LockRow {
  readonly lock: string;
  readonly taken: number;
  readonly not_taken: number;
  readonly contended: number;
  readonly waiting: number;
  readonly waited_ns: number;
  readonly held_ns: number;
  readonly max_held_by: string;
  readonly contention: readonly { readonly holder: string; readonly waiter: string; readonly count: number }[];
}

interface Locks {
  readonly locks: readonly LockRow[];
  readonly lock_findings: readonly object[];
  readonly locks_inlined: readonly object[];
}

/** `LAB lock TABLE taken=16 failed=0 contended=8`, of those that were used. */
function counted(console: string): Record<string, readonly number[]> {
  const lines = [...console.matchAll(/LAB lock (\S+) taken=(\d+) failed=(\d+) contended=(\d+)/g)];
  const used = lines.filter(([, , taken]) => taken !== '0');
  return Object.fromEntries(used.map(([, name, ...counts]) => [`locks::${name}`, counts.map(Number)]));
}

function verify(t: Test, console: string, { locks, lock_findings: findings }: Locks): void {
  const seen = Object.fromEntries(locks.map((row) => [row.lock, [row.taken, row.not_taken, row.contended]]));
  t.same(seen, counted(console), "each lock as often as by the guest's own counts");
  t.ok(locks.every(({ waiting, held_ns: held }) => waiting === 0 && held > 0));
  const table = locks.find(({ lock }) => lock === 'locks::TABLE');
  t.match(table?.contention, [
    { holder: /^locks::holder at .*locks\.rs:\d+$/, waiter: /^locks::waiter at /, count: 8 },
  ]);
  t.match(table?.max_held_by, /^locks::(holder|waiter) at /);
  t.match(
    findings,
    [
      {
        kind: 'lock-inversion',
        orders: [
          { held: 'locks::FIRST', taken: 'locks::SECOND', held_by: /^locks::forwards at /, count: 3 },
          { held: 'locks::SECOND', taken: 'locks::FIRST', taken_by: /^locks::backwards at /, count: 1 },
        ],
      },
    ],
    'two locks are taken in both orders',
  );
}

/** In turn: with a thread each, on a busy host both are sometimes OpenSBI's boot hart, without rsptrace too. */
const twoHarts = ['-smp', '2', '-accel', 'tcg,thread=single'];

// Usually each engine once: inlined places are resolved before one is chosen.
for (const engine of usually(['target', 'stop'], (one) => one === 'target'))
  t.test(`inlined, engine ${engine}: locks of two harts, as the guest counts them`, async (t) => {
    const options = ['--json', '--engine', engine, '-p', 'lock:**', '-p', '!lock:SHELVES*'];
    const { stdout, console } = await runLab(t, 'rv-locks-o2', options, { machine: twoHarts });
    const recorded = JSON.parse(stdout) as Locks;
    // Whether an inlined attempt has taken its lock is not seen.
    verify(t, console.replaceAll(/LAB lock SHELVES.*/g, ''), recorded);
    t.match(recorded.locks_inlined, [{ function: 'locks::SpinLock::try_lock' }, { function: /::drop$/ }]);
  });

for (const engine of usually(['target', 'stop'], (one) => one === 'stop'))
  t.test(`engine ${engine}: locks of two harts, as the guest counts them`, async (t) => {
    // No use is left out, however short.
    const options = ['--json', '--engine', engine, '-p', 'lock:**', '--threshold', '1s'];
    const { stdout, console, trace } = await runLab(t, 'rv-locks-o0', options, { machine: twoHarts });
    const recorded = JSON.parse(stdout) as Locks;
    verify(t, console, recorded);
    t.same(recorded.locks_inlined, []);
    const saved = JSON.parse((await rsptrace('report', '--json', trace).ended).stdout) as Locks;
    t.same([saved.locks, saved.lock_findings], [recorded.locks, recorded.lock_findings], 'a saved trace has the same');
  });

for (const guest of usually(['rv-locks-o0', 'rv-locks-o2'], (name) => name === 'rv-locks-o0'))
  t.test(`${guest}: a glob names statics, and a hart that waits for itself is found`, async (t) => {
    const folder = scratchFolder(t);
    const [trace, kept] = [join(folder, 'out.pftrace'), join(folder, 'console.txt')];
    // The sixth event is the last: the interrupt's handler waits.
    const options = ['--json', '-p', 'lock:CONSOLE', '--max-events', '6', '-o', trace, '--console', kept];
    const machine = qemuArgv(guest, ['-icount', 'shift=0']);
    const { status, stdout } = await rsptrace('run', ...options, elfPath(guest), '--', ...machine).ended;
    t.equal(status, 0);
    t.match(readFileSync(kept, 'latin1'), /LAB stuck/);
    const { locks, lock_findings: findings } = JSON.parse(stdout) as Locks;
    t.match(locks, [{ lock: 'locks::CONSOLE', taken: 2, waiting: 1 }]);
    t.match(findings, [
      {
        kind: 'lock-deadlock',
        waits: [{ lock: 'locks::CONSOLE', hart: 0, by: /^locks::tick at /, held_by: /^locks::stuck at / }],
      },
    ]);
  });

for (const guest of usually(['rv-locks-o0', 'rv-locks-o2'], (name) => name === 'rv-locks-o0'))
  t.test(`${guest}: the line of an idle recording says what a hart spins for, and who holds it`, async (t) => {
    const machine = qemuArgv(guest);
    const options = ['--json', '-p', 'lock:CONSOLE', '--stalled', '3s', '-o', join(scratchFolder(t), 'out.pftrace')];
    const tracer = rsptrace('run', ...options, elfPath(guest), '--', ...machine);
    await Promise.race([tracer.shows('no event for'), tracer.ended]);
    for (const text of ['the guest runs on', 'never']) {
      tracer.signal('SIGINT');
      await Promise.race([tracer.shows(text), tracer.ended]);
    }
    const { status, stdout, stderr } = await tracer.ended;
    t.equal(status, 0, stderr);
    t.match(
      stderr.replaceAll(/\s+/g, ' '),
      /: hart 0 spins for locks::CONSOLE in locks::tick at \S+ since .* of the trace, held by itself since .*, taken by locks::stuck at /,
    );
    const { quiet } = JSON.parse(stdout) as { quiet: readonly { harts: readonly object[] }[] };
    const lock = { lock: 'locks::CONSOLE', hart: 0, by: /^locks::tick at /, held_by: /^locks::stuck at /, held_on: 0 };
    t.match(quiet.at(-1)?.harts, [{ number: 0, state: 'runs', lock }]);
  });

for (const guest of usually(['rv-locks-o0', 'rv-locks-o2'], (name) => name === 'rv-locks-o0'))
  t.test(`${guest}: a machine that stands shows what its hart waits for, without a recording`, async (t) => {
    const { socket } = frozenGuest(t, guest);
    const { session } = await Watched.at(socket, elfPath(guest));
    const [tick] = (await ElfFile.open(elfPath(guest))).symbols.named('tick');
    const breakpoint = { type: 0, address: tick?.address ?? addr(0n), kind: 2 } as const;
    await session.insertBreakpoint(breakpoint);
    await session.resume();
    await session.removeBreakpoint(breakpoint);
    // From here on it only looks whether the lock is free, which it never is: far enough that it does.
    const [{ id }] = (await session.harts()) as [{ id: string }];
    for (let step = 0; step < 100; step++) await session.resume({ kind: 'step', hart: id });
    session.close();
    const asked = ['tasks', '--blocked', '--remote', `unix:${socket}`, elfPath(guest)];
    const { stdout } = await rsptrace(...asked).ended;
    t.match(stdout, /^hart 0 is taking locks::CONSOLE in locks::tick at \S+locks\.rs:272$/m);
    const { locks_wanted: wanted } = JSON.parse((await rsptrace(...asked, '--json').ended).stdout) as object & {
      locks_wanted: object[];
    };
    const by = { function: 'locks::tick', line: 272 };
    t.match(wanted, [{ hart: 0, lock: 'locks::CONSOLE', address: /^0x/, by, interrupted: null }]);
  });

t.test('two harts that stand in a deadlock: each says who has a guard of what it wants', async (t) => {
  const { socket } = frozenGuest(t, 'rv-locks-o0', ['-smp', '3']);
  const asked = ['tasks', '--blocked', '--remote', `unix:${socket}`, elfPath('rv-locks-o0')];
  // It lets a machine go that never ran.
  t.equal((await rsptrace('detach', '--remote', `unix:${socket}`, elfPath('rv-locks-o0')).ended).status, 0);
  // After each look the machine runs on, until neither hart can.
  let text = '';
  while (!/SECOND in locks::ahead/.test(text) || !/FIRST in locks::behind/.test(text))
    text = (await rsptrace(...asked).ended).stdout;
  const lines = [...text.matchAll(/^hart (\d) is taking (.*) in (.*) at .*, whose guard hart (\d) has in (.*) at /gm)];
  const [first = [], second = []] = lines
    .map(([, ...words]) => words)
    .sort((a, b) => a[1]?.localeCompare(b[1] ?? '') ?? 0);
  t.strictSame(first, [second[3], 'locks::FIRST', 'locks::behind', second[0], 'locks::ahead']);
  t.strictSame(second, [first[3], 'locks::SECOND', 'locks::ahead', first[0], 'locks::behind']);
  const { locks_wanted: wanted } = JSON.parse((await rsptrace(...asked, '--json').ended).stdout);
  // A third hart may stand in the lock of the console just then.
  const [one, other] = wanted.filter(({ lock }: { lock: string }) => /FIRST|SECOND/.test(lock));
  t.match(one.guards, [{ hart: other.hart, variable: /^(first|second)$/, by: other.by }]);
  t.match(other.guards, [{ hart: one.hart, variable: /^(first|second)$/, by: one.by }]);
});

t.test('what cannot be is an error', async (t) => {
  for (const [guest, probe, code] of [
    ['rv-sched', 'lock:**', 'PROBE_NO_MATCH'],
    // `lock` of an async mutex has taken nothing, and a blocking mutex of embassy's is held while a closure runs.
    ['rv-embassy-o0', 'lock:**', 'PROBE_NO_MATCH'],
    ['rv-embassy-o3', 'lock:**', 'PROBE_NO_MATCH'],
    ['rv-locks-o0', 'lock:** if len > 1', 'PROBE_SYNTAX'],
    ['rv-locks-o0', '!lock:**', 'PROBE_SYNTAX'],
  ] as const) {
    const { status, stdout } = await rsptrace('run', '--dry-run', '--json', '-p', probe, elfPath(guest)).ended;
    t.not(status, 0);
    t.match(JSON.parse(stdout), { error: { code } }, probe);
  }
});
