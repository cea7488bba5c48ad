// What is read back, against what was recorded: the events that the writer was given, and Perfetto's own schema.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { RsptraceError } from '../../../../src/base/errors.js';
import {
  FunctionSummary,
  functionJson,
  onEvents,
  openTrace,
  type RootRef,
  readTrace,
  Summary,
  summaryJson,
  TaskSummary,
  TasksAt,
  type TraceEvent,
  type TraceFacts,
  type TraceSink,
  tee,
} from '../../../../src/trace/index.js';
import { cases, long } from '../../../support/long.js';
import { randomOf } from '../../../support/mutations.js';
import { callStories, functions } from '../../call-stories.js';
import { packetEnds } from '../../decode-perfetto.js';
import { oneTask, root } from '../../one-task.js';
import { futures, info, linked, nanos, stories, suspend0, tell } from '../../stories.js';
import { folder, write } from '../../written.js';

type Facts = TraceFacts | undefined;

/** Keeps what it is given. */
function keeper() {
  const events: TraceEvent[] = [];
  const kept = { events, info: undefined as unknown, harts: [] as unknown[], ends: 0, facts: undefined as Facts };
  const sink: TraceSink = {
    ...onEvents((event) => void events.push(event)),
    begin: (info) => Object.assign(kept, { info }),
    hart: (hart) => void kept.harts.push(hart),
    end: (facts) => Object.assign(kept, { facts, ends: kept.ends + 1 }),
  };
  return { sink, kept };
}

/** The rows of both tables. */
const tables = () => {
  const [polls, calls] = [new Summary(), new FunctionSummary()];
  return {
    sink: tee([polls, calls]),
    // The number of a Future's place is not in the trace until it is polled.
    rows: () => ({ polls: summaryJson(polls.rows()), calls: functionJson(calls.rows()) }),
  };
};

async function again(name: string, events: readonly TraceEvent[], facts?: TraceFacts) {
  const first = write(name, events, facts);
  const copy = join(folder, `again-${name}`);
  const after = tables();
  const read = await readTrace(join(folder, name), tee([openTrace(copy, { force: true }), after.sink]));
  return { first, second: readFileSync(copy), read, after: after.rows() };
}

t.test('read back and written again, a trace is the same file; its tables are those of the recording', async (t) => {
  for (const told of [stories, callStories]) {
    await fc.assert(
      fc.asyncProperty(told as fc.Arbitrary<{ events: TraceEvent[] }>, async ({ events }) => {
        const { first, second, read, after } = await again('story.pftrace', events);
        assert.ok(first.equals(second));
        assert.equal(read.cut, undefined);
        assert.ok(read.isOwn);
        const before = tables();
        tell(before.sink, events);
        const withoutPlaces = (rows: object) => JSON.parse(JSON.stringify(rows)) as object;
        assert.deepEqual(withoutPlaces(after), withoutPlaces(before.rows()));
      }),
      { seed: 20_26, numRuns: 100 },
    );
  }
  t.pass();
});

