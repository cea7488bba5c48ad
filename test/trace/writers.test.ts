import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import type { AwaitLink, TraceEvent, TraceFacts } from '../../src/trace/index.js';
import { ProtoBuffer } from '../../src/trace/writers/protobuf.js';
import { readChrome } from './decode-chrome.js';
import { children, packetEnds, readPerfetto, type Slice } from './decode-perfetto.js';
import { inner, oneTask, root } from './one-task.js';
import { futures, link, linked, nanos, type Story, stories, suspend0, suspend1, trueWaits } from './stories.js';
import { decode, parse, write } from './written.js';

const fixed = { seed: 20_26, numRuns: 40 };

t.test('every format says at its end which engine each probe used', async (t) => {
  const probe = (name: string, at: bigint, why?: string): TraceFacts['probes'][number] => {
    return { name, address: addr(at), engine: why === undefined ? 'target' : 'stop', why };
  };
  const facts: TraceFacts = {
    probes: [
      probe('a::without', 16n),
      probe('a::stopped', 32n, 'it is short'),
      probe('a::of', 48n),
      probe('a::of', 64n),
    ],
  };
  const wanted = {
    'a::without': 'without stops',
    'a::stopped': 'stops: it is short',
    'a::of @0x30': 'without stops',
    'a::of @0x40': 'without stops',
  };
  const { slices } = readPerfetto(decode(write('engines.pftrace', [], facts)));
  t.same(slices.find(({ name }) => name === 'engines')?.args, wanted);
  const chrome = readChrome(parse(write('engines.json', [], facts)));
  t.same(chrome.find(({ name }) => name === 'engines')?.args, wanted);
  const tree = write('engines.txt', [], facts).toString();
  for (const [name, engine] of Object.entries(wanted)) t.match(tree, `\n# ${name}: ${engine}\n`);
});

t.test('varints and lengths are what protoc reads', async (t) => {
  const numbers = [
    0,
    1,
    127,
    128,
    16_383,
    16_384,
    2 ** 28 - 1,
    2 ** 28,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 49 + 5,
    Number.MAX_SAFE_INTEGER,
  ];
  const wide = [0n, 127n, 128n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n, 0xffff_ffff_8041_2340n];
  const texts = [
    '',
    'x'.repeat(127),
    'x'.repeat(128),
    'é'.repeat(8191),
    'é'.repeat(8192),
    '€\n"\\\u{1f980}',
    'x'.repeat(2_097_152),
  ];
  const buffer = new ProtoBuffer(1);
  for (const text of texts) {
    // A string inside three messages: every length that depends on another is tried on both sides of a varint's width.
    const packet = buffer.open(1);
    const event = buffer.open(11);
    const note = buffer.open(4);
    buffer.text(6, text);
    for (const mark of [note, event, packet]) buffer.close(mark);
  }
  for (const value of numbers) {
    const packet = buffer.open(1);
    buffer.uint(8, value);
    buffer.close(packet);
  }
  for (const value of wide) {
    const packet = buffer.open(1);
    const event = buffer.open(11);
    const note = buffer.open(4);
    buffer.uint64(7, value);
    for (const mark of [note, event, packet]) buffer.close(mark);
  }
  const packets = decode(buffer.bytes.subarray(0, buffer.length));
  const notes = packets.flatMap((p) => children(p, 'track_event')).flatMap((e) => children(e, 'debug_annotations'));
  t.same(
    notes.flatMap((note) => note.string_value ?? []),
    texts,
  );
  t.same(
    notes.flatMap((note) => note.pointer_value ?? []),
    wide.map(String),
  );
  t.same(
    packets.flatMap((packet) => packet.timestamp ?? []),
    numbers.map(String),
  );
  t.throws(() => buffer.uint(8, -1), RangeError);
  t.throws(() => buffer.uint(8, Number.NaN), RangeError);
  buffer.clear();
  t.equal(buffer.length, 0);
});

