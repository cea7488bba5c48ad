#!/usr/bin/env node
// Runs test files, each in a node of its own.
//   scripts/run-tests.mjs [--long] [FILE...]      without FILE all of them
// It says what happens as it happens: a line for each file as it ends, a failure with all that is known of it.
// At the end come the slowest files and one plain line that any CI reads, 'N passed, N failed'.
// What has been printed stays printed if the run is cut short. A test that is skipped is a failure, and so is none.
// tap's own runner costs each file a second of CPU for hooks that nothing here uses.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { Parser } from 'tap-parser';
import { stringify } from 'tap-yaml';
import { bundleTests } from './bundle-tests.mjs';

const root = join(import.meta.dirname, '..');
const SLOWEST = 10;
/** Linux counts in hundredths of a second for programs, on every machine. */
const USER_HZ = 100;
/** Most files wait for a third of their time: for a guest, or for a time limit that they test. */
const JOBS = availableParallelism() + 2;
const words = process.argv.slice(2);
const odd = words.find((word) => word.startsWith('-') && word !== '--long');
if (odd !== undefined) {
  console.error(`scripts/run-tests.mjs: there is no option ${odd}, only --long`);
  process.exit(2);
}
const long = words.includes('--long');
/** Of a file, in seconds: only what hangs meets it, on a busy machine too. */
const LIMIT = long ? 7200 : 900;
/** What takes longest begins, files and folders, so that none of it is alone at the end. */
const FIRST = [
  'test/rsp/stub-matrix',
  'test/trace/trace-file',
  'test/qemu/',
  'test/cli/',
  'test/unwind/live',
  'test/arch/',
];

/** Of each file that has ended: its name, how long it took, its CPU, how many assertions passed and failed. */
const files = [];
const running = new Set();

const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;
/** CPU seconds of all children that have ended, with theirs: proc(5), cutime and cstime in /proc/PID/stat. */
function cpuOfChildren() {
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / USER_HZ;
}

let cpuSoFar = cpuOfChildren();
const total = (field) => files.reduce((sum, file) => sum + file[field], 0);

function tell(counts, result, names) {
  counts.failed += 1;
  const why = result.skip ? ' (skipped)' : result.todo ? ' (to do)' : '';
  console.log(`\nFAILED  ${[...names, result.name].filter(Boolean).join(' > ')}${why}`);
  if (result.diag) console.log(stringify(result.diag).replace(/^(?=.)/gm, '        '));
}

/** Counts the assertions of a test and of those inside it, and tells of each that failed. */
function watch(parser, counts, names) {
  // How many had failed when the test inside began whose result comes next.
  let before;
  parser.on('child', (child) => {
    before = counts.failed;
    watch(child, counts, [...names, child.name]);
  });
  parser.on('assert', (result) => {
    const good = result.ok && !result.skip && !result.todo;
    const closes = before !== undefined;
    if (good && !closes) counts.passed += 1;
    // A test that holds failed ones has told of them; one that failed by itself (a time limit, a signal) has not.
    if (!good && (!closes || before === counts.failed)) tell(counts, result, names);
    before = undefined;
  });
}

/** Runs one file to its end. No test in it is a failure, and so is a bad end behind good tests. */
async function run(file, script) {
  const begun = performance.now();
  const counts = { passed: 0, failed: 0 };
  const child = spawn(process.execPath, ['--enable-source-maps', script], {
    cwd: root,
    env: { ...process.env, TAP_TIMEOUT: `${LIMIT}`, ...(long && { RSPTRACE_LONG: '1' }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  let cpu = 0;
  child.once('exit', () => {
    const now = cpuOfChildren();
    cpu = now - cpuSoFar;
    cpuSoFar = now;
  });
  // tap itself ends a test that takes too long, and says which: this is for one that blocks its process.
  const killer = setTimeout(() => child.kill('SIGKILL'), (LIMIT + 30) * 1000);
  const closed = new Promise((done) => child.once('close', (status, signal) => done(signal ?? `status ${status}`)));
  const parsed = new Promise((done) => {
    const parser = new Parser(done);
    watch(parser, counts, [file]);
    child.stdout.pipe(parser);
  });
  const [how, { ok, failures }] = await Promise.all([closed, parsed]);
  clearTimeout(killer);
  running.delete(child);
  for (const { tapError } of failures) if (tapError) tell(counts, { name: tapError }, [file]);
  const bad = !ok || how !== 'status 0' || counts.passed === 0;
  if (bad && counts.failed === 0) tell(counts, { name: `ended with ${how}, ${counts.passed} passed` }, [file]);
  const time = performance.now() - begun;
  files.push({ file, time, cpu, ...counts });
  console.log(`${counts.failed > 0 ? 'FAIL' : 'pass'}  ${file}  ${seconds(time)}, CPU ${seconds(1000 * cpu)}`);
}

/** Paths from the root, those first that are to begin first. */
function chosen() {
  const named = words.filter((word) => !word.startsWith('-')).map((file) => relative(root, resolve(file)));
  if (named.length > 0) return named;
  const rank = (file) => (FIRST.findIndex((folder) => file.startsWith(folder)) + FIRST.length + 1) % (FIRST.length + 1);
  return readdirSync(join(root, 'test'), { recursive: true })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join('test', file))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    for (const child of running) child.kill(signal);
    process.exit(1);
  });

const all = chosen();
const scripts = await bundleTests(all);
const waiting = all.map((file, index) => [file, scripts[index]]);
await Promise.all(
  Array.from({ length: JOBS }, async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await run(...next);
  }),
);
console.log(
  `\nslowest of ${files.length} files, which took ${seconds(total('time'))} in all, ${JOBS} at a time, CPU ${total('cpu').toFixed(0)} s:`,
);
for (const { file, time, cpu } of files.sort((a, b) => b.time - a.time).slice(0, SLOWEST))
  console.log(`  ${seconds(time).padStart(8)}  CPU ${seconds(1000 * cpu).padStart(7)}  ${file}`);
console.log(`\n${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('passed') > 0 && total('failed') === 0 ? 0 : 1;