t.test('tasks at one address of two spaces are read back as two, with their wakes', async (t) => {
  const [one, other] = [0x8025_4000n, 0x8025_8000n].map((space, key) => {
    return { key, future: futures[0], address: addr(0x8040_0000n), space: addr(space) };
  }) as [RootRef, RootRef];
  const polled = (root: RootRef, began: number) => {
    const { key, future, address, space } = root;
    const at = { hart: 0, root, future, address, depth: 0, thread: { key, stack: addr(0x8021_0000n), space } };
    const end = { time: nanos(began + 5), began: nanos(began), result: 'pending', state: suspend0, chain: [] } as const;
    return [
      { type: 'poll-begin', ...at, time: nanos(began), state: suspend0 } as const,
      { type: 'poll-end', ...at, ...end } as const,
    ];
  };
  const wake = (root: RootRef, time: number): TraceEvent => {
    const caller = { function: undefined, file: undefined, line: undefined };
    return { type: 'wake', time: nanos(time), hart: 0, waker: root.address, root, by: undefined, caller };
  };
  const begun = [...polled(one, 10), ...polled(other, 20), wake(one, 30), ...polled(one, 40), ...polled(other, 50)];
  const events = linked(begun as TraceEvent[]);
  const rows = (tasks: TaskSummary) => tasks.rows('all').map(({ polls, wakes, state }) => ({ polls, wakes, state }));
  const wanted = [
    { polls: 2, wakes: 1, state: 'waiting' },
    { polls: 2, wakes: 0, state: 'waiting' },
  ];
  const recorded = new TaskSummary();
  tell(recorded, events);
  t.strictSame(rows(recorded), wanted);
  const { first, second, read } = await again('spaces.pftrace', events);
  t.ok(first.equals(second));
  t.ok(read.isOwn);
  const tasks = new TaskSummary();
  await readTrace(join(folder, 'spaces.pftrace'), tasks);
  t.strictSame(rows(tasks), wanted);
  const at = new TasksAt(1000);
  await readTrace(join(folder, 'spaces.pftrace'), at);
  t.strictSame(
    at.tasks().map(({ root, polls }) => [root.space, polls]),
    [one, other].map(({ space }) => [space, 2]),
  );
});

t.test('of a poll whose end was not seen, the poll around it says that it is over', (t) => {
  const [future, inner] = futures;
  assert.ok(future && inner);
  const root: RootRef = { key: 0, future, address: addr(0x8040_0000n) };
  const at = { hart: 0, root, thread: { key: 0, stack: addr(0x8021_0000n) } };
  const begin = { type: 'poll-begin', ...at, future, address: root.address, depth: 0, state: suspend0 } as const;
  const events = linked([
    { ...begin, time: nanos(10) },
    { ...begin, future: inner, address: addr(0x8040_0010n), depth: 1, time: nanos(20) },
    { ...begin, type: 'poll-end', time: nanos(30), began: nanos(10), result: 'pending', chain: [] },
  ] as TraceEvent[]);
  const tasks = new TasksAt(1000);
  tell(tasks, events);
  const [{ state, tree: [outer] = [] } = {}] = tasks.tasks();
  t.equal(state, 'waiting');
  t.strictSame(
    [outer, outer?.awaits[0]].map((each) => each?.isOpen),
    [false, false],
  );
  t.end();
});

const thread = (key: number) => ({ key, stack: addr(0x8021_0000n + BigInt(key) * 0x1000n), space: addr(0x8025_4000n) });
const [main, leaf] = functions;
assert.ok(main && leaf);

/** Everything that is neither a poll nor a call of one stack. */
const sundry: TraceEvent[] = [
  ...linked([
    { type: 'call-begin', time: nanos(10), hart: 0, thread: thread(1), depth: 0, function: main, arguments: [] },
    {
      type: 'call-begin',
      time: nanos(20),
      hart: 1,
      thread: thread(2),
      depth: 0,
      function: leaf,
      arguments: [{ name: 'address', value: '"é\n"' }],
    },
    { type: 'call-end', time: nanos(40), hart: 0, thread: thread(2), depth: 0, began: nanos(20), function: leaf },
    { type: 'call-end', time: nanos(50), hart: 1, thread: thread(1), depth: 0, began: nanos(10), function: main },
  ]),
  {
    type: 'watch',
    time: nanos(60),
    hart: 1,
    watch: {
      key: 0,
      name: 'k::POLLS',
      access: 'rw',
      asked: 'rw',
      address: addr(0x8000_1000n),
      size: 8,
      type: 'usize',
    },
    access: 'write',
    old: '4',
    value: '5',
    number: 5,
    changed: true,
    pc: addr(0xffff_ffff_8000_0044n),
    by: { function: 'k::work::leaf', file: 'src/work.rs', line: 12 },
    inlined: [
      { function: 'k::work::leaf', file: 'src/work.rs', line: 12 },
      { function: 'main', file: undefined, line: undefined },
    ],
  },
  {
    type: 'place',
    time: nanos(70),
    hart: 0,
    place: {
      key: 0,
      name: 'src/work.rs:42',
      category: 'line',
      address: addr(0x8000_2000n),
      by: { function: 'k::work::add', file: 'src/work.rs', line: 42 },
    },
  },
  { type: 'gap', from: nanos(80), to: nanos(90) },
  { type: 'reset', time: nanos(95) },
];

