// The engine without stops at a real gdbserver: left in the middle, or killed, the program is as it was.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { changedCode, compileReleased, gdbserver } from '../support/native.js';
import { functionProbes, type Output, trace, withoutStops } from '../support/native-trace.js';

t.test(
  'left in the middle: every byte of code is back, the memory is given back, and the program ends as it would',
  async (t) => {
    const program = compileReleased(t, 'calls.c', ['-pie']);
    const go = join(scratchFolder(t), 'go');
    const target = start(program, ['wait', go]);
    t.teardown(() => void target.process.kill('SIGKILL'));
    await target.shows('waiting');
    writeFileSync(go, '');
    const untraced = (await target.ended).stdout;

    const again = join(scratchFolder(t), 'go');
    const server = await gdbserver(t, program, 'wait', again);
    const file = join(scratchFolder(t), 'out.txt');
    const words = ['-r', server.address, '--json', '--engine', 'target', '-o', file, ...functionProbes, program];
    const tracer = rsptrace(...words);
    await server.shows('waiting');
    tracer.signal('SIGINT');
    const ran = await tracer.ended;
    const output = JSON.parse(ran.stdout) as Output;
    t.equal(output.end, 'interrupted');
    withoutStops(t, output);
    t.ok(output.records > 1000);
    const pid = Number(/process (\d+)/.exec(output.scratch ?? '')?.[1]);
    t.equal(changedCode(pid, program), 0);
    t.notMatch(readFileSync(`/proc/${pid}/maps`, 'utf8'), /memfd:rsptrace/, 'no thread is inside: nothing is mapped');
    writeFileSync(again, '');
    t.equal((await server.ended).stdout, untraced);
  },
);

t.test('left while four threads run: every byte of code is back, and the sums are right', async (t) => {
  const program = compileReleased(t, 'calls.c');
  const untraced = (await start(program, ['threads', '8000']).ended).stdout;
  for (const events of ['1000', '50000']) {
    const { output, stdout } = await trace(t, [program, 'threads', '8000'], '-n', events, ...functionProbes);
    t.match(output.end, /max-events|guest-ended/);
    t.equal(stdout, untraced);
  }
});

t.test('killed in the middle: the program goes on without a reader, and ends as it would', async (t) => {
  const program = compileReleased(t, 'calls.c');
  const untraced = (await start(program, ['threads', '8000']).ended).stdout;
  const server = await gdbserver(t, program, 'threads', '8000');
  const file = join(scratchFolder(t), 'out.txt');
  const tracer = rsptraceProcess('-r', server.address, '--engine', 'target', '-o', file, ...functionProbes, program);
  // Killed while it stands the program would end with its gdbserver: events that are drained say that it runs.
  while (!(existsSync(file) && readFileSync(file, 'utf8').includes('outer('))) await sleep(10);
  tracer.process.kill('SIGKILL');
  await tracer.ended;
  t.equal((await server.ended).stdout, untraced);
});
