import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { calledOf, futureNames, linesNames } from '../../../src/trace/events/future-names.js';
import {
  diffRows,
  findingsText,
  instancesOf,
  OffCpu,
  openTrace,
  readTrace,
  reportBy,
  type TraceEvent,
} from '../../../src/trace/index.js';
import { future, linked, nanos, suspend0, tell } from '../stories.js';
import { decode, folder, parse, readBack, write } from '../written.js';

const pinned = (target: string) => `core::pin::Pin<alloc::boxed::Box<${target}, alloc::alloc::Global>>`;
const pin = (target: string) => ({ future: 'core::pin::Pin', instance: pinned(target) });
const spinner = { future: 'shop::Counted', instance: 'shop::Counted<shop::spinner::{async_fn_env#0}>' };
const buyer = { future: 'shop::Counted', instance: 'shop::Counted<shop::buyer::{async_fn_env#0}>' };

t.test('what only forwards polls is called by what it points to', async (t) => {
  t.equal(calledOf(pin('shop::thumb::{async_fn_env#0}')), 'shop::thumb');
  t.equal(
    calledOf(pin('a::{impl#0}::run::{async_fn#0}::{async_block_env#0}<b::Or<u8, (c::D, fn() -> u8)>>')),
    'a::{impl#0}::run::{async_block#0}',
  );
  t.equal(calledOf(pin('dyn core::future::future::Future<Output=()>')), 'dyn core::future::future::Future<Output=()>');
  t.equal(calledOf({ future: '&mut a::Receiver', instance: '&mut a::Receiver<()>' }), 'a::Receiver');
  // A name of its own is one already; a function of Pin's is no pointer.
  t.equal(calledOf({ future: 'a::b @0x1000', instance: pinned('a::b') }), 'a::b @0x1000');
  t.equal(
    calledOf({ future: 'core::pin::Pin::get_mut', instance: 'core::pin::Pin<&mut a::B>::get_mut' }),
    'core::pin::Pin::get_mut',
  );
  t.equal(calledOf(spinner), 'shop::Counted');
});

t.test('generic arguments stand where they tell instances apart', async (t) => {
  t.same([spinner, buyer].map(futureNames([spinner, buyer])), [
    'shop::Counted<shop::spinner>',
    'shop::Counted<shop::buyer>',
  ]);
  t.equal(futureNames([spinner])(spinner), 'shop::Counted');
  const thumb = { future: 'shop::thumb', instance: 'shop::thumb::{async_fn_env#0}' };
  const both = [thumb, pin(thumb.instance)];
  t.same(both.map(futureNames(both)), ['shop::thumb', 'shop::thumb']);
  t.same(both.map(linesNames(both)), ['shop::thumb', 'core::pin::Pin<alloc::boxed::Box<shop::thumb>>']);
});

t.test('findings and diff name instances as the tables do', async (t) => {
  const finding = { ...spinner, kind: 'long-poll', task: 4, id: null, file: 'src/a.rs', line: 9 } as const;
  const text = findingsText([{ ...finding, count: 1, times_ns: [0], worst: 2e8 }], 0, true, [spinner, buyer]);
  t.match(text, 'task 4, shop::Counted<shop::spinner> at src/a.rs:9');
  const rowsOf = (...polled: (readonly [typeof spinner, number])[]) => {
    const report = reportBy('future');
    tell(
      report,
      polled.flatMap(([each, ns], i) => pollsOf(future(i, each.future, 1, each.instance), i, ns)),
    );
    return report.rows();
  };
  const [before, after] = [rowsOf([spinner, 10], [buyer, 50]), rowsOf([spinner, 30])];
  const rows = diffRows(before, after, { nameOf: instancesOf(before, after) });
  t.match(rows, [
    { name: 'shop::Counted<shop::buyer>', plain: 'shop::Counted', before: { total: 50 }, after: undefined },
    { name: 'shop::Counted<shop::spinner>', before: { total: 10 }, after: { total: 30 } },
  ]);
  const nameOf = (row: { readonly name: string }): string => row.name;
  const [once, twice] = [rowsOf([spinner, 30]), rowsOf([spinner, 10], [spinner, 10])];
  t.match(diffRows(twice, once, { nameOf }), [{ percent: 50 }], 'sums');
  t.match(diffRows(twice, once, { nameOf, isMean: true }), [{ before: { calls: 2, total: 10 }, percent: 200 }]);
  const [open] = twice;
  const lost = open && [{ ...open, calls: 3, lost: 1 }];
  t.match(diffRows(lost ?? [], once, { nameOf, isMean: true }), [{ before: { calls: 1, total: 10 } }], 'ends alone');
  // With one instance in each trace the name is enough, whatever its arguments are.
  const [one, other] = [rowsOf([spinner, 10]), rowsOf([buyer, 30])];
  t.match(diffRows(one, other, { nameOf: instancesOf(one, other) }), [{ name: 'shop::Counted', percent: 200 }]);
});