const facts: TraceFacts = {
  probes: [
    { name: 'k::work::leaf', address: addr(0x8000_0000n), engine: 'target', why: undefined },
    { name: 'k::work::add', address: addr(0x8000_0040n), engine: 'stop', why: 'too short: 2 bytes' },
    { name: 'k::work::add', address: addr(0x8000_0080n), engine: 'none', why: undefined },
  ],
  ownTime: { leastNs: 61, mostNs: 190, totalNs: 12_345 },
  recording: {
    end: 'max-events',
    stub: 'QEMU',
    events: 6,
    stops: 2,
    records: 4,
    missing: 1,
    foreignHits: 3,
    neverLoaded: ['fn:late', 'fn:later'],
    tailLost: true,
    unseen: ['<k::A as k::B<u8, u16>>::read', 'k::work::inner'],
  },
};

t.test('threads, watched places, instants, gaps, resets and facts come back', async (t) => {
  const { first, second, read } = await again('sundry.pftrace', sundry, facts);
  t.ok(first.equals(second));
  t.same(read.facts?.ownTime, facts.ownTime);
  t.same(read.facts?.recording, facts.recording);
  t.same(
    read.facts?.probes.map(({ name, engine, why }) => [name, engine, why]),
    facts.probes.map(({ name, engine, why }) => [name, engine, why]),
  );
  const { sink, kept } = keeper();
  await readTrace(join(folder, 'sundry.pftrace'), sink);
  t.same(kept.info, info);
  t.same(kept.harts, []);
  t.equal(kept.ends, 1);
  const plain = (events: readonly TraceEvent[]) => JSON.parse(JSON.stringify(events, withoutRefs)) as TraceEvent[];
  // A return names no hart of its own where threads are known.
  const told = plain(sundry).map((event) => ('began' in event ? { ...event, hart: 1 - event.hart } : event));
  t.same(plain(kept.events), told);
});

/** What events name is numbered anew; bigints as text; begins by their times. */
function withoutRefs(name: string, value: unknown): unknown {
  if (name === 'key' || name === 'around' || name === 'size') return undefined;
  if (name === 'begin') return (value as { readonly time: number } | undefined)?.time;
  return typeof value === 'bigint' ? `0x${value.toString(16)}` : value;
}

t.test('a call whose slice was cut, and a late return, keep their times', async (t) => {
  // `leaf` turns out to be on another stack: `main` goes on while it is open.
  const mainBegin = { type: 'call-begin', time: nanos(0), hart: 0, depth: 0, function: main, arguments: [] } as const;
  const leafBegin = {
    type: 'call-begin',
    time: nanos(10),
    hart: 0,
    depth: 1,
    around: mainBegin,
    function: leaf,
    arguments: [],
  } as const;
  const events: TraceEvent[] = [
    mainBegin,
    leafBegin,
    { type: 'call-end', time: nanos(20), hart: 0, depth: 0, began: nanos(0), function: main, begin: mainBegin },
    { type: 'call-end', time: nanos(50), hart: 0, depth: 1, began: nanos(10), function: leaf, begin: leafBegin },
    { type: 'call-lost', time: nanos(60), hart: 0, depth: 0, began: nanos(55), function: leaf },
    { type: 'call-end', time: nanos(70), hart: 0, depth: 0, began: nanos(55), function: leaf, wasLost: true },
  ];
  const { first, second, after } = await again('cut.pftrace', events);
  t.ok(first.equals(second));
  const before = tables();
  tell(before.sink, events);
  t.same(after, JSON.parse(JSON.stringify(before.rows())));
});

