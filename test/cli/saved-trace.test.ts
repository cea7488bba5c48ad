// Commands that ask a saved trace, against the recorder's own table and against what valgrind and uftrace saw.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { textWidth } from '../../src/text/text-width.js';
import { type CallBegin, type FunctionRef, openTrace, type PollBegin } from '../../src/trace/index.js';
import { main, rsptrace, scratchFolder, start } from '../support/command.js';
import { callgrindArcs, reportedFunctions, savedTrace } from '../support/saved-trace.js';
import { future, info, link, nanos, suspend0 } from '../trace/stories.js';

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
  return rsptrace(...words, '--json').json<T>();
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

t.test('a hart has the outermost of the chosen calls', async (t) => {
  const hart = async (...words: string[]): Promise<readonly Row[]> =>
    (await json<{ readonly hart: readonly Row[] }>('report', trace, '--by', 'hart', ...words)).hart;
  const own = (name: string) => saved.functions.find((each) => each.function === name);
  // main is around all of them; four of the calls of fib are in no other (i is 0, 5, 10 and 15).
  t.match(await hart(), [{ calls: 1, total_ns: own('main')?.total_ns }]);
  t.match(await hart('--filter', 'leaf'), [{ calls: 141, total_ns: own('leaf')?.total_ns }]);
  t.match(await hart('--filter', 'fib'), [{ calls: 4, total_ns: own('fib')?.total_ns, self_ns: own('fib')?.self_ns }]);
  t.match(await hart('--filter', 'm*'), [{ calls: 1, total_ns: own('main')?.total_ns }]);
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
  const { from_ns, to_ns } = await json<{ from_ns: number; to_ns: number }>('info', trace);
  const between = await rsptrace('report', trace, '--from', `${from_ns + 1}ns`, '--to', `${from_ns + 2}ns`).ended;
  t.match(between, { status: 1, stderr: /has nothing in the window of --from and --to \[TRACE_NO_MATCH\]/ });
  const nothing = ['--from', `${from_ns + 1}ns`, '--to', `${from_ns + 2}ns`];
  t.match(await rsptrace('replay', trace, ...nothing).ended, { status: 1, stdout: /^$/ });
  const path = join(folder, 'nothing.txt');
  for (const chosen of [nothing, ['--filter', 'zzzzzzzz']]) {
    t.equal((await rsptrace('convert', trace, '-o', path, ...chosen).ended).status, 1);
    t.notOk(existsSync(path), 'where nothing is chosen there is no file');
  }
  const endless = await rsptrace('report', trace, '--from', 'fn:fib', '--to', 'fn:main').ended;
  t.match(endless, { status: 0, stderr: /nothing that --to names begins in the window, so it goes to the end/ });
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
  const waits = [
    ['report', trace, '--by', 'await'],
    ['profile', trace, '--off-cpu'],
  ];
  for (const words of waits)
    t.match(await code(...words, '--filter', '* if duration > 1ms'), /^2 .*without a condition \[USAGE\]\n +leave out/);
  t.match(await code('report', trace, '--from', 'soon'), /^2 .*--from takes a time/);
  t.match(await code('convert', trace, '--to', 'folded', '-o', 'x'), /^2 .*; a format is named by the extension of -o/);
  t.match(await code('report', trace, '--sort', 'size'), /^2 /);
  t.match(await code('report', trace, '--top', '0'), /^2 .*--top takes a whole number/);
  t.match(await code('report', trace, '--by', 'fn', '--callers', 'leaf'), /^2 .*do not go together/);
  writeFileSync(join(folder, 'empty.pftrace'), '');
  t.match(await code('report', join(folder, 'empty.pftrace')), /^1 .*is empty \[TRACE_FOREIGN\]/);
  t.match(await code('report', join(folder, 'none.pftrace')), /^1 .*TRACE_UNREADABLE/);
  t.match(await code('report', saved.program), /^1 .*TRACE_FOREIGN/);
  const loop = join(folder, 'loop.pftrace');
  symlinkSync(loop, loop);
  for (const words of [
    ['report', loop],
    ['diff', loop, trace],
    ['merge', loop, trace, '-o', join(folder, 'm.csv')],
  ])
    t.match(await code(...words), /^1 .*ELOOP.*TRACE_UNREADABLE/);
  const far = await code('merge', trace, trace, '--offset=53d', '-o', join(folder, 'm.csv'));
  t.match(far, /^2 .*--offset takes/);
  const later = await code('merge', trace, trace, '--offset=9000000s', '-o', join(folder, 'm.csv'));
  t.match(later, /^2 .*--offset takes up to 52 days/);
  // In the middle of its last packet.
  const whole = readFileSync(trace);
  writeFileSync(join(folder, 'cut.pftrace'), whole.subarray(0, whole.length - 1));
  const cut = await rsptrace('report', join(folder, 'cut.pftrace')).ended;
  t.equal(cut.status, 0);
  t.match(cut.stderr, /is cut off: \d+ events could be read/);
  const told = await rsptrace('info', join(folder, 'cut.pftrace')).ended;
  t.match(told, { status: 0, stderr: /^$/, stdout: /^(?:losses)? +its end is cut off at byte \d+$/m }, 'said once');
});

