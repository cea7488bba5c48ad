// Runs test files that scripts/run-tests.mjs names, one after another: what is loaded and compiled for one is there for
// the next, which is most of the time of a short one. Each file is one test in the TAP that this process writes.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { hold, t as root } from 'tap';

// It is for this process alone: scripts/quick-fork.c.
delete process.env.LD_PRELOAD;

/** Linux counts in hundredths of a second for programs, on every machine. */
const USER_HZ = 100;

/** CPU seconds of this process, and of its children that have ended: proc(5), /proc/PID/stat. */
function cpu() {
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1).split(' ').slice(11, 15);
  const [user, system, usersOfChildren, systemsOfChildren] = fields.map((field) => Number(field) / USER_HZ);
  return { own: user + system, children: usersOfChildren + systemsOfChildren };
}

function since(before) {
  const { own, children } = cpu();
  return { own: own - before.own, children: children - before.children };
}

async function run({ file, script, limitMs, leftOut }) {
  const names = new Set(leftOut);
  const before = cpu();
  const tests = [];
  await root.test(file, { timeout: limitMs }, async (test) => {
    hold(test, names);
    let begun = before;
    // What a file does before its first test is the first one's. So is what tests do that follow it and never wait:
    // their ends are seen together.
    test.on('subtestEnd', ({ name }) => {
      tests.push({ name, used: since(begun) });
      begun = cpu();
    });
    await import(pathToFileURL(script).href);
    for (const name of names) test.fail(`test/costly.json names '${name}', which is no test of this file`);
  });
  // Whoever reads TAP reports a test when the next line comes, one that is no comment.
  root.pragma({ strict: false });
  process.send({ file, used: since(before), tests, memory: process.memoryUsage.rss() });
}

// tap takes the channel to its parent for nothing to wait for.
const waits = setInterval(() => {}, 2 ** 30);
process.on('message', (what) => {
  if ('file' in what) {
    void run(what);
    return;
  }
  clearInterval(waits);
  process.disconnect();
});
