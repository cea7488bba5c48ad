import t from 'tap';
import { Interrupts } from '../../src/rsp/session/interrupts.js';
import type { StopReply } from '../../src/rsp/session/stop-reply.js';

/** As the protocol numbers them. */
const [SIGINT, SIGSTOP, SIGCHLD] = [2, 17, 20];

function stoppedBy(signal: number): StopReply {
  return { kind: 'signal', signal, hart: 'p1.1', reason: undefined };
}

t.test('a server attaches by a SIGSTOP, which is not given to the program where another signal came first', (t) => {
  const signals = (attachedAt: StopReply | undefined): unknown[] => {
    const interrupts = new Interrupts(1000);
    interrupts.begin(true, SIGSTOP, attachedAt);
    return [1, 2].map(() => {
      const stop = interrupts.cameBy(stoppedBy(SIGSTOP));
      return stop.kind === 'signal' && stop.signal;
    });
  };
  t.same(signals(stoppedBy(SIGCHLD)), [SIGINT, SIGSTOP], "one that comes later is the program's own");
  for (const first of [0, SIGSTOP]) t.same(signals(stoppedBy(first)), [SIGSTOP, SIGSTOP], `it has come: ${first}`);
  t.same(signals(undefined), [SIGSTOP, SIGSTOP], 'the server has started the program');
  t.end();
});
