// An rsptrace that is killed at any moment at a real gdbserver: `rsptrace detach` puts the program in order, which is position-independent.
// `scripts/test --long` kills it 50 times.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, traceGrows } from '../support/command.js';
import { random } from '../support/fault-proxy.js';
import { long } from '../support/long.js';
import { changedCode, compileReleased, gdbserver, lastingGdbserver } from '../support/native.js';
import { functionProbes } from '../support/native-trace.js';

const kills = long ? 50 : 1;
const seed = 20261122;
/** The latest moment, in milliseconds from when it is connected. */
const latest = long ? 1200 : 400;

/** A field of proc(5), /proc/PID/status; undefined where the process is gone. */
function statusOf(pid: number, field: string): string | undefined {
  try {
    return new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}

async function killOnce(t: Test, program: string, wait: number | undefined): Promise<number> {
  const go = join(scratchFolder(t), 'go');
  const trace = join(scratchFolder(t), 'out.txt');
  const server = await lastingGdbserver(t, program, 'loop', go);
  const { pid } = server;
  t.teardown(() => {
    if (statusOf(pid, 'State') !== undefined) process.kill(pid, 'SIGKILL');
  });
  const tracer = rsptraceProcess('-r', server.address, '--log', 'info', '-o', trace, ...functionProbes, program);
  await tracer.shows('position-independent');
  if (wait === undefined) await traceGrows(tracer, trace, 10_000);
  else await sleep(wait);
  tracer.process.kill('SIGKILL');
  await tracer.ended;
  // A gdbserver whose client goes while the program runs listens again only when that stops.
  const waits = await Promise.race([
    server.shows('client connection closed').then(() => true),
    server.shows('will reopen the connection').then(() => false),
  ]);
  // What the killed rsptrace had asked for last may stop it yet. A second SIGINT would stay pending, and end it later.
  const stops = server.shows('will reopen the connection');
  const stopped = await Promise.race([stops.then(() => true), sleep(1000).then(() => false)]);
  if (waits && !stopped) process.kill(pid, 'SIGINT');
  await stops;

  const { restored, different } = await rsptrace('detach', '--json', '-r', server.address, program).json<{
    restored: object[];
    different: object[];
  }>();
  t.same(different, []);
  t.equal(changedCode(pid, program), 0, 'its text is the file');
  t.notMatch(statusOf(pid, 'State'), /^[tT]/, 'it runs');
  // While it makes a thread, the C library blocks all of them.
  while (/^f{8}/.test(statusOf(pid, 'SigBlk') ?? '')) await sleep(10);
  t.equal(statusOf(pid, 'SigBlk'), '0000000000000000', 'it gets its signals');

  const again = await gdbserver(t, '--attach', String(pid));
  const record = ['--json', '-n', '2000', '--force', '-o', trace, ...functionProbes, program];
  t.match(await rsptrace('-r', again.address, ...record).json(), { end: 'max-events' });
  t.equal(changedCode(pid, program), 0);
  writeFileSync(go, '');
  t.match((await server.ended).stdout, /^same 1$/m, 'and came to the same results all the time');
  return restored.length;
}

t.test(`killed at ${kills} random moments`, { timeout: 120_000 + kills * 30_000 }, async (t) => {
  const program = compileReleased(t, 'calls.c', ['-pie']);
  const next = random(seed);
  let patched = 0;
  for (let i = 0; i < kills; i++) {
    const wait = i === kills - 1 ? undefined : next() * latest;
    await t.test(
      `${i}: ${wait === undefined ? 'when it records' : `${wait.toFixed(0)} ms after it was connected`}`,
      async (t) => {
        if ((await killOnce(t, program, wait)) > 0) patched++;
      },
    );
  }
  t.comment(`${patched} of ${kills} were killed with functions patched`);
  t.ok(patched > 0);
});
