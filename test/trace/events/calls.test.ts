import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import {
  CallTree,
  FunctionSummary,
  functionJson,
  functionTable,
  reportBy,
  Summary,
  Threshold,
  type TraceEvent,
  type TraceSink,
} from '../../../src/trace/index.js';
import { codePoint } from '../../support/code-points.js';
import { type CallStory, callStories, functions, type TrueCall } from '../call-stories.js';
import { readChrome } from '../decode-chrome.js';
import { readPerfetto, type Slice } from '../decode-perfetto.js';
import { futures, linked, nanos, tell } from '../stories.js';
import { decode, parse, readBack, write } from '../written.js';

const fixed = { seed: 20_27, numRuns: 40 };
const [main, leaf, add] = functions as [(typeof functions)[0], (typeof functions)[0], (typeof functions)[0]];

/** main calls leaf twice and polls; the poll calls add, which never returns; then an interrupt on top of main. */
const told: TraceEvent[] = linked([
  { type: 'call-begin', function: main, hart: 0, depth: 0, time: nanos(0), arguments: [{ name: 'argc', value: '1' }] },
  { type: 'call-begin', function: leaf, hart: 0, depth: 1, time: nanos(100), arguments: [] },
  { type: 'call-end', function: leaf, hart: 0, depth: 1, time: nanos(1400), began: nanos(100), result: 'Some(3)' },
  { type: 'poll-begin', ...poll(), hart: 0, depth: 1, time: nanos(2000), state: undefined },
  { type: 'call-begin', function: add, hart: 0, depth: 2, time: nanos(2000), arguments: [] },
  { type: 'call-lost', function: add, hart: 0, depth: 2, time: nanos(3000), began: nanos(2000) },
  { type: 'poll-end', ...poll(), hart: 0, depth: 1, time: nanos(3000), began: nanos(2000), ...pending() },
  { type: 'call-begin', function: leaf, hart: 0, depth: 1, time: nanos(4000), arguments: [] },
  { type: 'call-lost', function: leaf, hart: 0, depth: 1, time: nanos(4500), began: nanos(4000) },
  { type: 'call-end', function: main, hart: 0, depth: 0, time: nanos(2_000_000), began: nanos(0) },
  { type: 'call-end', function: add, hart: 0, depth: 0, time: nanos(2_000_100), began: nanos(7), result: '9' },
]);

function poll() {
  return { root: { key: 3, future: futures[1], address: main.address }, future: futures[1], address: main.address };
}

function pending() {
  return { result: 'pending' as const, state: undefined, chain: [] };
}

t.test('times of calls and polls that a stop is in are upper bounds, if others have none', async (t) => {
  const bounds = (isMixed: boolean, ...types: TraceEvent['type'][]): string[] => {
    const [calls, polls] = [new FunctionSummary(), new Summary()];
    const marked = told.map((event) => (types.includes(event.type) ? { ...event, stopped: true as const } : event));
    for (const summary of [calls, polls]) tell(summary, marked as TraceEvent[]);
    return [
      ...calls.rows(undefined, undefined, isMixed).flatMap((row) => (row.times_at_most ? row.function : [])),
      ...polls.rows(undefined, undefined, isMixed).flatMap((row) => (row.times_at_most ? row.future : [])),
    ];
  };
  t.same(bounds(true), []);
  t.same(bounds(true, 'call-end'), ['main', 'k::work::leaf']);
  t.same(bounds(true, 'call-lost'), [], 'none of it has a time');
  t.same(bounds(true, 'poll-end'), ['b']);
  t.same(bounds(false, 'call-end', 'poll-end'), []);
});

