#!/usr/bin/env node
// Reads the TAP of a test run from standard input and says what happened as it happens: a line for each file as it ends, a failure with
// all that is known of it, and at the end the slowest files and one plain line that any CI reads, 'N passed, N failed'.
// What has been printed stays printed if the run is cut short, and no test at all is a failure.
import { Parser } from 'tap-parser';
import { stringify } from 'tap-yaml';

const SLOWEST = 8;
const files = [];
let passed = 0;
let failed = 0;

const seconds = (milliseconds) => `${((milliseconds ?? 0) / 1000).toFixed(1)} s`;

/** Counts the assertions of a test and of those inside it, and tells of each that failed. */
function watch(parser, names) {
  // How many had failed when the test inside began whose result comes next.
  let before;
  parser.on('child', (child) => {
    before = failed;
    watch(child, [...names, child.name]);
  });
  parser.on('assert', (result) => {
    const good = result.ok && !result.skip && !result.todo;
    const closes = before !== undefined;
    if (good && !closes) passed += 1;
    // A test that holds failed ones has told of them; one that failed by itself (a time limit, a signal) has not.
    if (!good && (!closes || before === failed)) tell(result, names);
    before = undefined;
  });
}

function tell(result, names) {
  failed += 1;
  const why = result.skip ? ' (skipped)' : result.todo ? ' (to do)' : '';
  console.log(`\nFAILED  ${[...names, result.name].filter(Boolean).join(' > ')}${why}`);
  if (result.diag) console.log(stringify(result.diag).replace(/^(?=.)/gm, '        '));
}

const root = new Parser((results) => {
  for (const failure of results.failures) if (failure.tapError) tell({ name: failure.tapError }, []);
  console.log('\nslowest files:');
  for (const { name, time } of files.sort((a, b) => (b.time ?? 0) - (a.time ?? 0)).slice(0, SLOWEST))
    console.log(`  ${seconds(time).padStart(8)}  ${name}`);
  console.log(`\n${passed} passed, ${failed} failed`);
  process.exitCode = results.ok && passed > 0 && failed === 0 ? 0 : 1;
});
watch(root, []);
root.on('assert', ({ ok, name: said, diag, time }) => {
  // Of a file that ran out of time tap says 'timeout!' where its name should be.
  const name = diag?.expired ?? said;
  files.push({ name, time });
  console.log(`${ok ? 'pass' : 'FAIL'}  ${name}  ${seconds(time)}`);
});
process.stdin.pipe(root);