t.test('a packed trace is gzip that gunzip unpacks, also without its end', async (t) => {
  const plain = write('one.pftrace', oneTask);
  const packed = write('one.pftrace.gz', oneTask);
  t.ok(execFileSync('gunzip', ['-c'], { input: packed }).equals(plain));
  t.ok(execFileSync('gunzip', ['-c'], { input: write('none.pftrace.gz', []) }).equals(write('none.pftrace', [])));
  const { kept, sink } = keeper();
  const whole = await readTrace(join(folder, 'one.pftrace.gz'), sink);
  t.equal(whole.cut, undefined);
  t.equal(kept.events.length, oneTask.length);
  // Blocks of a flush each: what was flushed before the cut is there.
  const path = join(folder, 'blocks.pftrace.gz');
  const trace = openTrace(path);
  trace.begin(info);
  for (const event of oneTask) {
    trace.event(event);
    trace.flush();
  }
  const flushed = readFileSync(path);
  writeFileSync(join(folder, 'cut.pftrace.gz'), flushed);
  const cut = keeper();
  const read = await readTrace(join(folder, 'cut.pftrace.gz'), cut.sink);
  t.same(read.cut?.bytes, 0);
  t.equal(cut.kept.events.length, oneTask.length);
  trace.end();
});

t.test('cut off at any byte, it has the events of the packets whole before the cut, and says so', async (t) => {
  const bytes = write('whole.pftrace', oneTask);
  const ends = packetEnds(bytes);
  const eventsBefore: number[] = [];
  for (const end of ends) {
    writeFileSync(join(folder, 'prefix.pftrace'), bytes.subarray(0, end));
    const { kept, sink } = keeper();
    try {
      await readTrace(join(folder, 'prefix.pftrace'), sink);
    } catch (error) {
      // Without the first event it is no trace of anybody's.
      assert.equal((error as RsptraceError).code, 'TRACE_FOREIGN');
    }
    eventsBefore.push(kept.events.length);
  }
  t.equal(eventsBefore.at(-1), oneTask.length);
  // Most packets are longer than three bytes.
  for (let cut = 0; cut < bytes.length; cut += long ? 1 : 3) {
    writeFileSync(join(folder, 'cut.pftrace'), bytes.subarray(0, cut));
    const { kept, sink } = keeper();
    const whole = ends.filter((end) => end <= cut).length;
    try {
      const read = await readTrace(join(folder, 'cut.pftrace'), sink);
      const behind = cut - (ends[whole - 1] ?? 0);
      assert.deepEqual(read.cut, { at: ends[whole - 1], bytes: behind });
      assert.ok(kept.facts?.isCut);
    } catch (error) {
      assert.equal((error as RsptraceError).code, 'TRACE_FOREIGN', `cut at ${cut}`);
    }
    assert.equal(kept.events.length, eventsBefore[whole - 1] ?? 0, `cut at ${cut}`);
  }
});

t.test(
  'a trace says that it ended, one that was cut off between two packets does not, nor does its copy',
  async (t) => {
    const bytes = write('ended.pftrace', sundry, facts);
    const at = packetEnds(bytes).at(-2) ?? 0;
    const read = (name: string) => readTrace(join(folder, name), keeper().sink);
    t.equal((await read('ended.pftrace')).cut, undefined);
    writeFileSync(join(folder, 'without-end.pftrace'), bytes.subarray(0, at));
    t.same((await read('without-end.pftrace')).cut, { at, bytes: 0 });
    const copy = async (from: string, to: string) =>
      readTrace(join(folder, from), openTrace(join(folder, to), { force: true }));
    await copy('ended.pftrace', 'ended-copy.pftrace');
    t.equal((await read('ended-copy.pftrace')).cut, undefined);
    await copy('without-end.pftrace', 'cut-copy.pftrace');
    t.same((await read('cut-copy.pftrace')).cut?.bytes, 0);
    await copy('cut-copy.pftrace', 'cut-copy.pftrace.gz');
    t.same((await read('cut-copy.pftrace.gz')).cut?.bytes, 0);
    // One without any event has said all that it has.
    write('nothing.pftrace', []);
    t.equal((await read('nothing.pftrace')).cut, undefined);
  },
);

