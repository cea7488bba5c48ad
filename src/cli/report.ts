import { RsptraceError } from '../base/errors.js';
import { compileGlob } from '../probes/index.js';
import { plural, textLines } from '../text/index.js';
import {
  type Arc,
  Arcs,
  arcJson,
  arcTable,
  type Chosen,
  type Grouping,
  hartWord,
  LockSummary,
  lockJson,
  lockTable,
  OffCpu,
  offCpuTable,
  placeLines,
  placeText,
  type Report,
  reportBy,
  reportTable,
  rowJson,
  sortArcs,
  sortRows,
  type TraceRead,
  type TraceSink,
  tee,
  type WaitRow,
} from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import { openSamples } from './open-samples.js';
import type { ReportArguments } from './options/saved-trace.js';
import type { ProfileArguments } from './options/target.js';
import { headJson, noMatch, once, readChosen } from './saved-trace.js';
import { reportStory } from './story.js';
import { printed, tableOptions } from './terminal.js';

/** `rsptrace report TRACE`: where the time of a saved trace went. Gives the exit status. */
export async function report(args: ReportArguments): Promise<number> {
  if (args.story !== undefined) return reportStory(args, args.story);
  if (args.callers !== undefined) return reportArcs(args, '--callers', args.callers);
  if (args.callees !== undefined) return reportArcs(args, '--callees', args.callees);
  // Without --by: what there is.
  let locks = new LockSummary();
  const wanted: readonly Grouping[] = args.by === undefined ? ['future', 'fn'] : [args.by];
  let reports: { readonly by: Grouping; readonly report: Report }[] = [];
  const into = (chosen: Chosen | undefined): TraceSink => {
    const each = once(chosen);
    reports = wanted.map((by) => ({ by, report: reportBy(by, each(), args.full) }));
    locks = new LockSummary(each());
    return tee([...reports.map(({ report: one }) => one), locks]);
  };
  const read = await readChosen(args.trace, into, args);
  const shown = reports.map(({ by, report: one }) => ({
    by,
    rows: sortRows(one.rows(), args.sort).slice(0, args.top),
  }));
  const titleOf = (by: Grouping): string => (by === 'hart' ? hartWord(read.info) : titles[by]);
  if (args.format === 'gnu') return placesPrinted(shown.flatMap(({ by, rows }) => placeLines(rows, titleOf(by))));
  const tables = shown
    .filter(({ rows }) => rows.length > 0)
    .map(({ by, rows }) => reportTable(rows, titleOf(by), tableOptions(args.full)));
  // The threads of a process are its harts.
  const keyOf = (by: Grouping): Grouping => (by === 'thread' && read.info?.isProcess ? 'hart' : by);
  const groups = shown.map(({ by, rows }) => [keyOf(by), rows.map(rowJson)]);
  const { probes = [], recording } = read.facts ?? {};
  const isWhole =
    (recording?.missing ?? 0) === 0 && !recording?.tailLost && probes.every(({ engine }) => engine !== 'none');
  const facts = { isWhole, timesAtMost: recording?.timesAtMost !== undefined };
  const locked = args.by === undefined ? lockTable(locks, tableOptions(args.full), facts) : '';
  if (locked !== '') tables.push(locked);
  const ofLocks = locked === '' ? {} : lockJson(locks, facts);
  return printed(args, { ...headJson(args.trace, read), ...Object.fromEntries(groups), ...ofLocks }, () =>
    tables.length > 0 ? tables.join('\n') : `nothing to report by ${wanted.join(' or ')}\n`,
  );
}

function placesPrinted(lines: readonly string[]): number {
  process.stdout.write(textLines(lines));
  if (lines.length === 0)
    note('no row has a line: --by await, future, latency and fn have them, of programs with debug info');
  return ExitCode.recorded;
}

