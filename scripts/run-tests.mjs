#!/usr/bin/env node
// Runs test files, several at a time, in processes that each run one file after another (scripts/test-host.mjs).
//   scripts/run-tests.mjs [--whole | --long] [--each] [FILE...]      --each: each test's CPU too
// Without a FILE all of them run, but for the tests that test/costly.json names: these need --whole.
// It says what happens as it happens: a line for each file as it ends, a failure with all that is known of it.
// At the end come the slowest files and one plain line that any CI reads, 'N passed, N failed'.
// What has been printed stays printed if the run is cut short. A test that is skipped is a failure, and so is none.
// A process ends after a file that failed, and when it has grown large. tap's own runner costs each file seconds of CPU.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { Parser } from 'tap-parser';
import { stringify } from 'tap-yaml';
import { bundleTests } from './bundle-tests.mjs';

// Where it is set, commands print more. The tests of that set it themselves.
delete process.env.GITHUB_ACTIONS;

const root = join(import.meta.dirname, '..');
const SLOWEST = 10;
/** Most files wait for a third of their time: for a guest, or for a time limit that they test. */
const JOBS = availableParallelism() + 2;
const words = process.argv.slice(2);
const options = ['--whole', '--long', '--each'];
const odd = words.find((word) => word.startsWith('-') && !options.includes(word));
if (odd !== undefined) {
  console.error(`scripts/run-tests.mjs: there is no option ${odd}, only ${options.join(', ')}`);
  process.exit(2);
}
const long = words.includes('--long');
const each = words.includes('--each');
const isWhole = long || words.includes('--whole') || words.some((word) => !word.startsWith('-'));
/** By file, the tests that only `--whole` runs; true: all of it. */
const costly = isWhole ? {} : JSON.parse(readFileSync(join(root, 'test/costly.json'), 'utf8'));
/** Of a file, in seconds: only what hangs meets it, on a busy machine too. */
const LIMIT = long ? 7200 : 900;
/** What takes longest begins, files and folders, so that none of it is alone at the end. */
const FIRST = [
  'test/cli/top',
  'test/ci-examples',
  'test/rsp/stub-matrix',
  'test/trace/formats/trace-file',
  'test/qemu/',
  'test/cli/',
  'test/target/unwind/live',
  'test/arch/',
];

/** They test or change the state of their process: what is loaded or registered, how much memory is in use. */
const ALONE = new Set([
  'test/arch/third-architecture.test.ts',
  'test/arch/x86_64-decode.test.ts',
  'test/trace/formats/speedscope/speedscope.test.ts',
  'test/trace/formats/trace-file.test.ts',
]);
/** Bytes that a process may have come to when it is given one more file. */
const LARGE = 2 ** 30;
/**
 * Of V8: most of what tests run is run a few times, and there is no idle core. So less is optimised, and garbage is
 * collected less often, by the thread that makes it. A tenth of a host's CPU.
 */
const V8 = ['--interrupt-budget=300000', '--single-threaded-gc', '--min-semi-space-size=16'];
/** Milliseconds in which a process ends when it has nothing left to do. */
const GOES_WITHIN = 60_000;

/** Of each file that has ended: its name, how long it took, its CPU, how many assertions passed and failed. */
const files = [];
const running = new Set();

const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;
const cpuOf = ({ own, children }) => `CPU ${seconds(1000 * (own + children))} (children ${seconds(1000 * children)})`;
const total = (field) => files.reduce((sum, file) => sum + file[field], 0);

function tell(counts, result, names) {
  counts.failed += 1;
  const why = result.skip ? ' (skipped)' : result.todo ? ' (to do)' : '';
  console.log(`\nFAILED  ${[...names, result.name].filter(Boolean).join(' > ')}${why}`);
  if (result.diag) console.log(stringify(result.diag).replace(/^(?=.)/gm, '        '));
}

/** Counts the assertions of a test and of those inside it, and reports each that failed. */
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

/** A process that runs files one after another. */
class Host {
  #child;
  #closed;
  #file;
  #counts;
  #isClean = true;
  #files = 0;
  #memory = 0;
  /** Called when the TAP has the end of the file. */
  #seen = () => {};

  constructor(script) {
    this.#child = spawn(process.execPath, [...V8, '--enable-source-maps', script], {
      cwd: root,
      // A file's own limit is its test's.
      env: { ...process.env, ...quickFork, TAP_TIMEOUT: '0', ...(long && { RSPTRACE_LONG: '1' }) },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    running.add(this.#child);
    this.#closed = once(this.#child, 'close').then(([status, signal]) => {
      running.delete(this.#child);
      return signal ?? `status ${status}`;
    });
    const parser = new Parser();
    this.#read(parser);
    this.#child.stdout.pipe(parser);
  }

