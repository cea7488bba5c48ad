// `--plugin FILE`: kinds of probes, formats and runtimes of one's own, through the bundled command.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { elfPath, parseLab, qemuArgv } from '../qemu/guests/guests.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import { pollsProgram } from '../support/native.js';

const root = join(import.meta.dirname, '..', '..');
const example = join(root, 'examples', 'plugin.mjs');
const elf = elfPath('rv-o2');

function plugin(t: Test, text: string): string {
  const file = join(scratchFolder(t), 'own.mjs');
  writeFileSync(file, text);
  return file;
}

interface Node {
  readonly future: string;
  readonly state: string;
  readonly awaits: readonly Node[];
}

interface Found extends Node {
  readonly runtime: string;
  readonly fate: string;
  readonly facts: Readonly<Record<string, string>>;
}

const names = (nodes: readonly Node[]): string[] => nodes.map(({ future }) => future);

/** What `rsptrace tasks` lists of a program that has printed this, with the executors of examples/. */
async function tasksOf(t: Test, name: Parameters<typeof pollsProgram>[1], printed: string) {
  const program = pollsProgram(t, name);
  const running = spawn(program, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => running.kill('SIGKILL'));
  let stdout = '';
  for await (const chunk of running.stdout) {
    stdout += chunk;
    if (stdout.includes(printed)) break;
  }
  const args = ['tasks', '--json', '--plugin', join(root, 'examples', 'executors.mjs'), '--pid', `${running.pid}`];
  return rsptrace(...args, program).json<{ tasks: readonly Found[]; others: readonly Found[] }>();
}

t.test('a kind of probe and a format, by the example', async (t) => {
  const file = join(scratchFolder(t), 'ticks.csv');
  const { status, stdout, stderr } = await rsptrace(
    ...['run', '--json', '--plugin', example, '-p', 'symbol:deep7', '-o', file, elf, '--', ...qemuArgv('rv-o2')],
  ).ended;
  t.equal(status, 0, stderr.slice(-400));
  const { events } = JSON.parse(stdout) as { events: number };
  const [head, ...rows] = readFileSync(file, 'utf8').trimEnd().split('\n');
  t.equal(head, 'time_ns,hart,event,name');
  t.equal(rows.length, events);
  t.ok(rows.every((row) => /^\d+(?:\.\d+)?,0,place,deep7$/.test(row)));
  t.equal(events, parseLab(stderr).stats.get('deep_calls')?.calls);
});

t.test('a report of records whose kind of probe is a plug-in', async (t) => {
  const file = join(scratchFolder(t), 'deep.records');
  const { stderr } = await rsptrace(
    ...['run', '--json', '--plugin', example, '-p', 'symbol:deep7', '-o', file, elf, '--', ...qemuArgv('rv-o2')],
  ).ended;
  const told = await rsptrace('report', '--json', '--plugin', example, file).json<{ events: number }>();
  t.equal(told.events, parseLab(stderr).stats.get('deep_calls')?.calls);
  t.match((await rsptrace('report', file).ended).stderr, /RECORDS_MISMATCH.*--plugin/s, 'which the hint names');
  const check = [
    'check',
    '--json',
    '--plugin',
    example,
    '--budget',
    join(scratchFolder(t), 'b.json'),
    '--update',
    file,
  ];
  t.equal((await rsptrace(...check).ended).status, 0, 'as every command that reads it');
  t.equal((await rsptrace('tasks', '--at', '1ms', '--plugin', example, file).ended).status, 0);
});

