import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { elfPath, parseLab } from '../qemu/guests/guests.js';
import { frozenGuest, main, rsptrace } from '../support/command.js';
import { changedCode, pollsProgram, waitingProgram } from '../support/native.js';
import { Terminal } from '../support/terminal.js';

interface Row {
  readonly status: string;
  readonly settled: boolean;
  readonly for_ms: number;
  readonly looks: number;
  readonly changed: number;
  readonly facts: { readonly id?: number; readonly name?: string };
  readonly waits?: readonly { readonly kind: string }[];
}
interface Look {
  readonly look: number;
  readonly at: string;
  readonly stood_ms: number;
  readonly threads: { readonly all: number; readonly running: number } | null;
  readonly by_fate: { readonly ended?: number };
  readonly tasks: readonly Row[];
  readonly resources: readonly { readonly kind: string; readonly waiting: readonly { readonly id: number }[] }[];
  readonly deadlocks: readonly { readonly cycle: readonly { readonly task: number }[] }[];
}

interface Polls {
  readonly number: number;
  readonly polls: number;
  readonly state: string;
  readonly p99_ns: number;
  readonly max_ns: number;
  readonly busy: number;
}
interface PollsLook {
  readonly waiting: number;
  readonly events: number;
  readonly notes: readonly string[];
  readonly tasks: readonly Polls[];
}

function looksIn(stdout: string): Look[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Look);
}

function isTraced(pid: string): boolean {
  return !/^TracerPid:\s*0$/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'));
}

/** The tasks that the program says live: number and function. */
function liveIn(printed: string): Map<number, string> {
  return new Map([...printed.matchAll(/^live (\d+) (\w+)$/gm)].map(([, id, name]) => [Number(id), name ?? '']));
}

t.test('tasks that stand still: those that the program names, and nothing changes', async (t) => {
  const elf = pollsProgram(t, 'tasks');
  const { pid, printed } = await waitingProgram(t, elf, ['mt']);
  const live = liveIn(printed);
  const running = rsptrace('top', '--pid', pid, '--json', '-n', '3', '-i', '200ms', '--record-wire', '/nowhere/wire');
  const { status, stdout, stderr } = await running.ended;
  t.equal(status, 0, stderr);
  t.match(stderr, 'nothing passes over a wire here, so that --record-wire does not write /nowhere/wire');
  const looks = looksIn(stdout);
  t.strictSame(
    looks.map(({ look }) => look),
    [1, 2, 3],
  );
  for (const { tasks, stood_ms: stood, by_fate: fates } of looks) {
    t.strictSame(tasks.map(({ facts }) => facts.id).sort(), [...live.keys()].sort());
    t.equal(stood, 0);
    t.equal(fates.ended, Number(/^untaken (\d+)$/m.exec(printed)?.[1]));
  }
  const [first, , last] = looks as [Look, Look, Look];
  const between = Date.parse(last.at) - Date.parse(first.at);
  for (const { status, changed, looks, for_ms: since } of last.tasks)
    t.strictSame({ status, changed, looks, since }, { status: 'waiting', changed: 0, looks: 3, since: between });
  t.equal(isTraced(pid), false);
  const wrong = await rsptrace('top', '--pid', pid, pollsProgram(t, 'executor'), '--json').ended;
  t.equal(wrong.status, 1);
  t.match(wrong.stderr, /does not have .* in its memory \[PROGRAM_NOT_SEEN\]/);
});

t.test('the lines end with their reader', async (t) => {
  const { pid } = await waitingProgram(t, pollsProgram(t, 'tasks'), ['mt']);
  const words = [main, 'top', '--pid', pid, '--json', '-i', '100ms'];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdout.once('data', () => child.stdout.destroy());
  t.same(await once(child, 'exit'), [0, null]);
});

t.test('tasks that do something change, those that wait for ever do not', async (t) => {
  const { pid } = await waitingProgram(t, pollsProgram(t, 'live-tokio-o3'), ['mt']);
  const { status, stdout, stderr } = await rsptrace('top', '--pid', pid, '--json', '-n', '4', '-i', '300ms').ended;
  t.equal(status, 0, stderr);
  const { tasks } = looksIn(stdout).at(-1) as Look;
  const all = tasks.filter(({ looks }) => looks === 4);
  const isForever = ({ waits = [] }: Row): boolean => waits.some(({ kind }) => kind === 'nothing');
  const [forever, others] = [all.filter(isForever), all.filter((row) => !isForever(row))];
  t.ok(forever.length >= 3);
  t.strictSame(
    forever.filter(({ changed }) => changed > 0),
    [],
    'pending() is never polled again',
  );
  t.ok(others.length >= 10);
  t.ok(others.every(({ changed }) => changed > 0));
});

