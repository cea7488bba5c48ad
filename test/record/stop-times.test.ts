// In which calls a breakpoint has stopped the target.
import t from 'tap';
import { StopTimes } from '../../src/record/stop-times.js';

t.test('a call has the stops between its begin and its end', async (t) => {
  const stops = new StopTimes(10);
  for (const time of [10, 20, 40]) stops.stood(time);
  t.same(
    [
      [11, 19],
      [10, 12],
      [15, 20],
      [21, 50],
      [41, 50],
      [1, 9],
    ].map(([from = 0, to = 0]) => stops.areIn(from, to)),
    [false, true, true, true, false, false],
  );
});

t.test('millions of stops: some are kept, and of a time before these nothing is said to be exact', async (t) => {
  const stops = new StopTimes(3);
  for (let time = 0; time < 2e6; time += 2) {
    stops.stood(time);
    stops.event(time + 1);
  }
  t.same(stops.first, [0, 1, 2, 3]);
  t.equal(stops.areIn(1_999_990, 1_999_991), true);
  t.equal(stops.areIn(1_999_991, 1_999_991), false);
  t.equal(stops.areIn(3, 3), true, 'it may have had one');
});
