import type { FutureType } from '../async/futures/index.js';
import type { Addr } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import { RsptraceError } from '../base/errors.js';
import {
  type AnyProbe,
  type Conditions,
  type Found,
  type FoundPolls,
  type FunctionProbe,
  PollConditions,
  type ProbedProgram,
  type ProbeKind,
  type ProbeSpec,
  type ReadPlan,
  resolveFunctions,
  type SeenFuture,
  whiteList,
} from '../probes/index.js';
import type { CallBegin, FutureRef, PollBegin } from '../trace/index.js';
import { Unavailable } from '../values/index.js';
import { type Capture, type CapturePlan, planCapture, planPolled, StopReader, withCaptures } from './captures.js';
import type { Asked, Probe, UnseenFuture } from './probe.js';

/** A probe at one address. */
export interface PlacedHandler {
  readonly asked: Asked;
  /** Of a function: what is known of it. */
  readonly fn: FunctionProbe | undefined;
  /** Which calls or polls it wants; undefined: all. */
  readonly when: Conditions | undefined;
  /** In the order of the captures: how each is read without a stop. */
  readonly plans: readonly CapturePlan[];
  /** Of a poll. */
  readonly future: FutureType | undefined;
}

/** Which of a target's probes listens where, and what they want read there. */
export class Handlers {
  readonly #asked: readonly Asked[];
  #at = new AddressMap<PlacedHandler[]>();
  /** The kinds whose places are known. */
  #known = new Set<string>();
  #reader: StopReader | undefined;
  readonly #polled = new WeakMap<FutureRef, readonly Asked[]>();

  constructor(asked: readonly Asked[]) {
    this.#asked = asked;
  }

  /** Undefined for a program without debug info. */
  get reader(): StopReader | undefined {
    return this.#reader;
  }

  at(pc: Addr): readonly PlacedHandler[] {
    return this.#at.get(pc) ?? [];
  }

  /** Whether a probe listens at an address. */
  handles(probe: Probe, address: Addr): boolean {
    return this.at(address).some(({ asked }) => asked.probe === probe);
  }

  /**
   * The probes of calls that listen where one begins. Of a poll those that want it: also one that is not entered at a
   * place of its own.
   */
  beginning(event: CallBegin | PollBegin, pc: Addr): readonly PlacedHandler[] {
    if (event.type === 'call-begin') return this.at(pc).filter(({ asked }) => asked.spec.kind === 'fn');
    const { instance } = event.future;
    const here = this.at(pc).filter(({ asked, future }) => isPoll(asked.spec) && future?.instance === instance);
    const others = this.polled(event.future).filter((asked) => !here.some((placed) => placed.asked === asked));
    return [...here, ...others.map((asked) => ({ asked, ...nothing, plans: asked.captures.map(() => inlined) }))];
  }

  /** The probes of polls that a Future is asked for by, whatever is in it. */
  polled(future: FutureRef): readonly Asked[] {
    let known = this.#polled.get(future);
    if (!known) {
      known = this.#wanting(future);
      this.#polled.set(future, known);
    }
    return known;
  }

