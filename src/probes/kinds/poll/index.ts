import {
  type FutureSet,
  type FutureType,
  findFutures,
  noTaskPlaces,
  type StuckTask,
  type TaskPlaces,
} from '../../../async/futures/index.js';
import { addOffset } from '../../../base/addr.js';
import type { EventOutput } from '../../../calls/index.js';
import {
  type Finding,
  Findings,
  findingsText,
  namesBound,
  Summary,
  type SummaryRow,
  summaryJson,
  summaryTable,
  type TaskRow,
  TaskSummary,
  taskTable,
  tee,
} from '../../../trace/index.js';
import { loopsToStart } from '../../code-facts.js';
import { catchPlans } from '../../panic-places.js';
import type { ReadPlan } from '../../read-plan.js';
import {
  type Found,
  type KindReport,
  neededDebugInfo,
  type Outcome,
  type ProbeKind,
  type ReportWishes,
} from '../kind.js';
import { type NameRules, type ProbeSpec, parseNames } from '../names.js';
import { Backtraces } from './callers.js';
import { recordedCoverage, reportedCoverage } from './coverage.js';
import {
  coverageJson,
  coverageText,
  cratesNotProbed,
  cratesNotProbedText,
  noTaskNote,
  notAllSeen,
  partsNote,
  unseenAround,
} from './coverage-report.js';
import { type DropFunction, dropFunctions } from './drop-functions.js';
import { DropTracer, planDrop } from './drops.js';
import { ImpliedDrops } from './implied-drops.js';
import { mayInline } from './inlined-chain.js';
import { MergedPolls } from './merged.js';
import { planPoll, planSites } from './plan.js';
import { type PollerProbe, PollerTracer, planPoller, pollerProbes } from './pollers.js';
import { type PollProbes, resolvePolls } from './resolve.js';
import { TaskPolls } from './task-polls.js';
import { PollTracer } from './tracer.js';
import { areInlined, callersOfWakes, type WakeFunction, wakeFunctions } from './wakers.js';
import { planWake, planWakerMethod, TaskBook, WakeTracer } from './wakes.js';

/** A patch at a function's entry replaces at most so many bytes. */
const MOST_PATCHED = 32;

const rules: NameRules = { name: 'poll', everything: 'every poll' };

