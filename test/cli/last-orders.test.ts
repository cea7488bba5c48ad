// What becomes of a QEMU whose guest has ended by itself, and of one that rsptrace asks to end. The clock is the test's.
import { mock } from 'node:test';
import t from 'tap';
import type { Machine } from '../../src/api/index.js';
import { endedBySignals, LastOrders } from '../../src/cli/last-orders.js';
import type { Recorded } from '../../src/cli/recording/session.js';

type End = Recorded['end'];

/** A QEMU that is deaf to SIGTERM, and what is sent to it. */
function deaf() {
  const sent: string[] = [];
  let end = (): void => {};
  let running = true;
  const ended = new Promise<void>((resolve) => {
    end = () => {
      running = false;
      resolve();
    };
  });
  const qemu = {
    ended,
    get running() {
      return running;
    },
    kill(signal: string): void {
      sent.push(signal);
      if (signal === 'SIGKILL') end();
    },
  };
  const orders = new LastOrders({ qemu, session: {} } as unknown as Machine, () => false);
  return { orders, sent, end, finish: (how: End) => orders.finish({ end: how } as Recorded) };
}

t.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
t.afterEach(() => mock.timers.reset());

t.test('a QEMU whose guest has ended may take its time, and its status counts', async (t) => {
  const { orders, sent, end, finish } = deaf();
  const finished = finish('guest-ended');
  mock.timers.tick(29_000);
  t.strictSame(sent, [], 'its disks are being written');
  end();
  await finished;
  t.strictSame([sent, orders.endedByUs], [[], false]);
});

t.test('one that never ends is killed, which is no end that was asked for', async (t) => {
  const { orders, sent, finish } = deaf();
  const said = t.capture(process.stderr, 'write');
  const finished = finish('guest-ended');
  mock.timers.tick(30_000);
  await finished;
  t.strictSame([sent, orders.endedByUs], [['SIGKILL'], false]);
  t.match(said.args().flat().join(''), 'QEMU has not ended within 30 s after its guest');
});

t.test('one that is asked to end is killed soon after', async (t) => {
  const { orders, sent, finish } = deaf();
  const finished = finish('duration');
  t.strictSame(sent, ['SIGTERM']);
  mock.timers.tick(3000);
  await finished;
  t.strictSame([sent, orders.endedByUs], [['SIGTERM', 'SIGKILL'], true]);
});

t.test(
  'what runs on and does not heed the first signal is killed by the next, which is none that timeout(1) repeats',
  (t) => {
    const sent: string[] = [];
    const before = process.listeners('SIGINT');
    using _handled = endedBySignals((signal) => sent.push(signal));
    const [signalled] = process.listeners('SIGINT').filter((one) => !before.includes(one));
    signalled?.('SIGINT');
    signalled?.('SIGINT');
    t.strictSame(sent, ['SIGTERM']);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250);
    signalled?.('SIGINT');
    t.strictSame(sent, ['SIGTERM', 'SIGKILL']);
    t.end();
  },
);
