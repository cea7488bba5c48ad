// What docs/tutorial.md, docs/recipes.md and README.md print of the program that the tutorial writes is what the
// commands print: all but numbers, which differ from run to run.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { pollsProgram } from '../support/native.js';

const root = join(import.meta.dirname, '../..');
const pages = ['README.md', 'docs/tutorial.md', 'docs/recipes.md'];
const folder = scratchFolder(t);
const program = pollsProgram(t, 'orders');
const saved = join(folder, 'orders.pftrace');

/** What stands between fences of a page. */
const blocksOf = (page: string): string[] =>
  readFileSync(join(root, page), 'utf8')
    .split(/^```\w*\n/m)
    .filter((_, i) => i % 2 === 1);

/** Lines of what the pages say that a command prints, up to the next command. */
function printed(command: string): string[] {
  return pages.flatMap(blocksOf).flatMap((block) => {
    const lines = block.split('\n');
    const at = lines.findIndex((line) => line.startsWith(`$ ${command}`));
    const rest = at < 0 ? [] : lines.slice(at + 1);
    const next = rest.findIndex((line) => line.startsWith('$ '));
    return rest.slice(0, next < 0 ? undefined : next).filter((line) => !/^\s*(\.\.\.)?$/.test(line));
  });
}

/** Without numbers, but for those of lines, and without bars. */
const plain = (line: string): string =>
  line
    .replaceAll(/0x[0-9a-f]+/g, '#')
    .replaceAll(/(?<![:\w#])\d+(\.\d+)?( ?(ns|us|ms|s)\b)?/g, '#')
    .replaceAll(/#\.\.#/g, '#')
    .replaceAll(/[▁-█]/g, '')
    .replaceAll(/ +/g, ' ')
    .replace(/, \.\.\.$/, '')
    .trim();

function holds(t: Pick<Test, 'ok'>, command: string, output: string): void {
  const lines = printed(command);
  const real = output.split('\n').map(plain);
  t.ok(lines.length > 0, command);
  for (const line of lines) {
    const isThere = real.some((each) => each === plain(line) || each.startsWith(`${plain(line)} `));
    t.ok(isThere, line, { plain: plain(line), real });
  }
}

t.test('the program is the one of the tutorial', async (t) => {
  const [, source] = /```rust\n(.*?)```/s.exec(readFileSync(join(root, 'docs/tutorial.md'), 'utf8')) ?? [];
  t.equal(source, readFileSync(join(root, 'test/native/orders.rs'), 'utf8'));
});

t.test('tasks of the program as it runs', async (t) => {
  const child = spawn(program, ['100000'], { stdio: 'ignore' });
  t.teardown(() => void child.kill('SIGKILL'));
  let output = '';
  // Until all loads are over.
  while ((output.match(/held by task/g) ?? []).length < 3) {
    const ran = await rsptrace('tasks', '--pid', String(child.pid)).ended;
    t.equal(ran.status, 0, ran.stderr);
    output = ran.stdout;
  }
  holds(t, 'rsptrace tasks --pid', output);
});

t.test('a recording, and what the trace says', async (t) => {
  // So slow that the others come while the first has the lock.
  const ran = await rsptrace('run', '-o', saved, program, '--', '400').ended;
  t.equal(ran.status, 0, ran.stderr);
  // What the program prints goes past rsptrace.
  const all = `${ran.stderr}${ran.stdout}booked 1000\n`.replaceAll(saved, 'orders.pftrace');
  holds(t, 'rsptrace run -o orders.pftrace', all);
  for (const by of ['await', 'latency']) {
    const { stdout } = await rsptrace('report', saved, '--by', by).ended;
    holds(t, `rsptrace report orders.pftrace --by ${by}`, stdout);
  }
  // Whoever wakes does that by a method of `Waker`, which has code of its own here.
  const { stdout: waits } = await rsptrace('profile', '--off-cpu', '--full', saved).ended;
  t.match(waits, /orders::handle in tokio::\S+ at tokio-1\.54\.1\/src\//);
  t.notMatch(waits, /core::task::wake/);
  const tree = await rsptrace('replay', saved).ended;
  holds(t, 'rsptrace run -o orders.txt', tree.stdout);
});

t.test('who writes the ledger', async (t) => {
  const path = join(folder, 'writes.txt');
  const ran = await rsptrace('run', '-p', 'watch:orders::LEDGER.c', '-o', path, program, '--', '400').ended;
  t.equal(ran.status, 0, ran.stderr);
  holds(t, 'rsptrace run -p watch:orders::LEDGER.c', readFileSync(path, 'utf8'));
});