const titles: Readonly<Record<Exclude<Grouping, 'hart'>, string>> = {
  fn: 'function',
  future: 'future',
  latency: 'future',
  task: 'task',
  thread: 'thread',
  process: 'process',
  await: 'await',
};

async function reportArcs(args: ReportArguments, option: '--callers' | '--callees', glob: string): Promise<number> {
  let arcs = new Arcs();
  const into = (chosen: Chosen | undefined): Arcs => {
    arcs = new Arcs(chosen);
    return arcs;
  };
  const read = await readChosen(args.trace, into, args);
  const matches = compileGlob(glob);
  const isWanted = (name: string | undefined): boolean =>
    name !== undefined && (matches(name) || matches(name.replace(/^poll /, '')));
  const nodes = arcs.nodes.filter(({ name }) => isWanted(name));
  if (nodes.length === 0)
    throw noMatch(
      option,
      glob,
      arcs.nodes.map(({ name }) => name),
    );
  const [near, far] = option === '--callers' ? (['callee', 'caller'] as const) : (['caller', 'callee'] as const);
  const found = nodes.map((node) => ({
    node,
    arcs: sortArcs(arcs.arcs.filter((arc: Arc) => arc[near] === node)).slice(0, args.top),
  }));
  const functions = found.map(({ node, arcs: list }) => ({
    function: node.name,
    instance: node.instance,
    calls: node.calls,
    total_ns: node.total,
    self_ns: node.self,
    [`${far}s`]: list.map(arcJson),
  }));
  const texts = found.map(({ node, arcs: list }) => {
    const title = `${far}s of ${node.name}, ${plural(node.calls, 'call')}\n`;
    return `${title}${list.length === 0 ? `no ${far} was traced\n` : arcTable(list, far, tableOptions())}`;
  });
  return printed(args, { ...headJson(args.trace, read), functions }, () => texts.join('\n'));
}

/** `rsptrace profile TRACE --off-cpu`: what tasks wait for, and who ends that. Gives the exit status. */
export async function offCpu(args: ProfileArguments & { readonly elf: string }): Promise<number> {
  const { elf: trace, output } = args;
  const file = output === undefined ? [] : [openSamples(output, args.force, 'merged')];
  let waits = new OffCpu(tee(file));
  const into = (chosen: Chosen | undefined): OffCpu => {
    waits = new OffCpu(tee(file), { isFull: args.full, chosen });
    return waits;
  };
  let read: TraceRead;
  try {
    read = await readChosen(trace, into, args);
  } catch (thrown) {
    // What was opened is closed.
    for (const sink of file) sink.end();
    throw thrown;
  }
  const rows = waits.rows().sort((a, b) => b.total - a.total || (a.task < b.task ? -1 : 1));
  if (rows.length === 0) throw noWaits(trace);
  printed(args, { ...headJson(trace, read), output: output ?? null, waits: rows.map(waitJson) }, () =>
    offCpuTable(rows.slice(0, args.top), tableOptions(args.full)),
  );
  if (args.json) return ExitCode.recorded;
  const more = rows.length - args.top;
  note(
    more > 0 && `${more} more rows: --top ${rows.length} shows them`,
    waits.wakes === 0 && 'the trace has no wakes, so nothing says who ends a wait: record with --wakes',
  );
  return ExitCode.recorded;
}

function waitJson({ task, at, whole, wokenBy, waits, total, max, runnable }: WaitRow): object {
  return {
    task,
    whole,
    await: at === undefined ? null : (placeText(at) ?? at.future),
    ...(at?.inside === undefined ? {} : { inside: at.inside }),
    woken_by: wokenBy,
    waits,
    total_ns: total,
    max_ns: max,
    runnable_ns: runnable,
  };
}

function noWaits(trace: string): RsptraceError {
  return new RsptraceError('TRACE_NO_MATCH', `${trace} has no task that waits`, {
    hint: 'record polls of tasks: rsptrace -p poll:** ...; a shorter window or --filter leaves waits out',
  });
}
