// However a recording ends: the trace loads, and the guest is left as it was.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { connect } from '../../src/rsp/index.js';
import { connections, frozenGuest, rsptrace, rsptraceProcess, scratchFolder, traceGrows } from '../support/command.js';
import { long, usually } from '../support/long.js';
import { children, packetEnds, protoc, readPerfetto } from '../trace/decode-perfetto.js';
import { elfPath, guest, parseLab, qemuArgv } from './guests/guests.js';

/** protoc takes a second for so many bytes of a packed trace. */
const judged = 50_000;

/** The number of polls in the first packets of a trace, which has packets as far as it goes. */
function pollsIn(path: string): number {
  const bytes = readFileSync(path);
  const whole = bytes.subarray(0, packetEnds(bytes).findLast((end, index) => index < 100 || end < judged) ?? 0);
  const { slices } = readPerfetto(children(protoc(whole), 'packet'));
  return slices.filter(({ category }) => category === 'poll').length;
}

/** Bytes of a trace with more than a hundred events in it. */
const enough = 20_000;

/** Some of 5 million polls, so that little is left to be understood when the signal comes. */
const few = ['-p', 'poll:labkern::work::consumer'];

/** A hundred million instructions a second, so that a busy host does not see the guest end before the signal comes. */
const slow = ['-icount', 'shift=3,align=on'];

/** With a stop at each event it lasts for thousands of them; left alone it ends at once. */
const slowed = 'rv-o2';
/** With stops its end does not come, however busy the host is. */
const slowest = 'rv-o2-long';
const stops = ['--engine', 'stop'] as const;

// Otherwise test/qemu/detach.test.ts has each signal once, and what each guest computes afterwards.
for (const signal of usually(['SIGINT', 'SIGTERM'] as const, () => false)) {
  for (const name of ['rv-o2-long', 'x86-o2-long']) {
    t.test(`${name}: after ${signal} the guest runs on to its own end`, async (t) => {
      const qemu = frozenGuest(t, name, slow);
      const trace = join(scratchFolder(t), 'out.pftrace');
      const args = ['--remote', qemu.socket, '--json', '-o', trace, ...few, elfPath(name)];
      const tracer = rsptraceProcess(...args);
      await traceGrows(tracer, trace, enough);
      tracer.signal(signal);
      const { status, stdout, stderr } = await tracer.ended;
      t.equal(status, 0, stderr);
      const output = JSON.parse(stdout) as { end: string; events: number };
      t.equal(output.end, 'interrupted');
      t.ok(output.events > 100, `${output.events} events`);
      // A poll is one slice.
      t.ok(pollsIn(trace) > 25, 'the trace loads');
      const guestEnd = await qemu.ended;
      const lab = parseLab(guestEnd.stdout);
      t.equal(lab.done, true);
      t.equal(lab.checksum, guest(name).checksum, 'with the checksum of an untraced run');
      t.equal(guestEnd.status, guest(name).exit);
    });
  }
}

t.test('Ctrl-C while the ELF is read, or a moment later: a guest that ran goes on', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2-long');
  const starter = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
  await starter.detach();
  await qemu.shows('LAB cfg');
  const commands = [['bt'], ['tasks'], ['-o', join(scratchFolder(t), 'out.txt')]] as const;
  const hasEnded = (): boolean => qemu.process.exitCode !== null;
  for (let i = 0; i < (long ? 60 : 2) && !hasEnded(); i++) {
    const tracer = rsptraceProcess(...(commands[i % 3] ?? []), '-r', qemu.socket, elfPath('rv-o2-long'));
    // Half of the signals come while the ELF is read, half with the connection.
    if (i % 2 === 0) await sleep(60 + 20 * (i % 12));
    else while (!tracer.over() && !hasEnded() && connections(qemu.socket) === 0) await sleep(2);
    tracer.process.kill('SIGINT');
    const { status, signal, stderr } = await tracer.ended;
    // The guest goes on meanwhile, to its end at last.
    const isLeft = signal === 'SIGINT' || status === 0 || stderr.includes('[INTERRUPTED]');
    t.ok(isLeft || hasEnded(), `${signal ?? status}: ${stderr}`);
    t.notMatch(stderr, /^ +at /m, 'no stack trace');
  }
  const end = await qemu.ended;
  t.equal(parseLab(end.stdout).checksum, guest('rv-o2-long').checksum, 'it came to its own end');
  t.equal(end.status, guest('rv-o2-long').exit);
});

