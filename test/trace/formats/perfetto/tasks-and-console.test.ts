// Counters of tasks, lines of the console, and call stacks of polls, as protoc decodes them.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { children, type Message, readPerfetto, scalar } from '../../decode-perfetto.js';
import { root } from '../../one-task.js';
import { futures, linked, nanos, stories, suspend0, trueWaits } from '../../stories.js';
import { decode, readBack, write } from '../../written.js';

function counted(packets: readonly Message[]): [name: string | undefined, time: number, value: number][] {
  const { counters, tracks } = readPerfetto(packets);
  return counters.map(({ track, time, value }) => [tracks.get(track)?.name, time, value]);
}

t.test('tasks that wait are counted, whatever happens in the guest', async () => {
  fc.assert(
    fc.property(stories, (told) => {
      const found = counted(decode(write('counted.pftrace', told.events)));
      const waits = trueWaits(told);
      const times = new Set(found.map(([, time]) => time));
      for (const time of times) {
        const shown = found.filter((counter) => counter[1] === time).at(-1)?.[2];
        const waiting = waits.filter(({ begin, end = Number.POSITIVE_INFINITY }) => begin <= time && end > time);
        assert.equal(shown, waiting.length, `at ${time}`);
      }
    }),
    { numRuns: 20 },
  );
});

const of = { hart: 0, root, future: futures[0], address: root.address, depth: 0 };
const caller = { function: 'tick', file: 'src/t.rs', line: 3 };
const wake = { type: 'wake', hart: 1, waker: root.address, root, by: undefined, caller } as const;
const stack = [
  { function: 'a::poll', file: 'src/a.rs', line: 12 },
  { function: 'run', file: undefined, line: undefined },
];

const events = linked([
  { type: 'console', time: nanos(0), text: 'booted "well" \u00e9' },
  { type: 'poll-begin', ...of, time: nanos(0), state: undefined, stack },
  { type: 'poll-end', ...of, time: nanos(10), began: nanos(0), result: 'pending', state: suspend0, chain: [] },
  { ...wake, time: nanos(20) },
  { ...wake, time: nanos(25) },
  { type: 'poll-begin', ...of, time: nanos(30), state: suspend0, stack },
  // Woken while it is polled: it is runnable as soon as it waits.
  { ...wake, time: nanos(35) },
  { type: 'poll-end', ...of, time: nanos(40), began: nanos(30), result: 'pending', state: suspend0, chain: [] },
  { type: 'console', time: nanos(40), text: 'done' },
]);

t.test('a woken task is runnable until its poll', async (t) => {
  t.same(counted(decode(write('woken.pftrace', events))), [
    ['tasks waiting', 10, 1],
    ['tasks waiting', 20, 0],
    ['tasks runnable', 20, 1],
    ['tasks runnable', 30, 0],
    ['tasks runnable', 40, 1],
  ]);
});

t.test('lines of the console are instants, and are read back', async (t) => {
  const { slices, tracks } = readPerfetto(decode(write('console.pftrace', events)));
  const lines = slices.filter(({ category }) => category === 'console');
  t.same(
    lines.map(({ kind, name, begin, track }) => [kind, name, begin, tracks.get(track)?.name]),
    [
      ['instant', 'booted "well" \u00e9', 0, 'console'],
      ['instant', 'done', 40, 'console'],
    ],
  );
  const back = await readBack('console.pftrace');
  t.same(
    back.filter(({ type }) => type === 'console'),
    events.filter(({ type }) => type === 'console'),
  );
  t.equal(back.length, events.length);
  t.ok(write('again.pftrace', back).equals(write('console.pftrace', events)), 'and written again they are the same');
  t.match(write('console.txt', events).toString(), /^# console: done$/m);
  t.match(write('console.ftrace', events).toString(), /^# console: done$/m);
  t.match(write('console.jsonl', events).toString(), /"type":"console","time_ns":40,.*"name":"done"/);
  t.match(write('console.json', events).toString(), /"cat":"console","name":"done"/);
});

t.test('a poll has its call stack, the outermost frame first', async (t) => {
  const packets = decode(write('stacks.pftrace', events));
  const interned = packets.flatMap((packet) => children(packet, 'interned_data'));
  const table = (name: string): Map<string | undefined, Message> =>
    new Map(interned.flatMap((data) => children(data, name)).map((entry) => [scalar(entry, 'iid'), entry]));
  const [stacks, frames, names] = [table('callstacks'), table('frames'), table('function_names')];
  const begins = packets.flatMap((packet) => children(packet, 'track_event')).filter((event) => event.callstack_iid);
  t.equal(begins.length, 2);
  for (const begin of begins) {
    const ids = stacks.get(scalar(begin, 'callstack_iid'))?.frame_ids ?? [];
    const found = ids.map((id) => frames.get(id as string) as Message);
    t.same(
      found.map((frame) => [
        scalar(names.get(scalar(frame, 'function_name_id')) ?? {}, 'str'),
        scalar(frame, 'line_number'),
      ]),
      [
        ['run', undefined],
        ['a::poll', '12'],
      ],
    );
  }
});
