// What is neither a poll nor a call, in formats with timelines and in the call tree; and that nothing else changes.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import {
  type PlaceRef,
  Summary,
  type TraceEvent,
  type WatchHit,
  type WatchRef,
  WatchSummary,
} from '../../../src/trace/index.js';
import { readChrome } from '../decode-chrome.js';
import { readPerfetto } from '../decode-perfetto.js';
import { oneTask } from '../one-task.js';
import { nanos, tell } from '../stories.js';
import { decode, parse, write } from '../written.js';

const nowhere = { function: undefined, file: undefined, line: undefined };
const by = { function: 'k::run', file: 'src/k.rs', line: 88 };
const add = { function: 'core::sync::atomic::atomic_add', file: 'core/atomic.rs', line: 9 };
const line: PlaceRef = { key: 0, name: 'k.rs:88', category: 'line', address: addr(0x8060_a008), by };
const bare: PlaceRef = { ...line, key: 1, by: nowhere };
const counter: WatchRef = {
  ...{ key: 0, name: 'k::POLLS', access: 'w', asked: 'w', address: addr(0x8060_a008n), size: 8, type: 'AtomicU64' },
};
const mode: WatchRef = {
  ...{ key: 1, name: 'k::MODE', access: 'rw', asked: 'r', address: addr(1n << 63n), size: 1, type: 'k::Mode' },
};

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
  hit(260, mode, { by: nowhere, inlined: [] }),
];

interface Note {
  readonly category: string;
  readonly events: readonly TraceEvent[];
  /** So many of the story of one task come before. */
  readonly behind: number;
  /** On a track of this name. */
  readonly track: string;
  readonly shown: readonly (readonly [name: string, begin: number, end: number])[];
  /** In the call tree. */
  readonly lines: readonly RegExp[];
}

const accesses: readonly (readonly [name: string, time: number, by: string])[] = [
  ['k::POLLS: 0, unchanged', 210, 'k::run at src/k.rs:88'],
  ['k::POLLS: 0 -> 5', 220, 'k::run at src/k.rs:88'],
  ['k::POLLS: 5 -> -2', 230, 'k::run at src/k.rs:88'],
  ['k::MODE: accessed Idle', 240, 'k::run at src/k.rs:88'],
  ['k::MODE: read Idle', 250, 'k::run at src/k.rs:88'],
  // An address where nothing is known of the code.
  ['k::MODE: ? -> ?', 260, '0x80200010'],
];

const literal = (text: string): string => text.replace(/[?]/g, '\\$&');