t.test('rsptrace run: SIGTERM ends QEMU too, unless it is to be kept', async (t) => {
  for (const keep of usually([[], ['--keep-running']], ({ length }) => length === 0)) {
    const trace = join(scratchFolder(t), 'out.pftrace');
    const tracer = rsptraceProcess('run', ...keep, ...stops, '-o', trace, elfPath(slowest), '--', ...qemuArgv(slowest));
    await tracer.shows('LAB cfg');
    await traceGrows(tracer, trace, enough);
    tracer.signal('SIGTERM');
    // `timeout` signals its command, and then the process group that it is in. Later, a busy host takes it for a second.
    if (keep.length === 0) tracer.signal('SIGTERM');
    const { status, stdout, stderr } = await tracer.ended;
    t.equal(status, 0, stderr);
    t.match(stdout, /ended by interrupted/);
    t.equal(/LAB done/.test(stdout), keep.length > 0);
    const bytes = readFileSync(trace);
    t.equal(packetEnds(bytes).at(-1), bytes.length, 'the trace is whole');
  }
});

t.test('rsptrace run: SIGKILL ends QEMU too, and its folder goes', async (t) => {
  const trace = join(scratchFolder(t), 'out.pftrace');
  const elf = elfPath('rv-o2');
  // Without a kernel nothing ends by itself.
  const idle = ['qemu-system-riscv64', '-M', 'virt', '-display', 'none', '-serial', 'none', '-monitor', 'none'];
  const tracer = rsptraceProcess('run', '-o', trace, elf, '--', ...idle);
  await tracer.shows('no probe was hit in 5 s: the target had nothing of');
  const qemu = execFileSync('pgrep', ['-P', `${tracer.process.pid}`, 'qemu'], { encoding: 'utf8' }).trim();
  const folder = /path=([^,]+)\/gdb/.exec(readFileSync(`/proc/${qemu}/cmdline`, 'latin1'))?.[1] ?? '';
  t.ok(existsSync(folder));
  tracer.process.kill('SIGKILL');
  await tracer.ended;
  while (existsSync(`/proc/${qemu}`) || existsSync(folder)) await sleep(20);
});

t.test(
  'rsptrace run: a QEMU that dies is said to have died, and one of another architecture is not started',
  async (t) => {
    const trace = join(scratchFolder(t), 'out.pftrace');
    const dies = ['qemu-system-riscv64', '-M', 'nosuch'];
    const dead = await rsptrace('run', '-o', trace, elfPath('rv-o2'), '--', ...dies).ended;
    t.equal(dead.status, 1);
    t.match(dead.stderr, /ended \(status 1\) before the guest was started \[RUN_EXITED\]\n.*unsupported machine type/);
    const other = await rsptrace('run', '-o', trace, elfPath('rv-o2'), '--', 'qemu-system-x86_64', '-M', 'nosuch')
      .ended;
    t.equal(other.status, 1);
    t.match(other.stderr, /^rsptrace: the ELF is for riscv64, qemu-system-x86_64 emulates x86_64 \[ARCH_MISMATCH\]\n/);
    t.equal(existsSync(trace), false);
  },
);

t.test('limits: --max-events and --duration', async (t) => {
  const folder = scratchFolder(t);
  const run = (name: string, ...limit: readonly string[]): ReturnType<typeof rsptrace> =>
    rsptrace(
      ...['run', '--json', ...stops, '-o', join(folder, name), ...limit, elfPath(slowed), '--'],
      ...qemuArgv(slowed),
    );
  const [few, brief] = await Promise.all([
    run('few.pftrace', '-n', '100').ended,
    run('brief.pftrace', '-d', '300ms').ended,
  ]);
  const first = JSON.parse(few.stdout) as { end: string; events: number };
  t.equal(first.end, 'max-events');
  // One hit can leave several events, and open polls are told as lost.
  t.ok(first.events >= 100 && first.events < 140, `${first.events} events`);
  t.equal((JSON.parse(brief.stdout) as { end: string }).end, 'duration');
  t.equal(few.status, 0);
  t.equal(brief.status, 0);
});

