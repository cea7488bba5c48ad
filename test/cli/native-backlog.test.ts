// Records that wait to be understood when the process is left: said with how long that takes, and left by a second signal.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { compileReleased } from '../support/native.js';

/** More bytes of records than any host understands in a second. */
const many = 150_000_000;

t.test('a backlog is said, and a second Ctrl-C leaves it to recover', async (t) => {
  const program = start(compileReleased(t, 'endless.c'), []);
  t.teardown(() => void program.process.kill('SIGKILL'));
  const trace = join(scratchFolder(t), 'out.jsonl');
  const tracer = rsptraceProcess('attach', '--lossless', '-p', 'fn:leaf', '-o', trace, `${program.process.pid}`);
  const records = `${trace}.records`;
  while (!tracer.over() && (!existsSync(records) || statSync(records).size < many)) await sleep(20);
  tracer.signal('SIGINT');
  await tracer.shows(`; Ctrl-C leaves them to rsptrace recover ${trace}`);
  tracer.signal('SIGINT');
  const { status, stderr } = await tracer.ended;
  t.equal(status, 0, stderr);
  t.match(stderr, /\d{5,} records wait to be understood, about \d+ s; Ctrl-C leaves them/);
  const [, left = '0'] = /(\d+) records were left when their time was over: rsptrace recover/.exec(stderr) ?? [];
  t.ok(Number(left) > 10_000, stderr);
  t.notOk(program.over(), 'the process runs on');
  t.ok(statSync(records).size > many / 2, 'with the records still there');
});
