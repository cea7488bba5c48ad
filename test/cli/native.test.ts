// The real command with a stop at each event, at a real gdbserver, on a position-independent Rust program that counts its own polls: threads that come and go, forks, signals, exec.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC, gdbserver, pollsPrinted, pollsProgram } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

interface Row {
  readonly future: string;
  readonly polls: number;
  readonly ready: number;
  readonly pending: number;
  readonly lost: number;
}

interface Traced {
  readonly end: string;
  readonly guest_exit: string;
  readonly futures: readonly Row[];
}

const trace = (t: Test, mode: string, ...options: string[]) =>
  recorded<Traced>(t, [pollsProgram(t), mode], ['--engine', 'stop', ...options]);

const modes = ['alone', 'threads', 'fork', 'signals', 'exec'];
// Forks and exec are traced without stops in test/cli/native-target-programs.test.ts; forks that are left in the middle are below.
for (const mode of usually(modes, (one) => one === 'signals')) {
  t.test(`${mode}: every poll that the program counted, and the program as it is untraced`, async (t) => {
    const program = pollsProgram(t);
    const untraced = (await start(program, [mode]).ended).stdout;
    const { output, stdout } = await trace(t, mode);
    t.equal(stdout, untraced, 'it prints what it prints untraced: its sums, its signals, how its children ended');
    t.equal(output.end, 'guest-ended');
    t.equal(output.guest_exit, 'status 0');
    const counted = pollsPrinted(untraced);
    t.equal(counted.size, 4);
    for (const [name, polls] of counted) {
      const row = output.futures.find(({ future }) => future === `polls::${name}`);
      t.match(row, { polls, lost: 0 }, name);
      t.equal((row?.ready ?? 0) + (row?.pending ?? 0), polls);
    }
  });
}

for (const level of usually(['o0', 'o2'] as const, (one) => one === 'o2')) {
  t.test(`results of every kind at ${level}: one poll is ready, all before it are pending`, async (t) => {
    const program = pollsProgram(t, `results-${level}`);
    const counted = pollsPrinted((await start(program, []).ended).stdout);
    t.equal(counted.size, 16);
    const { futures } = (await recorded<Traced>(t, [program], [])).output;
    for (const [name, polls] of counted) {
      const row = futures.find(({ future }) => future === `results::${name}`);
      t.match(row, { polls, ready: 1, pending: polls - 1, lost: 0 }, name);
    }
  });
}

t.test('left in the middle of its forks: the program and its children end well', async (t) => {
  const program = pollsProgram(t);
  const untraced = (await start(program, ['fork']).ended).stdout;
  for (const events of usually(['60', '900', '1100'], (one) => one === '900')) {
    const { output, stdout } = await trace(t, 'fork', '-n', events);
    t.equal(output.end, 'max-events');
    t.equal(stdout, untraced);
  }
});

t.test('a process that does not run the ELF: one sentence, and it runs on', async (t) => {
  const other = compileC(t, '#include <stdio.h>\nint main(void) { puts("mine"); }\n', ['-pie']);
  const server = await gdbserver(t, other);
  const trace = join(scratchFolder(t), 'out.pftrace');
  const ran = await rsptrace('-r', server.address, '-o', trace, pollsProgram(t)).ended;
  t.equal(ran.status, 1);
  t.match(ran.stderr, /\[(LOAD_ADDRESS_UNKNOWN|ELF_MISMATCH)\]/);
  t.match((await server.ended).stdout, 'mine');
});

const SPINNER = `
static volatile int sink;
__attribute__((noinline)) int third(int x) { sink = x; return *(volatile int *)&sink + 1; }
__attribute__((noinline)) int second(int x) { return third(x + 1) * 3; }
__attribute__((noinline)) int first(int x) { return second(x + 1) + 5; }
int main(void) { int sum = 0; for (;;) sum += first(sum & 7); }
`;

// Through its loader the process is the loader: where the program is, only the maps tell.
for (const loader of [[], ['/lib64/ld-linux-x86-64.so.2']]) {
  t.test(`bt of a position-independent program${loader.length > 0 ? ', run through its loader' : ''}`, async (t) => {
    const program = compileC(t, SPINNER, ['-pie']);
    const [first = program, ...rest] = [...loader, program];
    const { process: child } = start(first, rest);
    t.teardown(() => void child.kill('SIGKILL'));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const server = await gdbserver(t, '--attach', String(child.pid));
    const { harts } = await rsptrace('bt', '-r', server.address, '--json', '--locals', program).json<{
      harts: { frames: { function: string; file: string; line: number }[] }[];
    }>();
    const frames = (harts[0]?.frames ?? []).filter(({ file }) => file?.endsWith('program.c'));
    const names = frames.map((frame) => frame.function);
    t.ok(names.length >= 1);
    t.same(names, ['third', 'second', 'first', 'main'].slice(-names.length));
    const text = SPINNER.split('\n');
    for (const { function: name, line } of frames) t.match(text[line - 1], ` ${name}(`);
  });
}