t.test('a Perfetto trace says what happened to one task', async (t) => {
  const { slices, tracks } = readPerfetto(decode(write('one.pftrace', oneTask)));
  const nameOf = (uuid: string | undefined) => (uuid === undefined ? undefined : tracks.get(uuid)?.name);
  t.same(
    [...tracks.values()].map((track) => [track.name, nameOf(track.parent)]),
    [
      ['labkern', undefined],
      ['tasks', 'labkern'],
      ['hart 0', 'labkern'],
      ['hart 1', 'labkern'],
      ['a @0xffffffff80412340', 'tasks'],
      ['hart 2', 'labkern'],
    ],
  );
  const [process] = [...tracks.values()].flatMap((track) => children(track.descriptor, 'process'));
  t.same(process, { pid: ['1'], process_name: ['labkern'], process_labels: ['riscv64', 'guest clock riscv-time'] });
  const address = root.address.toString();
  const of = (name: string) =>
    slices
      .filter((slice) => nameOf(slice.track) === name)
      .map(({ category, name, begin, end, depth, place }) => [category, name, begin, end, depth, place]);
  t.same(of('labkern'), [['trace', 'rsptrace', 0, 0, 0, undefined]]);
  t.same(of('hart 0'), [
    ['poll', 'a', 0, 500, 0, 'src/a.rs:10'],
    ['poll', 'b', 200, 400, 1, 'src/b.rs:20'],
  ]);
  t.same(of('hart 2'), [['poll', 'a', 5_000_000_123, 5_000_001_000, 0, 'src/a.rs:10']]);
  t.same(of('a @0xffffffff80412340'), [
    ['state', 'a: Suspend0', 100, 100, 0, 'src/a.rs:12'],
    ['derived', 'c::d', 300, 300, 0, 'src/c::d.rs:30'],
    ['wait', 'waiting at src/c.rs:31', 500, 5_000_000_123, 0, 'src/c.rs:31'],
  ]);
  const flow = String(root.key);
  t.same(
    slices.map(({ name, flows }) => [name, ...(flows ?? [])]),
    [['rsptrace'], ['a', flow], ['a: Suspend0'], ['b'], ['c::d'], ['waiting at src/c.rs:31', flow], ['a', flow]],
    'from poll to wait to poll of the task, and not through what is inside',
  );
  const instance = 'a::{async_fn_env#0}';
  const firstPoll = {
    address,
    instance,
    state_before: 'Unresumed',
    result: 'pending',
    state_after: 'Suspend0 at src/a.rs:12',
    await_chain: 'b at src/b.rs:25 > c::d at src/c.rs:31 > timer::Sleep (Unresumed) > timer::Timer',
  };
  const onTask = slices.filter((slice) => nameOf(slice.track) === 'a @0xffffffff80412340');
  t.same(onTask[0]?.args, {
    address,
    instance,
    state_before: 'Unresumed',
    state_after: 'Suspend0 at src/a.rs:12',
    derived: 'false',
  });
  t.same(onTask[1]?.args, {
    address: inner.toString(),
    instance: 'c::d<"\\é\n">::{async_fn_env#0}',
    result: 'pending',
    state_after: 'Suspend1 at src/b.rs:25',
    derived: 'true',
  });
  const onHart = slices.find((slice) => nameOf(slice.track) === 'hart 0');
  t.same(onHart?.args, { ...firstPoll, task: 'a', task_address: address });
});

t.test('a Chrome trace says what happened to one task', async (t) => {
  const records = parse(write('one.json', oneTask));
  t.same(
    records.filter(({ ph }) => ph === 'M').map(({ name, pid, tid, args }) => [name, pid, tid, args]),
    [
      ['process_name', 1, 0, { name: 'labkern' }],
      ['process_labels', 1, 0, { labels: 'riscv64, guest clock riscv-time' }],
      ['thread_name', 1, 1, { name: 'hart 0' }],
      ['thread_sort_index', 1, 1, { sort_index: 0 }],
      ['thread_name', 1, 2, { name: 'hart 1' }],
      ['thread_sort_index', 1, 2, { sort_index: 1 }],
      ['thread_name', 1, 3, { name: 'hart 2' }],
      ['thread_sort_index', 1, 3, { sort_index: 2 }],
    ],
  );
  const slices = readChrome(records);
  const of = (track: string) =>
    slices.filter((slice) => slice.track === track).map(({ name, begin, end, depth }) => [name, begin, end, depth]);
  t.same(of('tid 1'), [
    ['rsptrace', 0, 0, 0],
    ['a', 0, 500, 0],
    ['b', 200, 400, 1],
  ]);
  t.same(of('tid 3'), [['a', 5_000_000_123, 5_000_001_000, 0]]);
  t.same(of('future 0x7'), [
    ['a @0xffffffff80412340', 0, 5_000_001_000, 0],
    ['a', 0, 500, 1],
    ['a: Suspend0', 100, 100, 2],
    ['b', 200, 400, 2],
    ['c::d', 300, 300, 3],
    ['waiting at src/c.rs:31', 500, 5_000_000_123, 1],
    ['a', 5_000_000_123, 5_000_001_000, 1],
  ]);
  t.same(slices.find(({ track, name }) => track === 'tid 1' && name === 'a')?.args, {
    future: 'a::{async_fn_env#0}',
    at: 'src/a.rs:10',
    task: 'a @0xffffffff80412340',
    address: '0xffffffff80412340',
    result: 'pending',
  });
  t.same(slices.find(({ track, name }) => track === 'future 0x7' && name === 'a')?.args, {
    future: 'a::{async_fn_env#0}',
    address: '0xffffffff80412340',
    at: 'src/a.rs:10',
    state_before: 'Unresumed',
    result: 'pending',
    state_after: 'Suspend0 at src/a.rs:12',
    await_chain: 'b at src/b.rs:25 > c::d at src/c.rs:31 > timer::Sleep (Unresumed) > timer::Timer',
  });
});

