import { type FutureSet, findFutures } from '../../../futures/index.js';
import {
  type Finding,
  Findings,
  findingsText,
  Summary,
  summaryJson,
  summaryTable,
  TaskSummary,
  taskTable,
  tee,
} from '../../../trace/index.js';
import {
  type Found,
  type KindReport,
  neededDebugInfo,
  type Outcome,
  type ProbeKind,
  type ReportWishes,
} from '../kind.js';
import { type NameRules, type ProbeSpec, parseNames } from '../names.js';
import { Backtraces } from './backtraces.js';
import { coverageJson, coverageText } from './coverage-report.js';
import { mayInline } from './inlined-chain.js';
import { type CatchProbe, catchProbes, planCatch } from './panics.js';
import { planPoll, planSites } from './plan.js';
import { type PollProbes, resolvePolls } from './resolve.js';
import { PollTracer } from './tracer.js';
import { areInlined, type WakeFunction, wakeFunctions } from './wakers.js';
import { type HeaderOffsets, planWake, TaskBook, WakeTracer } from './wakes.js';

const rules: NameRules = { name: 'poll', everything: 'every poll', conditionsIn: 'fn' };

interface FoundPolls extends Found {
  readonly futures: FutureSet;
  readonly polls: PollProbes;
  readonly panics: readonly CatchProbe[];
  readonly wakes: readonly WakeFunction[];
  readonly wakesStop: boolean;
  /** Some wake functions were inlined, so that not every wake is seen. */
  readonly wakesInlined: boolean;
  readonly headers: HeaderOffsets;
}

/** Entries and returns of the poll functions of Futures. */
export const poll: ProbeKind<ProbeSpec, FoundPolls> = {
  name: rules.name,
  help: "'poll:GLOB' traces these Futures",
  purpose: 'for Futures',
  isDefault: true,
  readsStacks: true,
  parse: (text) => parseNames(rules, text),
  async resolve(program, specs) {
    const debug = neededDebugInfo(program);
    const futures = findFutures(debug);
    const polls = resolvePolls(debug, futures, program.arch, specs, program.inlined);
    const panics = catchProbes(program.elf);
    const catches = panics.map(({ address }) => address);
    const places = polls.sites.flatMap(({ site }) => [...site.begins, ...site.ends]);
    const addresses = [...polls.probes, ...places].map(({ address }) => address);
    const { wakes: wanted = 'never' } = program;
    const wakes = wanted === 'never' ? [] : wakeFunctions(debug);
    const wakesInlined = areInlined(debug, wakes);
    const headers = wakes.length === 0 ? new Map() : await (program.headers?.(debug, futures) ?? new Map());
    const all = [...addresses, ...catches, ...wakes.map(({ address }) => address)];
    const wakesStop = wanted === 'always';
    return { futures, polls, panics, catches, wakes, wakesStop, wakesInlined, headers, addresses: all };
  },
  plans({ polls, panics, wakes, wakesStop }, { arch, stackDepth }) {
    const plans = polls.probes.map((probe) =>
      planPoll(probe, arch.results, mayInline, probe.isAround ? undefined : stackDepth),
    );
    const [waker] = arch.arguments as readonly [string];
    const wakePlans = wakes.map((each) => ({ ...planWake(each, waker), notByStops: !wakesStop }));
    return [
      ...plans,
      ...planSites(polls.sites, { windows: polls.windows, stackDepth }),
      ...panics.map(planCatch),
      ...wakePlans,
    ];
  },
  tracer({ futures, polls, wakes, headers }, context) {
    const { elf, arch, output, stackDepth: depth, hooked } = context;
    const backtraces = depth ? new Backtraces(elf, arch, neededDebugInfo(context), { depth, hooked }) : undefined;
    const tasks = new TaskBook(headers);
    const calls = new PollTracer(futures, polls, output, { backtraces, tasks });
    return { calls, ...(wakes.length > 0 && { instants: new WakeTracer(wakes, tasks, context) }) };
  },
  report(found, wishes) {
    return found ? pollReport(found, wishes) : nothing;
  },
  preview(found) {
    if (!found) return { json: { coverage: null }, table: undefined };
    const { coverage } = found.polls;
    return { json: { coverage: coverageJson(coverage) }, table: coverageText(coverage) };
  },
};

const nothing: KindReport = {
  json: () => ({ futures: [], tasks: [], tasks_left_out: 0, findings: [], coverage: null }),
  tables: () => [],
};

function pollReport(found: FoundPolls, { findings: wanted = false, longPollNs }: ReportWishes = {}): KindReport {
  const { coverage } = found.polls;
  const summary = new Summary();
  const tasks = new TaskSummary();
  const search = wanted ? new Findings({ longPollNs }) : undefined;
  const findings = (outcome: Outcome): readonly Finding[] => {
    const isTimed = longPollNs !== undefined || outcome.engines.every(({ engine }) => engine !== 'stop');
    return search?.all(tasks.rows(), isTimed, (root) => tasks.numberOf(root)) ?? [];
  };
  return {
    sink: tee([summary, tasks, ...(search ? [search] : [])]),
    json: (outcome) => ({
      futures: summaryJson(summary.rows()),
      tasks: tasks.rows(wakesSeen(found, outcome)),
      tasks_left_out: tasks.leftOut,
      findings: findings(outcome),
      coverage: coverageJson(coverage),
    }),
    tables(outcome, options) {
      const table = taskTable(tasks.rows(wakesSeen(found, outcome)), tasks.leftOut, options);
      const texts = [summaryTable(summary.rows(), options), table, findingsText(findings(outcome))];
      return [...texts.filter((text) => text !== ''), coverageText(coverage)];
    },
    findings: (outcome) => findings(outcome).length,
  };
}

/** How far the recording sees wakes: undefined if it had none of the program's wake functions. */
function wakesSeen({ wakes, wakesInlined }: FoundPolls, { engines }: Outcome): 'all' | 'some' | undefined {
  const traced = new Set(engines.flatMap(({ engine, address }) => (engine === 'none' ? [] : [address])));
  const seen = wakes.filter(({ address }) => traced.has(address)).length;
  if (seen === 0) return undefined;
  return seen < wakes.length || wakesInlined ? 'some' : 'all';
}
