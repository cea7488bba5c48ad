// A target that waited for room in its ring of records: it is told, then and by whatever reads the trace.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, traceGrows } from '../support/command.js';
import { compileReleased } from '../support/native.js';
import { functionProbes } from '../support/native-trace.js';

t.test('nobody reads the ring for a while', async (t) => {
  const folder = scratchFolder(t);
  const program = compileReleased(t, 'calls.c', ['-pie']);
  const [trace, go] = [join(folder, 'out.pftrace'), join(folder, 'go')];
  const tracer = rsptraceProcess('run', '--json', '-o', trace, ...functionProbes, program, '--', 'loop', go);
  await traceGrows(tracer, trace, 20_000);
  tracer.process.kill('SIGSTOP');
  await sleep(500);
  tracer.process.kill('SIGCONT');
  writeFileSync(go, '');
  const { status, stdout, stderr } = await tracer.ended;
  t.equal(status, 0, stderr);
  const { ring_full: times } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as { ring_full: number };
  t.ok(times > 0, `${times} times`);
  const said = new RegExp(`waited for room in its ring of records at least ${times} times?: times of calls`);
  t.match((await rsptrace('info', trace).ended).stdout, said);
  const report = await rsptrace('report', '--json', trace).ended;
  t.match(report.stderr, said);
  t.equal((JSON.parse(report.stdout) as { ring_full: number }).ring_full, times);
});
