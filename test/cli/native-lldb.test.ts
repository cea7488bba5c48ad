// A program under a real lldb-server, which stops threads by signals: after a recording it runs on.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { compileC, compileReleased } from '../support/native.js';
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

t.test('what a program prints through the stub is in the trace', async (t) => {
  const source = `
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int work(int x) { __asm__ volatile(""); return x + 1; }
int main(void) { setlinebuf(stdout); for (int i = 0; i < 3; i++) { work(i); printf("line %d\\n", i); } usleep(300000); }`;
  const program = compileC(t, source);
  const port = await freePort();
  const server = start('lldb-server-14', ['gdbserver', `127.0.0.1:${port}`, '--', program]);
  t.teardown(() => void server.process.kill('SIGKILL'));
  await untilListens(port);
  const trace = join(scratchFolder(t), 'out.csv');
  const options = ['--engine', 'stop', '-p', 'fn:work', '-o', trace];
  const { stderr } = await rsptraceProcess('-r', `:${port}`, ...options, program).ended;
  t.match(stderr, /^line 0$/m, 'and on stderr');
  const rows = readFileSync(trace, 'utf8').split('\n');
  const lines = rows.filter((row) => row.startsWith('console,')).map((row) => row.split(',')[6]);
  t.strictSame(lines, ['line 0', 'line 1', 'line 2']);
  t.equal(rows.filter((row) => row.startsWith('call,')).length, 3);
});