t.test('rsptrace run, and QEMU is killed: one sentence, and what was recorded is kept', async (t) => {
  const trace = join(scratchFolder(t), 'out.pftrace');
  // With a stop at each event: without, there would be more to decode than this test can hold.
  const options = ['--json', ...stops, '-o', trace];
  const tracer = rsptraceProcess('run', ...options, elfPath(slowest), '--', ...qemuArgv(slowest));
  await traceGrows(tracer, trace, enough);
  const qemu = execFileSync('pgrep', ['-P', String(tracer.process.pid), 'qemu-system'], { encoding: 'utf8' });
  process.kill(Number(qemu), 'SIGKILL');
  const { status, stdout, stderr } = await tracer.ended;
  const output = JSON.parse(stdout) as { end: string; events: number; error?: { code: string } };
  t.equal(status, 3);
  t.equal(output.end, 'failed');
  // Killed while it ran, or while it answered.
  t.match(output.error?.code, /^(RUN_KILLED|RSP_CLOSED)$/);
  t.match(stderr, `[${output.error?.code}]`);
  t.ok(output.events > 50);
  t.ok(pollsIn(trace) > 20, 'the trace loads');
});

t.test('a disk that is full: one sentence, and the guest runs on untouched', async (t) => {
  const folder = scratchFolder(t);
  const trace = join(folder, 'out.pftrace');
  symlinkSync('/dev/full', trace);
  const qemu = frozenGuest(t, slowed);
  const { status, stderr } = await rsptrace('--remote', qemu.socket, ...stops, '-o', trace, elfPath(slowed)).ended;
  t.equal(status, 3);
  t.match(stderr, /\[TRACE_WRITE_FAILED\]/);
  t.equal(parseLab((await qemu.ended).stdout).checksum, guest(slowed).checksum);
});

/** A command that must fail: its exit status, and the code in its one sentence. */
async function refused(t: Test, status: number, code: string, ...args: string[]): Promise<string> {
  const ran = await rsptrace(...args).ended;
  t.equal(ran.status, status, `${code}: exit status`);
  t.match(ran.stderr, `[${code}]`, `${code}: its code`);
  t.notMatch(ran.stderr, /\n\s+at /, `${code}: no stack trace`);
  t.ok(ran.stderr.trim().split('\n').length <= 2, `${code}: one sentence and a hint: ${ran.stderr}`);
  return ran.stderr;
}

t.test('bad input: one sentence with a code, before the guest is touched', async (t) => {
  const folder = scratchFolder(t);
  const trace = join(folder, 'out.pftrace');
  const elf = elfPath('rv-o2');
  const nowhere = join(folder, 'nobody');
  await refused(t, 1, 'RSP_CONNECT', '--remote', nowhere, '-o', trace, elf);
  await refused(t, 2, 'RSP_BAD_ADDRESS', '--remote', 'nonsense', '-o', trace, elf);
  await refused(t, 1, 'ELF_UNREADABLE', '--remote', nowhere, '-o', trace, join(folder, 'missing.elf'));
  await refused(t, 1, 'ELF_NOT_ELF', '--remote', nowhere, '-o', trace, 'README.md');
  const bare = join(folder, 'stripped.elf');
  execFileSync('riscv64-linux-gnu-objcopy', ['--strip-debug', elf, bare]);
  const stripped = await refused(t, 1, 'DWARF_MISSING', '--remote', nowhere, '-o', trace, bare);
  t.match(stripped, /debug = 2/);
  const missing = await refused(t, 1, 'PROBE_NO_MATCH', '-r', nowhere, '-o', trace, '-p', 'poll:levle3', elf);
  t.match(missing, /nearest: .*labkern::work::level3/);
  await refused(t, 2, 'PROBE_SYNTAX', '-r', nowhere, '-o', trace, '-p', 'level3', elf);
  await refused(t, 2, 'EXPRESSION_SYNTAX', '-r', nowhere, '-o', trace, '-p', 'watch:poll()', elf);
  await refused(t, 2, 'USAGE', '-r', nowhere, '-o', trace, '-d', 'soon', elf);
  await refused(t, 2, 'TRACE_UNKNOWN_FORMAT', '-r', nowhere, '-o', join(folder, 'out.xyz'), elf);
  await refused(t, 1, 'OUTPUT_CANNOT_WRITE', '-r', nowhere, '-o', join(folder, 'no/such/out.pftrace'), elf);
  await refused(t, 2, 'SCRATCH_SYNTAX', '-r', nowhere, '-o', trace, '--scratch', 'here', elf);
  await refused(t, 1, 'SCRATCH_NO_SYMBOL', '-r', nowhere, '-o', trace, '--scratch-symbol', 'none', elf);
  await refused(t, 1, 'UNTIL_NO_FUNCTION', '-r', nowhere, '-o', trace, '--until', 'none', elf);
  await refused(t, 2, 'RUN_NO_COMMAND', 'run', '-o', trace, elf);
  await refused(t, 1, 'RUN_NOT_FOUND', 'run', '-o', trace, elf, '--', 'qemu-none');
  await refused(t, 2, 'RUN_HAS_STUB', 'run', '-o', trace, elf, '--', 'qemu-system-riscv64', '-s');
  t.equal(existsSync(trace), false, 'and no trace file is left behind');
});

