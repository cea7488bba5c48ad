// A process under a gdbserver that rsptrace starts itself: one that runs, and a program that it starts.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { statOf } from '../../src/base/proc.js';
import { programNamed } from '../../src/cli/local-process.js';
import { main, type Running, rsptrace, rsptraceProcess, scratchFolder, start, traceGrows } from '../support/command.js';
import { usually, variant } from '../support/long.js';
import { changedCode, compileC } from '../support/native.js';
import type { Recording } from '../support/recording.js';

/**
 * Calls `tick` each millisecond until it has done so as often as told or is asked to end by SIGUSR1, and says how often
 * it has. With BUSY it forks
 * and takes a signal each time, and ends with how many of either it has missed.
 */
const ticking = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int ticks, caught, forked, most;
void on_signal(int n) { caught++; }
void on_end(int n) { most = 0; }
void busy(void) {
  int status;
  raise(SIGUSR2);
  pid_t child = fork();
  if (child == 0) _exit(0);
  if (waitpid(child, &status, 0) == child && status == 0) forked++;
}
__attribute__((noinline)) int tick(int n) { ticks = n + 1; return n * 2; }
int main(int argc, char **argv) {
  most = argc > 1 ? atoi(argv[1]) : 1000000;
  signal(SIGUSR2, on_signal);
  signal(SIGUSR1, on_end);
  puts("ticking");
  fflush(stdout);
#ifdef BUSY
  while (ticks < most) { tick(ticks); usleep(1000); busy(); }
  most = 2 * ticks - caught - forked;
#else
  while (ticks < most) { tick(ticks); usleep(1000); }
  most = 0;
#endif
  printf("%d ticks\\n", ticks);
  return most == 0 ? 7 : 1;
}`;

/** It has run on, and goes on to its end when it is asked to. */
async function endsWell(t: Test, target: Running): Promise<void> {
  target.process.kill('SIGUSR1');
  t.match(await target.ended, { status: 7, stdout: /^ticking\n\d+ ticks\n$/ }, 'it has run to its end');
}

const tracerOf = (pid: number): string =>
  /^TracerPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';

for (const flags of usually([['-no-pie'], ['-pie'], ['-pie', '-DBUSY']], ([, busy]) => busy === '-DBUSY')) {
  t.test(`attach, ${flags}: the process is traced and left as it was`, async (t) => {
    const program = compileC(t, ticking, flags);
    const target = start(program, []);
    await target.shows('ticking');
    const pid = target.process.pid ?? 0;
    const trace = join(scratchFolder(t), 'out.txt');
    const ran = await rsptrace('attach', String(pid), '--json', '-p', 'fn:tick', '-n', '120', '-o', trace).ended;
    const output = JSON.parse(ran.stdout) as Recording;
    t.match(output, { functions: [{ function: 'tick' }] }, ran.stderr);
    t.ok((output.functions[0]?.calls ?? 0) >= 55, 'each call is two events');
    t.ok(output.standing_ms > 0 && output.standing_ms < output.host_ms + 10_000, `${output.standing_ms} ms`);
    const { longest_standing_ms: longest } = output;
    t.ok(longest > 0 && longest < output.standing_ms, `in slices: at most ${longest} of ${output.standing_ms} ms`);
    t.equal(tracerOf(pid), '0', 'nobody traces it any more');
    if (flags.includes('-pie')) t.equal(changedCode(pid, program), 0, 'its code is its own');
    await endsWell(t, target);
  });
}

t.test('attach to a library of a process: its functions are traced without stops', async (t) => {
  const target = start(compileC(t, ticking), []);
  t.teardown(() => void target.process.kill('SIGKILL'));
  await target.shows('ticking');
  const pid = target.process.pid ?? 0;
  const library = /\S+\/libc\.so\.6$/m.exec(readFileSync(`/proc/${pid}/maps`, 'utf8'))?.[0] ?? '';
  const words = [String(pid), library, '--json', '-p', 'fn:usleep', '-n', '100'];
  const { functions, scratch, ...rest } = await rsptrace(
    'attach',
    ...words,
    '-o',
    join(scratchFolder(t), 'out.txt'),
  ).json<Recording>();
  t.match(functions, [{ function: /^usleep/ }], `${JSON.stringify(rest)}`);
  t.match(scratch, /^memory mapped into process/);
  await endsWell(t, target);
});

t.test(
  'attach to an idle process: it has trampolines, and its trace can be opened, before any probe is hit',
  async (t) => {
    const target = start(compileC(t, ticking.replace('#ifdef BUSY', 'for (;;) pause();\n#ifdef BUSY')), []);
    t.teardown(() => void target.process.kill('SIGKILL'));
    await target.shows('ticking');
    const [trace, wire] = ['out.pftrace', 'wire.jsonl'].map((name) => join(scratchFolder(t), name)) as [string, string];
    const options = ['--json', '-p', 'fn:tick', '--record-wire', wire, '-o', trace];
    const tracer = rsptraceProcess('attach', String(target.process.pid), ...options);
    await traceGrows(tracer, trace, 1);
    t.match(await rsptrace('info', '--json', trace).json(), { events: 0 });
    tracer.process.kill('SIGINT');
    const ran = await tracer.ended;
    t.equal(ran.status, 0);
    t.match(JSON.parse(ran.stdout), { scratch: /^memory mapped into process/ }, 'trampolines wait for no hit');
    const packets = readFileSync(wire, 'latin1');
    const library = packets.indexOf(Buffer.from('/libc.so.6').toString('hex'));
    const reading = packets.slice(library, packets.indexOf('vFile:close', library));
    t.ok(
      /vFile:pread.*vCont;c.*vFile:pread/s.test(reading),
      'it runs on between two pieces of a library that a stub reads',
    );
  },
);

t.test('attach to a process whose program was replaced: the file that it runs is read', async (t) => {
  const program = compileC(t, ticking);
  const target = start(program, []);
  t.teardown(() => void target.process.kill('SIGKILL'));
  await target.shows('ticking');
  rmSync(program);
  const trace = join(scratchFolder(t), 'out.txt');
  t.match(
    await rsptrace('attach', String(target.process.pid), '--json', '-p', 'fn:tick', '-n', '40', '-o', trace).json(),
    { functions: [{ function: 'tick' }] },
  );
});

t.test('graph of a process that runs: its calls, the thread that makes them, and let go', async (t) => {
  const target = start(compileC(t, ticking), []);
  await target.shows('ticking');
  const pid = target.process.pid ?? 0;
  const ran = await rsptrace('graph', '--fn', 'tick', '--pid', String(pid), '-n', '40').ended;
  t.equal(ran.status, 0, ran.stderr);
  const numbers = [...ran.stdout.matchAll(/ tick\(n=(\d+)\);/g)].map(([, n]) => Number(n));
  t.ok(numbers.length >= 19, `${numbers.length} calls of two events each`);
  t.same(
    numbers,
    numbers.map((_, i) => (numbers[0] ?? 0) + i),
    'each call once, in its order',
  );
  const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  t.ok(ran.stdout.includes(`# CPU 0 is thread ${pid} (${name})\n`), ran.stdout.slice(0, 200));
  t.equal(tracerOf(pid), '0', 'nobody traces it any more');
  const refused = await rsptrace('graph', '--pid', String(pid)).ended;
  t.match(refused, { status: 2, stderr: /--pid needs --fn/ });
  await endsWell(t, target);
});

