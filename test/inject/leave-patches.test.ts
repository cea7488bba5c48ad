// A thread that stands where code is to be changed when a signal stops it gets that signal, once, under a real gdbserver.
import t from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { stepOut } from '../../src/inject/leave-patches.js';
import { registerOf } from '../../src/rsp/index.js';
import { connect } from '../../src/target/index.js';
import { compileC, gdbserver } from '../support/native.js';

const SIGNALLED = `
#include <signal.h>
static volatile int caught;
static void on(int n) { caught++; }
int main(void) { signal(SIGUSR1, on); raise(SIGUSR1); return 10 + caught; }
`;

t.test('the signal that a thread has stopped for is not dropped by the steps out of a patch', async (t) => {
  const server = await gdbserver(t, compileC(t, SIGNALLED));
  await using session = await connect(server.address);
  await session.resume({ kind: 'continue' });
  const at = await registerOf(session, 'rip');
  t.equal(await stepOut(session, x86_64, (pc) => pc === at, 8), undefined);
  t.not(await registerOf(session, 'rip'), at);
  t.match(await session.resume({ kind: 'continue' }), { kind: 'exited', status: 11 });
});