/** Converts, and gives the path of what was written. */
async function converted(extension: string): Promise<string> {
  const path = join(folder, `reported${extension}`);
  const ran = await rsptrace('convert', trace, '-o', path).ended;
  if (ran.status !== 0) throw new Error(ran.stderr);
  return path;
}

const calls = new Map(saved.functions.map((row) => [row.function, row.calls]));
const selfTimes = new Map(saved.functions.map((row) => [row.function, row.self_ns]));
const totalTimes = new Map(saved.functions.map((row) => [row.function, row.total_ns]));

t.test("uftrace's own report of the directory has our calls and times", async (t) => {
  const path = await converted('.uftrace');
  const text = execFileSync('uftrace', ['report', '-d', path, '-f', 'call,total,self', '--no-pager'], {
    encoding: 'utf8',
  });
  const rows = [...text.matchAll(/^ +([\d.]+) (us|ms) +([\d.]+) (us|ms) +(\d+) +(\w+)$/gm)];
  const nanos = (value: string | undefined, unit: string | undefined) =>
    Math.round(Number(value) * (unit === 'ms' ? 1e6 : 1e3));
  t.equal(rows.length, reportedFunctions.length);
  for (const [, total, totalUnit, self, selfUnit, count, name = ''] of rows) {
    t.equal(Number(count), calls.get(name), name);
    // uftrace prints three decimals, and cuts the others off.
    const printed = (time = 0, unit?: string) => (unit === 'ms' ? Math.floor(time / 1e3) * 1e3 : time);
    t.equal(nanos(total, totalUnit), printed(totalTimes.get(name), totalUnit), `total of ${name}`);
    t.equal(nanos(self, selfUnit), printed(selfTimes.get(name), selfUnit), `self of ${name}`);
  }
  for (const command of ['replay', 'graph', 'dump']) {
    t.match(execFileSync('uftrace', [command, '-d', path, '--no-pager'], { encoding: 'utf8' }), /leaf/, command);
  }
});

t.test('callgrind_annotate has our self and total times', async (t) => {
  const path = await converted('.callgrind');
  for (const [options, wanted] of [
    [[], selfTimes],
    [['--inclusive=yes'], totalTimes],
  ] as const) {
    const text = execFileSync('callgrind_annotate', ['--threshold=100', '--auto=no', ...options, path], {
      encoding: 'utf8',
    });
    const rows = [...text.matchAll(/^ *([\d,]+) \( ?[\d.]+%\) {2}\S*:(\w+)/gm)];
    t.same(new Map(rows.map(([, cost = '', name]) => [name, Number(cost.replaceAll(',', ''))])), new Map(wanted));
  }
  t.same(
    new Set(callgrindArcs(path).map(({ caller, callee, calls: count }) => `${caller} ${callee} ${count}`)),
    new Set(arcs.map(({ caller, callee, calls: count }) => `${caller} ${callee} ${count}`)),
  );
});