for (const level of usually(['o0', 'o3'] as const, (one) => one === 'o3')) {
  // Three Futures on main's stack; by turn 200 one has ended, which needs 15 times 3 turns (100 / 7, rounded up) and one.
  t.test(`executors: what cassette polls, ${level}`, async (t) => {
    const { tasks, others } = await tasksOf(t, `cassettes-${level}`, 'turn 200');
    t.strictSame(
      tasks.map(({ runtime, facts, future, state, awaits }) => [runtime, facts.variable, future, state, names(awaits)]),
      [
        ['cassette', 'blinker', 'cassettes_program::blink', 'Suspend0', ['cassette::yield_now']],
        ['cassette', 'writer', 'cassettes_program::write', 'Suspend0', ['cassettes_program::settle']],
      ],
    );
    t.strictSame(
      others.map(({ fate, future }) => [fate, future]),
      [['ended', 'cassettes_program::read']],
    );
  });

  t.test(`executors: what local-runtime spawned, ${level}`, async (t) => {
    const { tasks } = await tasksOf(t, `local-tasks-${level}`, 'two are left');
    t.strictSame(
      tasks.map(({ runtime, state, awaits }) => [runtime, state, names(awaits)]),
      [1, 2].map(() => ['local-runtime', 'Suspend0', ['local_tasks_program::every']]),
    );
  });
}

t.test('its probes stand beside others without a target', async (t) => {
  const args = ['run', '--dry-run', '--json', '--plugin', example, '-p', 'symbol:timer_tick', '-p', 'fn:deep0'];
  t.match(await rsptrace(...args, elf, '--', 'false').json(), { probes: [{ function: 'labkern::work::deep0' }] });
});

t.test('a runtime that has the library in its own node_modules', async (t) => {
  const file = plugin(
    t,
    `import { evaluateMemberExpr, ProgramNames, parseMemberExpr, Shapes } from 'rsptrace/values';
     const roots = async ({ debug, memory }) => {
       const scope = { shapes: new Shapes(debug), names: new ProgramNames(debug), memory };
       const { place } = await evaluateMemberExpr(parseMemberExpr('labkern::exec::POLLS'), scope);
       const bytes = await place.read(memory, 8);
       return bytes.every((byte) => byte === 0) ? [] : undefined;
     };
     export default { runtimes: [{ name: 'own', roots }] };`,
  );
  mkdirSync(join(file, '..', 'node_modules'));
  symlinkSync(root, join(file, '..', 'node_modules', 'rsptrace'));
  const { socket } = await frozenGuest(t, 'rv-o2');
  t.match(await rsptrace('tasks', '--json', '--plugin', file, '--remote', socket, elf).json(), {
    runtimes: ['own'],
    tasks: [],
  });
});

t.test('a kind that asks for system calls, beside one that asks for others', async (t) => {
  const own = plugin(
    t,
    `const tracer = ({ seen, by, atCall }) => ({
       crossings: {
         isAt: () => false,
         reads: () => [],
         seesSystemCalls: true,
         cross({ registers }) {
           if (registers.register(atCall.number) === by) seen.push(Number(registers.register(atCall.arguments[0])));
           return {};
         },
       },
     });
     const kind = {
       name: 'status',
       help: "'status:'",
       parse: ({ text }) => ({ kind: 'status', text }),
       resolve: ({ arch: { linux } }, [{ text }]) => {
         const number = [...Array(1024).keys()].find((each) => linux.callName(each) === 'exit_group');
         const systemCalls = { of: [number], text };
         return { addresses: [], systemCalls, by: BigInt(number), atCall: linux.atCall, seen: [] };
       },
       tracer,
       report: (found) => ({ json: () => ({ status: found?.seen }), tables: () => [] }),
     };
     export default { kinds: [kind] };`,
  );
  const source = join(scratchFolder(t), 'seven.c');
  writeFileSync(source, 'int getppid(void); int main(void) { for (int i = 0; i < 3; i++) getppid(); return 0; }');
  const program = source.replace(/\.c$/, '');
  execFileSync('gcc', ['-g', '-o', program, source]);
  for (const probes of [
    ['status:', 'syscall:getppid'],
    ['syscall:getppid', 'status:'],
  ]) {
    const words = ['--plugin', own, '--json', ...probes.flatMap((probe) => ['-p', probe])];
    const trace = join(scratchFolder(t), 'out.jsonl');
    t.match(await rsptrace('run', ...words, '-o', trace, program).json(), {
      status: [0],
      traps: [{ function: 'syscall::getppid', calls: 3 }],
    });
  }
});

