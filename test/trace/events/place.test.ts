// Hits of places in every format: instants on the hart's track, and nothing else changes.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import type { PlaceRef, TraceEvent } from '../../../src/trace/index.js';
import { type ChromeRecord, readChrome } from '../decode-chrome.js';
import { readPerfetto } from '../decode-perfetto.js';
import { oneTask } from '../one-task.js';
import { nanos } from '../stories.js';
import { decode, parse, write } from '../written.js';

const by = { function: 'k::run', file: '/home/k/src/k.rs', line: 88 };
const known: PlaceRef = { key: 0, name: 'k.rs:88', category: 'line', address: addr(0x8060_a008), by };
const bare: PlaceRef = { ...known, key: 1, by: { function: undefined, file: undefined, line: undefined } };
const hits = [known, bare].map((place): TraceEvent => ({ type: 'place', time: nanos(700), hart: 0, place }));
const events: TraceEvent[] = [...oneTask.slice(0, 6), ...hits, ...oneTask.slice(6)];

t.test('Perfetto and Chrome', async (t) => {
  const perfetto = readPerfetto(decode(write('place.pftrace', events)));
  const chrome = readChrome(parse(write('place.json', events)) as ChromeRecord[]);
  for (const slices of [perfetto.slices, chrome]) {
    const found = slices.filter(({ category }) => category === 'line');
    t.same(
      found.map(({ kind, begin, name }) => [kind, begin, name]),
      [
        ['instant', 700, 'k.rs:88'],
        ['instant', 700, 'k.rs:88'],
      ],
    );
    t.match(JSON.stringify(found[0]), /k::run/);
    t.notMatch(JSON.stringify(found[1]), /k::run/);
  }
  const [first] = perfetto.slices.filter(({ category }) => category === 'line');
  t.match(perfetto.tracks.get(first?.track ?? '')?.name, /hart|CPU/);
  const without = readPerfetto(decode(write('placeless.pftrace', oneTask)));
  t.same(
    perfetto.slices.filter(({ category }) => category !== 'line').map(({ name, begin, end }) => [name, begin, end]),
    without.slices.map(({ name, begin, end }) => [name, begin, end]),
  );
});

t.test('the call tree', async (t) => {
  const lines = write('place.txt', events).toString();
  t.match(lines, /^ +0\.700 us +\[ 0\] .*\/\* k\.rs:88 in k::run \*\/$/m);
  t.match(lines, /^ +0\.700 us +\[ 0\] .*\/\* k\.rs:88 \*\/$/m);
});
