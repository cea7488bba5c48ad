import { leftOutText, lossTexts, namesBound } from '../../events/bounds.js';
import { CallTree, type Frame } from '../../events/call-tree.js';
import { disturbanceOf } from '../../events/disturbance.js';
import type { ProbeFact, RootRef, TraceEvent, TraceFacts, TraceInfo } from '../../events/events.js';
import type { Finding } from '../../events/finding.js';
import { Findings } from '../../events/findings.js';
import { findingText } from '../../events/findings-text.js';
import { type FunctionRow, FunctionSummary } from '../../events/function-summary.js';
import { futureNames, linesNames, type Named } from '../../events/future-names.js';
import { Fold, tee } from '../../events/sinks.js';
import { type StopError, Summary, type SummaryRow } from '../../events/summary.js';
import type { TaskRow } from '../../events/task-rows.js';
import { TaskSummary } from '../../events/task-summary.js';
import { ownTimeText } from '../../events/text.js';
import { OffCpu, type WaitRow } from '../off-cpu.js';

/** Stacks with their time, callers before callees. A list has an element a node. */
export interface HtmlStacks {
  readonly areWaits: boolean;
  readonly frames: readonly Pick<Frame, 'name' | 'file' | 'line'>[];
  readonly frame: readonly number[];
  /** The number of its caller's node; -1 without one. */
  readonly parent: readonly number[];
  /** Nanoseconds, without what was called. */
  readonly self: readonly number[];
  readonly calls: readonly number[];
  /** None of waits. */
  readonly samples: readonly number[];
}

export type HtmlWait = Pick<WaitRow, 'task' | 'at' | 'wokenBy' | 'waits' | 'total' | 'max' | 'runnable'>;

/** What is known at the end of a trace. */
export interface HtmlTables {
  readonly futures: readonly SummaryRow[];
  readonly tasks: readonly TaskRow[];
  readonly functions: readonly FunctionRow[];
  readonly waits: readonly HtmlWait[];
  readonly findings: readonly (Finding & { readonly text: string })[];
  readonly calls: HtmlStacks;
  readonly awaits: HtmlStacks;
  /** What was not seen, and why: sentences; and probes of which not every hit was seen. */
  readonly notes: readonly string[];
  readonly probes: readonly Pick<ProbeFact, 'name' | 'engine' | 'why' | 'partly' | 'extra'>[];
}

/** Gathers the tables of a report while events come. */
export class Tables extends Fold {
  readonly #futures = new Summary();
  readonly #functions = new FunctionSummary();
  readonly #tasks = new TaskSummary();
  readonly #findings = new Findings();
  readonly #calls = new CallTree();
  readonly #awaits = new CallTree();
  readonly #waits = new OffCpu(this.#awaits);
  readonly #all = tee([this.#futures, this.#functions, this.#tasks, this.#findings, this.#calls, this.#waits]);
  #tickNs = 1;
  #facts: TraceFacts | undefined;

  override begin(info: TraceInfo): void {
    this.#tickNs = info.clock.resolutionNs;
    this.#all.begin(info);
  }

  event(event: TraceEvent): void {
    this.#all.event(event);
  }

  override end(facts?: TraceFacts): void {
    this.#facts = facts;
    this.#all.end(facts);
  }

  /** Of a task, as its row has it; 0 if it has none. */
  numberOf(root: RootRef): number {
    return this.#tasks.numberOf(root);
  }

  all(): HtmlTables {
    const facts = this.#facts;
    const { recording, probes = [] } = facts ?? {};
    const leftOut = namesBound(probes, recording);
    const isUnknown = recording?.timesAtMost !== undefined;
    const error: StopError | undefined = isUnknown ? { tickNs: this.#tickNs, isUnknown } : undefined;
    // A trace does not say whether every wake was seen.
    const tasks = this.#tasks.rows(this.#waits.wakes > 0 ? 'some' : undefined, error);
    const disturbance = disturbanceOf(facts);
    const certainty = { ...disturbance, isTimed: disturbance !== undefined };
    const findings = this.#findings.all(tasks, { ...certainty, seesWakes: false }, (root) => this.numberOf(root));
    const isMixed = recording?.stopsBeside !== undefined;
    const futures = this.#futures.rows(error, leftOut, isMixed);
    const [lineName, nameOf] = [linesNames(futures), futureNames([...futures, ...tasks])];
    const named = <T extends Named>(row: T): T => ({ ...row, future: nameOf(row) });
    const rows = {
      futures: futures.map((row) => ({ ...row, future: lineName(row) })),
      functions: this.#functions.rows(error, leftOut, isMixed),
    };
    const hidden = this.#findings.leftOut(certainty);
    const took = `${hidden} findings about long polls or waits are left out: tracing took time in them`;
    return {
      ...rows,
      tasks: tasks.map(named),
      waits: this.#waits.rows().map(({ wake: _, waker: __, ...row }) => row),
      findings: findings.map((each) => ({ ...named(each), text: findingText(each) })),
      calls: stacksOf(this.#calls),
      awaits: stacksOf(this.#awaits),
      notes: [...this.#notes(rows), ...(hidden > 0 ? [took] : [])],
      probes: probes
        .filter(({ engine, partly }) => engine === 'none' || partly !== undefined)
        .map(({ name, engine, why, partly, extra }) => ({ name, engine, why, partly, extra })),
    };
  }

  #notes({ futures, functions }: Pick<HtmlTables, 'futures' | 'functions'>): string[] {
    const facts = this.#facts;
    const { ownTime, isCut } = facts ?? {};
    const { leftOut, ofNoTask } = this.#tasks;
    const inlined = futures.filter((row) => row.at_least && !row.probe_left_out).map(({ future }) => future);
    const lost = [...futures, ...functions].reduce((sum, row) => sum + row.lost, 0);
    return [
      isCut && 'the end of the recording is missing: what is open was cut off with it',
      leftOutText(facts?.probes ?? []),
      ...lossTexts(facts),
      inlined.length > 0 &&
        `polls are lower bounds (>=), because the compiler inlined some, of ${[...new Set(inlined)].join(', ')}`,
      lost > 0 && `${lost} calls or polls whose end was not seen`,
      ownTime && ownTimeText(ownTime),
      leftOut > 0 && `${leftOut} further tasks that ended have no row`,
      ofNoTask.polls > 0 &&
        `${ofNoTask.polls} polls belong to no known task, because the Futures around were not seen: ${ofNoTask.futures.join(', ')}`,
      this.#awaits.samples > 0 &&
        this.#waits.wakes === 0 &&
        'no wake is in the trace, so nothing says what ended waits',
      this.#calls.counts === 'calls' &&
        'functions and Futures without a probe are not in the trace; their time counts for those that called them',
    ].filter((note) => typeof note === 'string');
  }
}

function stacksOf(tree: CallTree): HtmlStacks {
  const nodes = [...tree.nodes()];
  const numbers = new Map(nodes.map((node, i) => [node, i]));
  const frames = [...new Set(nodes.flatMap(({ frame }) => frame ?? []))];
  const frameNumbers = new Map(frames.map((frame, i) => [frame, i]));
  return {
    areWaits: tree.counts === 'waits',
    frames: frames.map(({ name, file, line }) => ({ name, file, line })),
    frame: nodes.map(({ frame }) => (frame && frameNumbers.get(frame)) ?? 0),
    parent: nodes.map(({ parent }) => (parent && numbers.get(parent)) ?? -1),
    self: nodes.map(({ self }) => self),
    calls: nodes.map(({ calls }) => calls),
    samples: tree.counts === 'waits' ? [] : nodes.map(({ samples }) => samples),
  };
}