t.test('what cannot be used is one error', async (t) => {
  const wrong: readonly (readonly [string, RegExp])[] = [
    ['export default {', /cannot be loaded/],
    ['throw new Error("not today");', /cannot be loaded: not today/],
    ["import 'no-such-package';", /cannot be loaded: .*no-such-package/],
    ['export const kinds = [];', /no default export/],
    ['export default {};', /default export is empty/],
    ['export default { kind: [] };', /a member kind, is kinds meant/],
    ['export default { kinds: {} };', /its kinds are no list/],
    ['export default { kinds: [{ name: "x", help: "x" }] };', /kinds\[0\] has no parse, a function/],
    ['export default { runtimes: [3] };', /runtimes\[0\] is no object/],
    [
      'const [name, about, use] = ["x", "x", "x"]; const f = () => {}; export default { formats: [{ name, about, use, open: f, recognizes: f, extensions: ["csv"] }] };',
      /formats\[0\] has no extensions, a list such as/,
    ],
    [
      'const f = () => {}; export default { kinds: [{ name: "fn", help: "x", parse: f, resolve: f, report: f }] };',
      /a kind of probe fn, which there is already/,
    ],
    [
      'const f = () => {}; export default { kinds: [{ name: "x-y", help: "x", parse: f, resolve: f, report: f }] };',
      /a kind of probe x-y, which no probe can begin with/,
    ],
  ];
  for (const [text, message] of wrong) {
    const args = ['run', '--json', '--plugin', plugin(t, text), elf, '--', 'false'];
    t.match(await rsptrace(...args).json(1), { error: { code: 'PLUGIN_UNUSABLE', message, hint: /./ } }, text);
  }
  const { stdout } = await rsptrace('run', '--json', '--plugin', '/nowhere/x.mjs', elf, '--', 'false').ended;
  t.match(JSON.parse(stdout), { error: { code: 'PLUGIN_UNUSABLE', message: /there is no such file/ } });
  const saved = join(scratchFolder(t), 'saved.pftrace');
  await rsptrace('run', '-n', '1', '-o', saved, '-p', 'fn:deep0', elf, '--', ...qemuArgv('rv-o2')).ended;
  const report = ['report', '--json', '--plugin', '/nowhere/x.mjs', saved];
  t.match(await rsptrace(...report).json(1), { error: { code: 'PLUGIN_UNUSABLE' } }, 'also where it has nothing to do');
});

t.test('what a plug-in throws is told as its own', async (t) => {
  const asked = ['run', '--json', '--dry-run', '--plugin'];
  const own = await rsptrace(...asked, example, '-p', 'symbol:nowhere', elf, '--', 'false').ended;
  t.match(JSON.parse(own.stdout), {
    error: { code: 'symbol:NONE', message: 'there is no symbol nowhere', hint: 'nm lists them' },
  });
  const text = `const kind = { name: 'x', help: 'x', parse: ({ text }) => ({ kind: 'x', text }), resolve: () => undefined.y, report: () => ({}) };
    export default { kinds: [kind] };`;
  const failed = await rsptrace(...asked, plugin(t, text), '-p', 'x:y', elf, '--', 'false').ended;
  t.match(JSON.parse(failed.stdout), { error: { code: 'PLUGIN_FAILED', message: /own\.mjs failed: .*undefined/ } });
});

t.test('a plug-in is not overwritten', async (t) => {
  const file = plugin(t, 'export default { kinds: [] };');
  const { stdout } = await rsptrace('run', '--json', '--plugin', file, '-o', file, elf, '--', 'false').ended;
  t.match(JSON.parse(stdout), { error: { code: 'OUTPUT_IS_INPUT' } });
});
