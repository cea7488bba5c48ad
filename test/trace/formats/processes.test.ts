// Processes of a kernel in traces with timelines: what each was seen to do stands together, and arrows lead from its system calls to what the kernel
// runs for them.
import { inflateRawSync } from 'node:zlib';
import t from 'tap';
import { addr, hex } from '../../../src/base/addr.js';
import { Processes } from '../../../src/trace/events/processes.js';
import { readBlock } from '../../../src/trace/formats/html/columns.js';
import { type FunctionRef, reportBy, type TraceEvent } from '../../../src/trace/index.js';
import { Layout } from '../../../src/trace/viewer/layout.js';
import { traceOf } from '../../../src/trace/viewer/trace.js';
import { children, readPerfetto, scalar } from '../decode-perfetto.js';
import { futures, linked, nanos, suspend0, tell } from '../stories.js';
import { decode, parse, readBack, write } from '../written.js';

const [shellSpace, lsSpace] = [addr(0x8025_4000n), addr(0x8026_0000n)];

function fn(key: number, name: string, kind?: FunctionRef['kind']): FunctionRef {
  return {
    key,
    name,
    instance: name,
    address: addr(BigInt(0x1000 + key * 16)),
    file: undefined,
    line: undefined,
    kind,
  };
}
const [read, write2, irq] = [
  fn(1, 'syscall::read', 'syscall'),
  fn(2, 'syscall::write', 'syscall'),
  fn(3, 'irq::timer', 'irq'),
];
const [sysRead, tick, main] = [fn(4, 'sys_read'), fn(5, 'tick'), fn(6, 'sh::main')];
const running = fn(7, 'sh:2', 'thread');
const stack = (key: number, space: typeof shellSpace, program?: string) => ({
  key,
  stack: addr(0x4000n),
  space,
  program,
});
const [shell, ls, shellMain] = [stack(1, shellSpace), stack(2, lsSpace), stack(3, shellSpace, 'sh')];
const kernel = { key: 4, stack: addr(0x8000_4000n) };
const context = { key: 5, stack: addr(0x8001_0000n), name: 'sh:2' };
const root = { key: 9, future: futures[0], address: addr(0x5000n), space: lsSpace };

type Thread = typeof shell | typeof kernel | typeof context | undefined;
const begins = (time: number, of: FunctionRef, thread: Thread, hart = 0, depth = 0): TraceEvent => ({
  ...{ type: 'call-begin', time: nanos(time), hart, thread, depth, function: of, arguments: [] },
});
const ends = (time: number, of: FunctionRef, thread: Thread, began: number, hart = 0, depth = 0): TraceEvent => ({
  ...{ type: 'call-end', time: nanos(time), hart, thread, depth, function: of, began: nanos(began) },
});
const poll = {
  hart: 1,
  root,
  future: futures[0],
  address: root.address,
  depth: 0,
  thread: ls,
  state: suspend0,
} as const;

const events = linked([
  // Hart 0 runs sh:2, whose read is served by sys_read, although an interrupt's handler comes behind that.
  begins(5, running, undefined),
  begins(5, fn(8, 'on hart 0', 'thread'), context),
  begins(10, main, shellMain),
  begins(20, read, shell),
  begins(25, sysRead, kernel),
  begins(30, irq, kernel, 0, 1),
  begins(31, tick, kernel, 0, 2),
  ends(35, tick, kernel, 31, 0, 2),
  ends(36, irq, kernel, 30, 0, 1),
  ends(40, sysRead, kernel, 25),
  ends(45, read, shell, 20),
  // On hart 1 a call of the other process is interrupted before anything serves it.
  begins(50, write2, ls, 1),
  begins(52, irq, kernel, 1),
  begins(53, tick, kernel, 1, 1),
  ends(54, tick, kernel, 53, 1, 1),
  ends(55, irq, kernel, 52, 1),
  ends(60, write2, ls, 50, 1),
  { type: 'poll-begin', ...poll, time: nanos(70) },
  { type: 'poll-end', ...poll, time: nanos(75), began: nanos(70), result: 'pending', chain: [] },
  // Nothing serves a call that has returned.
  begins(80, write2, shell),
  ends(82, write2, shell, 80),
  begins(90, sysRead, kernel),
  ends(95, sysRead, kernel, 90),
]);

