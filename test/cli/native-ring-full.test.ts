// A target that waited for room in its ring of records: it is told, then and by whatever reads the trace.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, traceGrows } from '../support/command.js';
import { compileReleased } from '../support/native.js';

t.test('nobody reads the ring for a while', async (t) => {
  const folder = scratchFolder(t);
  const program = compileReleased(t, 'calls.c', ['-pie']);
  const [trace, go] = [join(folder, 'out.pftrace'), join(folder, 'go')];
  const probes = ['-p', 'fn:middle', '-p', 'fn:outer'];
  const tracer = rsptraceProcess('run', '--json', '-o', trace, ...probes, program, '--', 'loop', go);
  await traceGrows(tracer, trace, 1000);
  tracer.process.kill('SIGSTOP');
  await sleep(500);
  tracer.process.kill('SIGCONT');
  writeFileSync(go, '');
  const { status, stdout, stderr } = await tracer.ended;
  t.equal(status, 0, stderr);
  const {
    ring_full: times,
    ring_waited_ns: waited,
    ran_ms: ran,
  } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as { ring_full: number; ring_waited_ns: number; ran_ms: number };
  t.ok(times > 0, `${times} times`);
  // It has three threads.
  t.ok(waited > 0 && waited / 1e6 <= 3 * ran, `${waited} ns of ${ran} ms`);
  const said = new RegExp(
    `waited for room in its ring of records at least ${times} times?, [0-9.]+ m?s in all harts or threads: times of calls`,
  );
  t.match((await rsptrace('info', trace).ended).stdout, said);
  const report = await rsptrace('report', '--json', trace).ended;
  t.match(report.stderr, said);
  t.equal((JSON.parse(report.stdout) as { ring_full: number }).ring_full, times);
});
