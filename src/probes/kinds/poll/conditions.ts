// Conditions at polls: `poll:GLOB if k > 3`. They are decided at the entry of a poll function, where all of the Future
// is in memory. A member of a compiler-made Future lies in each state where that state keeps it, so a comparison is
// worked out for each state. It does not hold in a state without that member.

import type { FutureType } from '../../../async/futures/index.js';
import { RsptraceError } from '../../../base/errors.js';
import { type Conditions, compareFor, type FunctionComparison } from '../../expressions/comparison.js';
import type { Comparison } from '../../expressions/condition.js';
import { type AssumedNumber, type NamedPlace, numberIn } from '../../expressions/plan.js';
import { ofFuture, onlyInState, type ProgramExpressions } from '../../expressions/program.js';
import { reasonOf } from '../../resolve-functions.js';
import type { ProbeSpec } from '../names.js';
import type { SeenFuture } from './coverage.js';

/** Why polls without a function of their own cannot be distinguished. */
const onlyAtEntries = 'a condition is decided at the entry of a poll function';

/** What the conditions of poll probes mean for each Future that they select. */
export class PollConditions {
  readonly #program: ProgramExpressions;
  readonly #specs: readonly ProbeSpec[];
  /** Conditions between `||` that some Future does not have: why. Undefined where another one has it. */
  readonly #refused = new Map<readonly Comparison[], string | undefined>();

  constructor(program: ProgramExpressions, specs: readonly ProbeSpec[]) {
    this.#program = program;
    this.#specs = specs.filter(({ excludes }) => !excludes);
  }

  /** Some of its polls are wanted, and not others. */
  isConditional(future: FutureType): boolean {
    const wanted = this.#wanted(future);
    return wanted.length > 0 && wanted.every(({ when }) => when.length > 0);
  }

  /**
   * Which polls of a Future are wanted, whose address is in a register at their entry. Undefined: all. Empty: none,
   * because no condition makes sense for it.
   */
  of(future: FutureType, selfRegister: string): Conditions | undefined {
    if (!this.isConditional(future)) return undefined;
    const { shapes } = this.#program;
    const shape = shapes.of(shapes.debug.die(future.typeOffset));
    const self: NamedPlace = { name: 'self', shape, where: { kind: 'pointer', register: selfRegister } };
    return this.#wanted(future)
      .flatMap(({ when }) => when)
      .flatMap((all) => this.#inEachState(all, future, self, selfRegister));
  }

  /**
   * Probes with a condition that no Future has. To be asked when all Futures were.
   * @param any polls of some Future are wanted
   * @throws RsptraceError `PROBE_CONDITION` if there are no others
   */
  inVain(any: boolean): readonly ProbeSpec[] {
    const inVain = this.#specs.filter(({ when }) => when.some((all) => this.#refused.get(all) !== undefined));
    const [hint] = [...this.#refused.values()].filter((reason) => reason !== undefined);
    if (hint === undefined || (any && inVain.length < this.#specs.length)) return inVain;
    const message = 'no Future that matches has what the condition looks at';
    throw new RsptraceError('PROBE_CONDITION', message, { hint });
  }

  /** How a conditional Future is seen: not where its poll was inlined. */
  seen(one: SeenFuture): SeenFuture {
    const { future, seen } = one;
    if (!this.isConditional(future) || future.inlined.length === 0 || seen === 'no-code') return one;
    const [first] = future.inlined;
    const reason = `inlined into ${first?.into}: ${onlyAtEntries}`;
    const help = 'build with opt-level = 0, or leave the condition out';
    return { future, seen: future.polls.length > 0 ? 'lower-bound' : 'not', reason, help };
  }

  #wanted({ future, instance }: FutureType): readonly ProbeSpec[] {
    return this.#specs.filter((spec) => spec.matches(future) || spec.matches(instance));
  }

  /** A list for the states in which these compare the same bytes with the same; none without such members. */
  #inEachState(
    all: readonly Comparison[],
    { discriminant, states }: FutureType,
    self: NamedPlace,
    register: string,
  ): FunctionComparison[][] {
    if (!discriminant) {
      const found = this.#attempt(all, self);
      if (found) this.#refused.set(all, undefined);
      return found ? [found] : [];
    }
    const pointer = { register, through: [] };
    const alike = new Map<string, { readonly values: Set<bigint>; readonly own: FunctionComparison[] }>();
    for (const state of states) {
      const value = BigInt(state.value);
      const own = this.#attempt(all, self, { pointer, ...discriminant, value })?.map(inState);
      if (!own) continue;
      const key = own.map((one) => `${placeOf(one)} ${meant(one, value)}`).join();
      const known = alike.get(key);
      if (known) known.values.add(value);
      else alike.set(key, { values: new Set([value]), own });
    }
    if (alike.size > 0) this.#refused.set(all, undefined);
    const state = { spot: numberIn({ pointer, ...discriminant }), signed: false, target: undefined };
    return [...alike.values()].map(({ values, own }) => {
      const isThere = { accepts: (found: bigint) => values.has(found), target: undefined };
      return [...own.slice(0, 1).map((one) => ({ ...one, number: state, meaning: isThere })), ...own];
    });
  }

  #attempt(all: readonly Comparison[], self: NamedPlace, assumed?: AssumedNumber): FunctionComparison[] | undefined {
    try {
      return all.map((each) => {
        const expression = ofFuture(each.expression);
        return compareFor({ ...each, expression }, [self], this.#program, assumed);
      });
    } catch (error) {
      if (!this.#refused.has(all)) this.#refused.set(all, reasonOf(error));
      return undefined;
    }
  }
}

/** In another state the same bytes are no pointer, and a trampoline would follow them all the same. */
function inState(one: FunctionComparison): FunctionComparison {
  const spot = one.number?.spot;
  const isFar = spot?.kind === 'memory' && spot.pointer.through.length > 0;
  return isFar ? { ...one, why: `'${one.text}' is compared at a stop: ${onlyInState}` } : one;
}

/** A variant has another number in another type. What takes several comparisons is each state's own. */
function meant({ meaning }: FunctionComparison, state: bigint): string {
  return meaning && !meaning.target ? `in ${state}` : `${meaning?.target?.op} ${meaning?.target?.value}`;
}

/** What a comparison reads, as text. */
function placeOf({ number, text }: FunctionComparison): string {
  const spot = number?.spot;
  if (spot?.kind !== 'memory') return text;
  return `${spot.pointer.through.join(' ')} ${spot.offset} ${spot.shape.size} ${number?.signed}`;
}