t.test('a program is found as a shell finds it', async (t) => {
  const folder = scratchFolder(t);
  const path = process.env.PATH;
  t.teardown(() => {
    process.env.PATH = path;
  });
  process.env.PATH = `/nowhere::${folder}`;
  t.equal(programNamed('ls'), 'ls', 'what is in no folder of PATH keeps its name');
  writeFileSync(join(folder, 'ls'), '');
  t.equal(programNamed('ls'), join(folder, 'ls'));
  t.equal(programNamed('./ls'), './ls', 'a path is taken as it is');
});

t.test('run: a program with its arguments; its output, its status', async (t) => {
  const trace = join(scratchFolder(t), 'out.txt');
  const program = compileC(t, ticking);
  const ran = await start(main, ['run', '--json', '-p', 'fn:tick', '-o', trace, program, '--', '50']).ended;
  const output = JSON.parse(ran.stdout) as Recording;
  t.match(output, { guest_exit: 'status 7', functions: [{ function: 'tick', calls: 50 }] });
  t.match(ran.stderr, /^ticking\n50 ticks\n$/m, 'with --json on stderr, and nothing of gdbserver');
  t.notMatch(ran.stderr, /Process|Listening|Child/);
});

t.test('run: a program whose recording ends is ended, or runs on', async (t) => {
  const trace = join(scratchFolder(t), 'out.txt');
  const program = compileC(t, ticking);
  const ended = await start(main, ['run', '-n', '20', '-p', 'fn:tick', '-o', trace, program, '--', '1000000']).ended;
  t.equal(ended.status, 0, ended.stderr);
  t.notMatch(ended.stdout, /ticks$/m);
  const on = ['run', '-n', '20', '--keep-running', '-p', 'fn:tick', '--force', '-o', trace, program, '--', '8000'];
  const kept = await start(main, on).ended;
  t.match(kept.stderr, /the program runs on/);
  t.match(kept.stdout, /^8000 ticks$/m);
});

