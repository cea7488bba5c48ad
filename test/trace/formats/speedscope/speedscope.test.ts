// Our .speedscope.json and .json in speedscope's own importer: no warning, and the time of each frame is that of the tables.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import {
  type AnyBegin,
  type CallBegin,
  FunctionSummary,
  openTrace,
  Summary,
  type TraceEvent,
} from '../../../../src/trace/index.js';
import { elfPath, qemuArgv } from '../../../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../../../support/command.js';
import { heapBytes, withFilesUpTo } from '../../../support/limits.js';
import { long } from '../../../support/long.js';
import { readWithSpeedscope, type SpeedscopeProfile } from '../../../support/speedscope.js';
import { callStories, functions } from '../../call-stories.js';
import { oneTask } from '../../one-task.js';
import { info, nanos, stories, tell } from '../../stories.js';
import { folder, write } from '../../written.js';

/** The time in each frame, in nanoseconds, by its name, over all profiles. */
function totals(profiles: readonly SpeedscopeProfile[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const profile of profiles) {
    profile.forEachFrame((frame) => found.set(frame.name, (found.get(frame.name) ?? 0) + frame.getTotalWeight()));
  }
  return found;
}

const instanceOf = (begin: AnyBegin): string =>
  begin.type === 'call-begin' ? begin.function.instance : begin.future.instance;

/** What the tables say of each function and Future, but for those of which a call was lost or is open: these have no time there. */
function tabled(events: readonly TraceEvent[]): Map<string, number> {
  const [functions, polls] = [new FunctionSummary(), new Summary()];
  const whole = new Set(events.flatMap((event) => (/-end$/.test(event.type) && 'begin' in event ? event.begin : [])));
  const begins = events.flatMap((event) => (event.type === 'call-begin' || event.type === 'poll-begin' ? event : []));
  const partly = new Set(begins.filter((begin) => !whole.has(begin)).map(instanceOf));
  for (const sink of [functions, polls]) tell(sink, events);
  return new Map(
    [...functions.rows(), ...polls.rows()]
      .filter(({ instance }) => begins.some((begin) => instanceOf(begin) === instance) && !partly.has(instance))
      .map(({ instance, total_ns }) => [instance, total_ns]),
  );
}

t.test('one task: profiles, frames with file and line, and what runs when', async (t) => {
  const text = write('one.speedscope.json', oneTask).toString();
  const at = (type: string, frame: number, time: number) => ({ type, frame, at: time });
  const profile = (name: string, ...events: object[]) => {
    return { type: 'evented', name, unit: 'nanoseconds', startValue: 0, endValue: 5_000_001_000, events };
  };
  t.same(JSON.parse(text), {
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    exporter: 'rsptrace',
    name: 'labkern, riscv64, guest clock riscv-time',
    shared: {
      frames: [
        { name: 'a::{async_fn_env#0}', file: 'src/a.rs', line: 10 },
        { name: 'b::{async_fn_env#0}', file: 'src/b.rs', line: 20 },
      ],
    },
    profiles: [
      profile('hart 0', at('O', 0, 0), at('O', 1, 200), at('C', 1, 400), at('C', 0, 500)),
      profile('hart 2', at('O', 0, 5_000_000_123), at('C', 0, 5_000_001_000)),
    ],
  });
  const { profiles, warnings } = await readWithSpeedscope(text);
  t.same(warnings, []);
  t.same(
    profiles.map((one) => [one.getName(), one.getTotalWeight()]),
    [
      ['hart 0', 5_000_001_000],
      ['hart 2', 5_000_001_000],
    ],
  );
  const nothing = await readWithSpeedscope(write('none.speedscope.json', []).toString());
  t.same([nothing.profiles.map((one) => one.getName()), nothing.warnings], [['hart 0', 'hart 1'], []]);
});