t.test('a saved trace has them, too, ends without their begins among them', async (t) => {
  const isOfCalls = ({ type }: { readonly type: string }): boolean => /^(call|poll)-/.test(type);
  const counts = { events: 11, stops: 2, records: 9, missing: 0, foreignHits: 0, stopsBeside: 2 };
  const recording = { end: 'interrupted', stub: undefined, ...counts, neverLoaded: [], tailLost: false };
  for (const type of ['call-end', 'poll-end'] as const) {
    const marked = told.map((event) => (event.type === type ? { ...event, stopped: true as const } : event));
    write('stopped.pftrace', marked as TraceEvent[], { probes: [], recording });
    const events = await readBack('stopped.pftrace');
    const marks = (list: readonly object[]): boolean[] =>
      list.map((event) => 'stopped' in event && event.stopped === true);
    t.same(marks(events.filter(isOfCalls)), marks(marked.filter(isOfCalls)));
    const reports = [reportBy('fn'), reportBy('future')];
    for (const report of reports) tell(report, events, { probes: [], recording });
    const bound = reports.flatMap((report) => report.rows().flatMap((row) => (row.timesAtMost ? row.name : [])));
    t.same(bound, type === 'call-end' ? ['main', 'k::work::leaf'] : ['b']);
  }
});

t.test('a call tree to read', async (t) => {
  t.equal(
    write('calls.txt', told).toString(),
    [
      '# labkern, riscv64, guest clock riscv-time',
      '# [ 0] is hart 0',
      '# [ 1] is hart 1',
      '#           TIME    DURATION  HART',
      '        0.000 us              [ 0]  main(argc: 1) {',
      '        0.100 us      1.3 us  [ 0]    k::work::leaf() = Some(3)',
      '        2.000 us              [ 0]    poll b {',
      '        2.000 us      1.0 us  [ 0]      k::work::add() = lost',
      '        3.000 us      1.0 us  [ 0]    } = pending /* poll b */',
      '        4.000 us      500 ns  [ 0]    k::work::leaf() = lost',
      '     2000.000 us      2.0 ms  [ 0]  } /* main */',
      '     2000.100 us              [ 0]  k::work::add = 9',
      '',
    ].join('\n'),
  );
});

t.test('slices of calls, with what they were given and gave', async (t) => {
  const { slices } = readPerfetto(decode(write('calls.pftrace', told)));
  const calls = slices.filter(({ category }) => category === 'call');
  t.strictSame(
    calls.map(({ name, kind, begin, end, depth, place }) => [name, kind, begin, end, depth, place]),
    [
      ['main', 'slice', 0, 2_000_000, 0, 'src/work.rs:1'],
      ['k::work::leaf', 'slice', 100, 1400, 1, 'src/work.rs:11'],
      ['k::work::add', 'slice', 2000, 3000, 2, 'src/work.rs:21'],
      ['k::work::leaf', 'slice', 4000, 4500, 1, 'src/work.rs:11'],
      ['k::work::add', 'instant', 2_000_100, 2_000_100, 0, 'src/work.rs:21'],
    ],
  );
  const address = (fn: typeof main) => fn.address.toString();
  t.strictSame(
    calls.map(({ args }) => args),
    [
      { address: address(main), arg_argc: '1' },
      { address: address(leaf), returned: 'Some(3)' },
      { address: address(add), instance: 'k::work::add::<u8>', result: 'lost' },
      { address: address(leaf), result: 'lost' },
      { address: address(add), instance: 'k::work::add::<u8>', returned: '9', began: '7' },
    ],
  );
  const chrome = readChrome(parse(write('calls.json', told))).filter(({ category }) => category === 'call');
  t.strictSame(
    chrome.map(({ name, begin, end, depth, args }) => [name, begin, end, depth, args.returned ?? args.result]),
    calls.map(({ name, begin, end, depth, args }) => [name, begin, end, depth, args.returned ?? args.result]),
  );
  t.match(chrome[0]?.args, { function: 'main', arguments: 'argc: 1', at: 'src/work.rs:1' });
});

