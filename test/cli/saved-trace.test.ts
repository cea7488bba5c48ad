// Commands that ask a saved trace, against the recorder's own table and against what valgrind and uftrace saw.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace } from '../support/command.js';
import { callgrindArcs, reportedFunctions, savedTrace } from '../support/saved-trace.js';

const saved = await savedTrace(t);
const { folder, trace } = saved;

interface Row {
  readonly name: string;
  readonly calls: number;
  readonly total_ns: number;
  readonly self_ns: number;
  readonly min_ns: number;
  readonly avg_ns: number;
  readonly p50_ns: number;
  readonly p99_ns: number;
  readonly max_ns: number;
  readonly histogram: readonly { readonly from: number; readonly below: number; readonly calls: number }[];
}

async function json<T>(...words: readonly string[]): Promise<T> {
  const ran = await rsptrace(...words, '--json').ended;
  if (ran.status !== 0) throw new Error(ran.stderr);
  return JSON.parse(ran.stdout) as T;
}

/** What the program's own calls are: valgrind runs it. */
const counted = join(folder, 'callgrind.out');
execFileSync(
  'valgrind',
  [
    '--tool=callgrind',
    '--compress-strings=no',
    '--compress-pos=no',
    `--callgrind-out-file=${counted}`,
    '-q',
    saved.program,
  ],
  { stdio: 'ignore' },
);
const arcs = callgrindArcs(counted).filter(({ caller, callee }) =>
  [caller, callee].every((name) => reportedFunctions.includes(name)),
);

t.test('a report of a saved trace is the table that the recorder printed', async (t) => {
  const { fn } = await json<{ readonly fn: readonly Row[] }>('report', trace);
  t.equal(saved.functions.length, reportedFunctions.length);
  for (const { function: name, calls, total_ns, self_ns, avg_ns, max_ns } of saved.functions) {
    const row = fn.find((each) => each.name === name);
    t.match(row, { calls, total_ns, self_ns, avg_ns, max_ns }, name);
    t.equal(
      row?.histogram.reduce((sum, bucket) => sum + bucket.calls, 0),
      calls,
    );
    t.ok(row && row.min_ns <= row.p50_ns && row.p50_ns <= row.p99_ns && row.p99_ns <= row.max_ns);
  }
  const text = await rsptrace('report', trace, '--by', 'fn', '--sort', 'name', '--top', '2').ended;
  t.match(text.stdout.split('\n').slice(1, 3).join('\n'), /^ +164 .* fib .*\n +141 .* leaf /);
  const filtered = await json<{ readonly fn: readonly Row[] }>('report', trace, '--filter', 'm*');
  t.same(
    filtered.fn.map(({ name }) => name),
    ['main', 'middle'],
  );
});

t.test('callers and callees of every function are those that callgrind counted', async (t) => {
  t.ok(arcs.length >= 6);
  for (const name of reportedFunctions) {
    for (const [option, near, far] of [
      ['callers', 'callee', 'caller'],
      ['callees', 'caller', 'callee'],
    ] as const) {
      type Arcs = { readonly calls: number; readonly caller: string | null; readonly callee: string };
      const { functions } = await json<{ functions: readonly Record<string, readonly Arcs[]>[] }>(
        'report',
        trace,
        `--${option}`,
        name,
      );
      const seen = (functions[0]?.[`${far}s`] ?? []).filter((arc) => arc[far] !== null);
      const wanted = arcs.filter((arc) => arc[near] === name);
      t.same(
        new Map(seen.map((arc) => [arc[far], arc.calls])),
        new Map(wanted.map((arc) => [arc[far], arc.calls])),
        `${option} of ${name}`,
      );
    }
  }
});

t.test('a window holds what begins in it', async (t) => {
  const calls = async (...words: readonly string[]) => {
    const { fn } = await json<{ readonly fn: readonly Row[] }>('report', trace, ...words);
    return Object.fromEntries(fn.map(({ name, calls: count }) => [name, count]));
  };
  // The first iteration up to its fib: one outer, three middles, seven leafs.
  t.same(await calls('--from', 'fn:outer', '--to', 'fn:fib'), { outer: 1, middle: 3, leaf: 7 });
  t.same(await calls('--to', 'fn:outer'), { main: 1 });
  const { to_ns } = await json<{ to_ns: number }>('info', trace);
  t.same(await calls('--from', `${to_ns + 1}ns`).catch((error: Error) => /TRACE_NO_MATCH/.test(error.message)), true);
});

t.test('info tells what was recorded, and how', async (t) => {
  const about = await json<Record<string, unknown>>('info', trace);
  const { probes, ...rest } = about as {
    readonly probes: readonly { readonly name: string; readonly engine: string }[];
  };
  t.match(rest, { program: 'reported', arch: 'x86_64', stub: 'gdbserver', end: 'guest-ended', lost: 0, missing: 0 });
  t.match(rest, { by_type: { 'call-begin': 386, 'call-end': 386 } });
  t.same(probes.map(({ name }) => name).sort(), [...reportedFunctions].sort());
  const text = (await rsptrace('info', trace).ended).stdout;
  t.match(text, /^stub {5}gdbserver$/m);
  t.match(text, /^losses {3}none/m);
});

t.test('what is wrong is one sentence with a code', async (t) => {
  const code = async (...words: readonly string[]) => {
    const { status, stdout, stderr } = await rsptrace(...words).ended;
    t.equal(stdout, '');
    t.ok(stderr.split('\n').length < 5, stderr);
    return `${status} ${stderr}`;
  };
  t.match(await code('report', trace, '--callers', 'laef'), /^1 .*'laef' \[TRACE_NO_MATCH\]\n +nearest: leaf/);
  t.match(await code('report', trace, '--filter', 'zzzzzzzz'), /^1 .*TRACE_NO_MATCH/);
  t.match(await code('report', trace, '--from', 'soon'), /^2 .*--from takes a time/);
  t.match(await code('report', trace, '--sort', 'size'), /^2 /);
  t.match(await code('report', trace, '--top', '0'), /^2 .*--top takes a whole number/);
  t.match(await code('report', trace, '--by', 'fn', '--callers', 'leaf'), /^2 .*do not go together/);
  t.match(await code('report', join(folder, 'none.pftrace')), /^1 .*TRACE_UNREADABLE/);
  t.match(await code('report', saved.program), /^1 .*TRACE_FOREIGN/);
  writeFileSync(join(folder, 'cut.pftrace'), readFileSync(trace).subarray(0, 20_000));
  const cut = await rsptrace('report', join(folder, 'cut.pftrace')).ended;
  t.equal(cut.status, 0);
  t.match(cut.stderr, /is cut off: \d+ events could be read/);
});
