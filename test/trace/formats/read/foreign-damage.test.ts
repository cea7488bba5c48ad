// Chrome's JSON and uftrace's directories, whole, cut off and damaged. What is in them is known from a story that the
// test makes up, and of uftrace's from its own recording.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { RsptraceError } from '../../../../src/base/errors.js';
import { EventObjects } from '../../../../src/trace/formats/chrome/event-objects.js';
import { SortedRuns } from '../../../../src/trace/formats/read/sorted-runs.js';
import {
  type AnyBegin,
  FunctionSummary,
  functionJson,
  onEvents,
  readTrace,
  type TraceEvent,
  type TraceFacts,
  tee,
} from '../../../../src/trace/index.js';
import { cases, long } from '../../../support/long.js';
import { randomOf } from '../../../support/mutations.js';
import { folder } from '../../written.js';

interface Outcome {
  readonly code: string;
  readonly message: string;
  readonly events: readonly TraceEvent[];
  readonly cut: { readonly at: number; readonly bytes: number } | undefined;
  readonly others: number;
  readonly isCut: boolean;
  readonly calls: ReadonlyMap<string, readonly [calls: number, total: number]>;
}

/** Whatever is not an error with a code fails the test. */
async function outcome(path: string): Promise<Outcome> {
  const events: TraceEvent[] = [];
  const table = new FunctionSummary();
  let isCut = false;
  const end = (facts?: TraceFacts): void => {
    isCut = facts?.isCut ?? false;
  };
  const sink = tee([table, { ...onEvents((event) => void events.push(event)), end }]);
  const rows = () =>
    new Map(functionJson(table.rows()).map((row) => [row.function, [row.calls, row.total_ns] as const]));
  try {
    const { cut, otherPackets } = await readTrace(path, sink);
    return { code: 'none', message: '', events, cut, others: otherPackets, isCut, calls: rows() };
  } catch (error) {
    assert.ok(error instanceof RsptraceError, (error as Error).stack);
    const { code, message } = error;
    return { code, message, events, cut: undefined, others: 0, isCut, calls: rows() };
  }
}

const chromePath = join(folder, 'chrome.json');

function outcomeOf(text: string | Uint8Array): Promise<Outcome> {
  writeFileSync(chromePath, text);
  return outcome(chromePath);
}

/** A slice, and those inside: each takes `own` microseconds of its own in front of each of them and behind. */
interface Slice {
  readonly name: string;
  readonly own: number;
  readonly inside: readonly Slice[];
}

const sliceOf = (levels: number): fc.Arbitrary<Slice> =>
  fc.record({
    name: fc.constantFrom('a', 'b', 'c"}{', 'd\\'),
    own: fc.nat({ max: 3 }),
    inside: levels === 0 ? fc.constant([]) : fc.array(sliceOf(levels - 1), { maxLength: 3 }),
  });
const slice = sliceOf(3);

const thread = fc.record({ slices: fc.array(slice, { minLength: 1, maxLength: 4 }), isPairs: fc.boolean() });

interface LogEntry {
  readonly lines: object[];
  /** Of each slice by its end: name, begin, end. */
  readonly slices: [string, number, number][];
}

function tell(tid: number, { slices, isPairs }: { slices: readonly Slice[]; isPairs: boolean }): LogEntry {
  const told: LogEntry = { lines: [], slices: [] };
  const visit = ({ name, own, inside }: Slice, from: number): number => {
    const at = { pid: 1, tid, name, cat: 'x' };
    if (isPairs) told.lines.push({ ...at, ph: 'B', ts: from, args: { own } });
    let now = from + own;
    for (const each of inside) now = visit(each, now) + own;
    if (isPairs) told.lines.push({ ...at, ph: 'E', ts: now });
    else told.lines.push({ ...at, ph: 'X', ts: from, dur: now - from });
    told.slices.push([name, from, now]);
    return now;
  };
  let now = 1_600_000_000_000_000 + tid;
  for (const each of slices) now = visit(each, now);
  return told;
}