/** The poll probes of a program, and what shows panics and wakes. */
export interface FoundPolls extends Found {
  readonly futures: FutureSet;
  readonly polls: PollProbes;
  readonly panics: readonly ReadPlan[];
  readonly wakes: readonly WakeFunction[];
  /** Methods of `Waker` that call them. */
  readonly wakerMethods: ReturnType<typeof callersOfWakes>;
  readonly wakesStop: boolean;
  readonly wakesWanted: boolean;
  /** Some wake functions were inlined, so that not every wake is seen. */
  readonly wakesInlined: boolean;
  readonly places: TaskPlaces;
  readonly drops: readonly DropFunction[];
  readonly pollers: readonly PollerProbe[];
  /** Those of which some are dropped unseen, and those of them that may be so when they are a task. */
  readonly hiddenDrops: ReadonlySet<FutureType>;
  readonly hiddenTasks: ReadonlySet<FutureType>;
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
    const places = (await program.places?.(debug, futures)) ?? noTaskPlaces;
    const { functions, some, tasks: hiddenTasks } = dropFunctions(debug, futures, places);
    const polls = resolvePolls(debug, futures, program.arch, specs, {
      inlined: program.inlined,
      hidesDrops: (future) => some.has(future),
      places,
    });
    const drops = functions.filter(({ targets }) => targets.some(({ future }) => polls.polled.has(future)));
    const panics = catchPlans(program.elf);
    const catches = panics.map(({ address }) => address);
    const inside = polls.sites.flatMap(({ site }) => [...site.begins, ...site.ends]);
    const pollers = pollersApart(pollerProbes(debug, places), polls);
    const addresses = [...polls.probes, ...inside, ...drops, ...pollers].map(({ address }) => address);
    const { wakes: wanted = 'never' } = program;
    const wakes = wanted === 'never' ? [] : wakeFunctions(debug);
    const wakesInlined = areInlined(debug, wakes);
    const wakerMethods = wakes.length === 0 ? [] : callersOfWakes(debug);
    const all = [...addresses, ...catches, ...[...wakes, ...wakerMethods].map(({ address }) => address)];
    const wakesStop = wanted === 'always';
    const wakers = { wakes, wakerMethods, wakesStop, wakesInlined, wakesWanted: wanted !== 'never' };
    const hidden = { hiddenDrops: some, hiddenTasks };
    const matchesNone = ({ excludes, matches }: ProbeSpec): boolean =>
      !excludes && !futures.all.some(({ future, instance }) => matches(future) || matches(instance));
    const unmatched = specs.filter((spec) => matchesNone(spec) || polls.inVain.includes(spec)).map(({ text }) => text);
    return { futures, polls, panics, catches, ...wakers, places, drops, pollers, ...hidden, unmatched, addresses: all };
  },
  plans({ polls, panics, wakes, wakerMethods, wakesStop, drops, pollers }, { arch, stackDepth }) {
    const plans = polls.probes.map((probe) =>
      planPoll(probe, arch.results, mayInline, probe.isAround ? undefined : stackDepth),
    );
    const [first] = arch.arguments as readonly [string];
    const wakePlans = wakes.map((each) => {
      const plan = planWake(each, first);
      return wakesStop ? { ...plan, notByStops: undefined } : plan;
    });
    const dropPlans = drops.map((each) => planDrop(each, first));
    return [
      ...plans,
      ...planSites(polls.sites, { windows: polls.windows, stackDepth }),
      ...panics,
      ...wakePlans,
      ...wakerMethods.map(planWakerMethod),
      ...dropPlans,
      ...pollers.map((each) => planPoller(each, first)),
    ];
  },
  tracer({ futures, polls, wakes, wakerMethods, places, drops, pollers, hiddenDrops }, context) {
    const { elf, arch, output, stackDepth: depth, hooked, spaces } = context;
    const backtraces = depth ? new Backtraces(elf, arch, neededDebugInfo(context), { depth, hooked }) : undefined;
    const tasks = new TaskBook(places.offsets);
    const { ref, allows, coverage } = polls;
    const implied = new ImpliedDrops(output, { coverage, ref, drops, hidden: hiddenDrops });
    const taskPolls = new TaskPolls(neededDebugInfo(context), futures, places);
    const merged = new MergedPolls(neededDebugInfo(context), arch, futures);
    const loops = loopsToStart(elf, arch);
    const parts = { backtraces, tasks, taskPolls, merged, spaces, implied, loops };
    const calls = new PollTracer(futures, polls, output, parts);
    const instants = [
      ...(pollers.length > 0 ? [new PollerTracer(pollers, tasks, arch.arguments[0] as string, spaces)] : []),
      ...(wakes.length > 0 ? [new WakeTracer(wakes, wakerMethods, tasks, context)] : []),
      ...(drops.length > 0 ? [new DropTracer(drops, { polls: calls, tasks, implied, ref, allows }, context)] : []),
    ];
    const stuck = (found: readonly StuckTask[]): void => reportStuck(found, { futures, polls, tasks, output });
    const unseen = coverage.flatMap(({ future, seen }) => (seen === 'not' ? [future.future] : []));
    return { calls, instants, stuck, unseen: [...new Set(unseen)] };
  },
  report(found, wishes) {
    return found ? pollReport(found, wishes) : nothing;
  },
  preview(found) {
    if (!found) return { json: { coverage: null }, table: undefined };
    const { coverage, allows } = found.polls;
    const others = cratesNotProbed(found.futures, allows);
    return { json: { coverage: { ...coverageJson(coverage), not_probed: others } }, table: coverageText(coverage) };
  },
};

const nothing: KindReport = {
  json: () => ({
    ...{ futures: [], tasks: [], tasks_left_out: 0, tasks_may_be_of: [], of_no_task: { polls: 0, futures: [] } },
    ...{ findings: [], findings_untold: 0, coverage: null },
  }),
  tables: () => [],
};

function pollReport(found: FoundPolls, { findings: wanted = false, longPollNs }: ReportWishes = {}): KindReport {
  const { coverage, allows } = found.polls;
  const others = cratesNotProbed(found.futures, allows);
  const hidden = new Set([...found.hiddenTasks].map(({ instance }) => instance));
  const summary = new Summary();
  const tasks = new TaskSummary();
  const search = wanted ? new Findings({ longPollNs }) : undefined;
  const times = (outcome: Outcome) =>
    isOwnTime(outcome) ? { ...outcome.disturbance, isTimed: true } : { isTimed: longPollNs !== undefined };
  const disturbed = (outcome: Outcome): number => search?.leftOut(times(outcome)) ?? 0;
  const findings = (outcome: Outcome): readonly Finding[] => {
    const seesWakes = wakesSeen(found, outcome) === 'all' || (found.wakesWanted && found.wakes.length === 0);
    return search?.all(tasks.rows(), { ...times(outcome), seesWakes }, (root) => tasks.numberOf(root)) ?? [];
  };
  const rows = (outcome: Outcome): readonly SummaryRow[] => {
    const unseen = unseenDrops(found, outcome);
    const someStopped = (outcome.stopsBeside ?? 0) > 0;
    const all = summary.rows(outcome.stopError, namesBound(outcome.engines, outcome), someStopped);
    const shared = unidentified(found.polls, all);
    return all.map((row) => ({
      ...row,
      ...(unseen.has(row.instance) ? { cancelled_at_least: true } : {}),
      ...(shared.has(row.instance) ? { at_least: true } : {}),
    }));
  };
  const covered = (outcome: Outcome) =>
    reportedCoverage(recordedCoverage(coverage, outcome, summary.rows()), unidentified(found.polls, summary.rows()));
  const parts = (outcome: Outcome): readonly string[] => {
    const around = unseenAround(found.futures, coverage, tasks.rows());
    return [...new Set([...notAllSeen(rows(outcome), outcome.engines), ...around])];
  };
  return {
    sink: tee([summary, tasks, ...(search ? [search] : [])]),
    json: (outcome) => ({
      futures: summaryJson(rows(outcome)),
      tasks: tasks.rows(wakesSeen(found, outcome), outcome.stopError),
      tasks_left_out: tasks.leftOut,
      tasks_may_be_of: parts(outcome),
      of_no_task: tasks.ofNoTask,
      findings: findings(outcome),
      findings_untold: disturbed(outcome),
      coverage: { ...coverageJson(covered(outcome)), not_probed: others },
    }),
    tables(outcome, options) {
      const hides = ({ instance }: TaskRow): boolean => hidden.has(instance);
      const shown = tasks.rows(wakesSeen(found, outcome), outcome.stopError);
      const summed = rows(outcome);
      const among = [...summed, ...shown];
      const notes = (shown.length === 0 ? '' : partsNote(parts(outcome))) + noTaskNote(tasks.ofNoTask);
      const texts = [
        summaryTable(summed, options),
        summed.length > 0 ? '' : cratesNotProbedText(others),
        taskTable(shown, tasks.leftOut, options, hides, among) + notes,
        findingsText(findings(outcome), disturbed(outcome), isOwnTime(outcome), among),
      ];
      return [...texts.filter((text) => text !== ''), coverageText(covered(outcome))];
    },
    findings: (outcome) => findings(outcome).length,
  };
}

