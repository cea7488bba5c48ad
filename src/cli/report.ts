import { compileGlob } from '../probes/index.js';
import { jsonLine, plural } from '../text/index.js';
import {
  type Arc,
  Arcs,
  arcJson,
  arcTable,
  type Chosen,
  type Grouping,
  hartWord,
  type Report,
  reportBy,
  reportTable,
  rowJson,
  sortArcs,
  sortRows,
  type TraceSink,
  tee,
} from '../trace/index.js';
import { ExitCode } from './failure.js';
import type { ReportArguments } from './options/saved-trace.js';
import { headJson, noMatch, once, readChosen } from './saved-trace.js';
import { tableOptions } from './terminal.js';

/** `rsptrace report TRACE`: where the time of a saved trace went. Gives the exit status. */
export async function report(args: ReportArguments): Promise<number> {
  if (args.callers !== undefined) return reportArcs(args, '--callers', args.callers);
  if (args.callees !== undefined) return reportArcs(args, '--callees', args.callees);
  // Without --by: what there is.
  const wanted: readonly Grouping[] = args.by === undefined ? ['future', 'fn'] : [args.by];
  let reports: { readonly by: Grouping; readonly report: Report }[] = [];
  const into = (chosen: Chosen | undefined): TraceSink => {
    const each = once(chosen);
    reports = wanted.map((by) => ({ by, report: reportBy(by, each()) }));
    return tee(reports.map(({ report: one }) => one));
  };
  const read = await readChosen(args.trace, into, args);
  const shown = reports.map(({ by, report: one }) => ({
    by,
    rows: sortRows(one.rows(), args.sort).slice(0, args.top),
  }));
  if (args.json) {
    const groups = shown.map(({ by, rows }) => [by, rows.map(rowJson)]);
    process.stdout.write(jsonLine({ ...headJson(args.trace, read), ...Object.fromEntries(groups) }));
    return ExitCode.recorded;
  }
  const tables = shown
    .filter(({ rows }) => rows.length > 0)
    .map(({ by, rows }) => reportTable(rows, by === 'hart' ? hartWord(read.info) : titles[by], tableOptions()));
  process.stdout.write(tables.length > 0 ? tables.join('\n') : `nothing to report by ${wanted.join(' or ')}\n`);
  return ExitCode.recorded;
}

const titles: Readonly<Record<Exclude<Grouping, 'hart'>, string>> = {
  fn: 'function',
  future: 'future',
  task: 'task',
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
  if (args.json) {
    const functions = found.map(({ node, arcs: list }) => ({
      function: node.name,
      instance: node.instance,
      calls: node.calls,
      total_ns: node.total,
      self_ns: node.self,
      [`${far}s`]: list.map(arcJson),
    }));
    process.stdout.write(jsonLine({ ...headJson(args.trace, read), functions }));
    return ExitCode.recorded;
  }
  const texts = found.map(({ node, arcs: list }) => {
    const title = `${far}s of ${node.name}, ${plural(node.calls, 'call')}\n`;
    return `${title}${list.length === 0 ? `no ${far} was traced\n` : arcTable(list, far, tableOptions())}`;
  });
  process.stdout.write(texts.join('\n'));
  return ExitCode.recorded;
}