t.test('values of any text and length, on more harts than are at hand, come back as they were', async () => {
  const text = fc.oneof(
    fc.string({ unit: codePoint, maxLength: 40 }),
    fc.string({ minLength: 100, maxLength: 140 }),
    fc.string({ minLength: 100, maxLength: 5000 }),
  );
  const call = fc.record({ hart: fc.nat(39), args: fc.array(text, { maxLength: 4 }), result: fc.option(text) });
  // The reader of protoc's answer takes bytes, and lone halves of characters have none.
  const kept = (value: string) => Buffer.from(value).toString();
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 60 }), (calls) => {
      const events = linked(
        calls.flatMap(({ hart, args, result }, i): TraceEvent[] => {
          const at = { function: i % 3 === 0 ? add : leaf, hart, depth: 0 };
          const began = nanos(1000 * i);
          const values = args.map((value, name) => ({ name: `a${name}`, value: kept(value) }));
          return [
            { type: 'call-begin', ...at, time: began, arguments: values },
            {
              type: 'call-end',
              ...at,
              time: nanos(1000 * i + 500),
              began,
              result: result === null ? undefined : kept(result),
            },
          ];
        }),
      );
      const { slices, tracks } = readPerfetto(decode(write('values.pftrace', events)));
      const seen = slices.filter(({ category }) => category === 'call').sort((a, b) => a.begin - b.begin);
      assert.equal(seen.length, calls.length);
      for (const [i, { hart, args, result }] of calls.entries()) {
        const slice = seen[i] as Slice;
        assert.equal(tracks.get(slice.track)?.name, `hart ${hart}`);
        assert.deepEqual(
          args.map((_, name) => slice.args[`arg_a${name}`]),
          args.map(kept),
        );
        assert.equal(slice.args.returned, result === null ? undefined : kept(result));
      }
    }),
    fixed,
  );
});

t.test('calls and polls nest on their hart as they did', async () => {
  const spans = (list: { name: string; begin: number; end: number | undefined; depth: number }[]) =>
    list.map(({ name, begin, end, depth }) => `${depth} ${name} ${begin} ${end}`).sort();
  const truth = (story: CallStory, hart: number) =>
    spans(story.calls.filter((call) => call.hart === hart).map((call) => ({ ...call, depth: call.around.length })));
  fc.assert(
    fc.property(callStories, (story) => {
      const { slices, tracks } = readPerfetto(decode(write('story.pftrace', story.events)));
      const chrome = readChrome(parse(write('story.json', story.events)));
      for (const hart of [0, 1]) {
        const isHere = (slice: Slice) => tracks.get(slice.track)?.name === `hart ${hart}`;
        assert.deepEqual(spans(slices.filter(isHere)), truth(story, hart));
        assert.deepEqual(
          spans(chrome.filter(({ track, name }) => track === `tid ${hart + 1}` && name !== 'rsptrace')),
          truth(story, hart),
        );
      }
    }),
    fixed,
  );
});

t.test('calls of threads that take turns on two harts nest in their threads', async (t) => {
  const threads = [0, 1].map((key) => ({ key, stack: addr(0xff20_0000_0001_0000n + BigInt(key) * 0x4000n) }));
  const spans = (list: { name: string; begin: number; end: number | undefined; depth: number }[]) =>
    list.map(({ name, begin, end, depth }) => `${depth} ${name} ${begin} ${end}`).sort();
  fc.assert(
    fc.property(callStories, (story) => {
      const alone = story.events.filter((event) => 'function' in event);
      const events = linked(alone.map((event) => ({ ...event, hart: event.time % 2, thread: threads[event.hart] })));
      const { slices, tracks } = readPerfetto(decode(write('threads.pftrace', events)));
      const chrome = readChrome(parse(write('threads.json', events)));
      for (const { key, stack } of threads) {
        const truth = story.calls
          .filter((call) => call.function && call.hart === key)
          .map((call) => ({ ...call, depth: call.around.filter((one) => one.function).length }));
        const isHere = (slice: Slice) => tracks.get(slice.track)?.name === `stack 0x${stack.toString(16)}`;
        assert.deepEqual(spans(slices.filter(isHere)), spans(truth));
        assert.deepEqual(spans(chrome.filter(({ track }) => track === `tid ${100_001 + key}`)), spans(truth));
      }
      for (const { category, begin, args } of [...slices, ...chrome]) {
        if (category === 'call') assert.equal(Number(args.hart), begin % 2);
      }
      assert.deepEqual(summarize(events), summarize(linked(alone)));
    }),
    fixed,
  );
  const [thread, other] = threads;
  const turns = told.slice(0, 2).map((event, index) => ({ ...event, thread: index === 0 ? thread : other }));
  t.match(write('turns.txt', turns as TraceEvent[]).toString(), /\[ 0:0\] {2}main.*\n.*\n.*\[ 0:1\] {2}k::work::leaf/);
});

