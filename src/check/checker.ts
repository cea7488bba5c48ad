import { Fold, isOfPart, type TraceEvent, type TraceFacts, type TraceInfo, timeOf } from '../trace/index.js';
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
    this.#learn(event);
    for (const { section } of this.budget.sections) section.event(event);
  }

  /** A verdict a limit, in the order of the file. Call it when the trace is over. */
  verdicts(): Verdict[] {
    const end = this.#ending();
    return [...lossesOf(end), ...this.budget.sections.flatMap(({ section }) => section.verdicts(end))];
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
    return { info, facts: this.#facts, now: this.#now, seen: this.#seen };
  }

  #learn(event: TraceEvent): void {
    const thing = 'function' in event ? event.function : 'future' in event ? event.future : undefined;
    if (thing !== undefined && this.#known.has(thing)) return;
    const selector = selectorsOf(event);
    if (selector === undefined) return;
    this.#seen.add(selector);
    if (thing !== undefined) this.#known.add(thing);
  }
}

/** What the trace does not have, so that budgets may be kept only because it is missing. */
function lossesOf({ facts }: Ending): Verdict[] {
  const { missing = 0, tailLost = false, leftOut = 0 } = facts?.recording ?? {};
  const why = [
    ...(facts === undefined || facts.isCut ? ['its end is missing'] : []),
    ...(missing > 0 ? [`${missing} records are missing`] : []),
    ...(leftOut > 0 ? [`${leftOut} earlier events were left out by --last`] : []),
    ...(tailLost ? ['its last records were not read'] : []),
  ];
  if (why.length === 0) return [];
  return [
    { section: 'trace', subject: 'whole', state: 'unseen', limit: 'nothing is missing', measured: why.join(', ') },
  ];
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