t.test('whatever is called and polled, frames have the time of the tables', async (t) => {
  let compared = 0;
  for (const told of [callStories, stories]) {
    await fc.assert(
      fc.asyncProperty(told, async ({ events }: { readonly events: TraceEvent[] }) => {
        const { profiles, warnings } = await readWithSpeedscope(write('p.speedscope.json', events).toString());
        assert.deepEqual(warnings, []);
        const shown = totals(profiles);
        const wanted = tabled(events);
        for (const [name, time] of wanted) assert.equal(shown.get(name), time, name);
        compared += wanted.size;
      }),
      { seed: 20_26, numRuns: 50 },
    );
  }
  t.ok(compared > (long ? 25 : 10), `${compared} frames`);
});

/** So many calls, one inside the other by twos, of two threads that take turns. */
function* calls(count: number): Generator<TraceEvent> {
  const [outer, inner] = functions;
  if (outer === undefined || inner === undefined) return;
  const threads = [0, 1].map((key) => ({ key, stack: outer.address }));
  for (let i = 0; i < count; i += 2) {
    const at = { hart: 0, thread: threads[(i / 2) % 2] };
    const begin = (depth: number, time: number, around?: CallBegin): CallBegin => {
      const fn = depth === 0 ? outer : inner;
      return { type: 'call-begin', ...at, function: fn, depth, around, time: nanos(time), arguments: [] };
    };
    const first = begin(0, i * 10);
    const second = begin(1, i * 10 + 2, first);
    yield first;
    yield second;
    const end = { type: 'call-end', ...at } as const;
    yield { ...end, function: inner, depth: 1, begin: second, began: second.time, time: nanos(i * 10 + 5) };
    yield { ...end, function: outer, depth: 0, begin: first, began: first.time, time: nanos(i * 10 + 9) };
  }
}

t.test('150,000 calls: memory stays, and nothing but the trace lies there', async (t) => {
  const place = join(folder, 'many');
  mkdirSync(place);
  const path = join(place, 'x.speedscope.json');
  const sink = openTrace(path);
  sink.begin(info);
  for (const event of calls(10_000)) sink.event(event);
  const before = heapBytes();
  for (const event of calls(150_000)) sink.event(event);
  const grown = heapBytes() - before;
  // 300,000 begins and ends are 4.8 MB in the spool, which has the fewest bytes.
  t.ok(grown < 3_000_000, `grew by ${grown} bytes`);
  t.same(readdirSync(place), ['x.speedscope.json']);
  t.equal(statSync(path).size, 0);
  sink.end();
  sink.end();
  const { profiles } = JSON.parse(readFileSync(path, 'utf8')) as { profiles: { events: { at: number }[] }[] };
  t.same(
    profiles.map(({ events }) => events.length),
    [10_000, 10_000, 150_000, 150_000],
    'threads that begin anew with the same numbers are others',
  );
});

t.test('a full disk: one error, and what was there stays', async (t) => {
  const path = join(folder, 'limited.speedscope.json');
  writeFileSync(path, 'as it was');
  const sink = openTrace(path, { force: true });
  const thrown: unknown[] = [];
  sink.begin(info);
  withFilesUpTo(1000 * 1024, () => {
    for (const event of calls(60_000)) {
      try {
        sink.event(event);
      } catch (error) {
        thrown.push(error);
      }
    }
  });
  t.match(thrown, [{ code: 'TRACE_WRITE_FAILED', message: /limited\.speedscope\.json.*EFBIG/, hint: /\.pftrace/ }]);
  t.equal(thrown.length, 1);
  sink.end();
  t.equal(readFileSync(path, 'utf8'), 'as it was');
});

