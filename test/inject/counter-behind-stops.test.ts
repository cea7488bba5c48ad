// A counter that stops do not move, in a trace whose stops have the host's time.
import t from 'tap';
import { behindStops } from '../../src/inject/counter-scales.js';
import type { RecordCounter } from '../../src/inject/record-dispatcher.js';

t.test('records after a stop come after it, and as far apart as they are', async (t) => {
  let now = 0;
  const counter: RecordCounter = {
    time: (ticks) => 10 * ticks,
    nanosPerTick: 10,
    origin: () => ({ ticks: 0, nanos: 0 }),
  };
  const { time, origin } = behindStops(counter, () => now);
  const record = (ticks: number): number => {
    const nanos = time(ticks);
    now = Math.max(now, nanos);
    return nanos;
  };
  t.equal(record(5), 50);
  t.equal(record(7), 70);
  // Of another hart: read before the last one.
  t.equal(record(6), 60);
  t.equal(record(8), 80);
  // A stop, which the host has seen 1000 ns later.
  now = 1090;
  t.equal(record(9), 1090);
  t.equal(record(11), 1110);
  t.equal(record(10), 1100);
  t.same(origin(), { ticks: 0, nanos: 1000 });
  // A stop that has taken nothing.
  now = 1115;
  t.equal(record(12), 1120);
  // One of which the host knows less.
  now = 1121;
  t.equal(record(200), 3000);
});