t.test('folded stacks, pprof, CSV and JSON lines hold every call', async (t) => {
  const folded = readFileSync(await converted('.folded'), 'utf8');
  const sums = new Map<string, number>();
  for (const [, name = '', self] of folded.matchAll(/^(?:.*;)?([^; ]+) (\d+)$/gm)) {
    sums.set(name, (sums.get(name) ?? 0) + Number(self));
  }
  t.same(sums, selfTimes);
  // protoc reads what it is without a schema: fields 2 are samples, 6 the texts.
  const profile = execFileSync('protoc', ['--decode_raw'], {
    input: gunzipSync(readFileSync(await converted('.pb.gz'))),
  });
  const texts = [...profile.toString().matchAll(/^6: "(.*)"$/gm)].map(([, text]) => text);
  t.same(texts.slice(0, 5), ['', 'calls', 'count', 'time', 'nanoseconds']);
  const samples = [...profile.toString().matchAll(/^2 \{\n(?: {2}1: \d+\n)+ {2}2: (\d+)\n {2}2: (\d+)\n\}/gm)];
  const sum = (values: Iterable<number>) => [...values].reduce((all, value) => all + value, 0);
  t.equal(sum(samples.map(([, count]) => Number(count))), sum(calls.values()));
  t.equal(sum(samples.map(([, , self]) => Number(self))), sum(selfTimes.values()));
  const [head = '', ...rows] = readFileSync(await converted('.csv'), 'utf8')
    .trimEnd()
    .split('\n');
  const column = head.split(',').indexOf('name');
  const counts = new Map<string, number>();
  for (const row of rows) {
    const name = row.split(',')[column] ?? '';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  t.same(counts, calls);
  const lines = readFileSync(await converted('.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  t.match(lines[0], { type: 'trace', version: 1, program: 'reported' });
  t.equal(lines.length, rows.length + 1);
  t.match(lines.at(-1), { type: 'call', name: 'main', depth: 0 });
  t.equal(
    (await rsptrace('replay', trace, '--json').ended).stdout,
    readFileSync(join(folder, 'reported.jsonl'), 'utf8'),
  );
});

t.test('a flame graph is well-formed XML whose frames are as wide as their times', async (t) => {
  const path = await converted('.svg');
  const svg = readFileSync(path, 'utf8');
  const script = "import sys, xml.dom.minidom as m; print(len(m.parse(sys.argv[1]).getElementsByTagName('g')))";
  const groups = Number(execFileSync('python3', ['-c', script, path], { encoding: 'utf8' }));
  const widths = new Map<string, number>();
  for (const [, name = '', time] of svg.matchAll(/data-n="(\w+)" data-x="\d+" data-w="(\d+)"/g)) {
    widths.set(name, Math.max(widths.get(name) ?? 0, Number(time)));
  }
  t.ok(groups > reportedFunctions.length);
  t.equal(widths.get('main'), totalTimes.get('main'));
  t.equal(widths.get('outer'), totalTimes.get('outer'));
  t.notMatch(svg.replace('http://www.w3.org/2000/svg', ''), /https?:/, 'nothing is loaded');
});

t.test('what runs the calls of a process is a thread everywhere', async (t) => {
  const about = (await rsptrace('info', trace).ended).stdout;
  const [, name] = /^target +x86_64, 1 thread: (thread \d+ \(.*\))$/m.exec(about) ?? [];
  t.type(name, 'string', about);
  for (const by of ['thread', 'hart']) {
    const { stdout } = await rsptrace('report', trace, '--by', by).ended;
    t.match(stdout, /^calls .* thread\n/);
    t.ok(stdout.includes(`  ${name}\n`), stdout);
  }
  const replay = (await rsptrace('replay', trace).ended).stdout;
  t.ok(replay.includes(`# [ 0] is ${name}\n`));
  t.match(replay, /DURATION +THREAD\n/);
  t.equal((await rsptrace('replay', trace, '--filter', 'leaf if thread == 0').ended).status, 0);
  t.notMatch(`${about}${replay}`, /\bhart/i);
});

t.test('replay is the call tree, graph its merged one', async (t) => {
  const { stdout } = await rsptrace('replay', trace).ended;
  t.equal(stdout, readFileSync(await converted('.txt'), 'utf8'));
  const middle = await rsptrace('replay', trace, '--filter', 'middle').ended;
  t.equal(middle.stdout.match(/ leaf\(/g)?.length, 120);
  t.notMatch(middle.stdout, /\bouter\(/);
  const graph = (await rsptrace('graph', trace, '-D', '3').ended).stdout;
  t.match(graph, /\(1\) main\n(?:.*\n)*?.*\+-\(20\) outer\n.*\| +\+-\(60\) middle\n.*\| +\+-\(20\) leaf\n/);
  t.notMatch(graph, /\(120\) leaf/);
  t.match((await rsptrace('graph', trace, 'middle').ended).stdout, /\(60\) middle\n.*\(120\) leaf\n$/);
});

t.test('graph of a program that it starts: the calls that valgrind counted', async (t) => {
  const ran = await rsptrace('graph', '--fn', 'middle', '-D', '2', saved.program).ended;
  t.equal(ran.status, 0, ran.stderr);
  const lines = ran.stdout.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const counts = (wanted: (arc: (typeof arcs)[number]) => boolean): number =>
    arcs.filter(wanted).reduce((sum, { calls }) => sum + calls, 0);
  t.equal(
    lines.filter((line) => /\| {2}middle\(.*\) \{$/.test(line)).length,
    counts(({ callee }) => callee === 'middle'),
  );
  const leaves = lines.filter((line) => /\| {4}leaf\(.*\);/.test(line)).length;
  t.equal(
    leaves,
    counts(({ caller, callee }) => caller === 'middle' && callee === 'leaf'),
  );
  t.equal(lines.length, leaves + 2 * counts(({ callee }) => callee === 'middle'), 'nothing that the program prints');
  const asked = await rsptrace('graph', '--fn', 'middle', trace).ended;
  t.match(asked.stderr, /\[ELF_NOT_ELF\]\n +of a saved trace .*: rsptrace graph .*\.pftrace 'middle'/);
});

const named = { name: 'walk', instance: 'walk', file: undefined, line: undefined };

interface Nested {
  readonly calls_to: readonly Nested[];
}

function levels(nested: readonly Nested[]): number {
  let count = 0;
  for (let at = nested; at.length > 0; at = at[0]?.calls_to ?? []) count++;
  return count;
}

t.test('graph --json has as many levels as asked for, and as readers of JSON take', async (t) => {
  const shallow = await json<{ graph: readonly Nested[]; cut_at_depth: null }>('graph', trace, '-D', '2');
  t.match([levels(shallow.graph), shallow.cut_at_depth], [2, null]);
  const deep = join(folder, 'deep.pftrace');
  const sink = openTrace(deep);
  sink.begin(info);
  let around: CallBegin | undefined;
  for (let depth = 0; depth < 3_000; depth++) {
    const fn: FunctionRef = { ...named, key: 0, address: addr(16) };
    around = { type: 'call-begin', time: nanos(depth), hart: 0, depth, around, function: fn, arguments: [] };
    sink.event(around);
  }
  sink.end();
  const ran = await rsptrace('graph', deep, '--json').ended;
  t.match(ran, { status: 0, stderr: /calls nested deeper than 1000 are left out of the JSON/ });
  const { graph, cut_at_depth } = JSON.parse(ran.stdout) as { graph: readonly Nested[]; cut_at_depth: number };
  t.same([levels(graph), cut_at_depth], [1000, 1000]);
});

/** A call with a value that is too long for a terminal, and a poll that waits, with names and places that are, too. */
function writeLong(path: string): void {
  const name = `std::_Rb_tree<Edge*, ${'std::pair<Edge* const, long>, '.repeat(4)}int>::find(Edge* const&)`;
  const file = `/build/${'a-folder/'.repeat(9)}stl_tree.h`;
  const sink = openTrace(path);
  sink.begin(info);
  const fn: FunctionRef = { key: 0, name, instance: name, address: addr(16), file, line: 1929 };
  const of = { hart: 0, depth: 0, function: fn };
  const values = [{ name: 'key', value: `"${'k'.repeat(200)}"` }];
  const call: CallBegin = { ...of, type: 'call-begin', time: nanos(1), around: undefined, arguments: values };
  sink.event(call);
  sink.event({ ...of, type: 'call-end', time: nanos(2), began: call.time, begin: call, result: undefined });
  const task = { ...future(0, `app::${'a_module::'.repeat(9)}serve`, 7), file };
  const root = { key: 0, future: task, address: addr(0x1000) };
  const at = { hart: 0, root, future: task, address: root.address, depth: 0, state: { ...suspend0, file } };
  const poll: PollBegin = { ...at, type: 'poll-begin', time: nanos(3), around: undefined };
  sink.event(poll);
  const chain = [link(undefined, 'tokio::time::Sleep', undefined)];
  sink.event({ ...at, type: 'poll-end', time: nanos(4), began: poll.time, begin: poll, result: 'pending', chain });
  sink.end();
}

t.test('a terminal of 80 columns has each line on one of its own, a file has all of it', async (t) => {
  const long = join(folder, 'long.pftrace');
  writeLong(long);
  const budget = join(folder, 'long.json');
  writeFileSync(budget, JSON.stringify({ version: 1, times: { 'fn:std::_Rb_tree*find*': { max: '1s' } } }));
  const views = {
    report: [long],
    replay: [long],
    graph: [long],
    tasks: [long, '--at', '4ns'],
    profile: ['--off-cpu', long],
    check: [long, '--budget', budget],
  };
  for (const [verb, words] of Object.entries(views)) {
    const command = ['stty cols 80 rows 24;', process.execPath, main, verb, ...words, '2>/dev/null'].join(' ');
    // `script` is a terminal that keeps what is written to it.
    const shown = execFileSync('script', ['-qec', command, '/dev/null'], {
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const lines = stripVTControlCharacters(shown).split('\r\n');
    t.strictSame(
      lines.filter((line) => textWidth(line) > 80),
      [],
      verb,
    );
    t.ok(
      lines.some((line) => line.includes('…') || line.includes('std::_Rb_tree')),
      `${verb} has something to shorten`,
    );
  }
  const file = await rsptrace('replay', long).ended;
  t.match(file.stdout, `key: "${'k'.repeat(200)}"`);
  const { fn } = await json<{ readonly fn: readonly Row[] }>('report', long);
  t.match(fn[0]?.name, /long>, int>::find\(Edge\* const&\)$/);
});

t.test('colours in a pipe are those that the environment asks for', async (t) => {
  const isColored = async (...environment: readonly string[]): Promise<boolean> => {
    const words = ['-u', 'NO_COLOR', '-u', 'FORCE_COLOR', '-u', 'CLICOLOR_FORCE', ...environment];
    const { stdout } = await start('/usr/bin/env', [...words, process.execPath, main, 'replay', trace]).ended;
    return stdout.includes('\x1b[');
  };
  t.equal(await isColored(), false);
  t.equal(await isColored('FORCE_COLOR=1'), true);
  t.equal(await isColored('CLICOLOR_FORCE=1'), true);
  t.equal(await isColored('CLICOLOR_FORCE=1', 'NO_COLOR=1'), false);
});

t.test('a diff names what is slower, new and gone, and breaks limits', async (t) => {
  const cut = join(folder, 'window.pftrace');
  await rsptrace('convert', trace, '-o', cut, '--from', 'fn:outer', '--to', 'fn:fib').ended;
  const same = await json<{ fn: readonly { change: string }[]; broken: readonly object[] }>(
    'diff',
    trace,
    trace,
    '--fail-on',
    '+0% fn:*',
  );
  t.same(new Set(same.fn.map(({ change }) => change)), new Set(['same']));
  const words = ['diff', cut, trace, '--json', '--fail-on', '+5% fn:leaf', '--fail-on', '+1000000% fn:middle'];
  const { fn, broken } = await rsptrace(...words).json<{
    readonly fn: readonly { readonly name: string; readonly change: string }[];
    readonly broken: readonly { readonly name: string }[];
  }>(4);
  t.same(Object.fromEntries(fn.map(({ name, change }) => [name, change])), {
    main: 'new',
    fib: 'new',
    outer: 'slower',
    middle: 'slower',
    leaf: 'slower',
  });
  t.same(
    broken.map(({ name }) => name),
    ['leaf'],
  );
  const { stdout } = await rsptrace('diff', cut, trace).ended;
  // main and fib took longer than what both have, and grew no more than nothing can.
  t.match(stdout, /^ *before +after +change +calls +name\n(?:.* \+.* %.*\n){3}.* new .*\bmain\n.* new .*\bfib\n/);
  t.match(stdout, /\n5 names of 5 changed, 2 new\n$/);
  t.match((await rsptrace('diff', trace, trace).ended).stdout, /^0 names of 5 changed\n$/);
  t.match((await rsptrace('diff', cut, trace, '--fail-on', '5 fn:leaf').ended).stderr, /--fail-on takes a growth/);
  const other = await rsptrace('diff', cut, trace, '--fail-on', '+5% latency:leaf').ended;
  t.match(other, { status: 2, stderr: /give --by latency/ });
});

t.test('what is new has grown, what is gone has not, and a limit can name either', async (t) => {
  const cut = join(folder, 'without-fib.pftrace');
  await rsptrace('convert', trace, '-o', cut, '--to', 'fn:fib').ended;
  const limited = async (before: string, after: string, limit: string) =>
    await rsptrace('diff', before, after, '--fail-on', limit).ended;
  for (const limit of ['+900% fn:fib', 'new fn:fib']) {
    const ran = await limited(cut, trace, limit);
    t.equal(ran.status, 4, limit);
    t.match(ran.stderr, /^rsptrace: fib: new, [0-9.]+ .s, past --fail-on '/m);
  }
  const gone = await limited(trace, cut, '+5% fn:fib');
  t.equal(gone.status, 0);
  t.match(gone.stderr, /fib is gone, so --fail-on '\+5% fn:fib' holds; --fail-on 'gone fn:fib' would not/);
  t.match((await limited(trace, trace, '+5% poll:fib')).stderr, /matches --fail-on 'fib' .*nearest: fn:fib/s);
  t.equal((await limited(trace, cut, 'gone fn:fib')).status, 4);
  t.equal((await limited(trace, cut, 'gone fn:leaf')).status, 0);
  t.equal((await limited(cut, trace, 'new fn:nowhere')).status, 0, 'nothing of that name is new');
  t.match((await limited(cut, trace, 'gone fn:nowhere')).stderr, /TRACE_NO_MATCH/);
});

/** A trace of one call of a function, which takes so long, or has no end. */
function traceOf(
  name: string,
  took: number | undefined,
  more: { lossy?: boolean; tailLost?: boolean; kind?: 'lock' } = {},
): string {
  const path = join(folder, name);
  const sink = openTrace(path);
  const where = { file: undefined, line: undefined };
  const named = more.kind === undefined ? { name: 'boot' } : { name: 'lock::L', kind: more.kind };
  const boot: FunctionRef = { key: 0, instance: 'boot', address: addr(0x1000n), ...where, ...named };
  const call = { hart: 0, function: boot, depth: 0 } as const;
  const begin: CallBegin = { type: 'call-begin', ...call, time: nanos(10), arguments: [] };
  sink.begin(info);
  sink.event(begin);
  const time = nanos(10 + (took ?? 1e9));
  sink.event({ type: took === undefined ? 'call-lost' : 'call-end', ...call, time, began: begin.time, begin });
  if (more.lossy) sink.event({ type: 'gap', from: time, to: nanos(time + 5e9) });
  const counts = { events: 2, stops: 0, records: 2, missing: more.lossy ? 7 : 0, foreignHits: 0 };
  const recording = { end: 'until', stub: undefined, ...counts, neverLoaded: [], tailLost: more.tailLost ?? false };
  sink.end({ probes: [], recording });
  return path;
}

t.test('a diff says of what hangs that it has no time', async (t) => {
  const [ends, hangs] = [traceOf('ends.pftrace', 1000), traceOf('hangs.pftrace', undefined)];
  const { stderr } = await rsptrace('diff', ends, hangs).ended;
  t.match(stderr, 'more calls have no end after than before, and so no time: boot (1, before 0)');
  t.equal((await rsptrace('diff', hangs, ends).ended).stderr, '');
});

t.test('findings about locks are not judged where records were in the memory of a guest that has ended', async (t) => {
  const findings = async (name: string, tailLost: boolean): Promise<unknown> =>
    (await json<{ lock_findings: unknown }>('report', traceOf(name, 5, { kind: 'lock', tailLost }))).lock_findings;
  t.same(await findings('locks.pftrace', false), []);
  t.equal(await findings('locks-lost.pftrace', true), null);
});

t.test('every command that reads a trace says what of it is missing', async (t) => {
  const lossy = traceOf('lossy.pftrace', 1000, { lossy: true });
  for (const words of [
    ['report', lossy],
    ['graph', lossy],
    ['report', lossy, '--callers', 'boot'],
  ]) {
    const { stderr } = await rsptrace(...words).ended;
    t.match(stderr, /7 records that could not be read$/m, words.join(' '));
    t.match(stderr, /5\.0 s of it were not recorded: rsptrace info says why$/m, words.join(' '));
  }
  t.match(await rsptrace('info', lossy).ended, { stderr: '', stdout: /1 gap of 5\.0 s/ }, 'said once');
});

t.test('a conversion overwrites nothing without --force', async (t) => {
  const older = join(folder, 'older.folded');
  const converted = async (...words: string[]) => await rsptrace('convert', trace, '-o', older, ...words).ended;
  t.equal((await converted()).status, 0);
  const before = readFileSync(older);
  t.match((await converted()).stderr, /older\.folded is there already \[OUTPUT_EXISTS\]/);
  t.match((await rsptrace('merge', trace, trace, '-o', older).ended).stderr, /OUTPUT_EXISTS/);
  t.ok(readFileSync(older).equals(before), 'left as it was');
  writeFileSync(older, 'leaf 1\n');
  t.equal((await converted('--force')).status, 0);
  t.ok(readFileSync(older).equals(before));
  writeFileSync(join(folder, 'notes.folded'), 'groceries\n');
  t.match((await rsptrace('convert', trace, '-o', join(folder, 'notes.folded')).ended).stderr, /OUTPUT_EXISTS/);
  t.match((await rsptrace('convert', trace, '-o', trace).ended).stderr, /OUTPUT_IS_INPUT/);
  t.match((await rsptrace('convert', trace, '-o', join(folder, 'x.xyz')).ended).stderr, /TRACE_UNKNOWN_FORMAT/);
  t.match(
    (await rsptrace('convert', trace, '-o', join(folder, 'x.y'), '--format', 'xml').ended).stderr,
    /no trace format is called xml/,
  );
  t.equal((await rsptrace('convert', trace, '-o', join(folder, 'x.y'), '--format', 'folded').ended).status, 0);
  t.equal(readFileSync(join(folder, 'x.y'), 'utf8'), readFileSync(join(folder, 'reported.folded'), 'utf8'));
});

t.test('a trace on standard input is what it is as a file, and a moment before it is said to be that', async (t) => {
  const rows = (text: string): unknown => ({ ...(JSON.parse(text) as object), trace: '' });
  const words = [main, 'report', '--json', '-', '--top', '3'];
  const piped = execFileSync(process.execPath, words, { input: readFileSync(trace), encoding: 'utf8' });
  t.same(rows(piped), rows((await rsptrace('report', '--json', trace, '--top', '3').ended).stdout));
  // However it ends, no copy of it stays.
  const env = { ...process.env, TMPDIR: scratchFolder(t) };
  const killed = spawn(process.execPath, [main, 'report', '-'], { env, stdio: ['pipe', 'ignore', 'ignore'] });
  const isKept = (): boolean => openedBy(killed.pid as number).some((path) => /stdin \(deleted\)$/.test(path));
  while (!isKept()) await sleep(5);
  killed.kill('SIGKILL');
  await once(killed, 'close');
  t.same(readdirSync(env.TMPDIR), []);
  const early = await rsptrace('tasks', trace, '--at', '0ns').ended;
  t.same([early.status, early.stderr], [0, `rsptrace: ${trace} has no poll before 0 ns\n`]);
});

/** The files that a process has open. */
function openedBy(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).map((fd) => {
    try {
      return readlinkSync(join(folder, fd));
    } catch {
      return '';
    }
  });
}