t.test('Chrome: each function is a frame, however seldom the clock ticks, and however late', async () => {
  const ticks = fc.constantFrom(1, 100, 100_000);
  const starts = fc.constantFrom(0, 2 ** 42, 2 ** 50);
  await fc.assert(
    fc.asyncProperty(callStories, ticks, starts, async ({ events }, tick, start) => {
      const seen = (time: number) => nanos(start + Math.floor(time / tick) * tick);
      const coarse = events.map((event): TraceEvent => {
        if (event.type === 'gap') return event;
        const time = seen(event.time);
        return 'began' in event ? { ...event, time, began: seen(event.began) } : { ...event, time };
      });
      const names = coarse.flatMap((event) => {
        if (event.type === 'call-begin') return event.function.name;
        return event.type === 'poll-begin' ? event.future.future : [];
      });
      const { profiles, warnings } = await readWithSpeedscope(write('tied.json', coarse).toString());
      // A story may end in the middle of a call; a recording reports those as lost.
      assert.deepEqual(
        warnings.filter((warning) => !/was still open at end of profile/.test(warning)),
        [],
      );
      const shown = [...totals(profiles).keys()].map((name) => name.replace(/ \{".*$/s, ''));
      assert.deepEqual([...new Set(shown)].sort(), [...new Set(names)].sort());
    }),
    { seed: 20_26, numRuns: 100 },
  );
});

t.test('a recording of a kernel: each function and each Future is a frame, with the time of the table', async (t) => {
  const scratch = scratchFolder(t);
  const trace = join(scratch, 'all.pftrace');
  const probes = ['-p', 'fn:labkern::**', '-p', 'poll:**'];
  const words = ['run', '--json', ...probes, '-o', trace, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2')];
  const { status, stdout } = await rsptrace(...words).ended;
  t.equal(status, 0);
  type Row = {
    instance: string;
    total_ns: number;
    times_at_most?: true;
    lost: number;
    calls?: number;
    polls?: number;
  };
  const { functions, futures, clock } = JSON.parse(stdout) as {
    functions: Row[];
    futures: Row[];
    clock: { resolution_ns: number };
  };
  const rows = new Map<string, Row[]>();
  for (const row of [...functions, ...futures]) rows.set(row.instance, [...(rows.get(row.instance) ?? []), row]);
  // Of a lost call the table has no time; the one that never returns is lost.
  const whole = [...rows].filter(([, list]) => list.every(({ lost }) => lost === 0));
  const sum = (list: readonly Row[], of: (row: Row) => number) => list.reduce((all, row) => all + of(row), 0);
  const shownIn = async (name: string): Promise<Map<string, number>> => {
    const path = join(scratch, name);
    t.equal((await rsptrace('convert', trace, '-o', path).ended).status, 0);
    const { profiles, warnings } = await readWithSpeedscope(readFileSync(path, 'utf8'));
    t.same(warnings, []);
    return totals(profiles);
  };
  const shown = await shownIn('all.speedscope.json');
  const found = whole.filter(([name]) => shown.has(name));
  t.ok(found.length > 50, `${found.length} frames`);
  t.same(
    found.filter(([name, list]) => {
      // An upper bound is a tick of the clock at least.
      const least = list.some((row) => row.times_at_most) ? clock.resolution_ns : 0;
      return Math.max(shown.get(name) ?? 0, least) !== sum(list, ({ total_ns }) => total_ns);
    }),
    [],
  );
  // Chrome's frames are called after their arguments, too, and count microseconds. Ties are moved on by picoseconds,
  // some at each end of a call.
  const instance = (frame: string) =>
    (JSON.parse(/ (\{".*)$/s.exec(frame)?.[1] ?? '{}') as { function?: string }).function;
  const chrome = new Map([...(await shownIn('all.json'))].map(([frame, micros]) => [instance(frame), micros * 1000]));
  const called = whole.filter(([name]) => functions.some((row) => row.instance === name));
  t.ok(called.length > 20, `${called.length} functions`);
  t.same(
    called.filter(([name, list]) => {
      const least = list.some((row) => row.times_at_most) ? clock.resolution_ns : -1;
      const wrong = Math.abs(Math.max(chrome.get(name) ?? -1, least) - sum(list, ({ total_ns }) => total_ns));
      return wrong > 1 + sum(list, ({ calls = 0 }) => calls) * 0.1;
    }),
    [],
  );
});
