// `rsptrace report` as people read it.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import {
  type Grouping,
  openTrace,
  type ReportRow,
  reportBy,
  reportTable,
  rowJson,
  type TraceEvent,
} from '../../../src/trace/index.js';
import { rsptrace, scratchFolder } from '../../support/command.js';
import { futures, linked, nanos, tell } from '../stories.js';

const instances = ['w::W<blk>', 'w::W<net>', 'w::alone'];
const generic = instances.flatMap((instance, i): TraceEvent[] => {
  const fn = {
    key: i,
    name: instance.replace(/<.*/, ''),
    instance,
    address: addr(16n),
    file: undefined,
    line: undefined,
  };
  const call = { hart: 0, depth: 0, arguments: [], function: fn } as const;
  const began = nanos(i * 10);
  return [
    { type: 'call-begin', time: began, ...call },
    { type: 'call-end', time: nanos(i * 10 + 5), began, ...call },
  ];
});

t.test('instances of one generic function are told apart by their arguments', async (t) => {
  const report = reportBy('fn');
  tell(report, linked(generic));
  const table = reportTable(report.rows(), 'function', { color: false, width: 120 });
  for (const instance of instances) t.match(table, new RegExp(` ${instance}$`, 'm'));
});

t.test('--format gnu: a line a row that has a place, as an editor goes there', async (t) => {
  const trace = join(scratchFolder(t), 'gnu.pftrace');
  const place = { address: addr(16n), file: 'src/disk.rs', line: 12 };
  const call = { hart: 0, depth: 0, arguments: [], function: { key: 0, name: 'seek', instance: 'seek', ...place } };
  const began = nanos(0);
  const events: TraceEvent[] = [
    { type: 'call-begin', time: began, ...call },
    { type: 'call-end', time: nanos(1500), began, ...call },
    ...generic.map((event) => ({ ...event, time: nanos(2000 + ('time' in event ? event.time : 0)) }) as TraceEvent),
  ];
  tell(openTrace(trace), linked(events));
  const { status, stdout } = await rsptrace('report', trace, '--format', 'gnu').ended;
  t.equal(status, 0);
  t.equal(stdout, 'src/disk.rs:12: function seek: calls 1, total 1.5 us, max 1.5 us\n');
  const matcher = JSON.parse(readFileSync(resolve('examples/vscode/tasks.json'), 'utf8')).tasks[1].problemMatcher;
  t.strictSame(new RegExp(matcher.pattern.regexp).exec(stdout.trim())?.slice(1, 3), ['src/disk.rs', '12']);
  t.match((await rsptrace('report', trace, '--format', 'gnu', '--by', 'hart').ended).stderr, /no row has a line/);
  t.match((await rsptrace('report', trace, '--format', 'gnu', '--json').ended).stderr, /do not go together/);
});

t.test('a time of 0 is less than what the clock and durations leave out', async (t) => {
  const fn = { key: 0, name: 'f', instance: 'f', address: addr(16n), file: undefined, line: undefined };
  const call = { hart: 0, depth: 0, arguments: [], function: fn } as const;
  const events = [0, 700].flatMap((took, i): TraceEvent[] => {
    const began = nanos(i * 1000);
    return [
      { type: 'call-begin', time: began, ...call },
      { type: 'call-end', time: nanos(i * 1000 + took), began, ...call },
    ];
  });
  const report = reportBy('fn');
  tell(report, linked(events), { probes: [], ownTime: { leastNs: 20, mostNs: 30, totalNs: 100 } });
  const rows = report.rows();
  const table = reportTable(rows, 'function', { color: false, width: 200 });
  const tick = 100;
  t.match(table, new RegExp(`^ +2 +700 ns +700 ns +< ${tick + 30} ns +350 ns`, 'm'));
  t.match(rowJson(rows[0] as ReportRow), { min_ns: 0, zero_at_most_ns: tick + 30, max_ns: 700 });
});

