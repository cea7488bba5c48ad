#!/usr/bin/env node
// Changes one operator, number or branch at a time in modules that do no I/O, and asks their tests to notice.
//   scripts/mutate.mjs [--sample N] [NAME | FILE[:LINE-LINE]]...      without a name every module of scripts/mutation-modules.mjs
// --sample N: about N mutants a module, those of lines spread evenly over its files. They are the same each time.
// A module fails if its tests kill less than BREAK percent of the mutants. What survives is listed with its change.
// StrykerJS's tap runner runs the tests. They are bundled once for all mutants, because loading TypeScript for each
// would take seconds of CPU. A mutant that no test reaches counts as survived, one that never ends as killed.
// RSPTRACE_MUTATE_JOBS=N runs N at a time instead of two.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { modules } from './mutation-modules.mjs';

const root = join(import.meta.dirname, '..');
/** Two hundred packages, which nothing else needs. */
const tool = join(root, '.cache/npm-stryker/node_modules/@stryker-mutator');
execFileSync('bash', ['-c', '. scripts/lib.sh && npm_tool @stryker-mutator/tap-runner 9.6.1 npm-stryker'], {
  cwd: root,
  stdio: 'inherit',
});
const { Stryker } = await import(join(tool, 'core/dist/src/index.js'));
const BREAK = 85;
/** Where the bundled tests of a module lie, in the copy of the repository that StrykerJS works in. */
const BUNDLES = '.mutated';
const KILLED = new Set(['Killed', 'Timeout']);
/** What cannot be run says nothing about tests: it would not compile, or was left out by a comment. */
const NO_VERDICT = new Set(['CompileError', 'RuntimeError', 'Ignored']);

const options = ({ name, mutate, tests }) => ({
  mutate,
  testRunner: 'tap',
  tap: {
    testFiles: tests.map((file) => `${BUNDLES}/${file.replace(/\.ts$/, '.js')}`),
    forceBail: true,
  },
  buildCommand: `node scripts/bundle-tests.mjs ${BUNDLES} ${tests.join(' ')}`,
  coverageAnalysis: 'perTest',
  // A message's words are no behaviour: what tests hold of an error is its code.
  mutator: { excludedMutations: ['StringLiteral'] },
  concurrency: Number(process.env.RSPTRACE_MUTATE_JOBS ?? 2),
  ignorePatterns: ['/.cache', '/.ci', '/dist', '/docs', '/examples', '*.pftrace'],
  disableTypeChecks: false,
  tempDirName: '.cache/stryker',
  cleanTempDir: 'always',
  reporters: ['json', process.stdout.isTTY ? 'progress' : 'progress-append-only'],
  jsonReporter: { fileName: `.cache/mutants/${name}.json` },
  // Loops are found by counting, so only what hangs meets this. It is far beyond what any of these tests takes.
  timeoutMS: 20_000,
  logLevel: 'error',
  checkers: [],
  plugins: [join(tool, 'tap-runner/dist/src/index.js')],
  allowConsoleColors: false,
});

/** Lines that are changed together: a mutant that begins in one of them may end in another. */
const BLOCK = 40;
/** As counted in these modules. */
const MUTANTS_A_LINE = 1.6;

/** A module with so many mutants, about: blocks of lines instead of whole files. */
function sampled(module, wanted) {
  const blocks = module.mutate.flatMap((file) => {
    const lines = readFileSync(join(root, file), 'utf8').split('\n').length;
    return Array.from({ length: Math.ceil(lines / BLOCK) }, (_, i) => `${file}:${i * BLOCK + 1}-${(i + 1) * BLOCK}`);
  });
  const step = Math.max(1, (blocks.length * BLOCK * MUTANTS_A_LINE) / wanted);
  return { ...module, mutate: blocks.filter((_, i) => Math.floor(i / step) !== Math.floor((i - 1) / step)) };
}

/** `asked` is a module's name, or a file of one with the lines that are asked for. */
function chosen(asked) {
  const named = modules.find(({ name }) => name === asked);
  if (named !== undefined) return named;
  const [file] = asked.split(':');
  const holds = modules.find(({ mutate }) => mutate.includes(file));
  if (holds === undefined) {
    console.error(
      `scripts/mutate.mjs: no module has ${asked}; there are ${modules.map(({ name }) => name).join(', ')}`,
    );
    process.exit(2);
  }
  return { ...holds, mutate: [asked] };
}

function tellSurvivor({ fileName, location: { start }, mutatorName, replacement, status }) {
  const how = status === 'NoCoverage' ? 'not reached' : 'survived';
  const change = replacement?.replace(/\s+/g, ' ').slice(0, 100);
  console.log(`  ${how}  ${relative(root, fileName)}:${start.line}:${start.column}  ${mutatorName}: ${change}`);
}

async function score(module) {
  const begun = performance.now();
  const results = await new Stryker(options(module)).runMutationTest();
  process.exitCode = 0;
  const counted = results.filter(({ status }) => !NO_VERDICT.has(status));
  const alive = counted.filter(({ status }) => !KILLED.has(status));
  for (const mutant of alive) tellSurvivor(mutant);
  if (counted.length === 0) {
    console.log(`FAIL  ${module.name}: no mutant lies within the lines of the sample: take a larger one`);
    return { killed: 0, counted: 0, good: false };
  }
  const killed = counted.length - alive.length;
  const hung = counted.filter(({ status }) => status === 'Timeout').length;
  const percent = (100 * killed) / counted.length;
  const took = ((performance.now() - begun) / 1000).toFixed(0);
  const verdict = percent >= BREAK ? 'pass' : 'FAIL';
  const how = `${killed} of ${counted.length} mutants killed (${hung} of them never ended)`;
  console.log(`${verdict}  ${module.name}: ${how}, ${percent.toFixed(1)} %, ${took} s`);
  return { killed, counted: counted.length, good: percent >= BREAK };
}

mkdirSync(join(root, '.cache'), { recursive: true });
process.chdir(root);
const { values, positionals: asked } = parseArgs({ options: { sample: { type: 'string' } }, allowPositionals: true });
const wanted = values.sample === undefined ? Number.POSITIVE_INFINITY : Number(values.sample);
if (!(wanted >= 1)) {
  console.error(`scripts/mutate.mjs: --sample ${values.sample} is no number of mutants`);
  process.exit(2);
}
const scores = [];
for (const module of asked.length > 0 ? asked.map(chosen) : modules)
  scores.push(await score(wanted === Number.POSITIVE_INFINITY ? module : sampled(module, wanted)));
const sum = (field) => scores.reduce((total, one) => total + one[field], 0);
console.log(
  `\n${sum('killed')} of ${sum('counted')} mutants killed, ${((100 * sum('killed')) / sum('counted')).toFixed(1)} %`,
);
process.exitCode = scores.every(({ good }) => good) ? 0 : 1;
