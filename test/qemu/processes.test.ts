// Processes of a kernel: three programs, one of them in C and one that lies where it is loaded, which fork in the middle of calls and
// polls, become others by exec, end, and begin again in page tables that were used before. The guest prints what each has counted.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { long } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath } from './guests/guests.js';

interface Table {
  readonly functions: Recording['functions'];
  readonly futures: readonly { readonly future: string; readonly polls: number; readonly at_least: boolean }[];
  readonly tasks: readonly { readonly space: string; readonly polls: number }[];
}
interface Several extends Table {
  readonly untold_stops: number;
  readonly traps?: readonly { readonly function: string; readonly calls: number }[];
  readonly probes: readonly { readonly function: string; readonly engine: string; readonly why?: string }[];
  readonly programs: readonly (Table & { readonly program: string; readonly stops: number })[];
}

const functions = {
  kernel: ['account', 'dispatch', 'write_fault', 'fork_space', 'load', 'sys_exit', 'sys_fork', 'sys_exec', 'sys_wait'],
  init: ['main', 'fib', 'blend', 'split', 'become', 'leave', 'start'],
  pond: ['main', 'ripple', 'splash', 'spawn', 'run'],
  mill: ['main', 'stone', 'husk', 'turn_all'],
};
/** Those whose polls are stops of their own in each of these builds. */
const futures = {
  kernel: ['janitor'],
  init: [],
  pond: ['producer', 'consumer', 'relay'],
  mill: ['grind', 'pair', 'sack'],
};
/** Where a kernel has the program that lies where it is loaded. */
const loadedAts = {
  ...{ 'rv-procs': '0x80200000', 'rv-procs-o0': '0x80300000' },
  ...{ 'x86-procs': '0x200000', 'x86-procs-o0': '0x300000' },
};
type Name = keyof typeof functions;
const names = Object.keys(functions) as Name[];

const ownName = (path: string): string => path.replace(/^.*::/, '');
const sorted = (lines: Iterable<string>): string[] => [...lines].sort();

async function recorded(t: Test, kernel: string, args: readonly string[]) {
  const loadedAt = loadedAts[kernel as keyof typeof loadedAts];
  const elfs = ['init', 'pond', `mill`].flatMap((name) => {
    const path = elfPath(`${kernel}-${name}`);
    return ['--elf', name === 'mill' ? `${path}@${loadedAt}` : path];
  });
  // Of the kernel's crate: a library's function may have such a name too.
  const own = names.flatMap((name) =>
    functions[name].map((fn) => (name === 'kernel' ? `fn:procs::${fn}` : `fn:${kernel}-${name}/**::${fn}`)),
  );
  const inC = functions.init.map((fn) => `fn:${kernel}-init/${fn}`);
  const probes = [...own.filter((text) => !text.includes('-init/')), ...inC, 'poll:**'].flatMap((text) => ['-p', text]);
  const { stdout, stderr, console, lab } = await runLab(t, kernel, ['--json', ...args, ...probes, ...elfs]);
  const output = JSON.parse(stdout) as Several;
  const tables: Record<Name, Table> = { kernel: output, init: output, pond: output, mill: output };
  for (const program of output.programs) {
    const name = names.find((each) => program.program.endsWith(`-${each}.elf`));
    if (name) tables[name] = program;
  }
  // A probe that --auto takes away, because it stops too often, is said and has no count.
  const isLeft = new Set(output.probes.filter(({ engine }) => engine === 'none').map((probe) => probe.function));
  for (const name of names) {
    const rows = tables[name].functions.filter((row) => !isLeft.has(row.function));
    const left = functions[name].filter((fn) => [...isLeft].some((each) => ownName(each) === fn));
    t.strictSame(
      sorted(rows.map((row) => `${ownName(row.function)} ${row.calls}`)),
      sorted(
        functions[name]
          .filter((fn) => !left.includes(fn))
          .map((fn) => `${fn} ${lab.stats.get(`${name}:${fn}`)?.calls}`),
      ),
      `${name}: the guest's own counts`,
    );
    for (const future of futures[name]) {
      const row = tables[name].futures.find((each) => ownName(each.future) === future);
      t.match(
        row,
        { polls: lab.stats.get(`${name}:${future}`)?.polls, at_least: false },
        `${name}: polls of ${future}`,
      );
    }
    // Inlined polls are fewer or all, and said to be so.
    for (const { future, polls, at_least } of tables[name].futures) {
      const counted = lab.stats.get(`${name}:${ownName(future)}`);
      if (counted)
        t.ok(at_least ? polls <= counted.polls : polls === counted.polls, `${future}: ${polls} of ${counted.polls}`);
    }
  }
  t.equal(output.untold_stops, 0);
  // Each process that had tasks, by the root of its page tables; one that ends leaves its root to another.
  const lives = [...console.matchAll(/LAB life \d+ (pond|mill) root=(0x\w+) polls=(\d+)/g)];
  for (const name of ['pond', 'mill'] as const) {
    const sums = new Map<string, number>();
    for (const [, , root = '', polls] of lives.filter(([, program]) => program === name))
      sums.set(root, (sums.get(root) ?? 0) + Number(polls));
    const seen = new Map<string, number>();
    for (const { space, polls } of tables[name].tasks) seen.set(space, (seen.get(space) ?? 0) + polls);
    t.strictSame(new Map([...seen].sort()), new Map([...sums].sort()), `${name}: polls of tasks by process`);
  }
  return { output, stderr, console };
}

t.test('rv-procs: the kernel and its processes', async (t) => {
  await recorded(t, 'rv-procs', []);
});

if (long)
  for (const kernel of Object.keys(loadedAts)) {
    t.test(`${kernel}: all by stops`, async (t) => {
      await recorded(t, kernel, ['--engine', 'stop']);
    });
    if (kernel !== 'rv-procs')
      t.test(`${kernel}: without stops where it can be`, async (t) => {
        await recorded(t, kernel, []);
      });
  }

if (long)
  t.test(
    'what a program pushes first is not written by the stub, which asks no page whether processes share it',
    async (t) => {
      const [wire, init] = [join(scratchFolder(t), 'wire.jsonl'), elfPath('x86-procs-init')];
      t.match(execFileSync('objdump', ['-d', '--disassemble=fib', init], { encoding: 'utf8' }), /<fib>:\n.*push/);
      const probe = ['-p', 'fn:x86-procs-init/fib', '--elf', init];
      const { stdout, lab } = await runLab(t, 'x86-procs', [
        '--json',
        '--engine',
        'stop',
        '--record-wire',
        wire,
        ...probe,
      ]);
      t.match(JSON.parse(stdout), { programs: [{ functions: [{ calls: lab.stats.get('init:fib')?.calls }] }] });
      t.notMatch(readFileSync(wire, 'latin1'), /\$[MX]/);
    },
  );

for (const kernel of ['rv-procs', 'x86-procs'])
  if (long)
    t.test(`${kernel}: system calls by number`, async (t) => {
      const { stdout, console } = await runLab(t, kernel, ['--json', '-p', 'syscall:**']);
      const { traps = [] } = JSON.parse(stdout) as Several;
      const printed = [...console.matchAll(/LAB call (\d+) calls=(\d+)/g)].map(([, number, count]) => [
        `syscall::${number}`,
        Number(count),
      ]);
      t.strictSame(
        new Map(traps.map((row) => [row.function, row.calls])),
        new Map(printed.filter(([, count]) => count !== 0) as [string, number][]),
      );
    });
