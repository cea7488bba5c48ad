import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { OffCpu, offCpuTable, openTrace, reportBy, type Sample, type TraceEvent } from '../../../src/trace/index.js';
import { scratchFolder } from '../../support/command.js';
import { readWithSpeedscope } from '../../support/speedscope.js';
import { futures, lateWaits, linked, nanos, stories, suspend0, suspend1, tell, trueWaits } from '../stories.js';

const folder = scratchFolder(t);

const file = '/h/.cargo/registry/src/index-1/tokio-1.54.1/src/sync/mutex.rs';
const lock = { future: undefined, typeName: 'tokio::sync::Mutex::lock', address: undefined };

function profileOf(events: readonly TraceEvent[]): { readonly offCpu: OffCpu; readonly samples: readonly Sample[] } {
  const samples: Sample[] = [];
  const keep = (event: TraceEvent): void => void (event.type === 'sample' && samples.push(event));
  const nothing = (): void => {};
  const offCpu = new OffCpu({ begin: nothing, hart: nothing, flush: nothing, end: nothing, event: keep });
  tell(offCpu, events);
  return { offCpu, samples };
}

t.test('all waits of any story, and no other time', async () => {
  fc.assert(
    fc.property(stories, (told) => {
      const last = Math.max(0, ...told.events.map((event) => (event.type === 'gap' ? event.to : event.time)));
      const waited = [...trueWaits(told), ...lateWaits(told)].map(({ begin, end = last }) => end - begin);
      const { offCpu, samples } = profileOf(told.events);
      const rows = offCpu.rows();
      const sum = (list: readonly number[]): number => list.reduce((all, one) => all + one, 0);
      return (
        sum(rows.map(({ waits }) => waits)) === waited.length &&
        sum(rows.map(({ total }) => total)) === sum(waited) &&
        sum(samples.map(({ periodNs }) => periodNs)) === sum(waited)
      );
    }),
  );
});

const [a, b] = futures;
const root = { key: 0, future: a, address: addr(0x1000n) };
const of = { hart: 0, root, future: a, address: root.address, depth: 0 };
const by = { key: 1, future: b, address: addr(0x2000n) };
const wake = { type: 'wake', hart: 0, waker: root.address, root } as const;

const story = linked([
  { type: 'poll-begin', ...of, time: nanos(0), state: undefined },
  { type: 'poll-end', ...of, time: nanos(10), began: nanos(0), result: 'pending', state: suspend0, chain: [] },
  { ...wake, time: nanos(110), by, caller: { function: 'ring', file: 'src/r.rs', line: 7 } },
  // The second wake does nothing.
  { ...wake, time: nanos(120), by: undefined, caller: { function: 'tick', file: undefined, line: undefined } },
  { type: 'poll-begin', ...of, time: nanos(140), state: suspend0 },
  { type: 'poll-end', ...of, time: nanos(150), began: nanos(140), result: 'pending', state: suspend1, chain: [] },
  {
    ...{ type: 'cancelled', hart: 0, root, future: a, address: root.address, time: nanos(450), state: suspend1 },
    ...{ by: undefined, caller: { function: undefined, file: undefined, line: undefined } },
  },
]);

t.test('who woke it, how long it was ready then, and what was never woken', async (t) => {
  const { offCpu, samples } = profileOf(story);
  t.same(
    samples.map(({ stack, periodNs }) => `${stack.map(({ name }) => name).join(' < ')}: ${periodNs}`),
    [
      'woken by b in ring at src/r.rs:7 < a at src/a.rs:12: 100',
      '[woken, not polled yet] < woken by b in ring at src/r.rs:7 < a at src/a.rs:12: 30',
      '[dropped] < a at src/b.rs:25: 300',
    ],
  );
  t.match(offCpu.rows(), [
    { task: 'a', wokenBy: 'b in ring at src/r.rs:7', waits: 1, total: 130, max: 130, runnable: 30 },
    { task: 'a', wokenBy: '[dropped]', waits: 1, total: 300, max: 300, runnable: 0 },
  ]);
});