function pollsOf(polled: ReturnType<typeof future>, index: number, ns: number): TraceEvent[] {
  const address = addr(BigInt(0x1000 + index * 0x100));
  const of = { hart: 0, root: { key: index, future: polled, address }, future: polled, address, depth: 0 };
  const begin = index * 1000;
  return linked([
    { type: 'poll-begin', ...of, time: nanos(begin), state: undefined },
    {
      type: 'poll-end',
      ...of,
      time: nanos(begin + ns),
      began: nanos(begin),
      result: 'ready',
      state: undefined,
      chain: [],
    },
  ]);
}

t.test("a library's task is called by the program's own Future in it, also where it wakes another one", async (t) => {
  const library = { file: '/rustc/1/library/core/src/future/future.rs', line: 132 };
  const connection = { ...future(0, 'core::pin::Pin', 1, pinned('warp::run::{async_fn_env#0}')), ...library };
  const [handler, waiter] = [future(1, 'shop::buy', 88), future(2, 'shop::auditor', 68)];
  const root = { key: 0, future: connection, address: addr(0x1000n) };
  const by = { hart: 0, root, future: connection, address: root.address, depth: 0 };
  const inner = { ...by, future: handler, address: addr(0x2000n), depth: 1 };
  const woken = { key: 1, future: waiter, address: addr(0x3000n) };
  const of = { hart: 0, root: woken, future: waiter, address: woken.address, depth: 0 };
  const pending = { result: 'pending', state: suspend0, chain: [] } as const;
  const link = { future: undefined, typeName: 'shop::buy', address: undefined, state: suspend0 };
  const caller = { function: 'wake_all', file: 'src/list.rs', line: 71 };
  const events = linked([
    { type: 'poll-begin', ...of, time: nanos(0), state: undefined },
    { type: 'poll-end', ...of, time: nanos(10), began: nanos(0), ...pending },
    { type: 'poll-begin', ...by, time: nanos(20), state: undefined },
    { type: 'poll-begin', ...inner, time: nanos(21), state: undefined },
    { type: 'wake', hart: 0, waker: woken.address, root: woken, by: root, time: nanos(22), caller },
    { type: 'poll-end', ...inner, time: nanos(30), began: nanos(21), ...pending },
    { type: 'poll-end', ...by, time: nanos(31), began: nanos(20), ...pending, state: undefined, chain: [link] },
    { type: 'poll-begin', ...of, time: nanos(40), state: suspend0 },
    { type: 'poll-end', ...of, time: nanos(50), began: nanos(40), ...pending, result: 'ready' },
  ]);
  const nothing = (): void => {};
  const offCpu = new OffCpu({ begin: nothing, hart: nothing, flush: nothing, end: nothing, event: nothing });
  tell(offCpu, events);
  t.match(offCpu.rows(), [
    { task: 'shop::auditor', wokenBy: 'shop::buy in wake_all at src/list.rs:71', waker: 'shop::buy' },
    { task: 'shop::buy', wokenBy: '[still waiting at the end]' },
  ]);
});

t.test('timelines call a boxed task as tables do, and a trace that is read back keeps its type', async (t) => {
  const boxed = future(0, 'core::pin::Pin', 1, pinned('shop::buy::{async_fn_env#0}'));
  const events = pollsOf(boxed, 1, 10);
  const page = JSON.stringify(parse(write('boxed.json', events)));
  t.match(page, '"name":"shop::buy @0x1100"');
  t.match(page, '"name":"shop::buy","');
  t.notMatch(page, /"core::pin::Pin(?!<)/);
  const bytes = write('boxed.pftrace', events);
  const tracks = decode(bytes).map((packet) => JSON.stringify(packet));
  t.ok(tracks.some((text) => text.includes('shop::buy @0x1100')));
  const [begin] = await readBack('boxed.pftrace');
  const { future: name, instance } = boxed;
  t.match(begin, {
    type: 'poll-begin',
    future: { future: name, instance },
    root: { future: { future: name, instance } },
  });
  await readTrace(join(folder, 'boxed.pftrace'), openTrace(join(folder, 'again.pftrace'), { force: true }));
  t.ok(readFileSync(join(folder, 'again.pftrace')).equals(bytes));
  t.match(write('boxed.txt', events).toString(), / poll shop::buy = ready/);
});