t.test(
  'a guest that never ran stands as before: for an ELF that is not what runs there, and when it was looked at',
  async (t) => {
    const trace = join(scratchFolder(t), 'out.pftrace');
    const { socket, ended } = frozenGuest(t, 'rv-o2');
    await refused(t, 1, 'ARCH_MISMATCH', '-r', socket, '-o', trace, elfPath('x86-o2'));
    await refused(t, 1, 'ELF_MISMATCH', '-r', socket, '-o', trace, elfPath('rv-o0'));
    await rsptrace('tasks', '--remote', socket, elfPath('rv-o2')).ended;
    // It stands as before, so that the right one can be given, and nothing was left in it.
    const { status, stderr } = await rsptrace('-r', socket, '-o', trace, '--force', elfPath('rv-o2')).ended;
    t.equal(status, 0, stderr);
    t.equal(parseLab((await ended).stdout).checksum, '0x899e');
  },
);

t.test('a stub that is none, and one that is silent', async (t) => {
  const folder = scratchFolder(t);
  const answers: [string, string | undefined, RegExp][] = [
    ['http', 'HTTP/1.1 400 Bad Request\r\n\r\n', /RSP_/],
    ['silent', undefined, /RSP_TIMEOUT/],
  ];
  for (const [name, answer, code] of answers) {
    const path = join(folder, name);
    const server = createServer((socket) => {
      socket.on('error', () => {});
      if (answer !== undefined) socket.end(answer);
    }).listen(path);
    t.teardown(() => server.close());
    const trace = join(folder, 'out.pftrace');
    const ran = await rsptrace('-r', path, '--timeout', '500ms', '-o', trace, elfPath('rv-o2')).ended;
    t.equal(ran.status, 1);
    t.match(ran.stderr, code, name);
  }
});

t.test('rsptrace run: a signal before the recording leaves no frozen QEMU behind', async (t) => {
  const folder = scratchFolder(t);
  const program = join(folder, 'qemu');
  // A QEMU that is long about its stub.
  writeFileSync(program, '#!/bin/sh\necho started as $$\nexec sleep 60\n', { mode: 0o755 });
  const tracer = rsptrace('run', '-o', join(folder, 'out.txt'), elfPath('rv-o2'), '--', program);
  let said = '';
  tracer.read((all) => {
    said = all;
  });
  await tracer.shows('started as');
  const pid = Number(/started as (\d+)/.exec(said)?.[1]);
  // One that has ended may wait for whoever asks how.
  const runs = (): boolean => {
    const file = `/proc/${pid}/stat`;
    return existsSync(file) && !/\) Z /.test(readFileSync(file, 'latin1'));
  };
  t.teardown(() => void (runs() && process.kill(pid, 'SIGKILL')));
  t.ok(runs());
  tracer.signal('SIGINT');
  await tracer.ended;
  for (let tries = 0; runs() && tries < 100; tries++) await sleep(20);
  t.notOk(runs());
});

t.test('rsptrace run: QEMU without a kernel among its arguments is said to boot nothing', async (t) => {
  const trace = join(scratchFolder(t), 'out.pftrace');
  const bare = ['qemu-system-riscv64', '-M', 'virt', '-nographic'];
  const ran = await rsptrace('run', '-d', '100ms', '-o', trace, elfPath('rv-o2'), '--', ...bare).ended;
  t.match(ran.stderr, /QEMU is given nothing to boot: -kernel rv-o2\.elf is missing/);
});
