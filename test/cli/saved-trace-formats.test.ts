// Filters, merges and formats of a saved trace, against uftrace's recording of the same program, DuckDB, and what the
// trace's own JSON lines say.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import t from 'tap';
import { rsptrace } from '../support/command.js';
import { reportedFunctions, savedTrace } from '../support/saved-trace.js';

const { folder, trace, source, functions } = await savedTrace(t);

interface Row {
  readonly name: string;
  readonly calls: number;
  readonly total_ns: number;
  readonly self_ns: number;
}

async function ok(...words: readonly string[]): Promise<string> {
  const ran = await rsptrace(...words).ended;
  if (ran.status !== 0) throw new Error(ran.stderr);
  return ran.stdout;
}

async function rows(path: string, ...words: readonly string[]): Promise<readonly Row[]> {
  const { fn } = JSON.parse(await ok('report', path, '--json', ...words)) as { readonly fn: readonly Row[] };
  return fn;
}

interface Call {
  readonly type: string;
  readonly name: string;
  readonly time_ns: number;
  readonly duration_ns: number;
  readonly depth: number;
}

const calls = (await ok('replay', trace, '--json'))
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => JSON.parse(line) as Call);

/** uftrace's own recording of the program, and its own report. */
const native = join(folder, 'native');
execFileSync('gcc', ['-g', '-O1', '-pg', '-o', native, source]);
const directory = join(folder, 'native.uftrace');
// Without the scheduler's events: uftrace takes what a busy machine took out of times in some of its outputs, in others not.
execFileSync('uftrace', ['record', '--no-event', '-d', directory, '--no-pager', native], { stdio: 'ignore' });
/** Of a time longer than a millisecond it prints three digits of that. */
const times = { us: 1e3, ms: 1e6, ' s': 1e9 };
const inNanos = (time = '', unit = ''): { readonly ns: number; readonly error: number } => {
  const scale = times[unit as keyof typeof times];
  return { ns: Math.round(Number(time) * scale), error: scale / 1e3 };
};
const uftraceRows = new Map(
  [
    ...execFileSync('uftrace', ['report', '-d', directory, '-f', 'call,total,self', '--no-pager'], {
      encoding: 'utf8',
    }).matchAll(/^ +([\d.]+) (us|ms| s) +([\d.]+) (us|ms| s) +(\d+) +(\w+)$/gm),
  ].map(([, total, unit, self, unitOfSelf, count, name]) => [
    name,
    { calls: Number(count), total: inNanos(total, unit), self: inNanos(self, unitOfSelf) },
  ]),
);

t.test("a directory of uftrace and its Chrome JSON are read as uftrace's own report says", async (t) => {
  const chrome = join(folder, 'native.json');
  writeFileSync(chrome, execFileSync('uftrace', ['dump', '--chrome', '-d', directory, '--no-pager']));
  t.ok(uftraceRows.size >= 4);
  for (const path of [directory, chrome]) {
    const found = new Map((await rows(path)).map((row) => [row.name, row]));
    for (const [name, { calls, total, self }] of uftraceRows) {
      const row = found.get(name ?? '');
      t.equal(row?.calls, calls, `${name} of ${path}`);
      t.ok(Math.abs((row?.total_ns ?? 0) - total.ns) < total.error, `${name} of ${path}: ${row?.total_ns}`);
      t.ok(Math.abs((row?.self_ns ?? 0) - self.ns) < self.error, `${name} of ${path}: ${row?.self_ns}`);
    }
  }
});