t.test('Perfetto: a group for each process, and arrows into the kernel and back', async (t) => {
  const { slices, tracks } = readPerfetto(decode(write('processes.pftrace', events)));
  const nameOf = (uuid: string | undefined) => (uuid === undefined ? undefined : tracks.get(uuid)?.name);
  const groups = [...tracks.values()].flatMap(({ descriptor, name }) =>
    children(descriptor, 'process').map((about) => [name, scalar(about, 'pid'), scalar(about, 'process_name')]),
  );
  t.strictSame(groups, [
    ['labkern', '1', 'labkern'],
    [`process ${hex(shellSpace)}`, '2', 'sh:2'],
    [`process ${hex(lsSpace)}`, '3', `process ${hex(lsSpace)}`],
  ]);
  const parents = [...tracks.values()].map(({ name, parent }) => [name, nameOf(parent)]);
  for (const [name, parent] of [
    [`stack 0x4000 of space ${hex(shellSpace)}`, `process ${hex(shellSpace)}`],
    [`stack 0x4000 of space ${hex(shellSpace)} in sh`, `process ${hex(shellSpace)}`],
    [`a of space ${hex(lsSpace)} @0x5000`, 'tasks'],
    ['hart 0', 'labkern'],
    ['stack 0x80004000', 'labkern'],
    ['thread sh:2 at 0x80010000', 'labkern'],
  ])
    t.ok(
      parents.some(([of, around]) => of === name && around === parent),
      `${name} in ${parent}`,
    );
  const task = [...tracks.values()].find(({ name }) => name.startsWith('a of space'));
  t.equal(nameOf(tracks.get(task?.parent ?? '')?.parent), `process ${hex(lsSpace)}`);
  const seen = slices.filter(({ category }) => category === 'process');
  t.strictSame(
    seen.map(({ name, begin, end }) => [name, begin, end]),
    [
      ['sh:2', 10, 82],
      [`process ${hex(lsSpace)}`, 50, 75],
    ],
    'from the first to the last that was seen',
  );
  const into = slices.filter(
    ({ flows = [], ended = [] }) => flows.some((one) => BigInt(one) >= 2n ** 41n) || ended.length > 0,
  );
  t.strictSame(
    into.map(({ name, begin }) => [name, begin]),
    [
      ['syscall::read', 20],
      ['sys_read', 25],
      ['syscall::write', 50],
      ['syscall::write', 80],
    ],
  );
  const [call, served] = into;
  t.strictSame(served?.ended, call?.flows, 'into the kernel');
  t.strictSame(call?.ended, served?.flows, 'and back');
  const again = await readBack('processes.pftrace');
  t.equal(again.length, events.length, 'groups and arrows are no events');
  t.ok(write('processes2.pftrace', again).equals(write('processes3.pftrace', await readBack('processes2.pftrace'))));
});

t.test('a process that was seen with several threads says so, and one that is renamed keeps its name', (t) => {
  const { stack: at } = context;
  const threads = [
    { key: 11, stack: at, name: 'init:1' },
    { key: 12, stack: at, name: 'sh:1' },
    { key: 13, stack: at, name: 'cat:2' },
    { key: 14, stack: addr(0x8002_0000n), name: 'wc:3' },
  ];
  const processes = new Processes();
  const names = threads.map((thread, i) => {
    for (const event of [begins(i, running, thread), begins(i, read, shell)]) processes.on(event);
    return processes.of(shellSpace)?.thread;
  });
  t.strictSame(names, ['init:1', 'sh:1', 'sh:1 and 1 more', 'sh:1 and 2 more']);
  t.end();
});

t.test('report --by process: as the groups are called', async (t) => {
  const report = reportBy('process');
  tell(report, events);
  const rows = report.rows().map(({ name, process }) => [name, process?.number, process?.first, process?.last]);
  t.strictSame(rows, [
    ['in no process', undefined, undefined, undefined],
    [`process ${hex(shellSpace)}, sh:2 in sh`, 2, 10, 82],
    [`process ${hex(shellSpace)}, sh:2`, 2, 10, 82],
    [`process ${hex(lsSpace)}`, 3, 50, 75],
  ]);
});

t.test('Chrome: a pid for each process', (t) => {
  const records = parse(write('processes.json', events));
  const names = records.filter(({ name }) => name === 'process_name').map(({ pid, args }) => [pid, args?.name]);
  t.strictSame(names, [
    [1, 'labkern'],
    [2, 'sh:2'],
    [3, `process ${hex(lsSpace)}`],
  ]);
  const pids = (wanted: string) => [...new Set(records.filter(({ name }) => name === wanted).map(({ pid }) => pid))];
  t.strictSame(pids('syscall::read'), [2]);
  t.strictSame(pids('syscall::write'), [3, 2]);
  t.strictSame(pids('sys_read'), [1]);
  t.strictSame(pids('a'), [3], 'a poll, and its task');
  t.end();
});

t.test('HTML: lanes of a process stand together', (t) => {
  const text = write('processes.html', events).toString();
  const blocks = [...text.matchAll(/<script type="application\/octet-stream">([^<]*)</g)];
  const trace = traceOf(blocks.map(([, packed = '']) => readBlock(inflateRawSync(Buffer.from(packed, 'base64')))));
  const shown = new Layout(trace).lanes.map(({ kind, process }) => `${process} ${kind}`);
  t.strictSame(shown, [
    ...['0 hart', '0 thread', '0 thread'],
    ...['2 process', '2 thread', '2 thread'],
    ...['3 process', '3 thread', '3 task'],
  ]);
  t.strictSame(
    trace.lanes.filter(({ kind }) => kind === 'process').map(({ name }) => name),
    ['sh:2', `process ${hex(lsSpace)}`],
  );
  const ofCalls = [...trace.wake].flatMap((number, i) =>
    number % 2 === 1 ? [`${number} ${trace.whats[trace.what[i] as number]?.name}`] : [],
  );
  t.strictSame(ofCalls, ['1 sys_read', '1 syscall::read', '3 syscall::write', '5 syscall::write']);
  t.end();
});