t.test('who woke it stands first in a narrow table; a name of a library is short', async (t) => {
  const caller = (file: string) => ({ function: 'tokio::util::wake_list::WakeList::wake_all', file, line: 71 });
  const row = { task: 'a', at: undefined, wokenBy: '', waits: 1, total: 9, max: 9, runnable: 0 };
  const woken = (file: string) => ({ ...row, wake: { ...wake, time: nanos(1), by, caller: caller(file) } });
  const library = '/h/.cargo/registry/src/index-1/tokio-1.54.1/src/util/wake_list.rs';
  const table = (width: number): string[] =>
    offCpuTable([woken(library), woken('/shop/src/list.rs')], { color: false, width })
      .split('\n')
      .map((line) => line.replace(/^.* a +/, ''));
  t.same(table(200).slice(1), [
    'b in tokio WakeList::wake_all at tokio-1.54.1/src/util/wake_list.rs:71',
    'b in tokio::util::wake_list::WakeList::wake_all at /shop/src/list.rs:71',
    '',
  ]);
  t.match(table(70)[2], /^b in tokio::util::wake.*…$/);
});

t.test('a poll whose end shows no result was pending if the next one finds the Future at an await', async (t) => {
  const unknown = { type: 'poll-end', ...of, result: 'unknown', chain: [] } as const;
  const events = linked([
    { type: 'poll-begin', ...of, time: nanos(0), state: undefined },
    { ...unknown, time: nanos(10), began: nanos(0), state: suspend0 },
    { ...wake, time: nanos(60), by, caller: { function: 'ring', file: 'src/r.rs', line: 7 } },
    { type: 'poll-begin', ...of, time: nanos(80), state: suspend0 },
    // Its end still shows the await from which it began; the next poll shows another one.
    { ...unknown, time: nanos(90), began: nanos(80), state: suspend0 },
    { type: 'poll-begin', ...of, time: nanos(190), state: suspend1 },
    // Nothing says what came of the last one.
    { ...unknown, time: nanos(200), began: nanos(190), state: suspend1 },
  ]);
  t.match(profileOf(events).offCpu.rows(), [
    { at: { line: 12 }, wokenBy: 'b in ring at src/r.rs:7', waits: 1, total: 70, runnable: 20 },
    { at: { line: 25 }, wokenBy: '[no wake seen]', waits: 1, total: 100 },
  ]);
  const report = reportBy('await');
  tell(report, events);
  const rows = report.rows().map(({ file, line, calls, total }) => [file, line, calls, total]);
  t.same(rows, [
    ['src/a.rs', 12, 1, 70],
    ['src/b.rs', 25, 1, 100],
  ]);
});

t.test('a name chooses the waits inside the Futures that it names', async (t) => {
  const links = [futures[1], futures[2]].map((future) => ({ future, typeName: future.instance, address: undefined }));
  const chain = links.map((link) => ({ ...link, state: suspend1 }));
  const events = linked([
    { type: 'poll-begin', ...of, time: nanos(0), state: undefined },
    { type: 'poll-end', ...of, time: nanos(10), began: nanos(0), result: 'pending', state: suspend0, chain },
    { type: 'poll-begin', ...of, time: nanos(40), state: suspend0 },
    { type: 'poll-end', ...of, time: nanos(50), began: nanos(40), result: 'pending', state: suspend0, chain: [] },
    { type: 'poll-begin', ...of, time: nanos(55), state: suspend0 },
  ]);
  const totals = ['a', 'b', 'c::d', 'e'].map((wanted) => {
    const note = (name: string): boolean => name === wanted;
    const report = reportBy('await', { begin: () => false, note });
    tell(report, events);
    return report.rows().reduce((sum, { total }) => sum + total, 0);
  });
  t.same(totals, [35, 30, 30, 0], 'of the root, on the way, the innermost, and of no Future');
});

