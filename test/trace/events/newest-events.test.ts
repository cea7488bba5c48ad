// The flight recorder: what it keeps is the end of what came, and what was open then; its memory does not grow.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import {
  type CallBegin,
  type FunctionRef,
  type FutureRef,
  type GuestNanos,
  NewestEvents,
  type PollBegin,
  type RootRef,
  Summary,
  type TraceEvent,
  type TraceFacts,
  type TraceInfo,
} from '../../../src/trace/index.js';

const info: TraceInfo = {
  program: 'p',
  buildId: undefined,
  arch: 'a',
  clock: { name: 'c', resolutionNs: 1, guest: true },
  harts: [],
};
const fn: FunctionRef = { key: 1, name: 'f', instance: 'f', address: addr(1n), file: undefined, line: undefined };
const future: FutureRef = {
  key: 1,
  future: 'task',
  instance: 'task',
  kind: 'async_fn',
  file: undefined,
  line: undefined,
};
const at = (time: number): GuestNanos => time as GuestNanos;

const begins = (time: number): CallBegin => ({
  type: 'call-begin',
  time: at(time),
  hart: 0,
  function: fn,
  arguments: [],
  depth: 0,
});
const ends = (time: number, begin: CallBegin): TraceEvent => ({
  type: 'call-end',
  time: at(time),
  hart: 0,
  function: fn,
  begin,
  depth: 0,
  began: begin.time,
});
const polls = (time: number, root: RootRef): PollBegin => ({
  type: 'poll-begin',
  time: at(time),
  hart: 0,
  root,
  future,
  address: root.address,
  state: undefined,
  depth: 0,
});
const waits = (time: number, begin: PollBegin, result: 'pending' | 'ready'): TraceEvent => ({
  ...{ type: 'poll-end', time: at(time), hart: 0, root: begin.root, future, address: begin.address },
  ...{ begin, depth: 0, began: begin.time, result, state: undefined, chain: [] },
});
const root = (key: number): RootRef => ({ key, future, address: addr(BigInt(64 * key)) });

/** What is written at the end. */
function written(newest: { readonly nanos?: number; readonly bytes?: number }, events: Iterable<TraceEvent>) {
  const kept: TraceEvent[] = [];
  let facts: TraceFacts | undefined;
  let begun = 0;
  const sink = {
    begin: () => void begun++,
    hart: () => {},
    event: (event: TraceEvent) => void kept.push(event),
    flush: () => {},
    end: (given?: TraceFacts) => {
      facts = given;
    },
  };
  const recorder = new NewestEvents(sink, { nanos: newest.nanos, bytes: newest.bytes ?? 2 ** 28 });
  recorder.begin(info);
  for (const event of events) {
    recorder.event(event);
    recorder.flush();
    if (kept.length > 0 || begun > 0) throw new Error('written before the end');
  }
  const recording = {
    end: 'until',
    stub: undefined,
    events: 0,
    stops: 0,
    records: 0,
    missing: 0,
    foreignHits: 0,
    neverLoaded: [],
    tailLost: false,
  };
  recorder.end({ probes: [], recording });
  return { kept, leftOut: facts?.recording?.leftOut, recorder };
}

t.test('the newest time is kept, with what is open in it and the last poll of each task that waits', async (t) => {
  const outer = begins(0);
  const over = begins(10);
  const third = root(3);
  const [waiting, ready, late] = [polls(20, root(1)), polls(30, root(2)), polls(40, third)];
  const again = polls(960, third);
  const events = [
    ...[outer, over, ends(15, over), waiting, waits(25, waiting, 'pending'), ready, waits(35, ready, 'ready')],
    ...[late, waits(45, late, 'pending'), again, waits(970, again, 'pending'), ends(1000, outer)],
  ];
  const { kept, leftOut } = written({ nanos: 50 }, events);
  t.same(
    kept.map(({ type, ...rest }) => [type, 'time' in rest && rest.time]),
    [
      ['call-begin', 0],
      ['poll-begin', 20],
      ['poll-end', 25],
      ['poll-begin', 960],
      ['poll-end', 970],
      ['call-end', 1000],
    ],
  );
  t.equal(leftOut, events.length - kept.length);
  t.same(written({ nanos: 5000 }, events).kept, events, 'all, if there is no more');
});

t.test('tasks that are gone are not kept', async (t) => {
  const dropped = (time: number, whose: RootRef): TraceEvent => ({
    ...{ type: 'cancelled', time: at(time), hart: 0, root: whose, future, address: whose.address, state: undefined },
    ...{ by: undefined, caller: { function: undefined, file: undefined, line: undefined } },
  });
  const pends = (time: number, whose: RootRef): TraceEvent[] => {
    const begin = polls(time, whose);
    return [begin, waits(time + 1, begin, 'pending')];
  };
  const one = root(1);
  const late = begins(1000);
  const kept = (...events: readonly TraceEvent[]) =>
    written({ nanos: 50 }, [...events, late]).kept.map((event) => ('root' in event ? event.root?.key : event.type));
  t.same(kept(...pends(0, one)), [1, 1, 'call-begin']);
  t.same(kept(...pends(0, one), dropped(10, one)), ['call-begin']);
  t.same(kept(...pends(0, one), { type: 'reset', time: at(10) }), ['call-begin']);
  const there = { ...root(2), address: one.address };
  t.same(kept(...pends(0, one), ...pends(10, there)), [2, 2, 'call-begin'], 'another lies there');
});

t.test('the end of a call whose loss was left out takes no lost call back', async (t) => {
  const begin = polls(0, root(1));
  const { type: _, ...rest } = begin;
  const lost = { ...rest, type: 'poll-lost', time: at(10), begin, began: begin.time } as TraceEvent;
  const end = { ...waits(1000, begin, 'ready'), wasLost: true } as TraceEvent;
  const { kept } = written({ nanos: 50 }, [begin, lost, end]);
  const summary = new Summary();
  for (const event of kept) summary.event(event);
  t.same(summary.rows(), []);
  t.same(written({ nanos: 5000 }, [begin, lost, end]).kept, [begin, lost, end]);
});

t.test('lines of the console count neither as events nor as ones that were left out', async (t) => {
  const line = (time: number): TraceEvent => ({ type: 'console', time: at(time), text: 'booted' });
  const call = begins(10);
  const { kept, leftOut } = written({ nanos: 50 }, [line(1), line(2), call, ends(20, call), line(970), begins(1000)]);
  t.same(
    kept.map(({ type }) => type),
    ['console', 'call-begin'],
  );
  t.equal(leftOut, 2);
});

t.test('memory is bounded, and so is a time', async (t) => {
  function* calls(count: number): Generator<TraceEvent> {
    for (let i = 0; i < count; i++) {
      const begin = begins(2 * i);
      yield begin;
      yield ends(2 * i + 1, begin);
    }
  }
  const megabyte = written({ bytes: 2 ** 20 }, calls(1_000_000));
  t.ok(megabyte.kept.length > 2000 && megabyte.kept.length < 6000, `${megabyte.kept.length} events in a megabyte`);
  t.equal(megabyte.recorder.isCutByMemory, false, 'as was asked for');
  const [last] = megabyte.kept.slice(-1);
  t.equal(last?.type === 'call-end' && last.time, 1_999_999);
  const time = written({ nanos: 1e9, bytes: 2 ** 20 }, calls(100_000));
  t.equal(time.recorder.isCutByMemory, true);
  t.same(time.kept.length, megabyte.kept.length);
});