/** What timelines of a story must show, worked out from the story and not from its events. */
function expected(told: Story): Record<'harts' | 'tasks' | 'waits', string[]> {
  const row = (...cells: unknown[]) => cells.join(' ');
  const over = told.polls.map((poll) => row(poll.future.future, poll.begin, poll.end, poll.result));
  return {
    harts: told.polls.map((poll, i) => row('hart', poll.hart, poll.around.length, over[i])).sort(),
    tasks: told.polls
      .map((poll, i) =>
        row('task', poll.root.key, poll.around.filter((outer) => outer.root === poll.root).length, over[i]),
      )
      .sort(),
    waits: trueWaits(told)
      .map(({ root, begin, end }) => row('wait', root.key, begin, end))
      .sort(),
  };
}

function shown(
  slices: readonly Slice[],
  harts: Map<string, number>,
  tasks: Map<string, number>,
  depthOfTask: number,
): ReturnType<typeof expected> {
  const row = (...cells: unknown[]) => cells.join(' ');
  const rows = { harts: [] as string[], tasks: [] as string[], waits: [] as string[] };
  for (const { kind, track, name, begin, end, depth, args } of slices) {
    const hart = harts.get(track);
    const task = tasks.get(track);
    if (kind !== 'slice') continue;
    if (hart !== undefined) rows.harts.push(row('hart', hart, depth, name, begin, end, args.result));
    else if (name.startsWith('waiting')) rows.waits.push(row('wait', task, begin, end));
    else if (depth >= depthOfTask)
      rows.tasks.push(row('task', task, depth - depthOfTask, name, begin, end, args.result));
  }
  for (const list of Object.values(rows)) list.sort();
  return rows;
}

t.test('whatever happens in the guest, both formats show each poll and each wait as it was', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, (told) => {
        const { slices, tracks } = readPerfetto(decode(write('p.pftrace', told.events)));
        const harts = new Map([
          ['4', 0],
          ['6', 1],
        ]);
        const tasks = new Map(
          [...tracks.keys()].filter((uuid) => Number(uuid) % 2 === 1).map((uuid) => [uuid, (Number(uuid) - 3) / 2]),
        );
        // One slice a poll, on its hart; what joins a task's polls are flows.
        assert.deepEqual(shown(slices, harts, tasks, 0), { ...expected(told), tasks: [] });
        const outermost = told.polls.filter(({ root, around }) => around.every((outer) => outer.root !== root));
        const flowing = slices.filter(({ category, flows = [] }) => category === 'poll' && flows.length > 0);
        assert.deepEqual(
          flowing.map(({ name, begin, flows }) => [name, begin, ...(flows ?? [])].join(' ')).sort(),
          outermost.map(({ future, begin, root }) => [future.future, begin, root.key].join(' ')).sort(),
        );
        assert.equal(slices.filter(({ kind }) => kind === 'instant').length, told.instants.length + 1);

        const chrome = readChrome(parse(write('p.json', told.events)));
        const chromeHarts = new Map([
          ['tid 1', 0],
          ['tid 2', 1],
        ]);
        const chromeTasks = new Map(chrome.map(({ track }) => [track, Number(track.split(' ')[1])]));
        assert.deepEqual(shown(chrome, chromeHarts, chromeTasks, 1), expected(told));
        assert.equal(chrome.filter(({ kind }) => kind === 'instant').length, told.instants.length + 1);
      }),
      fixed,
    ),
  );
});

t.test('events that are missing cost the slices they are about, and nothing else', async (t) => {
  const holes = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 130, maxLength: 130 });
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, holes, (told, kept) => {
        const events = told.events.filter((_, i) => kept[i] !== 0);
        // Both readers throw where an end has no begin, or ends another slice than its own.
        const { slices } = readPerfetto(decode(write('h.pftrace', events)));
        const chrome = readChrome(parse(write('h.json', events)));
        const polls = (list: readonly Slice[]) =>
          list.filter(({ category, kind }) => category === 'poll' && kind === 'slice');
        const begins = events.filter(({ type }) => type === 'poll-begin').length;
        assert.equal(polls(slices).length, begins);
        assert.equal(polls(chrome).length, begins);
      }),
      fixed,
    ),
  );
});

