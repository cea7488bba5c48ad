// rsptrace is killed at many moments: the program that it traces goes on as if nobody had traced it. Under --long at two hundred.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, start, traceGrows } from '../support/command.js';
import { killAlone, supervisorsOf } from '../support/kill.js';
import { long, usually } from '../support/long.js';
import { changedCode, compileReleased, pollsProgram } from '../support/native.js';

/** Kills of each command. */
const kills = long ? 50 : 1;
/** Moments until the last of which rsptrace may be starting, attaching, patching or recording, in milliseconds. */
const longestMs = 2500;
const lookMs = 20;

interface Program {
  readonly words: readonly [string, ...string[]];
  readonly probes: readonly string[];
}

/** The same moments in each run. */
function* moments(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    yield Math.floor((state / 2 ** 31) * longestMs);
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

const stateOf = (stat: string): string => /\) (\S)/.exec(stat)?.[1] ?? 'X';
const tracerOf = (pid: number): string | undefined => /^TracerPid:\s*(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1];

/** The processes that have a program's path among their words: the program, its gdbserver, whoever starts them. */
function processesOf(path: string): { readonly pid: number; readonly words: readonly string[] }[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && stateOf(textOf(`/proc/${pid}/stat`)) !== 'Z')
    .map((pid) => ({ pid, words: textOf(`/proc/${pid}/cmdline`).split('\0') }))
    .filter(({ words }) => words.includes(path));
}

/** Nobody traces it, nothing stops it, and its code is its file's. */
function isAsItWas(pid: number, program: string): boolean {
  if (tracerOf(pid) !== '0') return false;
  const states = readdirSync(`/proc/${pid}/task`).map((thread) => stateOf(textOf(`/proc/${pid}/task/${thread}/stat`)));
  return states.every((state) => !/[tT]/.test(state)) && changedCode(pid, program) === 0;
}

async function until(found: () => boolean): Promise<void> {
  while (!found()) await sleep(lookMs);
}

/** What it uses of its processors goes on growing. */
async function runs(pid: number): Promise<void> {
  const ticks = (): number => {
    const fields = /\) (.*)/s.exec(textOf(`/proc/${pid}/stat`))?.[1]?.split(' ') ?? [];
    return Number(fields[11]) + Number(fields[12]);
  };
  const before = ticks();
  await until(() => ticks() > before);
}

async function killed(t: Test, command: 'attach' | 'profile', { words, probes }: Program, ms: number): Promise<void> {
  const [path, ...rest] = words;
  const target = start(path, rest);
  const { pid = 0 } = target.process;
  t.teardown(() => void target.process.kill('SIGKILL'));
  await until(() => tracerOf(pid) === '0' && textOf(`/proc/${pid}/maps`).includes(path));
  const output = ['-o', join(scratchFolder(t), command === 'attach' ? 'out.pftrace' : 'out.folded')];
  const asked = command === 'attach' ? [String(pid), ...probes] : ['--pid', String(pid)];
  const tracer = rsptraceProcess(command, ...asked, ...output);
  await sleep(ms);
  tracer.process.kill('SIGKILL');
  await until(() => isAsItWas(pid, path));
  await runs(pid);
  await until(() => tracerOf(pid) === '0' && !servers(pid));
  t.ok(isAsItWas(pid, path), `killed after ${ms} ms`);
  target.process.kill('SIGKILL');
  await target.ended;
}

/** A gdbserver of rsptrace is attached to it, or about to be. */
function servers(pid: number): boolean {
  return readdirSync('/proc').some((each) => {
    const words = textOf(`/proc/${each}/cmdline`).split('\0');
    return words.includes('--attach') && words.includes(String(pid));
  });
}

function programsOf(t: Test): Program[] {
  // A host has other things to do than what never naps.
  const c = compileReleased(t, 'endless.c', long ? [] : ['-DBUSY=0']);
  const rust = pollsProgram(t, 'live-tokio-o3');
  return [
    { words: [c], probes: ['leaf', 'deep', 'nap'].flatMap((name) => ['-p', `fn:${name}`]) },
    { words: [rust, 'mt'], probes: [] },
  ];
}

t.test('killed while it attaches, patches, records or samples: the program goes on as it was', async (t) => {
  const [c, rust] = programsOf(t) as [Program, Program];
  const moment = moments(7);
  for (let each = 0; each < kills; each++) {
    for (const [command, program] of [
      ['attach', c],
      ...usually([['attach', rust]] as const, () => false),
      ['profile', c],
    ] as const)
      await killed(t, command, program, moment.next().value as number);
  }
});