  #wanting(future: FutureRef): readonly Asked[] {
    const specs = this.#asked.map(({ spec }) => spec).filter(isPoll);
    const names = [future, ...(future.oneOf ?? [])].flatMap((one) => [one.future, one.instance]);
    if (whiteList(specs).hasExcluded(names)) return [];
    return this.#asked.filter(
      ({ spec }) => isPoll(spec) && !spec.excludes && spec.when.length === 0 && names.some(spec.matches),
    );
  }

  /** The probes of a place that is watched. */
  watching(name: string): readonly Asked[] {
    return this.#asked.filter(({ spec }) => spec.kind === 'watch' && 'name' in spec && spec.name === name);
  }

  /** The kind, with what the probes here want read. None is asked for where no probe is. */
  wrapped(kind: ProbeKind): ProbeKind {
    return {
      ...kind,
      isDefault: false,
      resolve: async (program, specs) => {
        const found = await kind.resolve(program, specs);
        await this.#learn(kind, program, found);
        return found;
      },
      plans: (found, wishes) => kind.plans?.(found, wishes).map((plan) => this.#plan(kind, plan)) ?? [],
    };
  }

  async #learn(kind: ProbeKind, program: ProbedProgram, found: Found): Promise<void> {
    // The first kind of the list begins anew: a program that was loaded elsewhere is resolved once more.
    if (this.#known.has(kind.name)) [this.#at, this.#known] = [new AddressMap(), new Set()];
    this.#known.add(kind.name);
    if (program.debug && this.#reader === undefined) this.#reader = new StopReader(program.debug);
    const ours = this.#asked.filter(({ spec }) => spec.kind === kind.name);
    const excluding = ours.map(({ spec }) => spec).filter((spec) => 'excludes' in spec && spec.excludes === true);
    for (const asked of ours) {
      if (excluding.includes(asked.spec)) continue;
      const specs = [asked.spec, ...excluding];
      if (kind.name === 'fn') this.#listenToCalls(program, asked, specs as readonly AnyProbe[] as readonly ProbeSpec[]);
      else if (kind.name === 'poll') this.#listenToPolls(asked, found as FoundPolls);
      else
        for (const address of (await kind.resolve(program, specs)).addresses) this.#add(address, { asked, ...nothing });
    }
  }

  #listenToCalls({ elf, debug, arch }: ProbedProgram, asked: Asked, specs: readonly ProbeSpec[]): void {
    const { probes } = resolveFunctions(elf, debug, arch, specs);
    const program = this.#reader?.program;
    const plans = asked.captures.map((capture) =>
      planEverywhere(capture, probes, (fn) => planCapture(capture, fn.arguments, program)),
    );
    for (const [index, fn] of probes.entries()) {
      const { address, when } = fn;
      this.#add(address, { asked, fn, when, plans: plans.flatMap((each) => each[index] ?? []), future: undefined });
    }
  }

  #listenToPolls(asked: Asked, { polls }: FoundPolls): void {
    const { spec } = asked;
    const reader = this.#reader;
    if (!isPoll(spec) || !reader) return;
    asked.probe.unseen = unseenOf(spec, polls.coverage);
    const conditions = new PollConditions(reader.program, [spec]);
    const heard = polls.probes.flatMap((probe) => {
      const { future: first, among, selfRegister } = probe;
      const all = among.length > 0 ? among.map(({ future }) => future) : [first];
      const wanted = all.filter((each) => [each.future, each.instance].some(spec.matches));
      return wanted.map((future) => ({ probe, future, when: conditions.of(future, selfRegister) }));
    });
    const plans = asked.captures.map((capture) =>
      planEverywhere(capture, heard, ({ probe, future }) => planPolled(capture, future, probe, reader)),
    );
    for (const [index, { probe, future, when }] of heard.entries()) {
      const own = plans.flatMap((each) => each[index] ?? []);
      this.#add(probe.address, { asked, fn: undefined, when, plans: own, future });
    }
    if (spec.when.length > 0) return;
    for (const { site, future } of polls.sites) {
      if (![future.future, future.instance].some(spec.matches)) continue;
      const own = asked.captures.map(() => inlined);
      for (const { address } of site.begins) this.#add(address, { asked, ...nothing, plans: own, future });
    }
  }

  #add(address: Addr, placed: PlacedHandler): void {
    const known = this.#at.get(address);
    if (!known) this.#at.set(address, [placed]);
    // The linker folds functions that are alike into one address: one probe listens there once.
    else if (!known.some(({ asked, future }) => asked === placed.asked && future === placed.future)) known.push(placed);
  }

  #plan({ name }: ProbeKind, plan: ReadPlan): ReadPlan {
    const handlers = this.at(plan.address).filter(({ asked }) => asked.spec.kind === name);
    if (handlers.some(({ asked }) => asked.stop))
      return { ...plan, needsStop: plan.needsStop ?? 'the probe asks for stops', stopIsAsked: true };
    const isAwaited = handlers.some(({ asked }) => asked.onReturn);
    return withCaptures(
      isAwaited ? { ...plan, entryIsEnough: false } : plan,
      handlers.flatMap(({ plans }) => plans),
    );
  }
}

/**
 * The Futures of a probe whose polls are not seen, all or some of them.
 * @throws RsptraceError `PROBE_NO_MATCH`, `PROBE_INLINED` if its handler would never be called
 */
function unseenOf(spec: ProbeSpec, coverage: readonly SeenFuture[]): readonly UnseenFuture[] {
  const wanted = coverage.filter(({ future }) => [future.future, future.instance].some(spec.matches));
  const [first] = wanted;
  if (!first)
    throw new RsptraceError('PROBE_NO_MATCH', `no Future matches '${spec.text}'`, {
      hint: 'rsptrace futures lists what the program has',
    });
  if (wanted.every(({ seen }) => seen === 'not' || seen === 'no-code')) {
    const { future, reason, help } = first;
    throw new RsptraceError('PROBE_INLINED', `no poll of '${spec.text}' can be seen: ${future.future}: ${reason}`, {
      hint: help,
    });
  }
  return wanted.flatMap(({ future, seen, reason = '' }) => {
    return seen === 'exact' ? [] : [{ future: future.future, instance: future.instance, seen, reason }];
  });
}

/** Of a capture where a poll was inlined, and no stop is made. */
const inlined: CapturePlan = {
  kind: 'known',
  value: new Unavailable('the compiler inlined this poll: probe with { stop: true }'),
};

const nothing = { fn: undefined, when: undefined, plans: [], future: undefined } as const;

/**
 * Plans a capture for each function or Future.
 * @throws RsptraceError `EXPRESSION_*` if it makes sense in none of them
 */
function planEverywhere<P>(
  capture: Capture,
  places: readonly P[],
  plan: (place: P) => CapturePlan,
): readonly CapturePlan[] {
  let failed: RsptraceError | undefined;
  let isKnown = false;
  const plans = places.map((place): CapturePlan => {
    try {
      const planned = plan(place);
      isKnown = true;
      return planned;
    } catch (error) {
      if (!(error instanceof RsptraceError)) throw error;
      failed ??= error;
      return { kind: 'known', value: new Unavailable(error.message) };
    }
  });
  if (failed && !isKnown) {
    const { code, message, hint } = failed;
    throw new RsptraceError(code, `'${capture.text}': ${message}`, { ...(hint ? { hint } : {}), cause: failed });
  }
  return plans;
}

function isPoll(spec: AnyProbe): spec is ProbeSpec {
  return spec.kind === 'poll';
}