t.test('a window has what begins in it, and nothing of what begins before and behind', async (t) => {
  const begins = calls.map(({ time_ns: time }) => time).sort((a, b) => a - b);
  const [from = 0, to = 0] = [begins[Math.floor(begins.length / 3)], begins[Math.floor(begins.length / 2)]];
  const wanted = calls.filter(({ time_ns: time }) => time >= from && time < to);
  t.ok(wanted.length > 10 && wanted.length < calls.length / 2);
  const window = ['--from', `${from}ns`, '--to', `${to}ns`];
  const lines = (await ok('replay', trace, '--json', ...window)).trimEnd().split('\n').slice(1);
  t.same(
    lines.map((line) => JSON.parse(line)),
    wanted,
  );
  const tree = (await ok('replay', trace, ...window))
    .split('\n')
    .filter((line) => /^ +\d+\.\d+ us.*\w\(.*\) \{$|\w\(.*\)( =|$)/.test(line));
  t.equal(tree.length, wanted.length);
});

t.test('a condition chooses the calls for which it holds', async (t) => {
  const leafs = calls.filter(({ name }) => name === 'leaf');
  const limit = [...leafs].sort((a, b) => a.duration_ns - b.duration_ns)[100]?.duration_ns ?? 0;
  const longer = leafs.filter((call) => call.duration_ns > limit);
  const [row, ...others] = await rows(trace, '--filter', `fn:leaf if duration > ${limit}ns`);
  t.same(others, []);
  t.match(row, { calls: longer.length, total_ns: longer.reduce((sum, call) => sum + call.duration_ns, 0) });
  const deep = calls.filter((call) => call.name === 'fib' && call.depth >= 4 && call.depth !== 5);
  t.equal((await rows(trace, '--filter', 'fib if depth >= 4 && depth != 5'))[0]?.calls, deep.length);
  // Those of one depth are in none of each other; what they call of themselves is not left out of their total.
  const same = calls.filter((call) => call.name === 'fib' && call.depth === 4);
  const total = same.reduce((sum, call) => sum + call.duration_ns, 0);
  const [one] = await rows(trace, '--filter', 'fib if depth == 4');
  t.match(one, { calls: same.length, total_ns: total });
  t.ok(one && one.self_ns < total);
  // Every fib(n) is called with n below 8; those with n below 2 call none.
  const [small] = await rows(trace, '--filter', 'fn:fib if n < 2');
  t.ok(small && small.calls < 164 && small.total_ns === small.self_ns);
  const shown = await ok('replay', trace, '--filter', 'fn:fib if n == 7 || n == 100');
  t.equal(shown.match(/ fib\(n: 7\) \{/g)?.length, 4);
  const error = async (filter: string) => (await rsptrace('report', trace, '--filter', filter).ended).stderr;
  t.match(await error('leaf if duration > 1h'), /'1h' is no number and no time.*\[USAGE\]/s);
  t.match(await error('leaf if duration'), /'duration' is no comparison/);
  t.match(await error('leaf if nothing == 3'), /nothing that it names has 'nothing' \[TRACE_NO_MATCH\]/);
  t.match(await error('leaf if duration > 9s'), /its condition never held/);
});

t.test('a merge has the calls of all traces, in the order of time', async (t) => {
  const merged = join(folder, 'merged.pftrace');
  await ok('merge', trace, directory, trace, '-o', merged, '--align', 'fn:outer');
  const found = new Map((await rows(merged)).map((row) => [row.name, row.calls]));
  // Each function's rows: those of the same address are one.
  for (const { function: name, calls: count } of functions) {
    const own = (await rows(merged, '--filter', `fn:${name}`)).reduce((sum, row) => sum + row.calls, 0);
    t.equal(own, 2 * count + (uftraceRows.get(name)?.calls ?? 0), name);
  }
  t.equal(found.get('puts'), 1);
  const firsts = new Map<number, number>();
  let last = 0;
  for (const line of (await ok('replay', merged)).split('\n')) {
    const [, time, hart, name] = /^ *([\d.]+) us .*\[ ?(\d+)\] +(\w+)/.exec(line) ?? [];
    if (name === 'outer' && !firsts.has(Number(hart))) firsts.set(Number(hart), Number(time));
    if (time !== undefined && !line.includes('}')) {
      t.ok(Number(time) >= last || line.includes('('), line);
      last = Math.max(last, Number(time));
    }
  }
  t.equal(firsts.size, 3);
  t.equal(new Set(firsts.values()).size, 1, 'the first outer is at one time in all');
  const error = async (...words: string[]) =>
    (await rsptrace('merge', ...words, '-o', join(folder, 'other.pftrace')).ended).stderr;
  t.match(await error(trace, directory, '--offset', '1ms', '--offset', '2ms'), /--offset is needed 1 times/);
  t.match(await error(trace, directory, '--align', 'fn:nothing'), /TRACE_NO_MATCH/);
  t.match(await error(trace, directory, '--align', 'soon'), /--align takes a time/);
});

t.test('ftrace: every call once, nested, with its duration', async (t) => {
  const path = join(folder, 'reported.ftrace');
  await ok('convert', trace, '-o', path);
  const text = readFileSync(path, 'utf8');
  t.match(text, /^# tracer: function_graph\n/);
  const open: string[] = [];
  const found: { name: string; nanos: number; depth: number }[] = [];
  for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#'))) {
    const [, mark, micros, indent = '', rest = ''] =
      /^ *\d+\.\d{6} \| {3}0\) ([ +!#*@$]) (?:([\d.]+) us +| {13})\| {2}( *)(.*)$/.exec(line) ?? [];
    const [, leaf, begin, end] =
      /^(?:(\w+)\(.*\);(?: \/\* ret=.* \*\/)?|(\w+)\(.*\) \{|\} \/\* (\w+)(?: ret=.*)? \*\/)$/.exec(rest) ?? [];
    t.ok(leaf ?? begin ?? end, line);
    if (end !== undefined) t.equal(open.pop(), end);
    t.equal(indent.length, 2 * open.length, line);
    if (begin !== undefined) open.push(begin);
    const name = leaf ?? end;
    if (name === undefined) continue;
    const nanos = Math.round(Number(micros) * 1e3);
    t.equal(mark, nanos > 1e7 ? '*' : nanos > 1e6 ? '#' : nanos > 1e5 ? '!' : nanos > 1e4 ? '+' : ' ', line);
    found.push({ name, nanos, depth: open.length });
  }
  // Beyond 9,999 us two digits are behind the point, and then fewer.
  const rounded = (nanos: number) => (nanos < 1e7 ? nanos : Math.floor(nanos / 1e3));
  t.same(
    found.map(({ name, nanos, depth }) => `${name} ${rounded(nanos)} ${depth}`),
    calls.map(({ name, duration_ns, depth }) => `${name} ${rounded(duration_ns)} ${depth}`),
  );
});

/** What `thread functions --json` of Firefox Profiler's command line says: times in milliseconds. */
interface Imported {
  readonly totalFunctionCount: number;
  readonly functions: readonly {
    readonly name: string;
    readonly totalSamples: number;
    readonly selfSamples: number;
  }[];
}

t.test("Firefox Profiler's own importer has every function's time", async (t) => {
  const path = join(folder, 'imported.firefox.json');
  await ok('convert', trace, '-o', path);
  t.match(JSON.parse(readFileSync(path, 'utf8')), { meta: { preprocessedProfileVersion: 47, product: 'reported' } });
  const cli = join(
    import.meta.dirname,
    '../../.cache/npm/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js',
  );
  const env = { ...process.env, PROFILER_CLI_SESSION_DIR: join(folder, 'profiler') };
  // It answers from a process that stays. Its own `load` waits half a second for that, which a busy machine needs longer.
  const daemon = spawn(process.execPath, [cli, '--daemon', path, '--session', 'own'], { env, stdio: 'ignore' });
  const ended = once(daemon, 'exit');
  t.teardown(() => daemon.kill() && ended);
  const ask = async (): Promise<string> => {
    for (;;) {
      const answer = spawnSync(process.execPath, [cli, 'thread', 'functions', '--json', '--session', 'own'], {
        env,
        encoding: 'utf8',
      });
      if (answer.status === 0) return answer.stdout;
      const code = await Promise.race([ended, setTimeout(200)]);
      if (code !== undefined) throw new Error(`The profiler ended: ${answer.stderr}`);
    }
  };
  const { functions: found, totalFunctionCount: count } = JSON.parse(await ask()) as Imported;
  const wanted = await rows(trace);
  t.equal(count, wanted.length);
  const nanos = (millis: number): number => Math.round(millis * 1e6);
  t.same(
    new Map(found.map(({ name, totalSamples, selfSamples }) => [name, [nanos(totalSamples), nanos(selfSamples)]])),
    new Map(wanted.map(({ name, total_ns: total, self_ns: self }) => [name, [total, self]])),
  );
});

t.test('DuckDB counts what Parquet holds, and answers the ten questions to a fleet', async (t) => {
  const boots = join(folder, 'boots');
  mkdirSync(boots);
  for (const name of ['a', 'b', 'c']) await ok('convert', trace, '-o', join(boots, `${name}.parquet`));
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const ask = async (sql: string) => (await connection.runAndReadAll(sql)).getRows();
  const found = await ask(
    `select name, count(*)::int, sum(duration_ns)::bigint from '${boots}/a.parquet' where type = 'call' group by all`,
  );
  t.equal(found.length, reportedFunctions.length);
  for (const [name, count, sum] of found) {
    const own = calls.filter((call) => call.name === name);
    t.equal(count, own.length, String(name));
    t.equal(
      Number(sum),
      own.reduce((all, call) => all + call.duration_ns, 0),
      String(name),
    );
  }
  const sql = readFileSync(join(import.meta.dirname, '../../examples/fleet.sql'), 'utf8').replaceAll(
    'boots/',
    `${boots}/`,
  );
  const questions = sql.split('\n\n').slice(1);
  t.equal(questions.length, 10);
  for (const question of questions) await t.resolves(ask(question), question);
  connection.closeSync();
});

t.test('a disk that is full is an error that says what is left', async (t) => {
  const full = async (format: string) =>
    (await rsptrace('convert', trace, '-o', '/dev/full', '--format', format).ended).stderr;
  t.match(await full('pftrace'), /ENOSPC.*\[TRACE_WRITE_FAILED\]\n.*is kept and can be opened/s);
  t.match(await full('parquet'), /ENOSPC.*\[TRACE_WRITE_FAILED\]\n.*written at the end, so nothing can be opened/s);
  // No file may grow past 8 KiB, as a full disk would have it.
  const cut = join(folder, 'cut.pftrace');
  const main = join(import.meta.dirname, '../../dist/cli/main.js');
  const words = ['--fsize=8192', process.execPath, main, 'convert', trace, '-o', cut];
  const { status, stderr } = spawnSync('prlimit', words, { encoding: 'utf8' });
  t.equal(status, 1);
  t.match(stderr, /EFBIG.*\[TRACE_WRITE_FAILED\]\n.*is kept and can be opened/s);
  const kept = (await ok('replay', cut, '--json')).trimEnd().split('\n').slice(1);
  t.ok(kept.length > 20, `${kept.length} calls`);
  const directory = ['--fsize=2000', ...words.slice(1, -1), join(folder, 'cut.uftrace')];
  const said = spawnSync('prlimit', directory, { encoding: 'utf8' }).stderr;
  t.match(said, /EFBIG.*\[TRACE_WRITE_FAILED\]\n.*written at the end, so nothing can be opened/s);
});
