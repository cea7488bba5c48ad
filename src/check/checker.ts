import { plural } from '../text/index.js';
import {
  Fold,
  isOfPart,
  type RecordingFacts,
  type TraceEvent,
  type TraceFacts,
  type TraceInfo,
  timeOf,
} from '../trace/index.js';
import type { BudgetFile } from './budget-file.js';
import type { Json, JsonObject } from './json.js';
import type { Ending, HeadRoom, Names, Verdict } from './section.js';
import { selectorsOf } from './selector.js';

/** Checks the budgets of a file against a trace, whose events it takes as a sink: while it is recorded, or later. */
export class Checker extends Fold {
  readonly budget: BudgetFile;
  #info: TraceInfo | undefined;
  #facts: TraceFacts | undefined;
  #now = 0;
  readonly #seen = new Set<string>();
  /** Things whose names are in `#seen`. */
  readonly #known = new Set<object>();
  /** Of the link to the stub. */
  #breaks = 0;

  constructor(budget: BudgetFile) {
    super();
    this.budget = budget;
  }

  override begin(info: TraceInfo): void {
    this.#info = info;
  }

  override end(facts?: TraceFacts): void {
    this.#facts = facts;
  }

  event(event: TraceEvent): void {
    this.#now = timeOf(event);
    if (event.type === 'gap' && event.why === undefined) this.#breaks++;
    this.#learn(event);
    for (const { section } of this.budget.sections) section.event(event);
  }

  /** A verdict a limit, in the order of the file. Call it when the trace is over. */
  verdicts(): Verdict[] {
    const end = this.#ending();
    return [...wholeness(end), ...this.budget.sections.flatMap(({ section }) => section.verdicts(end))];
  }

  /** The budget file with limits of this trace, and head room. */
  updated(headRoom: HeadRoom): JsonObject {
    const end = this.#ending();
    const json: Record<string, Json> = { ...this.budget.head };
    for (const { kind, section } of this.budget.sections) {
      const value = section.updated(end, headRoom);
      if (value !== undefined) json[kind.key] = value;
    }
    return json;
  }

  #ending(): Ending {
    const clock = { name: 'none', resolutionNs: 1, guest: false };
    const info = this.#info ?? { program: '', buildId: undefined, arch: '', clock, harts: [] };
    const facts = this.#facts;
    // A trace of another program has no facts.
    const isCut = facts ? facts.isCut === true : this.#info === undefined;
    const lacks = lacksOf(facts?.recording, isCut, this.#breaks);
    return { info, facts, now: this.#now, seen: this.#seen, lacks };
  }

  #learn(event: TraceEvent): void {
    // Its Future may have other polls, whose begins are known.
    if (event.type === 'derived-poll') this.#seen.add(`derived:${event.future.future}`);
    const thing = 'function' in event ? event.function : 'future' in event ? event.future : undefined;
    if (thing !== undefined && this.#known.has(thing)) return;
    const selector = selectorsOf(event);
    if (selector === undefined) return;
    this.#seen.add(selector);
    if (thing !== undefined) this.#known.add(thing);
  }
}

/** What the trace does not have, so that of most budgets nothing is sure. */
function lacksOf(
  { missing = 0, tailLost = false, leftOut = 0 }: Partial<RecordingFacts> = {},
  isCut: boolean,
  breaks: number,
): string {
  const why = [
    ...(isCut ? ['its end is missing'] : []),
    ...(missing > 0 ? [`${missing} records are missing`] : []),
    ...(breaks > 0 ? [`nothing was recorded while the link was broken, ${plural(breaks, 'time')}`] : []),
    ...(leftOut > 0 ? [`${leftOut} earlier events were left out by --last`] : []),
    ...(tailLost ? ['its last records were not read'] : []),
  ];
  return why.join(', ');
}

function wholeness({ lacks }: Ending): Verdict[] {
  if (lacks === '') return [];
  return [{ section: 'trace', subject: 'whole', state: 'unseen', limit: 'nothing is missing', measured: lacks }];
}

/** Functions that are called more often are no phases of a boot. */
const mostOnce = 12;

/** Collects what a new budget file asks for. */
export class NameCollector extends Fold {
  readonly #tasks = new Set<string>();
  readonly #ready = new Set<string>();
  /** How often each was called. */
  readonly #calls = new Map<string, number>();

  event(event: TraceEvent): void {
    if (isOfPart(event)) return;
    if (event.type === 'call-begin') {
      const { name } = event.function;
      this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1);
    } else if (event.type === 'poll-begin') this.#tasks.add(event.root.future.future);
    else if (event.type === 'poll-end' && event.result === 'ready' && event.future === event.root.future) {
      this.#ready.add(event.future.future);
    }
  }

  get names(): Names {
    const once = [...this.#calls].filter(([, calls]) => calls === 1).map(([name]) => name);
    return {
      tasks: [...this.#tasks],
      ready: [...this.#ready],
      functions: [...this.#calls.keys()],
      once: once.slice(0, mostOnce),
    };
  }
}