const notes: readonly Note[] = [
  {
    ...{ category: 'gap', behind: 6, track: 'gaps', lines: [/^# not recorded: the link to the stub was broken/m] },
    events: [
      { type: 'gap', from: nanos(500), to: nanos(900) },
      { type: 'gap', from: nanos(900), to: nanos(900) },
    ],
    shown: [500, 900].map((from) => ['not recorded: the link to the stub was broken', from, 900]),
  },
  {
    ...{ category: 'reset', behind: 8, track: 'labkern', events: [{ type: 'reset', time: nanos(5_000_001_000) }] },
    shown: [['the machine was reset', 5_000_001_000, 5_000_001_000]],
    lines: [/^# the machine was reset at 5000001\.000 us$/m],
  },
  {
    ...{ category: 'line', behind: 6, track: 'hart 0' },
    events: [line, bare].map((place) => ({ type: 'place', time: nanos(700), hart: 0, place })),
    shown: [1, 2].map(() => ['k.rs:88', 700, 700]),
    lines: [/^ +0\.700 us +\[ 0\] .*\/\* k\.rs:88 in k::run \*\/$/m, /^ +0\.700 us +\[ 0\] .*\/\* k\.rs:88 \*\/$/m],
  },
  {
    // Inside the second poll, and so two calls deep.
    ...{ category: 'watch', behind: 3, track: 'hart 0', events: hits },
    shown: accesses.map(([name, time]) => [name, time, time]),
    lines: accesses.map(([name, time, by]) => {
      return new RegExp(`^ +0\\.${time} us +\\[ 0\\] {6}/\\* ${literal(name)}, by ${literal(by)} \\*/$`, 'm');
    }),
  },
];

function polls(events: readonly TraceEvent[]): unknown {
  const summary = new Summary();
  tell(summary, events);
  return summary.rows();
}

const among = ({ events, behind }: Note): TraceEvent[] => {
  return [...oneTask.slice(0, behind), ...events, ...oneTask.slice(behind)];
};

for (const note of notes) {
  t.test(`${note.category}: where and when it was`, async (t) => {
    const { category, shown, lines, track } = note;
    const perfetto = readPerfetto(decode(write('note.pftrace', among(note))));
    const chrome = readChrome(parse(write('note.json', among(note))).filter(({ ph }) => ph !== 'C'));
    for (const slices of [perfetto.slices, chrome]) {
      const found = slices.filter((slice) => slice.category === category);
      t.same(
        found.map(({ name, begin, end }) => [name, begin, end]),
        shown,
      );
    }
    const tracks = perfetto.slices.filter((slice) => slice.category === category).map((slice) => slice.track);
    t.same([...new Set(tracks.map((uuid) => perfetto.tracks.get(uuid)?.name))], [track]);
    const others = (slices: typeof perfetto.slices) =>
      slices.filter((slice) => slice.category !== category).map(({ name, begin, end }) => [name, begin, end]);
    const before = readPerfetto(decode(write('none.pftrace', oneTask)));
    // What came of a wait in a gap is not known.
    const cut = category === 'gap' ? 5_000_000_123 : undefined;
    const known = others(before.slices).map((slice) => slice.map((each, i) => (i === 2 && each === cut ? 500 : each)));
    t.same(others(perfetto.slices), known);
    t.notOk([...before.tracks.values()].some(({ name }) => name === 'gaps' || name === 'k::POLLS'));
    const tree = write('note.txt', among(note)).toString();
    for (const line of lines) t.match(tree, line);
    t.same(polls(among(note)), polls(oneTask));
  });
}

const [, , places, watched] = notes as [Note, Note, Note, Note];

t.test('places: the function that is known', async (t) => {
  const chrome = readChrome(parse(write('place.json', among(places))));
  const { slices } = readPerfetto(decode(write('place.pftrace', among(places))));
  for (const shown of [slices, chrome]) {
    const functions = shown.filter(({ category }) => category === 'line').map(({ args }) => args.function);
    t.same(functions, ['k::run', undefined]);
  }
});

t.test('accesses: what is known of each, and a counter of what is a number', async (t) => {
  const { slices, tracks, counters } = readPerfetto(decode(write('watch.pftrace', among(watched))));
  const found = slices.filter(({ category }) => category === 'watch');
  t.equal(found[0]?.depth, 2, 'inside both polls');
  t.match(found[1], {
    place: 'src/k.rs:88',
    args: {
      ...{ watch: 'k::POLLS', access: 'write', old: '0', value: '5', changed: 'true', by: 'k::run at src/k.rs:88' },
      ...{ inlined: 'core::sync::atomic::atomic_add at core/atomic.rs:9 < k::run at src/k.rs:88', type: 'AtomicU64' },
      ...{ pc: String(0x8020_0010), address: String(0x8060_a008) },
    },
  });
  t.equal(found[5]?.args.by, '0x80200010');
  const values = [0, 5, -2];
  t.same(
    counters.map(({ track, time, value }) => [tracks.get(track)?.name, time, value]),
    [
      ...values.map((value, i) => ['k::POLLS', 210 + 10 * i, value]),
      ...[
        ['tasks waiting', 500, 1],
        ['tasks waiting', 5_000_000_123, 0],
      ],
    ],
  );
  const records = parse(write('watch.json', among(watched))).filter(({ cat }) => cat === 'watch');
  t.same(
    records.filter(({ ph }) => ph === 'C').map(({ name, args }) => [name, args]),
    values.map((value) => ['k::POLLS', { value }]),
  );
  const [, instant] = records.filter(({ ph }) => ph === 'i');
  t.match(instant?.args, { old: '0', value: '5', changed: true, by: 'k::run at src/k.rs:88' });
});

t.test('the summary counts accesses, and has a row for what nobody accessed', async (t) => {
  const summary = new WatchSummary();
  tell(summary, among(watched));
  const none = { ...counter, key: 2, name: 'k::NONE' };
  t.match(summary.rows([counter, mode, none]), [
    { watch: 'k::POLLS', address: '0x8060a008', writes: 3, changed: 2, reads: 0, accesses: 0, last: '-2' },
    { watch: 'k::MODE', access: 'rw', asked: 'r', writes: 1, changed: 0, reads: 1, accesses: 1, last: null },
    { watch: 'k::NONE', writes: 0, changed: 0, reads: 0, accesses: 0, last: null },
  ]);
});
