// Accesses of watched places in every format, and in the summary.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { type TraceEvent, type WatchHit, type WatchRef, WatchSummary } from '../../../src/trace/index.js';
import { readPerfetto } from '../decode-perfetto.js';
import { oneTask } from '../one-task.js';
import { nanos, tell } from '../stories.js';
import { decode, parse, write } from '../written.js';

const counter: WatchRef = {
  ...{ key: 0, name: 'k::POLLS', access: 'w', asked: 'w', address: addr(0x8060_a008n), size: 8, type: 'AtomicU64' },
};
const mode: WatchRef = {
  ...{
    key: 1,
    name: 'k::MODE',
    access: 'rw',
    asked: 'r',
    address: addr(0xffff_ffff_8000_0001n),
    size: 1,
    type: 'k::Mode',
  },
};
const add = { function: 'core::sync::atomic::atomic_add', file: 'core/atomic.rs', line: 9 };
const by = { function: 'k::run', file: 'src/k.rs', line: 88 };

function hit(time: number, watch: WatchRef, what: Partial<WatchHit>): WatchHit {
  return {
    ...{ type: 'watch', time: nanos(time), hart: 0, watch, access: 'write', old: undefined, value: undefined },
    ...{ number: undefined, changed: undefined, pc: addr(0x8020_0010n), by, inlined: [by] },
    ...what,
  };
}

const hits: WatchHit[] = [
  hit(210, counter, { old: '0', value: '0', number: 0, changed: false }),
  hit(220, counter, { old: '0', value: '5', number: 5, changed: true, inlined: [add, by] }),
  hit(230, counter, { old: '5', value: '-2', number: -2, changed: true }),
  hit(240, mode, { access: 'access', value: 'Idle', old: 'Idle', changed: false }),
  hit(250, mode, { access: 'read', value: 'Idle' }),
  hit(260, mode, { by: { function: undefined, file: undefined, line: undefined }, inlined: [] }),
];
/** Inside the second poll. */
const events: TraceEvent[] = [...oneTask.slice(0, 3), ...hits, ...oneTask.slice(3)];

const texts = [
  'k::POLLS: 0, unchanged',
  'k::POLLS: 0 -> 5',
  'k::POLLS: 5 -> -2',
  'k::MODE: accessed Idle',
  'k::MODE: read Idle',
  'k::MODE: ? -> ?',
];

t.test('Perfetto: instants on the hart, and a counter of what is a number', async (t) => {
  const { slices, tracks, counters } = readPerfetto(decode(write('watch.pftrace', events)));
  const found = slices.filter(({ category }) => category === 'watch');
  t.same(
    found.map(({ name }) => name),
    texts,
  );
  t.same(
    found.map(({ begin, kind }) => [begin, kind]),
    hits.map(({ time }) => [time, 'instant']),
  );
  const poll = slices.find(({ category, track }) => category === 'poll' && track === found[0]?.track);
  t.equal(poll?.track, found[0]?.track, 'on the track of the hart that polls');
  t.equal(found[0]?.depth, 2, 'inside both polls');
  t.match(found[1], {
    place: 'src/k.rs:88',
    args: {
      ...{ watch: 'k::POLLS', access: 'write', old: '0', value: '5', changed: 'true', by: 'k::run at src/k.rs:88' },
      ...{ inlined: 'core::sync::atomic::atomic_add at core/atomic.rs:9 < k::run at src/k.rs:88', type: 'AtomicU64' },
      ...{ pc: String(0x8020_0010), address: String(0x8060_a008) },
    },
  });
  t.equal(found[5]?.args.by, '0x80200010', 'an address where nothing is known of the code');
  t.same(
    counters.map(({ track, time, value }) => [tracks.get(track)?.name, time, value]),
    [
      ['k::POLLS', 210, 0],
      ['k::POLLS', 220, 5],
      ['k::POLLS', 230, -2],
      ['tasks waiting', 500, 1],
      ['tasks waiting', 5_000_000_123, 0],
    ],
  );
  const without = readPerfetto(decode(write('watchless.pftrace', oneTask)));
  t.equal(slices.length - hits.length, without.slices.length, 'nothing else changes');
});

t.test('Chrome: the same', async (t) => {
  const records = parse(write('watch.json', events));
  const named = (phase: string) => records.filter(({ ph, cat }) => ph === phase && cat === 'watch');
  t.same(
    named('i').map(({ name }) => name),
    texts,
  );
  t.same(
    named('C').map(({ name, args }) => [name, args]),
    [0, 5, -2].map((value) => ['k::POLLS', { value }]),
  );
  t.match(named('i')[1]?.args, { old: '0', value: '5', changed: true, by: 'k::run at src/k.rs:88' });
});

t.test('the call tree: a note where it happened', async (t) => {
  const lines = write('watch.txt', events).toString().split('\n');
  const notes = lines.filter((line) => /k::(?:POLLS|MODE)/.test(line));
  t.same(
    notes.map((line) => /\/\* (.*), by (.*) \*\/$/.exec(line)?.slice(1)),
    texts.map((text, i) => [text, i === 5 ? '0x80200010' : 'k::run at src/k.rs:88']),
  );
  t.match(notes[0], /^ +0\.210 us +\[ 0\] {6}\/\*/, 'two calls deep');
});

t.test('the summary counts, and has a row for what nobody accessed', async (t) => {
  const summary = new WatchSummary();
  tell(summary, events);
  const none = { ...counter, key: 2, name: 'k::NONE' };
  t.match(summary.rows([counter, mode, none]), [
    { watch: 'k::POLLS', address: '0x8060a008', writes: 3, changed: 2, reads: 0, accesses: 0, last: '-2' },
    { watch: 'k::MODE', access: 'rw', asked: 'r', writes: 1, changed: 0, reads: 1, accesses: 1, last: null },
    { watch: 'k::NONE', writes: 0, changed: 0, reads: 0, accesses: 0, last: null },
  ]);
});