t.test('a row a whole chain, where that was asked for', async (t) => {
  const chain = [{ ...lock, state: { name: '', file, line: 455 } }];
  const events = linked([
    { type: 'poll-begin', ...of, time: nanos(0), state: undefined },
    { type: 'poll-end', ...of, time: nanos(10), began: nanos(0), result: 'pending', state: suspend0, chain },
    { type: 'poll-begin', ...of, time: nanos(40), state: suspend0 },
  ]);
  const [short, full] = [reportBy('await'), reportBy('await', undefined, true)];
  tell(short, events);
  tell(full, events);
  t.match(short.rows(), [{ name: 'a', file: 'src/a.rs', line: 12, inside: 'tokio::sync::Mutex::lock' }]);
  const whole = `a at src/a.rs:12 > tokio::sync::Mutex::lock at ${file}:455`;
  t.match(full.rows(), [{ name: whole, line: 12, total: 30 }]);
  const waits = new OffCpu(openTrace(join(folder, 'full.folded')), { isFull: true });
  tell(waits, events);
  t.match(waits.rows(), [{ whole, waits: 1, total: 30 }]);
  const table = offCpuTable(waits.rows(), { color: false, width: 400 });
  t.match(table, /a at src\/a\.rs:12 > tokio::sync::Mutex::lock at tokio-1\.54\.1\/src\/sync\/mutex\.rs:455/);
});

t.test('a name chooses the waits that go through it, as `report --by await` does', async (t) => {
  const chain = [{ ...lock, state: { name: '', file, line: 455 } }];
  const events = linked([
    { type: 'poll-begin', ...of, time: nanos(0), state: undefined },
    { type: 'poll-end', ...of, time: nanos(10), began: nanos(0), result: 'pending', state: suspend0, chain },
    { type: 'poll-begin', ...of, time: nanos(40), state: suspend0 },
  ]);
  const nothing = (): void => {};
  for (const [wanted, waits] of [
    ['a', 1],
    ['tokio::sync::Mutex::lock', 1],
    ['b', 0],
  ] as const) {
    const chosen = { begin: () => false, note: (name: string) => name === wanted };
    const offCpu = new OffCpu(
      { begin: nothing, hart: nothing, flush: nothing, end: nothing, event: nothing },
      { chosen },
    );
    const report = reportBy('await', chosen);
    tell(offCpu, events);
    tell(report, events);
    t.match([offCpu.rows().length, report.rows().length], [waits, waits], wanted);
  }
});

t.test('samples beside calls are a tree of their own, by their time', async (t) => {
  const path = join(folder, 'both.folded');
  const frame = { name: 'main', instance: 'main', address: undefined, file: undefined, line: undefined };
  const sample: TraceEvent = { type: 'sample', time: nanos(5), hart: 0, stack: [frame], periodNs: 1000 };
  tell(openTrace(path), [story[0] as TraceEvent, sample, sample, ...story.slice(1, 2)]);
  t.equal(readFileSync(path, 'utf8'), 'poll a 10\n[samples];main 2000\n');
});

t.test("speedscope's own importer reads the same waits", async (t) => {
  const path = join(folder, 'waits.speedscope.json');
  tell(new OffCpu(openTrace(path)), story);
  const { profiles, warnings } = await readWithSpeedscope(readFileSync(path, 'utf8'));
  t.same(warnings, []);
  t.same(
    profiles.map((profile) => [profile.getName(), profile.getTotalWeight()]),
    [['waits of tasks', 430]],
  );
  const times = new Map<string, number>();
  profiles[0]?.forEachFrame((frame) => times.set(frame.name, frame.getTotalWeight()));
  t.equal(times.get('a at src/a.rs:12'), 130);
  t.equal(times.get('[woken, not polled yet]'), 30);
});

t.test('a wait is known up to a gap, and not from there on', async (t) => {
  const gap: TraceEvent = { type: 'gap', from: nanos(70), to: nanos(9000) };
  const [begun, pends, , , again] = story as [TraceEvent, TraceEvent, TraceEvent, TraceEvent, TraceEvent];
  const { time: _, ...next } = again as Sample;
  const told = [begun, pends, gap, { ...next, time: nanos(9500) } as unknown as TraceEvent];
  t.match(profileOf(told).offCpu.rows(), [{ waits: 1, total: 60, max: 60, wokenBy: '[not recorded]' }]);
  const report = reportBy('await');
  tell(report, told);
  t.match(report.rows(), [{ calls: 1, total: 0, durations: { count: 0 } }]);
  // The end of a poll that shows no result: whether it has waited since, nobody saw.
  const unclear = { ...pends, result: 'unknown', state: undefined } as TraceEvent;
  t.same(profileOf([begun, unclear, ...told.slice(2)]).offCpu.rows(), []);
});