t.test('a tree has a line or two for each call, indented by what is around it', async () => {
  fc.assert(
    fc.property(callStories, (story) => {
      const lines = write('story.txt', story.events).toString().split('\n');
      const begins = lines.filter(
        (line) => /\(.*\)( = .*| \{)?$|^[^}]* poll [^*]*$/.test(line) && !line.startsWith('#') && !line.includes('/*'),
      );
      const seen = begins.map((line) => /\[ (\d)\] {2}( *)(?:poll )?([\w:]+)/.exec(line)?.slice(1, 4).join('|')).sort();
      const truth = story.calls.map((call) => `${call.hart}|${'  '.repeat(call.around.length)}|${call.name}`).sort();
      assert.deepEqual(seen, truth);
    }),
    fixed,
  );
});

function summarize(events: readonly TraceEvent[]) {
  const summary = new FunctionSummary();
  tell(summary, events);
  return functionJson(summary.rows());
}

t.test('own times in the merged tree add up to the time that passed, polls inside polls too', async () => {
  fc.assert(
    fc.property(callStories, (story) => {
      const tree = new CallTree();
      tell(tree, story.events);
      const own = [...tree.nodes()].reduce((sum, node) => sum + node.self, 0);
      const hasReturned = (call: TrueCall): boolean => call.end !== undefined && !call.lost;
      const outermost = story.calls.filter((call) => hasReturned(call) && !call.around.some(hasReturned));
      assert.equal(
        own,
        outermost.reduce((sum, { begin, end = 0 }) => sum + end - begin, 0),
      );
    }),
    fixed,
  );
});

t.test("the functions' table counts what happened", async (t) => {
  fc.assert(
    fc.property(callStories, (story) => {
      const rows = functions.map((fn) => {
        const calls = story.calls.filter((call) => call.function === fn);
        const returned = calls.filter((call) => call.end !== undefined && !call.lost);
        const span = (call: TrueCall) => (call.end ?? 0) - call.begin;
        const sum = (list: readonly TrueCall[]) => list.reduce((total, call) => total + span(call), 0);
        // A call's own time: without the nearest calls and polls inside it that returned; of one that was lost, those inside that.
        const inside = (call: TrueCall): readonly TrueCall[] =>
          story.calls
            .filter((one) => one.around.at(-1) === call)
            .flatMap((one) => (!one.lost && one.end !== undefined ? [one] : inside(one)));
        const outer = returned.filter((call) => !call.around.some((one) => returned.includes(one)));
        return {
          function: fn.name,
          instance: fn.instance,
          address: `0x${fn.address.toString(16)}`,
          file: fn.file ?? null,
          line: fn.line ?? null,
          calls: calls.length,
          at_least: false,
          lost: calls.filter((call) => call.lost).length,
          total_ns: sum(outer),
          self_ns: returned.reduce((total, call) => total + span(call) - sum(inside(call)), 0),
          avg_ns: returned.length === 0 ? 0 : Math.round(sum(returned) / returned.length),
          max_ns: Math.max(0, ...returned.map(span)),
        };
      });
      assert.deepEqual(summarize(story.events), functionJson(rows.filter(({ calls }) => calls > 0)));
    }),
    fixed,
  );
  t.equal(
    functionTable(summarize(told), { color: false, width: 200 }),
    [
      'calls  lost   total    self  average  longest  function       file:line',
      '    1     0  2.0 ms  2.0 ms   2.0 ms   2.0 ms  main           src/work.rs:1',
      '    2     1  1.3 us  1.3 us   1.3 us   1.3 us  k::work::leaf  src/work.rs:11',
      '    1     1       -       -        -        -  k::work::add   src/work.rs:21',
      '',
    ].join('\n'),
  );
  t.equal(functionTable([], { color: false, width: 80 }), 'no calls were recorded\n');
});

