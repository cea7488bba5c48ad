import { type FutureSet, findFutures } from '../../../futures/index.js';
import { Summary, summaryJson, summaryTable, TaskSummary, taskTable, tee } from '../../../trace/index.js';
import { type Found, neededDebugInfo, type ProbeKind } from '../kind.js';
import { type NameRules, type ProbeSpec, parseNames } from '../names.js';
import { Backtraces } from './backtraces.js';
import { coverageJson, coverageText } from './coverage-report.js';
import { mayInline } from './inlined-chain.js';
import { type CatchProbe, catchProbes, planCatch } from './panics.js';
import { planPoll, planSite } from './plan.js';
import { type PollProbes, resolvePolls } from './resolve.js';
import { PollTracer } from './tracer.js';

const rules: NameRules = { name: 'poll', everything: 'every poll', conditionsIn: 'fn' };

interface FoundPolls extends Found {
  readonly futures: FutureSet;
  readonly polls: PollProbes;
  readonly panics: readonly CatchProbe[];
}

/** Entries and returns of the poll functions of Futures. */
export const poll: ProbeKind<ProbeSpec, FoundPolls> = {
  name: rules.name,
  help: "'poll:GLOB' traces these Futures",
  purpose: 'for Futures',
  isDefault: true,
  readsStacks: true,
  parse: (text) => parseNames(rules, text),
  resolve(program, specs) {
    const debug = neededDebugInfo(program);
    const futures = findFutures(debug);
    const polls = resolvePolls(debug, futures, program.arch, specs, program.inlined);
    const panics = catchProbes(program.elf);
    const catches = panics.map(({ address }) => address);
    const places = polls.sites.flatMap(({ site }) => [...site.begins, ...site.ends]);
    const addresses = [...polls.probes, ...places].map(({ address }) => address);
    return { futures, polls, panics, catches, addresses: [...addresses, ...catches] };
  },
  plans({ polls, panics }, { arch, stackDepth }) {
    const plans = polls.probes.map((probe) =>
      planPoll(probe, arch.results, mayInline, probe.isAround ? undefined : stackDepth),
    );
    return [...plans, ...polls.sites.flatMap(planSite), ...panics.map(planCatch)];
  },
  tracer({ futures, polls }, context) {
    const { elf, arch, output, stackDepth: depth, hooked } = context;
    const backtraces = depth ? new Backtraces(elf, arch, neededDebugInfo(context), { depth, hooked }) : undefined;
    return { calls: new PollTracer(futures, polls, output, backtraces) };
  },
  report(found) {
    if (!found)
      return { json: () => ({ futures: [], tasks: [], tasks_left_out: 0, coverage: null }), tables: () => [] };
    const { coverage } = found.polls;
    const summary = new Summary();
    const tasks = new TaskSummary();
    return {
      sink: tee([summary, tasks]),
      json: () => ({
        futures: summaryJson(summary.rows()),
        tasks: tasks.rows(),
        tasks_left_out: tasks.leftOut,
        coverage: coverageJson(coverage),
      }),
      tables(_, options) {
        const table = taskTable(tasks.rows(), tasks.leftOut, options);
        return [summaryTable(summary.rows(), options), ...(table ? [table] : []), coverageText(coverage)];
      },
    };
  },
  preview(found) {
    if (!found) return { json: { coverage: null }, table: undefined };
    const { coverage } = found.polls;
    return { json: { coverage: coverageJson(coverage) }, table: coverageText(coverage) };
  },
};