t.test('each slice has the time that its program gave it, in whatever order complete events stand', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(thread, { minLength: 1, maxLength: 3 }), fc.nat(), async (threads, seed) => {
      const told = threads.map((each, tid) => tell(tid, each));
      const random = randomOf(seed);
      const pairs = told.flatMap(({ lines }, tid) => (threads[tid]?.isPairs ? lines : []));
      const whole = told
        .flatMap(({ lines }, tid) => (threads[tid]?.isPairs ? [] : lines))
        .map((line) => ({ line, rank: random(1000) }))
        .sort((a, b) => a.rank - b.rank);
      const lines = [...pairs, ...whole.map(({ line }) => line)];
      const { code, calls, events } = await outcomeOf(JSON.stringify({ other: { x: '[{' }, traceEvents: lines, y: 1 }));
      assert.equal(code, 'none');
      const ends = new Map<string, number>();
      for (const [name] of told.flatMap(({ slices }) => slices)) ends.set(name, (ends.get(name) ?? 0) + 1);
      assert.deepEqual(new Map([...calls].map(([name, [count]]) => [name, count])), ends);
      const found = events.flatMap((event) =>
        event.type === 'call-end' ? [`${event.function.name} ${event.time - event.began}`] : [],
      );
      const wanted = told.flatMap(({ slices }) => slices.map(([name, from, to]) => `${name} ${(to - from) * 1000}`));
      assert.deepEqual(found.sort(), wanted.sort());
      const times = events.flatMap((event) => ('time' in event ? [event.time] : []));
      assert.deepEqual(
        times,
        [...times].sort((a, b) => a - b),
      );
    }),
    { seed: 20_26, numRuns: 100 },
  );
  t.pass();
});

const sampleEvents = [
  { ph: 'M', pid: 1, tid: 2, name: 'thread_name', args: { name: 'worker' } },
  { ph: 'B', pid: 1, tid: 2, ts: 10, name: 'outer', args: { text: 'é"]}', deep: { list: [1, { x: null }] } } },
  { ph: 'X', pid: 1, tid: 2, ts: 11.5, dur: 2, name: 'inner' },
  { ph: 'i', pid: 1, tid: 2, ts: 12, name: 'here' },
  { ph: 'E', pid: 1, tid: 2, ts: 20 },
  { ph: 'X', pid: 1, tid: 3, ts: '30', dur: '5', name: 'text' },
];
const asObject = Buffer.from(
  `{"displayTimeUnit":"ns","traceEvents": [\n${sampleEvents.map((e) => JSON.stringify(e)).join(',\n')}\n],"z":{"a":[]}}\n`,
);
const asList = Buffer.from(`[${sampleEvents.map((e) => JSON.stringify(e)).join(',')}]`);

t.test('cut off at any byte, it has the whole events before the cut, and says so', async (t) => {
  for (const bytes of [asObject, asList]) {
    const whole = await outcomeOf(bytes);
    t.same([whole.code, whole.cut, whole.isCut], ['none', undefined, false]);
    t.same([...whole.calls].sort(), [
      ['inner', [1, 2000]],
      ['outer', [1, 10_000]],
      ['text', [1, 5000]],
    ]);
    const listEnd = bytes.lastIndexOf(bytes === asList ? '}]' : '}\n]') + (bytes === asList ? 1 : 2);
    const ends = sampleEvents.map(
      (event) => bytes.indexOf(JSON.stringify(event)) + Buffer.byteLength(JSON.stringify(event)),
    );
    for (let cut = 0; cut < bytes.length; cut++) {
      const { code, cut: told, isCut, calls } = await outcomeOf(bytes.subarray(0, cut));
      if (code !== 'none') {
        assert.equal(code, 'TRACE_FOREIGN', `cut at ${cut}`);
        assert.ok(cut < (ends[0] ?? 0), `cut at ${cut}`);
        continue;
      }
      assert.equal(told !== undefined, cut <= listEnd, `cut at ${cut}`);
      assert.equal(isCut, told !== undefined);
      const last = ends.filter((end) => end <= cut).at(-1) ?? 0;
      if (told) assert.equal(told.at, last, `cut at ${cut}`);
      const names = ['', 'outer', 'inner', '', '', 'text'].filter((name, i) => name !== '' && cut >= (ends[i] ?? 0));
      assert.deepEqual([...calls.keys()].sort(), names.sort(), `cut at ${cut}`);
    }
  }
});

