// `rsptrace dump`: the records that --keep-records keeps, and the events that came of each.
import { existsSync, readFileSync } from 'node:fs';
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

  // The page has such a recording of these guests, and says it line by line. Offsets depend on the options' lengths.
  const lines16 = (await rsptrace('dump', trace, '--explain', '16').ended).stdout.replace(/^ +\d+ (?=record)/gm, '');
  const page = readFileSync('docs/dump.md', 'utf8').replace(/^ +\d+ (?=record)/gm, '');
  for (const line of lines16.trimEnd().split('\n')) t.ok(page.includes(line.trim()), line);
});

t.test('dump: a recording with stops has its stops', async (t) => {
  const { trace, said } = await recorded(t, '--engine', 'stop', '-n', '40');
  const lines = jsonLines((await rsptrace('dump', trace, '--json').ended).stdout);
  // A line of the console is no event of a probe: it stands below the line itself, also before the first event.
  t.equal(lines.filter(({ type }) => type !== undefined && type !== 'console').length, said.events);
  const above = lines.flatMap(({ type }, i) =>
    type === 'console' ? [lines.slice(0, i).findLast((one) => one.kind)] : [],
  );
  t.ok(above.length > 20, `${above.length} lines of the console`);
  t.same(new Set(above.map((one) => one?.kind)), new Set(['console']));
  t.equal(new Set(above).size, above.length, 'each its own');
  const printed = lines.find(({ type }) => type === 'console');
  const explained = await rsptrace('dump', trace, '--json', '--explain', `${printed?.number}`).ended;
  t.match(JSON.parse(explained.stdout), { inputs: [{ kind: 'console', content: { text: 'OpenSBI v1.1' } }] });
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
