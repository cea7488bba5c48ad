// Where the keys j and k of a report lead: rows made by hand, and what is inside or around a slice by its times.
import t, { type Test } from 'tap';
import type { Row } from '../../../src/trace/viewer/trace.js';
import { deeper, type Spot } from '../../../src/trace/viewer/trace.js';

interface Slice {
  readonly name: string;
  readonly time: readonly [number, number];
  /** Lane and depth of each row that it is on, lanes from the top. */
  readonly on: readonly (readonly [number, number])[];
}

/** What is selected after each key: names, with the lane. */
function walk(slices: readonly Slice[], from: string, keys: string): string[] {
  const start = Float64Array.from(slices, ({ time }) => time[0]);
  const end = Float64Array.from(slices, ({ time }) => time[1]);
  const byStart = [...slices.keys()].sort((a, b) => Number(start[a]) - Number(start[b]));
  const places = [...new Set(slices.flatMap(({ on }) => on.map(([lane, depth]) => lane * 10 + depth)))];
  const rows = places
    .sort((a, b) => a - b)
    .map((place): Row => {
      const isOn = (id: number) => slices[id]?.on.some(([lane, depth]) => lane * 10 + depth === place);
      const lane = Math.floor((place + 1) / 10);
      return { lane, depth: place - lane * 10, ids: Uint32Array.from(byStart.filter(isOn)), busy: new Float64Array() };
    });
  const slice = slices.findIndex(({ name }) => name === from);
  let spot: Spot | undefined = { slice, row: rows.find(({ ids }) => ids.includes(slice)) as Row };
  return [...keys].map((key) => {
    spot = spot && deeper(rows, { start, end }, spot, key === 'j' ? 1 : -1);
    return spot ? `${slices[spot.slice]?.name} on ${spot.row.lane}` : 'nothing';
  });
}

function check(t: Test, slices: readonly Slice[], walks: Readonly<Record<string, string>>): void {
  for (const [way, wanted] of Object.entries(walks)) {
    const [from = '', keys = ''] = way.split(' ');
    t.same(walk(slices, from, keys), wanted.split(', '), way);
  }
}

t.test('inside a lane: what is inside, what is around', (t) => {
  const slices: Slice[] = [
    { name: 'mark', time: [15, 15], on: [[0, -1]] },
    { name: 'outer', time: [0, 100], on: [[0, 0]] },
    { name: 'later', time: [200, 300], on: [[0, 0]] },
    { name: 'inner', time: [10, 20], on: [[0, 1]] },
    { name: 'second', time: [20, 30], on: [[0, 1]] },
    { name: 'first', time: [200, 210], on: [[0, 1]] },
    { name: 'deepest', time: [25, 26], on: [[0, 2]] },
  ];
  check(t, slices, {
    'inner k': 'outer on 0',
    'second k': 'outer on 0',
    'first k': 'later on 0',
    'deepest kkk': 'second on 0, outer on 0, mark on 0',
    'mark j': 'outer on 0',
    'outer j': 'inner on 0',
    'inner j': 'nothing',
    'later jj': 'first on 0, nothing',
    'later k': 'nothing',
  });
  t.end();
});

t.test('past that: in the next lane what is at that time, or nearest; a poll on two lanes is left behind', (t) => {
  const slices: Slice[] = [
    {
      name: 'a',
      time: [0, 10],
      on: [
        [0, 0],
        [1, 0],
      ],
    },
    {
      name: 'b',
      time: [20, 30],
      on: [
        [0, 0],
        [2, 0],
      ],
    },
    {
      name: 'in_b',
      time: [22, 24],
      on: [
        [0, 1],
        [2, 1],
      ],
    },
    { name: 'early', time: [1, 2], on: [[3, 1]] },
    { name: 'around', time: [0, 40], on: [[3, 0]] },
  ];
  check(t, slices, {
    'a jjjj': 'a on 1, b on 2, in_b on 2, around on 3',
    'b jjjj': 'in_b on 0, a on 1, b on 2, in_b on 2',
    'early kkkkk': 'around on 3, in_b on 2, b on 2, a on 1, a on 0',
  });
  t.end();
});