t.test('values of a wrong type, and text that is no JSON, are one error that names the byte', async (t) => {
  const good = { ph: 'X', pid: 1, tid: 2, ts: 1, dur: 1, name: 'good' };
  const damaged = async (event: object | string, why: RegExp) => {
    const text = typeof event === 'string' ? event : JSON.stringify(event);
    const { code, message } = await outcomeOf(`[${JSON.stringify(good)},${text}]`);
    t.equal(code, 'TRACE_DAMAGED', text);
    t.match(message, why, text);
  };
  const at = JSON.stringify(good).length + 2;
  await damaged({ ...good, ts: null }, new RegExp(`the event at byte ${at} has a ts that is no number`));
  await damaged({ ...good, ts: 'soon' }, /ts that is no number/);
  await damaged({ ...good, ts: '' }, /ts that is no number/);
  await damaged({ ...good, ts: undefined }, /ts that is no number/);
  await damaged({ ...good, ts: 1e300 }, /too far/);
  await damaged({ ...good, dur: {} }, /dur that is no number/);
  await damaged({ ...good, dur: -1 }, /dur below 0/);
  await damaged({ ...good, pid: {} }, /pid that is neither/);
  await damaged({ ...good, tid: true }, /tid that is neither/);
  await damaged({ ...good, name: 7 }, /name that is no text/);
  await damaged({ ...good, cat: [] }, /cat that is no text/);
  await damaged({ ...good, ph: 1 }, /ph that is no text/);
  await damaged({ ...good, args: 'x' }, /args that are no object/);
  await damaged({ ...good, args: [1] }, /args that are no object/);
  await damaged('7', /no event where one has to be/);
  await damaged('{"ph":"X",}', /no JSON object/);
  await damaged('{"ph":"X"]', /no JSON object/);
  await damaged(`{"args":${'['.repeat(600)}${']'.repeat(600)}}`, /brackets inside more than 500/);
  await damaged(`{"name":"${'x'.repeat(17 << 20)}"}`, /more than 16777216 bytes/);
  const pair = { pid: 1, tid: 2, name: 'pair' };
  await damaged(
    `${JSON.stringify({ ...pair, ph: 'B', ts: 9 })},${JSON.stringify({ ...pair, ph: 'E', ts: 8 })}`,
    /back in time/,
  );
  const behind = await outcomeOf(`[${JSON.stringify(good)}],${JSON.stringify(good)}`);
  t.match(behind.message, /more stands behind it/);
  t.equal(behind.events.length, 0);
});

t.test('what has no place in a timeline is counted: ends without a begin, overlaps, no duration', async (t) => {
  const at = { pid: 1, tid: 1 };
  const { others, calls } = await outcomeOf(
    JSON.stringify([
      { ...at, ph: 'E', ts: 0 },
      { ...at, ph: 'X', ts: 1, dur: 10, name: 'first' },
      { ...at, ph: 'X', ts: 5, dur: 10, name: 'overlaps' },
      { ...at, ph: 'X', ts: 6, name: 'endless' },
      { ...at, ph: 'C', ts: 6, name: 'counter', args: { x: 1 } },
      { ...at, ph: 'B', ts: 7, name: 'open' },
    ]),
  );
  t.equal(others, 4);
  t.same(
    [...calls],
    [
      ['first', [1, 10_000]],
      ['open', [1, 0]],
    ],
  );
});

t.test('chunks may end anywhere', (t) => {
  for (const size of [1, 2, 3, 7, 64]) {
    const objects = new EventObjects();
    const found: object[] = [];
    for (let at = 0; at < asObject.length; at += size) {
      // The memory of a chunk is used again.
      const chunk = Buffer.from(asObject.subarray(at, at + size));
      found.push(...objects.feed(chunk).map(({ value }) => value));
      chunk.fill(0);
    }
    t.same(found, sampleEvents, `${size}`);
    t.equal(objects.isOpen, false);
  }
  t.end();
});

t.test('what has no room in memory is sorted through a file', async (t) => {
  const random = randomOf(7);
  const runs = new SortedRuns<{ key: number; order: number; text: string }>(
    (a, b) => a.key - b.key || a.order - b.order,
    100,
  );
  const all = Array.from({ length: 5030 }, (_, order) => ({
    key: random(500),
    order,
    text: 'é\n'.repeat(random(200)),
  }));
  for (const each of all) {
    runs.add(each);
    await runs.spill();
  }
  const sorted: object[] = [];
  for await (const part of runs.inOrder()) sorted.push(...part);
  await runs.close();
  t.strictSame(
    sorted,
    [...all].sort((a, b) => a.key - b.key || a.order - b.order),
  );
});

