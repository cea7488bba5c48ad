// What docs/tutorial.md, docs/recipes.md and README.md print of the program that the tutorial writes is what the
// commands print: all but numbers, which differ from run to run.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { pollsProgram } from '../support/native.js';
import { holds } from '../support/typed-again.js';

const root = join(import.meta.dirname, '../..');
const pages = ['README.md', 'docs/tutorial.md', 'docs/recipes.md', 'docs/gallery.md'];
const folder = scratchFolder(t);
const program = pollsProgram(t, 'orders');
const saved = join(folder, 'orders.pftrace');

t.test('the program is the one of the tutorial', async (t) => {
  const [, source] = /```rust\n(.*?)```/s.exec(readFileSync(join(root, 'docs/tutorial.md'), 'utf8')) ?? [];
  t.equal(source, readFileSync(join(root, 'test/native/orders.rs'), 'utf8'));
});

t.test('tasks of the program as it runs', async (t) => {
  const child = spawn(program, ['100000'], { stdio: 'ignore' });
  t.teardown(() => void child.kill('SIGKILL'));
  let output = '';
  // Until all loads are over.
  while (!child.killed && child.exitCode === null && !/held by task 1 [\s\S]*and 2 more like it/.test(output)) {
    const ran = await rsptrace('tasks', '--pid', String(child.pid)).ended;
    t.equal(ran.status, 0, ran.stderr);
    output = ran.stdout;
  }
  holds(t, pages, 'rsptrace tasks --pid', output);
});

t.test('a recording, and what the trace says', async (t) => {
  // So slow that the others come while the first has the lock.
  const ran = await rsptrace('run', '-o', saved, program, '--', '400').ended;
  t.equal(ran.status, 0, ran.stderr);
  // What the program prints goes past rsptrace.
  const all = `${ran.stderr}${ran.stdout}booked 1000\n`.replaceAll(saved, 'orders.pftrace');
  holds(t, pages, 'rsptrace run -o orders.pftrace', all);
  for (const by of ['await', 'latency']) {
    const { stdout } = await rsptrace('report', saved, '--by', by).ended;
    holds(t, pages, `rsptrace report orders.pftrace --by ${by}`, stdout);
  }
  // Whoever wakes does that by a method of `Waker`, which has code of its own here.
  const { stdout: waits } = await rsptrace('profile', '--off-cpu', '--full', saved).ended;
  t.match(waits, /orders::handle in tokio::\S+ at tokio-1\.54\.1\/src\//);
  t.notMatch(waits, /core::task::wake/);
  const tree = await rsptrace('replay', saved).ended;
  holds(t, pages, 'rsptrace run -o orders.txt', tree.stdout);
});

t.test('who writes the ledger', async (t) => {
  const path = join(folder, 'writes.txt');
  const ran = await rsptrace('run', '-p', 'watch:orders::LEDGER.c', '-o', path, program, '--', '400').ended;
  t.equal(ran.status, 0, ran.stderr);
  holds(t, pages, 'rsptrace run -p watch:orders::LEDGER.c', readFileSync(path, 'utf8'));
});