t.test('a poll that the trace begins in the middle of leaves an instant, and its wait', async (t) => {
  const tail = oneTask.slice(5, 7);
  const { slices } = readPerfetto(decode(write('tail.pftrace', tail)));
  t.same(
    slices.map(({ kind, name, begin, end }) => [kind, name, begin, end]),
    [
      ['instant', 'rsptrace', 500, 500],
      ['instant', 'a', 500, 500],
      ['slice', 'waiting at src/c.rs:31', 500, 5_000_000_123],
      ['slice', 'a', 5_000_000_123, undefined],
    ],
    'all begins with the first event',
  );
  t.same(
    readChrome(parse(write('tail.json', tail))).map(({ kind, name, begin, end }) => [kind, name, begin, end]),
    [
      ['instant', 'rsptrace', 500, 500],
      ['slice', 'a @0xffffffff80412340', 500, undefined],
      ['instant', 'a', 500, 500],
      ['instant', 'a', 500, 500],
      ['slice', 'waiting at src/c.rs:31', 500, 5_000_000_123],
      ['slice', 'a', 5_000_000_123, undefined],
      ['slice', 'a', 5_000_000_123, undefined],
    ],
  );
});

t.test('a task polled by another hart while its last poll seems open: each has its slice on its hart', async (t) => {
  const late = { ...oneTask[5], time: nanos(5_000_000_500) } as TraceEvent;
  const moved = [oneTask[0], oneTask[6], late, oneTask[7]].filter((event) => event !== undefined);
  const { slices } = readPerfetto(decode(write('moved.pftrace', moved)));
  t.same(
    slices.slice(1).map(({ track, begin, end, args }) => [track, begin, end, args.result]),
    [
      ['4', 0, 5_000_000_500, 'pending'],
      ['8', 5_000_000_123, 5_000_001_000, 'ready'],
    ],
  );
});

t.test('more names than a table holds are written in place', async (t) => {
  const events = Array.from({ length: 65_540 }, (_, i): TraceEvent => {
    const own = { key: i, future: `f${i}`, instance: `f${i}<T>`, kind: 'impl', file: `f${i}.rs`, line: 3 } as const;
    const at = { time: nanos(i), hart: 0, root, future: own, address: root.address };
    return { type: 'derived-poll', ...at, result: 'ready', state: undefined };
  });
  const bytes = write('names.pftrace', events);
  const ends = packetEnds(bytes);
  const [last] = decode(bytes.subarray(ends.at(-2)));
  const [event] = last ? children(last, 'track_event') : [];
  t.match(event, { name: ['f65539'], source_location: [{ file_name: ['f65539.rs'], line_number: ['3'] }] });
  t.equal(event && children(event, 'debug_annotations')[1]?.string_value?.[0], 'f65539<T>');
  t.notOk(event?.name_iid ?? event?.source_location_iid ?? last?.interned_data);
});

t.test(
  'roots that follow each other at one place have tracks of their own, and each poll the chain that it ended with',
  async (t) => {
    const [future, other] = futures;
    const told: [string, ...AwaitLink[]][] = [
      ['b at src/b.rs:25', link(other, 'b', suspend1)],
      ['b at src/b.rs:25', link(other, 'b', suspend1)],
      ['b at src/a.rs:12', link(other, 'b', suspend0)],
      ['c at src/a.rs:12', link(undefined, 'c', suspend0)],
      ['c at src/a.rs:12 > d', link(undefined, 'c', suspend0), link(undefined, 'd', undefined)],
    ];
    const events = told.flatMap(([, ...chain], i): TraceEvent[] => {
      const whose = { root: { key: i + 1, future, address: root.address }, future, address: root.address };
      const [began, time] = [nanos(i * 10), nanos(i * 10 + 5)];
      return linked([
        { type: 'poll-begin', ...whose, hart: 0, time: began, depth: 0, state: undefined },
        { type: 'poll-end', ...whose, hart: 0, depth: 0, began, time, result: 'pending', state: undefined, chain },
      ]);
    });
    const { slices, tracks } = readPerfetto(decode(write('roots.pftrace', events)));
    const polls = slices.filter(
      ({ category, track }) => category === 'wait' && tracks.get(track)?.name?.startsWith('a @'),
    );
    t.same(
      polls.map(({ args }) => args.await_chain),
      told.map(([text]) => text),
    );
    t.equal(new Set(polls.map(({ track }) => track)).size, 5);
  },
);