  /** What the process says of a file is one test. What it says beside that, of an error that no test caught, fails. */
  #read(parser) {
    let before = 0;
    parser.on('child', (child) => {
      before = this.#counts.failed;
      watch(child, this.#counts, [this.#file]);
    });
    parser.on('assert', (result) => {
      const isFile = result.name === this.#file;
      const good = result.ok && !result.skip && !result.todo;
      if (!good && (!isFile || this.#counts.failed === before)) tell(this.#counts, result, [this.#file]);
      if (isFile) this.#seen();
    });
  }

  /** Whether it can run one more file. */
  takes(file) {
    if (this.#files === 0) return true;
    return this.#isClean && this.#memory < LARGE && !ALONE.has(file) && !ALONE.has(this.#file);
  }

  /** Runs one file to its end. No test in it is a failure, and so is the process's end meanwhile. */
  async run(file, script) {
    const begun = performance.now();
    const counts = { passed: 0, failed: 0 };
    this.#files++;
    this.#file = file;
    this.#counts = counts;
    // tap itself ends a test that takes too long, and says which: this is for one that blocks its process.
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), (LIMIT + 30) * 1000);
    const seen = new Promise((resolve) => {
      this.#seen = resolve;
    });
    const said = this.#saysEnd(file);
    // Whether it still lives shows in `#closed`.
    this.#child.send({ file, script, limitMs: LIMIT * 1000, leftOut: costly[file] }, () => {});
    const gone = this.#closed.then((how) => ({ how }));
    const {
      how,
      used = { own: 0, children: 0 },
      tests = [],
      memory = 0,
    } = await Promise.race([Promise.all([said, seen]).then(([end]) => end), gone]);
    clearTimeout(killer);
    const bad = how !== undefined || counts.passed === 0;
    if (bad && counts.failed === 0)
      tell(counts, { name: `ended${how ? ` with ${how}` : ''}, ${counts.passed} passed` }, [file]);
    this.#isClean &&= counts.failed === 0;
    this.#memory = memory;
    const time = performance.now() - begun;
    const cpu = used.own + used.children;
    files.push({ file, time, cpu, ...counts });
    console.log(`${counts.failed > 0 ? 'FAIL' : 'pass'}  ${file}  ${seconds(time)}, ${cpuOf(used)}`);
    if (each) for (const { name, used } of tests) console.log(`        ${cpuOf(used)}  ${name}`);
  }

  #saysEnd(file) {
    return new Promise((resolve) => {
      const listen = (said) => {
        if (said.file !== file) return;
        this.#child.off('message', listen);
        resolve(said);
      };
      this.#child.on('message', listen);
    });
  }

  /** Lets it end by itself: what would keep it is something that a test has left open. */
  async end() {
    if (this.#child.connected) this.#child.send({ end: true }, () => {});
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), this.#isClean ? GOES_WITHIN : 0);
    const how = await this.#closed;
    clearTimeout(killer);
    if (!this.#isClean || how === 'status 0') return;
    const counts = { passed: 0, failed: 0 };
    tell(counts, { name: `its process, which ran ${this.#files} files, ended with ${how}` }, [this.#file]);
    files.push({ file: this.#file, time: 0, cpu: 0, ...counts });
  }
}

/** Runs files until none is left. */
async function runAll(waiting, host) {
  let at;
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    if (at && !at.takes(next[0])) {
      await at.end();
      at = undefined;
    }
    at ??= new Host(host);
    await at.run(...next);
  }
  await at?.end();
}

/** Paths from the root, those first that are to begin first. */
function chosen() {
  const named = words.filter((word) => !word.startsWith('-')).map((file) => relative(root, resolve(file)));
  const missing = named.find((file) => !existsSync(join(root, file)));
  if (missing !== undefined) {
    console.error(`scripts/run-tests.mjs: there is no ${missing}`);
    process.exit(2);
  }
  if (named.length > 0) return named;
  const rank = (file) => (FIRST.findIndex((folder) => file.startsWith(folder)) + FIRST.length + 1) % (FIRST.length + 1);
  return readdirSync(join(root, 'test'), { recursive: true })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join('test', file))
    .filter((file) => costly[file] !== true)
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** What makes a host start programs faster: written for one architecture. */
function buildQuickFork(library) {
  if (process.arch !== 'x64') return {};
  execFileSync('gcc', ['-O2', '-shared', '-fPIC', '-o', library, join(root, 'scripts/quick-fork.c')]);
  return { LD_PRELOAD: library };
}

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    for (const child of running) child.kill(signal);
    process.exit(1);
  });

const all = chosen();
const [host, ...scripts] = await bundleTests(['scripts/test-host.mjs', ...all]);
// What is kept of programs is not the user's, nor what other runs keep: each file that is written has all of them looked at.
process.env.RSPTRACE_CACHE ??= join(dirname(host), '../columns');
const quickFork = buildQuickFork(join(dirname(host), '../quick-fork.so'));
const waiting = all.map((file, index) => [file, scripts[index]]);
await Promise.all(Array.from({ length: JOBS }, () => runAll(waiting, host)));
console.log(
  `\nslowest of ${files.length} files, which took ${seconds(total('time'))} in all, ${JOBS} at a time, CPU ${total('cpu').toFixed(0)} s:`,
);
for (const { file, time, cpu } of files.sort((a, b) => b.time - a.time).slice(0, SLOWEST))
  console.log(`  ${seconds(time).padStart(8)}  CPU ${seconds(1000 * cpu).padStart(7)}  ${file}`);
const lists = Object.values(costly);
const [apart, single] = [lists.filter((one) => one === true).length, lists.filter(Array.isArray).flat().length];
if (lists.length > 0)
  console.log(
    `\nleft out, because they take long (test/costly.json): ${apart} files and ${single} tests; --whole runs them`,
  );
console.log(`\n${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('passed') > 0 && total('failed') === 0 ? 0 : 1;
