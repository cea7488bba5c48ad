// `rsptrace dump`: the records that --keep-records keeps, and the events that came of each.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { elfPath, qemuArgv } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';

interface Line {
  readonly kind?: string;
  readonly offset?: number;
  readonly number: number;
  readonly type?: string;
  readonly name?: string;
  readonly content?: { readonly probe?: string; readonly at?: string };
}

interface Explained {
  readonly event: { readonly name: string };
  readonly inputs: readonly {
    readonly offset: number;
    readonly content: { readonly probe: string; readonly at: string };
  }[];
  readonly apart_ns: number;
  readonly taken_out: { readonly ns: number };
  readonly duration_ns: number;
}

async function recorded(t: Test, ...options: string[]) {
  const trace = join(scratchFolder(t), 'a.pftrace');
  const words = ['--keep-records', '--json', '-o', trace, '-p', 'fn:labkern::work::deep*', ...options];
  return {
    trace,
    said: await rsptrace('run', ...words, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2')).json<{
      events: number;
      records: number;
    }>(),
  };
}

const jsonLines = (text: string): readonly Line[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

t.test('dump: each record stands before the event that came of it', async (t) => {
  const { trace, said } = await recorded(t, '--deterministic');
  const { status, stdout } = await rsptrace('dump', trace, '--json').ended;
  t.equal(status, 0);
  const lines = jsonLines(stdout);
  t.equal(lines.filter(({ kind }) => kind === 'record').length, said.records);
  const events = lines.flatMap((line, index) => (line.kind === undefined ? [{ ...line, from: lines[index - 1] }] : []));
  t.equal(events.length, said.events);
  for (const { type, name, from } of events) {
    if (type === 'call-begin') t.match(from, { kind: 'record', content: { probe: name, at: 'entry' } });
    if (type === 'call-end') t.match(from, { kind: 'record', content: { probe: name, at: 'return' } });
  }

  const ends = events.filter(({ type }) => type === 'call-end');
  const replayed = await rsptrace('replay', trace, '--json').ended;
  const spans = jsonLines(replayed.stdout) as readonly (Line & { duration_ns?: number })[];
  const durations = spans.flatMap((span) => (span.type === 'call' ? [[span.name, span.duration_ns]] : []));
  const last = ends.at(-1);
  const explained = await rsptrace('dump', trace, '--json', '--explain', `${last?.number}`).ended;
  const {
    event,
    inputs,
    apart_ns: apart,
    duration_ns: duration,
    taken_out: out,
  } = JSON.parse(explained.stdout) as Explained;
  t.same(
    inputs.map(({ content }) => content.at),
    ['entry', 'return'],
  );
  t.ok(
    durations.some(([name, ns]) => name === event.name && ns === duration),
    'the duration of the trace',
  );
  t.ok(apart >= duration, `${apart} ns apart, of which ${duration} are the function's`);
  t.same(out, { ns: apart - duration });
});

t.test('dump: a recording with stops has its stops', async (t) => {
  const { trace, said } = await recorded(t, '--engine', 'stop', '-n', '40');
  const lines = jsonLines((await rsptrace('dump', trace, '--json').ended).stdout);
  // A line of the console is no event of a probe.
  t.equal(lines.filter(({ type }) => type !== undefined && type !== 'console').length, said.events);
  // The calls that are open then are given up without a stop.
  t.equal(lines.filter(({ kind }) => kind === 'stop').length, 40);
});

t.test('dump: without records it says how to keep them', async (t) => {
  const { trace } = await recorded(t, '-n', '40');
  t.ok(existsSync(`${trace}.records`));
  const none = await rsptrace('dump', `${trace}.records.records`).ended;
  t.equal(none.status, 1);
  t.match(none.stderr, /RECORDS_MISSING/);
  const far = await rsptrace('dump', trace, '--explain', '999999').ended;
  t.match(far.stderr, /TRACE_NO_MATCH/);
});