t.test('and so they are in a graph', async (t) => {
  const trace = join(scratchFolder(t), 'generic.pftrace');
  tell(openTrace(trace), linked(generic));
  const { stdout } = await rsptrace('graph', trace).ended;
  for (const instance of instances) t.match(stdout, new RegExp(`\\(1\\) ${instance}$`, 'm'));
  const { stdout: json } = await rsptrace('graph', '--json', trace).ended;
  const { graph } = JSON.parse(json) as { graph: readonly { readonly instance: string }[] };
  t.same(graph.map(({ instance }) => instance).sort(), instances);
});

t.test(
  "polls that were derived make a Future's number a lower bound, and not its task's, nor its hart's",
  async (t) => {
    const [outer, inner] = futures;
    const root = { key: 1, future: outer, address: addr(0x1000n) };
    const of = { hart: 0, root, future: outer, address: root.address, depth: 0 } as const;
    const state = undefined;
    const events: TraceEvent[] = [
      { type: 'poll-begin', ...of, time: nanos(0), state },
      {
        ...{ type: 'derived-poll', hart: 0, root, future: inner, address: addr(0x1010n) },
        ...{ time: nanos(5), result: 'pending', state },
      },
      { type: 'poll-end', ...of, time: nanos(5), began: nanos(0), result: 'pending', state, chain: [] },
    ];
    const boundsBy = (by: Grouping): object[] => {
      const report = reportBy(by);
      tell(report, linked(events));
      return report.rows().map(({ calls, bound }) => ({ calls, bound }));
    };
    for (const by of ['task', 'hart', 'thread'] as const) t.same(boundsBy(by), [{ calls: 1, bound: undefined }], by);
  },
);

t.test('where a probe was left out, each row that counts what it sees is a lower bound', async (t) => {
  const root = { key: 1, future: futures[0], address: addr(0x1000n) };
  const of = { hart: 0, root, future: futures[0], address: root.address, depth: 0 } as const;
  const state = undefined;
  const events = [0, 100].flatMap((at): TraceEvent[] => [
    { type: 'poll-begin', ...of, time: nanos(at), state },
    { type: 'poll-end', ...of, time: nanos(at + 5), began: nanos(at), result: 'pending', state, chain: [] },
  ]);
  const rowsBy = (by: Grouping, leftOut: string) => {
    const report = reportBy(by);
    const probe = { name: leftOut, address: addr(0x80n), engine: 'none', why: 'it stopped too often' } as const;
    tell(report, linked(events), { probes: [probe] });
    return report.rows();
  };
  for (const by of ['future', 'latency', 'task', 'hart', 'thread', 'process', 'await'] as const) {
    const rows = rowsBy(by, 'a');
    t.same(
      rows.map(({ bound }) => bound),
      ['left-out'],
      by,
    );
    t.match(
      reportTable(rows, by, { color: false, width: 120 }),
      /^ *>=[12] .*\n(.*\n)*>= at least so many: the probe was left/m,
    );
    t.notOk(rows.some((row) => 'isInlined' in row || 'stopped' in row || 'subject' in row));
    // Of another probe's polls a task has none, a hart any number.
    const isOwn = ['future', 'latency', 'task'].includes(by);
    t.equal(rowsBy(by, 'b')[0]?.bound, isOwn ? undefined : 'left-out', by);
  }
});

t.test('a call whose end was not seen has no time, and so no upper bound', async (t) => {
  const counts = { events: 2, stops: 2, records: 0, missing: 0, foreignHits: 0, neverLoaded: [], tailLost: false };
  const recording = { end: 'until', stub: undefined, ...counts, timesAtMost: 'stops take time' };
  const [begin, end] = linked(generic) as [TraceEvent, TraceEvent];
  const rowsOf = (...events: TraceEvent[]): ReportRow[] => {
    const report = reportBy('fn');
    tell(report, events, { probes: [], recording });
    return report.rows();
  };
  const lost = rowsOf(begin, { ...end, type: 'call-lost' } as TraceEvent);
  t.match(reportTable(lost, 'function', { color: false, width: 60 }), /^ +1 +1 +- +- +- +w::W$/m);
  t.match(rowJson(lost[0] as ReportRow), { calls: 1, lost: 1, total_ns: 0, self_ns: 0, times_at_most: undefined });
  t.match(rowJson(rowsOf(begin, end)[0] as ReportRow), { total_ns: 100, times_at_most: true });
});
