// A program under a real lldb-server, which stops threads by signals: after a recording it runs on.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { compileReleased } from '../support/native.js';
import { freePort, untilListens } from '../support/stub-servers.js';

/** The states of a process's threads: R, S, ..., T where a signal has stopped it. */
function statesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map(
    (thread) => /^State:\s*(.)/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'))?.[1] ?? '',
  );
}

t.test('four busy threads, recorded with a stop at each event: none of them is left stopped', async (t) => {
  const program = compileReleased(t, 'calls.c', ['-pie']);
  const target = start(program, ['threads', '1000000000']);
  t.teardown(() => void target.process.kill('SIGKILL'));
  const pid = target.process.pid ?? 0;
  while (statesOf(pid).length < 5) await sleep(10);
  const port = await freePort();
  const server = start('lldb-server-14', ['gdbserver', '--attach', String(pid), `127.0.0.1:${port}`]);
  t.teardown(() => void server.process.kill('SIGKILL'));
  await untilListens(port);
  const trace = join(scratchFolder(t), 'out.txt');
  const options = ['--json', '--engine', 'stop', '-p', 'fn:leaf', '-p', 'fn:outer', '-n', '60', '-o', trace];
  t.match(await rsptrace('-r', `:${port}`, ...options, program).json(), { end: 'max-events' });
  await server.ended;
  t.same(
    statesOf(pid).filter((state) => state === 'T' || state === 't'),
    [],
  );
});
