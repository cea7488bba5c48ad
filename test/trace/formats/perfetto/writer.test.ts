import t from 'tap';
import type { AwaitLink, TraceEvent } from '../../../../src/trace/index.js';
import { children, packetEnds, readPerfetto } from '../../decode-perfetto.js';
import { inner, oneTask, root } from '../../one-task.js';
import { futures, link, linked, nanos, suspend0, suspend1 } from '../../stories.js';
import { decode, write } from '../../written.js';

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
      ['tasks waiting', 'labkern'],
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
  t.same(of('labkern'), [
    ['trace', 'rsptrace', 0, 0, 0, undefined],
    ['trace', 'end', 5_000_001_000, 5_000_001_000, 0, undefined],
  ]);
  t.same(of('hart 0'), [
    ['poll', 'a', 0, 500, 0, 'src/a.rs:10'],
    ['poll', 'b', 200, 400, 1, 'src/b.rs:20'],
  ]);
  t.same(of('hart 2'), [['poll', 'a', 5_000_000_123, 5_000_001_000, 0, 'src/a.rs:10']]);
  t.same(of('a @0xffffffff80412340'), [
    ['state', 'a: Suspend0', 100, 100, 0, 'src/a.rs:12'],
    ['derived', 'c::d', 300, 300, 0, 'src/c::d.rs:30'],
    ['wait', 'waiting at src/c.rs:31, in timer Sleep', 500, 5_000_000_123, 0, 'src/c.rs:31'],
    ['task', 'completed', 5_000_001_000, 5_000_001_000, 0, undefined],
  ]);
  const flow = String(root.key);
  t.same(
    slices.map(({ name, flows }) => [name, ...(flows ?? [])]),
    [
      ...[['rsptrace'], ['a', flow], ['a: Suspend0'], ['b'], ['c::d']],
      ...[['waiting at src/c.rs:31, in timer Sleep', flow], ['a', flow], ['completed'], ['end']],
    ],
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

t.test('a task polled by another hart while its last poll seems open: each has its slice on its hart', async (t) => {
  const late = { ...oneTask[5], time: nanos(5_000_000_500) } as TraceEvent;
  const moved = [oneTask[0], oneTask[6], late, oneTask[7]].filter((event) => event !== undefined);
  const { slices } = readPerfetto(decode(write('moved.pftrace', moved)));
  t.same(
    slices.slice(1, -2).map(({ track, begin, end, args }) => [track, begin, end, args.result]),
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
  // Behind it is the trace's end.
  const [last] = decode(bytes.subarray(ends.at(-3)));
  const [event] = last ? children(last, 'track_event') : [];
  t.match(event, { name: ['f65539'], source_location: [{ file_name: ['f65539.rs'], line_number: ['3'] }] });
  t.equal(event && children(event, 'debug_annotations')[0]?.string_value?.[0], 'f65539<T>');
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