t.test('compressed packets are read as if they stood there; damaged ones are damage', async (t) => {
  const varint = (value: number) => [(value & 0x7f) | 0x80, ((value >> 7) & 0x7f) | 0x80, value >> 14];
  const packet = (bytes: Uint8Array) => {
    const content = Buffer.concat([Buffer.of(0x92, 0x03, ...varint(bytes.length)), bytes]);
    return Buffer.concat([Buffer.of(0x0a, ...varint(content.length)), content]);
  };
  const plain = write('plain.pftrace', [...oneTask, ...sundry], facts);
  const path = join(folder, 'compressed.pftrace');
  const read = async (bytes: Uint8Array) => {
    writeFileSync(path, bytes);
    const { kept, sink } = keeper();
    return { ...(await readTrace(path, sink)), kept };
  };
  const before = await read(plain);
  const [middle = 0] = packetEnds(plain).filter((end) => end > plain.length / 2);
  for (const head of [0, middle]) {
    // As Perfetto's recorder makes them: zlib, also at its best.
    const bytes = Buffer.concat([plain.subarray(0, head), packet(deflateSync(plain.subarray(head), { level: 9 }))]);
    const { kept, otherPackets, events } = await read(bytes);
    t.same(kept, before.kept);
    t.equal(otherPackets, before.otherPackets);
    t.equal(events, before.events);
  }
  const rejected = (bytes: Uint8Array, why: RegExp) =>
    t.rejects(read(Buffer.concat([plain, bytes])), { code: 'TRACE_DAMAGED', message: why }, String(why));
  await rejected(packet(Buffer.from('no zlib')), /compressed packets: incorrect header check/);
  await rejected(packet(deflateSync(plain).subarray(0, -9)), /compressed packets: unexpected end of file/);
  await rejected(packet(deflateSync(plain.subarray(0, middle - 1))), /end in the middle of one/);
  await rejected(packet(deflateSync(Buffer.alloc(65 << 20))), /compressed packets: Cannot create a Buffer larger/);
});

