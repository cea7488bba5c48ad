// An interrupt that is pending when a session ends, and gone when the target runs again: the session ends all the same.
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { connect } from '../../src/rsp/index.js';
import { compileC, compileReleased, gdbserver } from '../support/native.js';

function statusOf(pid: number, name: string): string | undefined {
  if (!existsSync(`/proc/${pid}/status`)) return undefined;
  return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
}

t.test('a SIGSTOP that is taken back in the last moment: the target is let go', async (t) => {
  const server = await gdbserver(t, compileReleased(t, 'endless.c', ['-DBUSY=0']));
  const session = await connect(server.address);
  // A SIGCONT passes without a stop, and takes the SIGSTOP back (signal(7)).
  await session.passSignals();
  session.takeOver();
  process.kill(server.pid, 'SIGSTOP');
  const read = session.remoteFile.bind(session);
  let reads = 0;
  session.remoteFile = async (path) => {
    const file = await read(path);
    if (++reads === 1) process.kill(server.pid, 'SIGCONT');
    return file;
  };
  await session.detach();
  t.ok(reads > 0, 'the SIGSTOP was seen');
  // gdbserver lets it go after it has answered.
  while (statusOf(server.pid, 'TracerPid') !== '0') await sleep(5);
  t.match(statusOf(server.pid, 'State'), /^[RS]/);
  process.kill(server.pid, 'SIGKILL');
});

t.test("a program's own SIGINT that has stopped it reaches it when it is left", async (t) => {
  const source = `
#include <signal.h>
#include <unistd.h>
static void on(int signal) { write(1, "caught\\n", 7); _exit(5); }
int main(void) { signal(SIGINT, on); for (;;) pause(); }`;
  const server = await gdbserver(t, compileC(t, source));
  const session = await connect(server.address);
  const stop = session.resume();
  while (!statusOf(server.pid, 'SigCgt')?.endsWith('2')) await sleep(5);
  process.kill(server.pid, 'SIGINT');
  t.match(await stop, { signal: 2 });
  await session.detach();
  while ((statusOf(server.pid, 'TracerPid') ?? '0') !== '0') await sleep(5);
  // One that the signal does not reach waits for ever.
  const late = setTimeout(() => process.kill(server.pid, 'SIGKILL'), 30_000);
  t.match(await server.ended, { stdout: /caught/ });
  clearTimeout(late);
});