t.test('an older trace of the default name is kept', async (t) => {
  const cwd = scratchFolder(t);
  const program = compileC(t, ticking);
  const run = () =>
    spawnSync(process.execPath, [main, 'run', '--json', '-p', 'fn:tick', program, '--', '3'], {
      cwd,
      encoding: 'utf8',
    });
  t.notMatch(run().stdout, /older_trace":"/);
  const first = readFileSync(join(cwd, 'rsptrace.pftrace'));
  t.match(JSON.parse(run().stdout), { older_trace: 'rsptrace.pftrace.old' });
  t.ok(readFileSync(join(cwd, 'rsptrace.pftrace.old')).equals(first));
});

t.test('a label in assembly that a probe names is said, beside those that are probed', async (t) => {
  const program = compileC(t, `__asm__(".text\\n.globl plain\\nplain: ret");${ticking}`);
  const trace = join(scratchFolder(t), 'out.pftrace');
  const ran = await rsptrace('run', '--json', '-p', 'fn:tick', '-p', 'fn:plain', '-o', trace, program, '--', '3').ended;
  t.match(ran.stderr, /^rsptrace: plain is not probed: a label in assembly: nothing says that it is a function$/m);
  t.match(JSON.parse(ran.stdout), { functions: [{ calls: 3 }], not_probed: [{ function: 'plain' }] });
});

t.test('what is wrong is one sentence', async (t) => {
  const nothing = await rsptrace('attach', '4194300').ended;
  t.match(nothing.stderr, /there is no process 4194300 \[ATTACH_NO_PROCESS\]/);
  t.match(await rsptrace('attach', 'init').ended, { status: 2, stderr: /'init' is no process number/ });
  const program = compileC(t, ticking);
  const trace = join(scratchFolder(t), 'out.txt');
  const target = start(program, []);
  t.teardown(() => void target.process.kill('SIGKILL'));
  await target.shows('ticking');
  const { pid = 0 } = target.process;
  const other = compileC(t, 'int other(int n) { return n; }\nint main(void) { return other(1); }', ['-O0']);
  const wrong = await rsptrace('attach', String(pid), other, '-p', 'fn:other', '-o', trace).ended;
  t.match(wrong.stderr, /ELF_MISMATCH|LOAD_ADDRESS_UNKNOWN/);
  t.equal(existsSync(trace), false);
  await sleep(100);
  t.equal(tracerOf(pid), '0', 'it was let go');
  const first = start('gdbserver', ['--once', '--attach', '127.0.0.1:0', String(pid)]);
  await first.shows('Listening');
  const taken = await rsptrace('attach', String(pid), '-p', 'fn:tick', '-o', trace).ended;
  t.match(taken.stderr, /gdbserver could not attach to process \d+ \[GDBSERVER_FAILED\]\n .*the permission/);
  first.process.kill('SIGKILL');
  target.process.kill('SIGKILL');
});