t.test('a kernel: its deadlock is found, and it goes on', async (t) => {
  const qemu = frozenGuest(t, 'rv-stuck', ['-device', 'loader,addr=0x86000000,data=1,data-len=8']);
  const running = rsptrace('top', '--remote', qemu.socket, elfPath('rv-stuck'), '--json', '-i', '100ms');
  // Before that it boots, and has no task.
  await running.shows('"cycle":[{');
  running.signal('SIGINT');
  const { status, stdout, stderr } = await running.ended;
  t.equal(status, 0, stderr);
  let printed = '';
  qemu.read((said) => {
    printed = said;
  });
  const book = new Map(
    [...printed.matchAll(/^LAB waits (\w+) mutex=\w+ by=(\w+)/gm)].map(([, name, by]) => [name, by]),
  );
  const { tasks, deadlocks, threads } = looksIn(stdout).findLast(({ deadlocks: found }) => found.length > 0) as Look;
  const cycle = deadlocks[0]?.cycle.map(({ task }) => tasks[task]?.facts.name) ?? [];
  t.ok(cycle.length >= 2);
  for (const [i, name] of cycle.entries()) t.equal(book.get(name ?? ''), cycle[(i + 1) % cycle.length]);
  t.equal(threads, null, 'it stood for the look');
});

t.test('--polls: each poll of each task of a kernel, as the guest counts them itself', async (t) => {
  const qemu = frozenGuest(t, 'rv-o0', ['-icount', 'shift=0']);
  const words = ['--remote', qemu.socket, elfPath('rv-o0'), '--json', '-i', '100ms'];
  const { status, stdout, stderr } = await rsptrace('top', '--polls', ...words).ended;
  t.equal(status, 0, stderr);
  t.match(stderr, /the target has ended/);
  const tasks = new Map<number, Polls>();
  let events = 0;
  const windows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as PollsLook);
  for (const window of windows) {
    t.ok(window.events >= events);
    events = window.events;
    for (const task of window.tasks) tasks.set(task.number, task);
  }
  t.ok(windows.at(-1)?.notes.some((note) => note.includes('without stops')));
  let printed = '';
  qemu.read((said) => {
    printed = said;
  });
  const counted = parseLab(printed).tasks.map(({ polls }) => polls);
  t.ok(counted.length > 10);
  t.strictSame(
    [...tasks.values()].sort((a, b) => a.number - b.number).map(({ polls }) => polls),
    counted,
  );
  for (const { state, p99_ns: p99, max_ns: max, busy } of tasks.values()) {
    t.equal(state, 'ready');
    t.ok(p99 > 0 && p99 <= max);
    // The poll may have begun in the window before.
    t.ok(busy > 0, 'it was in a poll in the window in which it ended');
  }
});

t.test('--polls -n: a line more has what came after the last screen', async (t) => {
  const qemu = frozenGuest(t, 'rv-o0', ['-icount', 'shift=0']);
  const words = ['--remote', qemu.socket, elfPath('rv-o0'), '--json', '-n', '1', '-i', '1ms'];
  const { status, stdout, stderr } = await rsptrace('top', '--polls', ...words).ended;
  t.equal(status, 0, stderr);
  const looks = stdout.trimEnd().split('\n');
  const { events, waiting } = JSON.parse(looks[1] ?? '{}') as PollsLook;
  t.strictSame({ looks: looks.length, waiting }, { looks: 2, waiting: 0 });
  t.match(stderr, new RegExp(`^rsptrace: ${events} events,`, 'm'), 'as the recording counts them');
});

t.test('where there is no terminal, one sentence says what there is', async (t) => {
  const { status, stdout, stderr } = await rsptrace('top', '--pid', String(process.pid)).ended;
  t.strictSame({ status, stdout }, { status: 2, stdout: '' });
  t.match(
    stderr,
    /^rsptrace: top draws on a terminal, and standard (?:input|output) is none \[USAGE\]\n {2}--json streams/,
  );
});

/** The numbers of the tasks in the table. */
function rowsIn(screen: string): number[] {
  return [...screen.matchAll(/^ *(\d+) {2}(?:waiting|running|changing|scheduled|blocked|new)\b/gm)].map(([, id]) =>
    Number(id),
  );
}

