import t from 'tap';
import { Summary, type TraceEvent } from '../../../src/trace/index.js';
import { type ChromeRecord, readChrome } from '../decode-chrome.js';
import { readPerfetto } from '../decode-perfetto.js';
import { oneTask } from '../one-task.js';
import { nanos, tell } from '../stories.js';
import { decode, parse, write } from '../written.js';

const gaps = [
  { type: 'gap', from: nanos(500), to: nanos(900) },
  { type: 'gap', from: nanos(900), to: nanos(900) },
] as const;
/** Between the first poll and the second. */
const events: TraceEvent[] = [...oneTask.slice(0, 6), ...gaps, ...oneTask.slice(6)];
const wanted = gaps.map(({ from, to }) => [from, to]);

t.test('Perfetto: slices on a track of their own, and nothing else changes', async (t) => {
  const { slices, tracks } = readPerfetto(decode(write('gaps.pftrace', events)));
  const found = slices.filter(({ category }) => category === 'gap');
  t.same(
    found.map(({ begin, end, track }) => [begin, end, tracks.get(track)?.name]),
    wanted.map((times) => [...times, 'gaps']),
  );
  const before = readPerfetto(decode(write('none.pftrace', oneTask)));
  t.same(
    slices.filter(({ category }) => category !== 'gap').map(({ name, begin, end }) => [name, begin, end]),
    before.slices.map(({ name, begin, end }) => [name, begin, end]),
  );
  t.notOk(
    [...before.tracks.values()].some(({ name }) => name === 'gaps'),
    'no gap, no track',
  );
});

t.test('Chrome: slices on a track of their own', async (t) => {
  const slices = readChrome(parse(write('gaps.json', events)) as ChromeRecord[]);
  t.same(
    slices.filter(({ category }) => category === 'gap').map(({ begin, end }) => [begin, end]),
    wanted,
  );
});

t.test('the summary passes over them', async (t) => {
  const summary = new Summary();
  tell(summary, events);
  const without = new Summary();
  tell(without, oneTask);
  t.same(summary.rows(), without.rows());
});

const again: TraceEvent[] = [...oneTask.slice(0, 6), { type: 'reset', time: nanos(700) }, ...oneTask.slice(6)];

t.test('a reset of the machine is an instant of all of it', async (t) => {
  const perfetto = readPerfetto(decode(write('reset.pftrace', again)));
  const chrome = readChrome(parse(write('reset.json', again)) as ChromeRecord[]);
  for (const slices of [perfetto.slices, chrome])
    t.same(
      slices.filter(({ category }) => category === 'reset').map(({ kind, begin, name }) => [kind, begin, name]),
      [['instant', 700, 'the machine was reset']],
    );
  const track = perfetto.slices.find(({ category }) => category === 'reset')?.track ?? '';
  t.equal(perfetto.tracks.get(track)?.parent, undefined);
  t.match(write('reset.txt', again).toString(), /^# the machine was reset at 0\.700 us$/m);
});