t.test('a gdbserver that is slow to start is waited for in silence', async (t) => {
  const folder = scratchFolder(t);
  const path = process.env.PATH;
  t.teardown(() => {
    process.env.PATH = path;
  });
  const slow = `#!/bin/sh\nsleep 0.5\nPATH='${path}' exec gdbserver "$@"\n`;
  writeFileSync(join(folder, 'gdbserver'), slow, { mode: 0o755 });
  process.env.PATH = `${folder}:${path}`;
  const target = start(compileC(t, ticking), []);
  t.teardown(() => void target.process.kill('SIGKILL'));
  await target.shows('ticking');
  const asked = ['-p', 'fn:tick', '-n', '10', '-o', join(folder, 'out.pftrace')];
  const { status, stderr } = await rsptraceProcess('attach', String(target.process.pid), ...asked).ended;
  t.equal(status, 0, stderr);
  t.notMatch(stderr, /Warning/);
});

t.test('a signal before the process is attached to leaves no empty trace', async (t) => {
  const folder = scratchFolder(t);
  const path = process.env.PATH;
  t.teardown(() => {
    process.env.PATH = path;
  });
  writeFileSync(join(folder, 'gdbserver'), '#!/bin/sh\nsleep 2\n', { mode: 0o755 });
  process.env.PATH = `${folder}:${path}`;
  const target = start(compileC(t, ticking), []);
  t.teardown(() => void target.process.kill('SIGKILL'));
  await target.shows('ticking');
  const trace = join(folder, 'out.pftrace');
  const tracer = rsptraceProcess('attach', String(target.process.pid), '-p', 'fn:tick', '-o', trace);
  while (!existsSync(trace) && !tracer.over()) await sleep(5);
  t.notOk(tracer.over());
  tracer.process.kill('SIGINT');
  const { stderr, status } = await tracer.ended;
  t.notOk(existsSync(trace), `${status} ${stderr}`);
});

t.test('a gdbserver that is killed while it attaches leaves no stopped process', async (t) => {
  const folder = scratchFolder(t);
  const killed = compileC(
    t,
    `#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(int argc, char **argv) {
  ptrace(PTRACE_ATTACH, atoi(argv[argc - 1]), 0, 0);
  return kill(getpid(), SIGKILL);
}`,
  );
  symlinkSync(killed, join(folder, 'gdbserver'));
  const path = process.env.PATH;
  t.teardown(() => {
    process.env.PATH = path;
  });
  process.env.PATH = `${folder}:${path}`;
  const target = start(compileC(t, ticking), []);
  t.teardown(() => void target.process.kill('SIGKILL'));
  await target.shows('ticking');
  const { pid = 0 } = target.process;
  const ran = await rsptraceProcess('attach', String(pid), '-p', 'fn:tick', '-o', join(folder, 'out.txt')).ended;
  t.match(ran.stderr, /\[GDBSERVER_FAILED\]/);
  while (statOf(pid)[0] === 'T') await sleep(20);
  t.pass('it runs on');
});

variant(
  t,
  'a recording may end at the stop of a fork: the parent has its child, and that has its own code',
  async (t) => {
    const source = `#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) int job(int n) { __asm__ volatile(""); return n + 1; }
int main(void) { int failed = 0, forks = 0; time_t end = time(0) + 8;
  while (time(0) < end) { job(forks); pid_t child = fork(); if (child == 0) _exit(job(1));
    int status; if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 2) failed++; forks++; }
  printf("failed %d\\n", failed); return 0; }`;
    const program = compileC(t, source);
    for (const seconds of ['3s', '3.1s']) {
      const options = ['--keep-running', '-d', seconds, '-p', 'fn:job', '--force', '-o', `${program}.txt`];
      const { status, stdout, stderr } = await rsptraceProcess('run', ...options, program).ended;
      t.equal(status, 0, stderr);
      t.match(stdout + stderr, /^failed 0$/m);
    }
  },
);
