// What is read of a trace and what others draw, held to the events that were written.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { RsptraceError } from '../../../../src/base/errors.js';
import { onEvents, openTrace, readTrace, type TraceEvent, type TraceFacts } from '../../../../src/trace/index.js';
import { functions } from '../../call-stories.js';
import { root } from '../../one-task.js';
import { info, linked, nanos, suspend0 } from '../../stories.js';
import { folder, readBack, write } from '../../written.js';

const { future, address } = root;
const [main] = functions;
const pending = { result: 'pending', state: suspend0, chain: [] };

t.test('polls on a stack have the harts that they began on', async (t) => {
  const thread = { key: 0, stack: address };
  const polls = [1, 3, 0].flatMap((hart, i) => {
    const at = { hart, thread, root, future, address, depth: 0 };
    const began = nanos(100 * i);
    return [
      { type: 'poll-begin', ...at, time: began, state: suspend0 },
      { type: 'poll-end', ...at, ...pending, time: nanos(100 * i + 50), began },
    ];
  });
  write('harts.pftrace', linked(polls as TraceEvent[]));
  const read = await readBack('harts.pftrace');
  t.same(
    read.map((event) => 'hart' in event && event.hart),
    [1, 1, 3, 3, 0, 0],
  );
});

t.test('an end whose begin was not seen says where its function or Future is declared', async (t) => {
  const at = { hart: 0, depth: 0, began: nanos(0) };
  const ends = [
    { type: 'call-end', ...at, time: nanos(10), function: main },
    { type: 'poll-end', ...at, ...pending, time: nanos(20), root, future, address },
  ];
  write('ends.pftrace', ends as TraceEvent[]);
  const [call, poll] = await readBack('ends.pftrace');
  t.match(call, { function: { file: main?.file, line: main?.line } });
  t.match(poll, { future: { file: 'src/a.rs', line: 10 } });
});

t.test('harts of any number are read back: a process has begun thousands of threads', async (t) => {
  const harts = [8185, 8186, 8187, 8188, 8189, 8190, 8191, 60_000];
  const calls = harts.flatMap((hart, i) => {
    const at = { hart, depth: 0, function: main };
    return [
      { type: 'call-begin', ...at, time: nanos(10 * i), arguments: [] },
      { type: 'call-end', ...at, time: nanos(10 * i + 5), began: nanos(10 * i) },
    ];
  });
  const line = { type: 'console', time: nanos(1000), text: 'up' };
  write('threads.pftrace', [...linked(calls as TraceEvent[]), line as TraceEvent]);
  const read = await readBack('threads.pftrace');
  t.same(
    read.flatMap((event) => (event.type === 'call-begin' ? event.hart : [])),
    harts,
  );
  t.match(read.at(-1), line);
});

t.test('names of probes that were never loaded may have commas', async (t) => {
  const neverLoaded = ['fn:<(A, B) as T>::f', 'fn:late(x, y)'];
  const counts = { events: 0, stops: 0, records: 0, missing: 0, foreignHits: 0 };
  const recording = { end: 'guest-ended', stub: undefined, ...counts, neverLoaded, tailLost: false };
  write('late.pftrace', [], { probes: [], recording });
  let facts: TraceFacts | undefined;
  const end = (found?: TraceFacts): void => {
    facts = found;
  };
  await readTrace(join(folder, 'late.pftrace'), { ...onEvents(() => {}), end });
  t.same(facts?.recording?.neverLoaded, neverLoaded);
});

t.test('the title of a flame graph is text that XML may have', async (t) => {
  const path = join(folder, 'title.svg');
  const sink = openTrace(path);
  sink.begin({ ...info, program: 'a\u0001b\u001b[31m' });
  sink.end();
  const text = readFileSync(path, 'utf8');
  t.match(text, 'a\\u{1}b\\u{1b}[31m:');
  t.notMatch(text, /[^\P{Cc}\n]/u);
});

t.test('when something began is a time, or the trace is damaged', async (t) => {
  const end = { type: 'call-end', hart: 0, depth: 0, time: nanos(9_000_000), began: nanos(1_234_567), function: main };
  const bytes = write('began.pftrace', [end] as TraceEvent[]).toString('latin1');
  t.equal(bytes.split('1234567').length, 2);
  for (const began of ['9e99999', '12x4567', '-234567', '1.34567']) {
    writeFileSync(join(folder, 'began.pftrace'), bytes.replace('1234567', began), 'latin1');
    const code = await readBack('began.pftrace').then(
      () => 'none',
      (error: RsptraceError) => error.code,
    );
    t.equal(code, 'TRACE_DAMAGED', began);
  }
});

const called = [
  { type: 'call-begin', hart: 0, depth: 0, time: nanos(10), function: main, arguments: [] },
  { type: 'call-end', hart: 0, depth: 0, time: nanos(20), began: nanos(10), function: main },
] as TraceEvent[];

t.test('a hart may be called as the tracks of tasks and gaps are', async (t) => {
  for (const name of ['tasks', 'gaps', 'console']) {
    const sink = openTrace(join(folder, 'named.pftrace'), { force: true });
    sink.begin({
      ...info,
      harts: [
        { number: 0, name: 'hart 0' },
        { number: 1, name },
      ],
    });
    for (const event of linked(called)) sink.event({ ...event, hart: 1 } as TraceEvent);
    sink.end();
    t.match(await readBack('named.pftrace'), [{ hart: 1 }, { hart: 1 }], name);
  }
});

t.test('a probe may be on a function that is called as an annotation is', async (t) => {
  const probes = ['wait', 'lock', 'task', 'main'].map((name) => ({ name, address, engine: 'none', why: 'too many' }));
  write('probes.pftrace', called, { probes } as unknown as TraceFacts);
  let facts: TraceFacts | undefined;
  const end = (found?: TraceFacts): void => {
    facts = found;
  };
  await readTrace(join(folder, 'probes.pftrace'), { ...onEvents(() => {}), end });
  t.same(facts?.probes.map(({ name }) => name).sort(), ['lock', 'main', 'task', 'wait']);
});

t.test('an end is read back from the stack of a thread on which nothing was seen to begin', async (t) => {
  const thread = { key: 3, stack: address };
  write('end.pftrace', [{ ...called[1], thread }] as TraceEvent[]);
  t.match(await readBack('end.pftrace'), [{ type: 'call-end', thread: { stack: address }, time: 20 }]);
});

t.test('the number of a thread may be any of 32 bits: a damaged trace has such', async (t) => {
  const thread = { key: 2 ** 32 - 2 ** 21, stack: address };
  const text = write('thread.csv', [{ ...called[0], thread }] as TraceEvent[]).toString();
  t.match(text, `call,10,,0,${thread.key},0,main,`);
});