t.test('killed while it runs a program of its own: that goes on too, or has not begun', async (t) => {
  const [{ words, probes }] = programsOf(t) as [Program, Program];
  const moment = moments(11);
  for (let each = 0; each < kills; each++) {
    const ms = moment.next().value as number;
    const trace = join(scratchFolder(t), 'out.pftrace');
    const tracer = rsptraceProcess('run', ...probes, '-o', trace, ...words);
    await sleep(ms);
    tracer.process.kill('SIGKILL');
    // The program has its output too, which does not end with it.
    await until(() => tracer.over());
    const left = (): ReturnType<typeof processesOf> => processesOf(words[0]);
    const program = (): number | undefined => left().find((one) => one.words[0] === words[0])?.pid;
    const isClean = (): boolean => {
      const pid = program();
      return left().length === 0 || (left().length === 1 && pid !== undefined && isAsItWas(pid, words[0]));
    };
    await until(isClean);
    const pid = program();
    if (pid !== undefined) {
      await runs(pid);
      process.kill(pid, 'SIGKILL');
    }
    t.pass(`killed after ${ms} ms`);
    await until(() => left().length === 0);
  }
});

t.test('its supervisor is killed with it: the next rsptrace takes out what is there, and says so', async (t) => {
  const [{ words, probes }] = programsOf(t) as [Program, Program];
  const target = start(words[0], []);
  const { pid = 0 } = target.process;
  t.teardown(() => void target.process.kill('SIGKILL'));
  const folder = scratchFolder(t);
  const tracer = rsptraceProcess('attach', String(pid), ...probes, '-o', join(folder, 'one.pftrace'));
  await until(() => textOf(`/proc/${pid}/maps`).includes('memfd:rsptrace') && changedCode(pid, words[0]) > 0);
  // Two for a moment: the shell, and the command that takes its place. Meanwhile a command line may be empty.
  await until(() => supervisorsOf(tracer).length > 0);
  killAlone(tracer);
  const again = await rsptrace('attach', String(pid), ...probes, '-n', '10', '-o', join(folder, 'two.pftrace')).ended;
  t.equal(again.status, 0, again.stderr);
  t.match(
    again.stderr,
    /an earlier rsptrace was killed\. \d+ (patches|breakpoints)( and \d+ breakpoints?)? of it were taken out/,
  );
  await until(() => isAsItWas(pid, words[0]));
});

t.test('a gdbserver that is killed while it traces a program: a status, and its trace is kept', async (t) => {
  const [{ words }] = programsOf(t) as [Program, Program];
  const trace = join(scratchFolder(t), 'out.pftrace');
  // Few records, so that none wait to be understood; the calls of `calls` do not end.
  const tracer = rsptraceProcess('run', '-p', 'fn:calls', '-p', 'fn:nap', '-o', trace, words[0]);
  const pid = (): number => processesOf(words[0]).find((one) => one.words[0] === words[0])?.pid ?? 0;
  // It records, and installs nothing more.
  await traceGrows(tracer, `${trace}.records`, 1 << 13);
  process.kill(Number(tracerOf(pid())), 'SIGKILL');
  const { status, stderr } = await tracer.ended;
  t.equal(status, 3, stderr);
  t.match(stderr, /gdbserver was ended from outside \[RUN_KILLED\]/);
  // What was open then stands at its end.
  const { stdout } = await rsptrace('info', trace).ended;
  t.match(stdout, /^losses +[1-9]\d* calls or polls whose end was not seen/m);
});

t.test(
  'a gdbserver that is killed while it traces a process: what is in that is taken out, and it runs on',
  async (t) => {
    const [{ words }] = programsOf(t) as [Program, Program];
    const target = start(words[0], []);
    const { pid = 0 } = target.process;
    t.teardown(() => void target.process.kill('SIGKILL'));
    const trace = join(scratchFolder(t), 'out.pftrace');
    // Few records, so that none wait to be understood.
    const tracer = rsptraceProcess('attach', String(pid), '-p', 'fn:nap', '-o', trace);
    await traceGrows(tracer, `${trace}.records`, 1 << 13);
    t.ok(changedCode(pid, words[0]) > 0);
    process.kill(Number(tracerOf(pid)), 'SIGKILL');
    const { status, stderr } = await tracer.ended;
    t.equal(status, 3, stderr);
    t.match(stderr, /\[RUN_KILLED\]/);
    t.match(stderr, new RegExp(`gdbserver was killed\\. \\d+ patch.* taken out of process ${pid}, which runs on`));
    t.ok(isAsItWas(pid, words[0]));
    await runs(pid);
  },
);

for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
  t.test(`${signal} at any moment ends run, and its program with it`, async (t) => {
    const [{ words, probes }] = programsOf(t) as [Program, Program];
    const moment = moments(signal.length * 13);
    for (let each = 0; each < kills; each++) {
      const ms = moment.next().value as number;
      const tracer = rsptraceProcess('run', ...probes, '-o', join(scratchFolder(t), 'out.pftrace'), words[0]);
      await sleep(ms);
      tracer.process.kill(signal);
      await tracer.ended;
      await until(() => processesOf(words[0]).length === 0);
      t.pass(`after ${ms} ms`);
    }
  });
}
