// What ends a recording in an odd moment leaves nothing in the process: its code is compared with its file.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { connect, type TraceEvent, type TraceSink } from '../../src/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { prepare, record } from '../../src/record/index.js';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { changedCode, compileC, gdbserver } from '../support/native.js';

/** `brief` is too short for a jump, so it stops; `long` has a trampoline, and is never called. */
const source = `
#include <unistd.h>
volatile int a, b, c, d, e, f; volatile long n;
__attribute__((noinline)) int longer(int x) { a += x; b += a; return a * 3 + b; }
__attribute__((noinline, naked)) void brief(void) { __asm__("nop; ret"); }
int main(void) { for (;;) { if (n < 0) n += longer(1); brief(); usleep(1000); } }
`;

const program = compileC(t, source);

function running(t: Test): number {
  const { process } = start(program, []);
  t.teardown(() => void process.kill('SIGKILL'));
  return process.pid ?? 0;
}

t.test('a watchpoint that is refused when trampolines are there already: they are taken out', async (t) => {
  const pid = running(t);
  const trace = join(scratchFolder(t), 'out.csv');
  const watches = [...'abcdef'].flatMap((name) => ['-p', `watch:${name}`]);
  const { status, stderr } = await rsptrace('attach', `${pid}`, '-p', 'fn:longer', ...watches, '-o', trace).ended;
  t.equal(status, 1);
  t.match(stderr, /1 probe, without stops\n.*\[WATCH_REFUSED\]/s);
  t.equal(changedCode(pid, program), 0);
  t.notOk(existsSync(`${trace}.records`));
});

t.test('a sink that fails at a stop, while the process runs on already', async (t) => {
  const pid = running(t);
  const { address } = await gdbserver(t, '--attach', `${pid}`);
  const prepared = await prepare(
    program,
    ['fn:longer', 'fn:brief'].map((text) => parseProbe(text)),
  );
  const nothing = (): void => {};
  let calls = 0;
  const event = ({ type }: TraceEvent): void => {
    if (type === 'call-begin' && ++calls === 4) throw new Error('the disk is full');
  };
  const sink: TraceSink = { begin: nothing, hart: nothing, event, flush: nothing, end: nothing };
  const session = await connect(address);
  const recording = await record({ session, program: prepared, sink, engine: 'mixed', durationMs: 60_000 });
  t.match(recording, { end: 'failed', error: { message: 'the disk is full' } });
  t.strictSame(
    recording.engines.map(({ name, engine }) => [name, engine]),
    [
      ['longer', 'target'],
      ['brief', 'stop'],
    ],
  );
  t.equal(changedCode(pid, program), 0);
});