t.test('changed bytes of a Chrome trace make other values, or one error with a code', async (t) => {
  const codes = new Map<string, number>();
  for (let seed = 0; seed < cases(600); seed++) {
    const random = randomOf(seed);
    const bytes = Buffer.from(seed % 2 === 0 ? asObject : asList);
    for (let times = 1 + random(3); times > 0; times--)
      bytes[random(bytes.length)] = [random(256), ...Buffer.from('"{}[],:\\0e-')][random(12)] ?? 0;
    const { code, events } = await outcomeOf(bytes);
    assert.ok(events.length <= 7, `seed ${seed}`);
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  t.same(
    [...codes.keys()].filter((code) => !['none', 'TRACE_DAMAGED', 'TRACE_FOREIGN'].includes(code)),
    [],
  );
  t.ok((codes.get('TRACE_DAMAGED') ?? 0) > 50);
});

/** A small program that uftrace recorded: `main` calls `leaf` 20 times. */
const recorded = join(folder, 'recorded.uftrace');
writeFileSync(
  join(folder, 'leafs.c'),
  'volatile int sink; __attribute__((noinline)) void leaf(int n) { sink += n; }\nint main(void) { for (int n = 0; n < 20; n++) leaf(n); return 0; }\n',
);
execFileSync('gcc', ['-O1', '-pg', '-o', join(folder, 'leafs'), join(folder, 'leafs.c')]);
execFileSync('uftrace', ['record', '--no-event', '--no-libcall', '-d', recorded, '--no-pager', join(folder, 'leafs')], {
  stdio: 'ignore',
});
for (const name of readdirSync(recorded))
  if (name.endsWith('.sym') && name !== 'leafs.sym') rmSync(join(recorded, name));
const damagedCopy = join(folder, 'damaged.uftrace');
cpSync(recorded, damagedCopy, { recursive: true });
const dat = readdirSync(recorded).find((name) => /^\d+\.dat$/.test(name)) ?? '';
const map = readdirSync(recorded).find((name) => name.endsWith('.map')) ?? '';

async function withFile(name: string, bytes: Uint8Array): Promise<Outcome> {
  writeFileSync(join(damagedCopy, name), bytes);
  const result = await outcome(damagedCopy);
  cpSync(join(recorded, name), join(damagedCopy, name));
  return result;
}

t.test('a directory of uftrace: cut off anywhere it tells it, or has only calls that were made', async (t) => {
  const whole = await outcome(recorded);
  t.same([whole.code, whole.calls.get('leaf')?.[0], whole.cut], ['none', 20, undefined]);
  const records = readFileSync(join(recorded, dat));
  // No multiple of 16, so that all cuts of a record are there.
  for (let cut = 0; cut < records.length; cut += long ? 1 : 5) {
    const { code, cut: told, isCut, calls } = await withFile(dat, records.subarray(0, cut));
    assert.equal(code, 'none');
    assert.deepEqual(told, cut % 16 === 0 ? undefined : { at: cut - (cut % 16), bytes: cut % 16 });
    assert.equal(isCut, cut % 16 !== 0);
    assert.ok((calls.get('leaf')?.[0] ?? 0) <= 20);
  }
  for (const name of ['info', map, 'leafs.sym']) {
    const bytes = readFileSync(join(recorded, name));
    for (let cut = 0; cut < bytes.length; cut += name === 'leafs.sym' ? (long ? 1 : 3) : 7) {
      const { code, calls } = await withFile(name, bytes.subarray(0, cut));
      assert.ok(['none', 'TRACE_DAMAGED', 'TRACE_UNREADABLE'].includes(code), `${name} at ${cut}: ${code}`);
      // A symbol that is missing must not give its calls to another one.
      if (code === 'none') assert.ok(!calls.has('leaf') || calls.get('leaf')?.[0] === 20, `${name} at ${cut}`);
      if (name === 'leafs.sym' && cut > 20) assert.equal(code, 'TRACE_DAMAGED', `cut at ${cut}`);
    }
  }
});

t.test('a directory of uftrace with changed bytes: other values, or one error with a code', async (t) => {
  const codes = new Map<string, number>();
  for (let seed = 0; seed < cases(300); seed++) {
    const random = randomOf(seed);
    const name = [dat, 'info', map, 'leafs.sym'][seed % 4] ?? '';
    const bytes = Buffer.from(readFileSync(join(recorded, name)));
    for (let times = 1 + random(3); times > 0; times--) bytes[random(bytes.length)] = random(256);
    const { code } = await withFile(name, bytes);
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  t.same(
    [...codes.keys()].filter((code) => !['none', 'TRACE_DAMAGED', 'TRACE_UNREADABLE'].includes(code)),
    [],
  );
  t.ok((codes.get('TRACE_DAMAGED') ?? 0) > 30);
});

t.test('a directory of uftrace: what its header and records say is checked', async (t) => {
  const info = readFileSync(join(recorded, 'info'));
  const changed = (bytes: Buffer, at: number, value: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy[at] = value;
    return copy;
  };
  const records = readFileSync(join(recorded, dat));
  const cases: [name: string, bytes: Buffer, why: RegExp][] = [
    ['info', changed(info, 8, 3), /version 3, and only 4 is known/],
    ['info', changed(info, 14, 2), /little-endian/],
    ['info', changed(info, 13, 0xff), /its header has \d+ bytes/],
    ['info', changed(info, 17, (info[17] ?? 0) | 8), /--estimate-return/],
    [dat, changed(records, 16 + 8, 0), /at byte 16 has no record/],
    [dat, changed(records, 16 + 8, (records[24] ?? 0) | 4), /at byte 16 has arguments/],
    [dat, changed(records, 16 + 7, 0xff), /at byte 16 goes back in time, or has none/],
    [dat, Buffer.concat([records.subarray(16, 32), records.subarray(0, 16)]), /at byte 16 goes back in time/],
  ];
  for (const [name, bytes, why] of cases) {
    const { code, message } = await withFile(name, bytes);
    t.equal(code, 'TRACE_DAMAGED', String(why));
    t.match(message, why);
  }
});

t.test('a pipe, a device and a link are no files of a trace, and are not opened', async (t) => {
  const other = join(folder, 'other');
  for (const name of readdirSync(recorded).filter((each) => /^info$|\.(dat|map|sym)$/.test(each))) {
    for (const make of [['mkfifo'], ['ln', '-s', '/dev/zero'], ['ln', '-s', join(recorded, name)]]) {
      rmSync(other, { recursive: true, force: true });
      cpSync(recorded, other, { recursive: true });
      rmSync(join(other, name));
      execFileSync(make[0] as string, [...make.slice(1), join(other, name)]);
      // Symbols of a library that no call is in are not asked for.
      const { code } = await outcome(other);
      t.ok(code === 'TRACE_UNREADABLE' || name.endsWith('.sym'), `${make.join(' ')} ${name}: ${code}`);
    }
  }
  rmSync(other, { recursive: true, force: true });
  execFileSync('mkfifo', [other]);
  t.match(await outcome(other), { code: 'TRACE_UNREADABLE', message: /no regular file$/ });
  t.match(await outcome('/dev/zero'), { code: 'TRACE_UNREADABLE', message: /no regular file$/ });
});

t.test('a packed trace that unpacks to far more than a recording does is not read to its end', async (t) => {
  // Empty packets without end, and a thousandth of the budget.
  const path = join(folder, 'bomb.pftrace.gz');
  writeFileSync(path, gzipSync(Buffer.alloc(4 << 20).fill(Buffer.from([0x0a, 0x00]))));
  process.env.RSPTRACE_BUDGET = '0.001';
  t.teardown(() => delete process.env.RSPTRACE_BUDGET);
  t.match(await outcome(path), { code: 'TRACE_TOO_LARGE', message: /unpacks to over 100 times its size$/ });
  process.env.RSPTRACE_BUDGET = '1';
  t.match(await outcome(path), { code: 'TRACE_FOREIGN' });
});

t.test('what takes no time is inside what is around it, and arguments may come with the end', async (t) => {
  const at = (ph: string, ts: number, name?: string, args?: object) => ({ ph, ts, pid: 1, tid: 2, name, args });
  const list = [
    ...[at('B', 0, 'outer', { size: 4 }), at('B', 5, 'middle'), at('B', 5, 'inner'), at('E', 5), at('E', 5)],
    ...[at('E', 5, undefined, { sum: 7 }), at('B', 5, 'next'), at('E', 6), at('i', 6, 'mark')],
  ];
  const { events } = await outcomeOf(JSON.stringify(list));
  const begins = events.flatMap((event) => (event.type === 'call-begin' ? event : []));
  t.same(
    begins.map((begin) => [begin.function.name, begin.depth, begin.around && nameOf(begin.around)]),
    [
      ['outer', 0, undefined],
      ['middle', 1, 'outer'],
      ['inner', 2, 'middle'],
      ['next', 0, undefined],
    ],
  );
  t.same(begins[0]?.arguments, [
    { name: 'size', value: '4' },
    { name: 'sum', value: '7' },
  ]);
  t.same(
    events.flatMap((event) => (event.type === 'call-end' ? [[event.function.name, event.began, event.time]] : [])),
    [
      ['inner', 5000, 5000],
      ['middle', 5000, 5000],
      ['outer', 0, 5000],
      ['next', 5000, 6000],
    ],
  );
});

function nameOf(begin: AnyBegin): string {
  return 'function' in begin ? begin.function.name : begin.future.future;
}
