import type { FutureSet, FutureType, InlinedPoll, TaskPlaces } from '../../../async/futures/index.js';
import { type Addr, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import { type DebugInfo, type Die, DW_TAG, functionName, functionsAt, rangesOf } from '../../../dwarf/index.js';

/** Who makes a poll, as the code that calls says. */
export interface TaskPoll {
  /** Undefined if no runtime does. */
  readonly runtime: string | undefined;
  /** The functions inlined around it until the runtime's, by the offsets of their DIEs. */
  readonly around: ReadonlySet<number>;
  /** Code of another Future's poll makes it, so that it is a task's own poll no more than a part of one. */
  readonly isPart: boolean;
}

/**
 * Finds which polls are those of a runtime, and which are those of another Future, by the code that calls them. What a
 * runtime polls is a task of its own, even inside another poll. A thread of tokio runs in a poll that never ends, and a
 * `LocalSet` is a Future itself. What a Future polls is part of its task, even where the polls of that Future are not
 * seen.
 */
export class TaskPolls {
  readonly #debug: DebugInfo;
  readonly #futures: FutureSet;
  readonly #polls: TaskPlaces['polls'];
  readonly #calls = new AddressMap<TaskPoll>();
  readonly #inlined = new Map<number, TaskPoll>();

  constructor(debug: DebugInfo, futures: FutureSet, { polls }: TaskPlaces) {
    this.#debug = debug;
    this.#futures = futures;
    this.#polls = polls;
  }

  /** The call that returns there. */
  returningTo(returnAddress: Addr): TaskPoll {
    return this.#calls.get(returnAddress) ?? this.#learn(returnAddress);
  }

  #learn(returnAddress: Addr): TaskPoll {
    const known = this.#inside(functionsAt(this.#debug, addr(returnAddress - 1n)));
    this.#calls.set(returnAddress, known);
    return known;
  }

  /** A poll that was inlined. */
  inlined({ die, address }: Pick<InlinedPoll, 'die' | 'address'>): TaskPoll {
    return madeOnce(this.#inlined, die.offset, () => {
      const functions = functionsAt(this.#debug, address);
      const own = functions.findIndex(({ offset }) => offset === die.offset);
      return this.#inside(own < 0 ? [] : functions.slice(own + 1));
    });
  }

  /** `functions`: the innermost first. */
  #inside(functions: readonly Die[]): TaskPoll {
    const names = functions.map((die) => this.#debug.attempt(die.unit, () => functionName(die)) ?? '');
    const runtimes = names.map((name) => this.#polls.find(({ functions }) => functions.test(name))?.runtime);
    const host = runtimes.findIndex((runtime) => runtime !== undefined);
    const between = host < 0 ? functions : functions.slice(0, host);
    const isPart = between.some((die, i) => isOfFuture(this.#futureOf(die), names[i] ?? ''));
    return { runtime: runtimes[host], around: new Set(between.map(({ offset }) => offset)), isPart };
  }

  /** The Future whose poll function this is, or a copy of it. */
  #futureOf(die: Die): FutureType | undefined {
    const copy = this.#futures.ofCopy(die);
    if (copy || die.tag !== DW_TAG.subprogram) return copy;
    const [range] = this.#debug.attempt(die.unit, () => rangesOf(die)) ?? [];
    return range && this.#futures.byPollAddress(die.unit.codes.fromCode(range.low));
  }
}

/** False for a pointer and a wrapper: they are the task where what they hold would be. */
function isOfFuture(future: FutureType | undefined, name: string): boolean {
  if (!future) return /\{async_(?:fn|block|closure)#\d+\}/.test(name);
  const [held, ...others] = future.states.length > 0 ? [] : future.holds;
  return held === undefined || others.length > 0 || held.repeats.length > 0;
}