/** No probe has stopped the target: times are its own, but for what else tracing took. */
function isOwnTime({ engines, stopsBeside }: Outcome): boolean {
  return stopsBeside === 0 || engines.every(({ engine }) => engine !== 'stop');
}

/** Those that no place of an inlined poll stands in the way of: one patch cannot serve both. */
function pollersApart(pollers: readonly PollerProbe[], { windows }: PollProbes): PollerProbe[] {
  const taken = [...windows.values()].flatMap((window) => (typeof window === 'string' ? [] : [window]));
  return pollers.filter(({ address }) => {
    const end = addOffset(address, MOST_PATCHED);
    return !taken.some((window) => window.address < end && addOffset(window.address, window.length) > address);
  });
}

/** The Futures of poll functions that several share, if of some polls there nothing says whose they are. */
function unidentified({ probes }: PollProbes, rows: readonly SummaryRow[]): ReadonlySet<string> {
  const seen = new Set(rows.flatMap(({ instance, polls }) => (polls > 0 ? [instance] : [])));
  const shared = probes.filter(({ ref, among }) => among.length > 0 && seen.has(ref.instance));
  return new Set(shared.flatMap(({ among }) => among.map(({ future }) => future.instance)));
}

/** The Futures whose drops were left out. Names are compared: the program may lie elsewhere than in its file. */
function unseenDrops({ drops }: FoundPolls, { engines }: Outcome): ReadonlySet<string> {
  const leftOut = new Set(engines.flatMap(({ engine, name }) => (engine === 'none' ? [name] : [])));
  const unseen = drops.filter(({ name }) => leftOut.has(name));
  return new Set(unseen.flatMap(({ targets }) => targets.map(({ future }) => future.instance)));
}

/** How far the recording sees wakes: undefined if it had none of the program's wake functions. */
function wakesSeen({ wakes, wakesInlined }: FoundPolls, { engines }: Outcome): 'all' | 'some' | undefined {
  const names = new Set(wakes.map(({ name }) => name));
  const facts = engines.filter(({ name }) => names.has(name));
  const seen = facts.filter(({ engine }) => engine !== 'none').length;
  if (seen === 0) return undefined;
  return seen < facts.length || wakesInlined ? 'some' : 'all';
}

interface Known {
  readonly futures: FutureSet;
  readonly polls: Pick<PollProbes, 'ref' | 'allows'>;
  readonly tasks: TaskBook;
  readonly output: EventOutput;
}

/** Emits an event for each of these tasks that was polled, or whose Futures the probes select. */
function reportStuck(found: readonly StuckTask[], { futures, polls, tasks, output }: Known): void {
  const byInstance = new Map(futures.all.map((future) => [future.instance, future]));
  for (const { futures: nodes, ...about } of found) {
    const root = nodes
      .map(({ address, instance }) => ({ root: tasks.withFuture(address), instance }))
      .find(({ root, instance }) => root?.future.instance === instance)?.root;
    const selected = nodes.find(({ instance }) => {
      const future = byInstance.get(instance);
      return future !== undefined && polls.allows(future);
    });
    const own = selected && byInstance.get(selected.instance);
    const future = root?.future ?? (own && polls.ref(own));
    const address = root?.address ?? selected?.address;
    if (future && address !== undefined)
      output.emit({ type: 'stuck', time: output.time, root, future, address, ...about });
  }
}