t.test('damaged bytes make fewer or other events, or one error with a code', async (t) => {
  const sample = write('sample.pftrace', [...oneTask, ...sundry], facts);
  const packed = write('sample.pftrace.gz', [...oneTask, ...sundry], facts);
  const whole = keeper();
  await readTrace(join(folder, 'sample.pftrace.gz'), whole.sink);
  const codes = new Map<string, number>();
  const edges = [0, 1, 0x0a, 0x7f, 0x80, 0xff];
  for (let seed = 0; seed < cases(1000); seed++) {
    const random = randomOf(seed);
    const bytes = Buffer.from(seed % 8 === 0 ? packed : sample);
    for (let times = 1 + random(4); times > 0; times--) {
      const at = random(bytes.length);
      const kind = random(4);
      if (kind === 0) bytes[at] = (bytes[at] as number) ^ (1 << random(8));
      else if (kind === 1) bytes[at] = edges[random(edges.length)] as number;
      else if (kind === 2) bytes.fill(0xff, at, Math.min(bytes.length, at + random(12)));
      else bytes.copyWithin(at, random(bytes.length), random(bytes.length));
    }
    const path = join(folder, 'damaged.pftrace');
    writeFileSync(path, random(5) === 0 ? bytes.subarray(0, random(bytes.length)) : bytes);
    const { kept, sink } = keeper();
    const polls = tables();
    let code = 'none';
    try {
      const read = await readTrace(
        path,
        tee([sink, polls.sink, openTrace(join(folder, 'damaged.txt'), { force: true })]),
      );
      // What is packed has a sum of its own: whole, and without an error, it is what was written.
      if (seed % 8 === 0 && read.cut === undefined) assert.deepEqual(kept.events, whole.kept.events, `seed ${seed}`);
    } catch (error) {
      assert.ok(error instanceof RsptraceError, `seed ${seed}: ${(error as Error).stack}`);
      code = error.code;
    }
    assert.ok(kept.events.length <= 100);
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  const known = ['TRACE_DAMAGED', 'TRACE_FOREIGN', 'TRACE_VERSION', 'none'];
  t.same(
    [...codes.keys()].filter((code) => !known.includes(code)),
    [],
  );
  for (const code of ['TRACE_DAMAGED', 'none']) t.ok((codes.get(code) ?? 0) > cases(1000) / 20, code);
});

/** A trace as another program writes it, from protoc's text format. */
function writeForeign(name: string, text: string): void {
  const schema = ['--proto_path=test/trace/formats/read', 'test/trace/formats/read/foreign.proto'];
  const bytes = execFileSync('protoc', ['--encode=perfetto.protos.Trace', ...schema], { input: text });
  writeFileSync(join(folder, name), bytes);
}

t.test("another format, no file, a folder, a newer trace, another program's trace", async (t) => {
  const code = async (path: string) => {
    try {
      await readTrace(join(folder, path), keeper().sink);
      return 'read';
    } catch (error) {
      return `${(error as RsptraceError).code} ${(error as RsptraceError).message.replace(folder, '')}`;
    }
  };
  write('one.jsonl', oneTask);
  write('one.txt', oneTask);
  writeFileSync(join(folder, 'empty.pftrace'), '');
  t.match(await code('one.jsonl'), /^TRACE_FOREIGN .*but of the format JSON lines$/);
  t.match(await code('one.txt'), /^TRACE_FOREIGN .*but of the format call tree$/);
  t.match(await code('empty.pftrace'), /^TRACE_FOREIGN /);
  t.match(await code('missing.pftrace'), /^TRACE_UNREADABLE .*ENOENT/);
  t.match(await code('.'), /^TRACE_UNREADABLE .*folder/);
  const newer = Buffer.from(write('newer.pftrace', oneTask));
  const at = newer.indexOf('version');
  t.ok(at > 0);
  // The value `4` of `version`, interned behind the names.
  const value = newer.indexOf(Buffer.from([0x12, 1, 0x34]), at);
  for (const [digit, text] of [
    [0x39, /^TRACE_VERSION .*a newer rsptrace: its layout is 9, and 4 is read/],
    [0x33, /^TRACE_VERSION .*an older rsptrace: its layout is 3, and 4 is read/],
  ] as const) {
    newer[value + 2] = digit;
    writeFileSync(join(folder, 'newer.pftrace'), newer);
    t.match(await code('newer.pftrace'), text);
  }
  // As another tool writes: names in place, no interning, a thread's track, a 64-bit uuid, a category by name.
  const text = `
    packet { trusted_packet_sequence_id: 7 track_descriptor {
      uuid: 18000000000000000001 thread { pid: 3 tid: 4 thread_name: "worker" } } }
    packet { timestamp: 1000 trusted_packet_sequence_id: 7
      track_event { type: TYPE_SLICE_BEGIN track_uuid: 18000000000000000001 name: "outer" categories: "x" } }
    packet { timestamp: 1500 trusted_packet_sequence_id: 7
      track_event { type: TYPE_SLICE_BEGIN track_uuid: 18000000000000000001 name: "inner" } }
    packet { timestamp: 1700 trusted_packet_sequence_id: 7
      track_event { type: TYPE_SLICE_END track_uuid: 18000000000000000001 } }
    packet { timestamp: 2000 trusted_packet_sequence_id: 7
      track_event { type: TYPE_SLICE_END track_uuid: 18000000000000000001 } }`;
  writeForeign('other.pftrace', text);
  const { rows, sink } = tables();
  const { kept, sink: keep } = keeper();
  const read = await readTrace(join(folder, 'other.pftrace'), tee([sink, keep]));
  t.notOk(read.isOwn);
  t.same(kept.harts, [{ number: 0, name: 'worker' }]);
  t.same(
    rows().calls.map((row) => [row.function, row.calls, row.total_ns, row.self_ns]),
    [
      ['inner', 1, 200, 200],
      ['outer', 1, 1000, 800],
    ],
  );
});

t.test('a task that is polled is the same task in every event', async (t) => {
  const { kept, sink } = keeper();
  write('task.pftrace', oneTask);
  await readTrace(join(folder, 'task.pftrace'), sink);
  const roots = new Set(kept.events.flatMap((event) => ('root' in event ? [event.root] : [])));
  t.equal(roots.size, 1);
  t.match([...roots][0], { key: root.key, address: root.address, future: { future: 'a', line: 10 } });
});

t.test(
  "of another program's trace each annotation is kept, whatever its name, and what is not used is counted",
  async (t) => {
    writeForeign(
      'noted.pftrace',
      `
    packet { timestamp: 1000 track_event { type: TYPE_SLICE_BEGIN track_uuid: 5 name: "read"
      debug_annotations { name: "bytes" uint_value: 12 }
      debug_annotations { name: "value" uint_value: 7 }
      debug_annotations { name: "result" string_value: "lost" } } }
    packet { timestamp: 1300 track_event { type: TYPE_COUNTER track_uuid: 6 counter_value: 3 } }
    packet { timestamp: 1400 track_event { track_uuid: 5 name: "of an older kind" } }
    packet { timestamp: 1500 track_event { type: TYPE_SLICE_END track_uuid: 5 } }`,
    );
    const { kept, sink } = keeper();
    const read = await readTrace(join(folder, 'noted.pftrace'), sink);
    t.match(kept.events, [
      {
        arguments: [
          { name: 'bytes', value: '12' },
          { name: 'result', value: 'lost' },
          { name: 'value', value: '7' },
        ],
      },
      { type: 'call-end', began: 0, time: 500 },
    ]);
    t.equal(read.otherPackets, 2);
  },
);

t.test('times are below 2^53, or the trace is damaged', async (t) => {
  const packet = (passed: number): string =>
    `packet { timestamp: ${passed} timestamp_clock_id: 64 track_event { type: TYPE_SLICE_BEGIN name: "f" } }`;
  const clock = 'clocks { clock_id: 64 timestamp: 0 is_incremental: true unit_multiplier_ns: 4503599627370496 }';
  writeForeign('late.pftrace', `packet { clock_snapshot { ${clock} } } ${packet(1)} ${packet(1)}`);
  const late = readTrace(join(folder, 'late.pftrace'), keeper().sink);
  await t.rejects(late, { code: 'TRACE_DAMAGED', message: /a time is above 2\^53/ });
});

t.test('slices of several programs have their own times, in whatever order these gave them up', async (t) => {
  const packet = (time: number, track: string, type: string, name = ''): string =>
    `packet { timestamp: ${time} track_event { type: TYPE_SLICE_${type} track_uuid: ${track} ${name && `name: "${name}"`} } }`;
  const wide = '18000000000000000001';
  const of = (track: string, name: string, from: number, to: number): string =>
    `${packet(from, track, 'BEGIN', name)} ${packet(to, track, 'END')}`;
  writeForeign(
    'several.pftrace',
    `${of('5', 'late', 5000, 9000)} ${of(wide, 'early', 1000, 4000)} ${of('5', 'last', 9000, 9500)}`,
  );
  const { kept, sink } = keeper();
  await readTrace(join(folder, 'several.pftrace'), sink);
  t.same(
    kept.events.flatMap((event) => (event.type === 'call-end' ? [[event.function.name, event.began, event.time]] : [])),
    [
      ['early', 0, 3000],
      ['late', 4000, 8000],
      ['last', 8000, 8500],
    ],
  );
  t.same(kept.harts, [
    { number: 0, name: `track ${wide}` },
    { number: 1, name: 'track 5' },
  ]);
});
