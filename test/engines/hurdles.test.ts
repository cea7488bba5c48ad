// What stands in the way, as people read it: what one thing helps against stands together.
import t from 'tap';
import { type Hurdle, hurdleLines } from '../../src/engines/index.js';

const hurdle = (text: string, wayOut: string | undefined, probes: number): Hurdle => ({
  code: 'code',
  text,
  wayOut,
  probes,
});

t.test('a way out is told once, with the most probes first', async (t) => {
  const few = hurdle('2: one reason (f, g)', 'compile them anew', 2);
  const many = [3, 2, 1].map((probes) => hurdle(`${probes}: reason ${probes}`, 'stop', probes));
  t.same(hurdleLines([few, ...many, hurdle('1: no way', undefined, 1)]), [
    ...['3: reason 3', '2: reason 2', '1: reason 1', '  way out: stop'],
    ...['2: one reason (f, g)', '  way out: compile them anew'],
    '1: no way',
  ]);
});

t.test('the rest of many reasons is counted', async (t) => {
  const many = Array.from({ length: 8 }, (_, number) => hurdle(`reason ${number}`, 'stop', 10 - number));
  t.same(hurdleLines(many).slice(4), ['reason 4', '... and 3 other reasons (12 probes)', '  way out: stop']);
});