t.test('the screen: rows, keys, pages, sizes, and the terminal as it was', async (t) => {
  const { pid, printed, process: program } = await waitingProgram(t, pollsProgram(t, 'tasks'), ['mt']);
  const live = liveIn(printed);
  const terminal = new Terminal(t, 80, 40, ['NO_COLOR=1']);
  const command = `${process.execPath} ${main} top --pid ${pid} -i 100ms`;
  terminal.keys(command, 'Enter');
  const first = await terminal.until(/look [3-9]/);
  t.strictSame(rowsIn(first).sort(), [...live.keys()].sort());
  t.match(first, new RegExp(`^process ${pid} \\(tasks\\) +look \\d+, .* threads? run  never stopped`));
  t.match(first, new RegExp(`^${live.size + 1} tasks: ${live.size + 1} waiting  and \\d+ ended  tokio`, 'm'));
  t.ok(first.split('\n').every((line) => line.length <= 80));
  t.notMatch(terminal.screen(true), new RegExp(`${'\x1b'}\\[[0-9;]*3[0-7]m`), 'no colours');

  terminal.keys('/', 'locker', 'Enter');
  const lockers = [...live].filter(([, name]) => name === 'locker').map(([id]) => id);
  await terminal.until((screen) => rowsIn(screen).length === lockers.length);
  t.strictSame(rowsIn(terminal.screen()).sort(), lockers.sort());
  terminal.keys('Enter');
  const task = await terminal.until(/^task \d+ /m);
  const id = Number(/^task (\d+) /m.exec(task)?.[1]);
  t.ok(lockers.includes(id));
  t.match(task, /in \d+ looks: ran in 0, changed since the look before in 0\n▁+\n/);
  // Either of both has the mutex.
  const [, holder = id] = /held by task (\d+)$/m.exec(task) ?? [];
  if (holder === id) t.match(task, new RegExp(`who waits for it:\\n +\\d+ .* Mutex, held by ${id}$`, 'm'));
  else t.match(task, new RegExp(`who can end its wait:\\n +${holder} .*locker`));
  terminal.keys('Escape');
  await terminal.until((screen) => rowsIn(screen).length === lockers.length);
  terminal.keys('r');
  t.match(await terminal.until(/who can end it/), /^Mutex +0x\w+ +\d+ /m);
  terminal.keys('?');
  await terminal.until(/quit; the target goes on/);
  // Escape and another key at once would be one key.
  terminal.keys('Escape');
  await terminal.until((screen) => rowsIn(screen).length === lockers.length);
  terminal.keys('/', 'Enter', 'p');
  const paused = await terminal.until(/^paused /m);
  await sleep(500);
  t.equal(terminal.screen(), paused, 'no more looks');
  terminal.resize(60, 15);
  const small = await terminal.until((screen) => rowsIn(screen).length === 15 - 4);
  t.ok(small.split('\n').every((line) => line.length <= 60));
  // It looks on, is paused in the midst of that, and ends.
  terminal.keys('p', 'p', 'q');
  await terminal.until(/ready\$\s*$/);
  t.equal(terminal.isAlternate, false);
  terminal.keys('clear; stty -a', 'Enter');
  t.match(await terminal.until(/ready\$\s*$/), / icanon [^-]* echo /);

  terminal.keys('clear', 'Enter', command, 'Enter');
  await terminal.until(/look [2-9]/);
  t.equal(terminal.isAlternate, true);
  terminal.keys('C-c');
  await terminal.until(/ready\$\s*$/);
  t.equal(terminal.isAlternate, false);
  terminal.keys('clear', 'Enter', command, 'Enter');
  await terminal.until(/look [2-9]/);
  program.kill('SIGKILL');
  await terminal.until(/rsptrace: the target has ended/);
  t.equal(terminal.isAlternate, false);
});

t.test('the screen of --polls: what tasks do, and the process as it was', async (t) => {
  const program = pollsProgram(t, 'live-tokio-o3');
  const { pid, process: running } = await waitingProgram(t, program, ['mt']);
  const terminal = new Terminal(t, 100, 24);
  const words = [process.execPath, main, 'top', '--polls', '--pid', String(pid), '-i', '200ms'];
  terminal.keys(words.join(' '), 'Enter');
  const screen = await terminal.until(/ \d+ polls\/s in .* m?s {2}\d+ events/);
  t.match(screen, /^ *id {2}state +polls\/s {2}busy% +p99 +to poll {2}task +awaits at$/m);
  t.match(screen, /^ *\d+ {2}(?:waiting|running|ready) +\d+ +\d+\.\d/m);
  terminal.keys('Enter');
  await terminal.until(/a poll takes .* at most in 99 of 100/);
  terminal.keys('?');
  await terminal.until(/sort by: busy, polls, longest, wake to poll, name, id/);
  t.equal(processesOf(words).length, 1);
  terminal.hangUp();
  while (processesOf(words).length > 0) await sleep(50);
  t.equal(isTraced(pid), false);
  t.equal(changedCode(Number(pid), program), 0, 'it ends in good order when its terminal goes');
  t.equal(running.exitCode, null);
});

/** The processes with that command line. */
function processesOf(words: readonly string[]): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const line = /^\d+$/.test(name) ? readFileSync(`/proc/${name}/cmdline`, 'utf8') : '';
      return line === `${words.join('\0')}\0` ? [Number(name)] : [];
    } catch {
      // It has just ended.
      return [];
    }
  });
}