class Kept implements TraceSink {
  readonly events: TraceEvent[] = [];
  ended = 0;
  begin(): void {}
  hart(): void {}
  flush(): void {}
  event(event: TraceEvent): void {
    this.events.push(event);
  }
  end(): void {
    this.ended++;
  }
}

function timeOf(event: TraceEvent | undefined): number {
  return event === undefined ? 0 : event.type === 'gap' ? event.to : event.time;
}

t.test('a threshold leaves out exactly the calls that are shorter, in order', async (t) => {
  fc.assert(
    fc.property(callStories, fc.integer({ min: 1, max: 400 }), (story, limit) => {
      const kept = new Kept();
      tell(new Threshold(kept, limit), story.events);
      assert.equal(kept.ended, 1);
      const last = timeOf(story.events.at(-1));
      // One that was open when the last event came, or lost with it, may have gone on for any time.
      const isOpen = ({ end, lost }: TrueCall) => end === undefined || (lost && end === last);
      const stays = (call: TrueCall) => !call.function || isOpen(call) || (call.end ?? last) - call.begin >= limit;
      const long = new Set(
        story.calls.filter(stays).map((call) => `${call.hart} ${call.around.length} ${call.begin} ${call.name}`),
      );
      const key = (event: TraceEvent): string => {
        if (!('depth' in event)) throw new Error('stories have none');
        const began = 'began' in event ? event.began : event.time;
        const name = 'function' in event ? event.function.name : event.future.future;
        return `${event.hart} ${event.depth} ${began} ${name}`;
      };
      // Two calls may begin at one time at one depth: they are told apart by their durations only, so counts are compared.
      const expected = story.events.filter((event) => long.has(key(event)));
      const twice =
        new Set(story.calls.map((call) => `${call.hart} ${call.around.length} ${call.begin} ${call.name}`)).size <
        story.calls.length;
      if (!twice) assert.deepEqual(kept.events, expected);
      const times = kept.events.map(timeOf);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => a - b),
      );
    }),
    { ...fixed, numRuns: 200 },
  );
  const kept = new Kept();
  tell(new Threshold(kept, 1000), told);
  t.strictSame(
    kept.events.map((event) => [event.type, timeOf(event)]),
    [
      ['call-begin', 0],
      ['call-begin', 100],
      ['call-end', 1400],
      ['poll-begin', 2000],
      ['call-begin', 2000],
      ['call-lost', 3000],
      ['poll-end', 3000],
      ['call-end', 2_000_000],
      ['call-end', 2_000_100],
    ],
  );
});

t.test(
  'what nobody saw return may have lasted: at the end, before a gap or a reset, and where no return is observed',
  async (t) => {
    const call = (time: number, depth: number) => ({
      function: leaf,
      hart: 0,
      depth,
      time: nanos(time),
      arguments: [],
    });
    const lost = (began: number, time: number, depth: number) =>
      ({ type: 'call-lost', ...call(time, depth), began: nanos(began) }) as const;
    const events = linked([
      { type: 'call-begin', ...call(10, 0) },
      { ...lost(10, 10, 0), entryOnly: true },
      { type: 'call-begin', ...call(20, 0) },
      lost(20, 30, 0),
      { type: 'call-begin', ...call(40, 0) },
      lost(40, 50, 0),
      { type: 'gap', from: nanos(50), to: nanos(9000) },
      { type: 'call-begin', ...call(9050, 0) },
      lost(9050, 9060, 0),
      { type: 'reset', time: nanos(9060) },
      { type: 'call-begin', ...call(9100, 0) },
      { type: 'call-begin', ...call(9200, 1) },
      lost(9200, 9200, 1),
      lost(9100, 9200, 0),
    ]);
    const kept = new Kept();
    tell(new Threshold(kept, 1000), events);
    // Not that of 20, which was gone before that of 40 began.
    const short = [events[2], events[3]];
    t.same(
      kept.events,
      events.filter((event) => !short.includes(event)),
    );
  },
);
