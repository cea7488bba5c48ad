import type { Addr } from '../base/addr.js';
import type { SitePlan } from '../inject/index.js';
import { codeOf, type ReadPlan } from '../probes/index.js';
import type { Session } from '../rsp/index.js';
import { inUserCode, programsRunIt } from '../target/index.js';
import type { ProbeFact } from '../trace/index.js';
import { engineChoices, planEngines, unavailable } from './engine-choice.js';
import type { EnginesOptions } from './engines-options.js';

/** Begins the reason of a probe that was switched off. */
const tooOften = 'it stopped the target more often than --engine auto allows';

type LeftOut = Pick<ProbeFact, 'why' | 'leftOutBy'>;

/** Which probes can do without stops, and why the others cannot. */
export class ProbeChoices {
  readonly #options: EnginesOptions;
  /** Of the plans, by name and by address: there may be tens of thousands. */
  readonly #indices = new Map<string | Addr, number[]>();
  /** What the program's code alone says. */
  readonly #planned: SitePlan;
  #plan: SitePlan;
  #why: Map<number, string>;
  #refusal: string | undefined;
  /** Those that are left out for good: they had stopped the target too often, or there were too many like them. */
  readonly #leftOut = new Map<number, LeftOut>();
  /** Kept, because there may be tens of thousands. Undefined when what they rest on has changed. */
  #facts: readonly ProbeFact[] | undefined;

  /** @throws RsptraceError `ENGINE_UNAVAILABLE` if the engine without stops is asked for and no probe can use it */
  constructor(options: EnginesOptions) {
    this.#options = options;
    this.#planned = planEngines(options);
    this.#plan = this.#planned;
    this.#why = new Map(this.#planned.refused);
    for (const [index, { name, address }] of options.plans.entries()) {
      for (const key of [name, address]) {
        const known = this.#indices.get(key);
        if (known) known.push(index);
        else this.#indices.set(key, [index]);
      }
    }
    this.#leaveOutMany();
    if (options.wanted === 'target' && this.#plan.sites.length === 0) throw unavailable(this.#why.get(0));
  }

  get plan(): SitePlan {
    return this.#plan;
  }

  /** No probe stops the target. */
  get allInject(): boolean {
    return this.facts.every(({ engine }) => engine !== 'stop');
  }

  /** Why no probe can do without stops in this target. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** No probe can do without stops. */
  get onlyStops(): boolean {
    return this.#why.size === this.#options.plans.length;
  }

  get facts(): readonly ProbeFact[] {
    this.#facts ??= engineChoices(this.#options, { ...this.#plan, refused: this.#why }).map((fact, index) => {
      const left = this.#leftOut.get(index);
      return left === undefined ? fact : { ...fact, engine: 'none', ...left };
    });
    return this.#facts;
  }

  /** Some probes run without stops, and nobody has asked for stops: those that stop should not slow the others. */
  get someInject(): boolean {
    if (this.#options.plans.every(({ stopIsAsked }) => stopIsAsked)) return false;
    return this.facts.some(({ engine }) => engine === 'target');
  }

  /** The name of the probe here, if there is one. */
  nameAt(address: Addr): string | undefined {
    return this.#planAt(address)?.name;
  }

  /** The user has asked for the stops of the probe here. */
  isAsked(address: Addr): boolean {
    return this.#planAt(address)?.stopIsAsked === true;
  }

  #planAt(address: Addr): ReadPlan | undefined {
    return this.#options.plans[this.#indices.get(address)?.at(-1) ?? -1];
  }

  /** Leaves out all places of the probes with these names that stop the target. Returns what is known of them now. */
  switchOff(names: readonly string[]): readonly ProbeFact[] {
    const { plans } = this.#options;
    const stopping = this.#indicesOf(names).filter(
      (index) => this.facts[index]?.engine === 'stop' && !plans[index]?.stopIsAsked,
    );
    return this.#leave(stopping, ({ why }) => ({ why: `${tooOften}: ${why}`, leftOutBy: 'stops' }));
  }

  /** Leaves out the probes at these places, where the stub refuses breakpoints. Returns what is known of them now. */
  leaveOut(places: readonly Addr[], why: string): readonly ProbeFact[] {
    return this.#leave(this.#indicesOf(places), () => ({ why, leftOutBy: 'stub' }));
  }

  /** In the order of the plans. */
  #indicesOf(keys: readonly (string | Addr)[]): number[] {
    const all = new Set(keys.flatMap((key) => this.#indices.get(key) ?? []));
    return [...all].sort((a, b) => a - b);
  }

  #leave(indices: readonly number[], reason: (fact: ProbeFact) => LeftOut): readonly ProbeFact[] {
    const facts = [...this.facts];
    const left: ProbeFact[] = [];
    for (const index of indices) {
      const fact = facts[index];
      if (!fact) continue;
      const why = reason(fact);
      const out: ProbeFact = { ...fact, engine: 'none', ...why };
      facts[index] = out;
      this.#leftOut.set(index, why);
      left.push(out);
    }
    this.#facts = facts;
    return left;
  }

  /**
   * The target runs another program, whose code alone says what can be patched. The stated choices stay until
   * trampolines are installed.
   */
  restart(): void {
    this.#plan = this.#planned;
    this.#facts = undefined;
  }

  /** An installation begins: what was refused before is tried again. */
  retry(): void {
    this.#plan = this.#planned;
    this.#why = new Map(this.#planned.refused);
    this.#refusal = undefined;
    this.#facts = undefined;
  }

  refuse(index: number, why: string): void {
    this.#why.set(index, why);
    this.#facts = undefined;
  }

  /** No probe can do without stops. Those that could not before keep their reason. */
  refuseAll(why: string): void {
    this.#refusal = why;
    for (const index of this.#options.plans.keys()) if (!this.#why.has(index)) this.#why.set(index, why);
    this.#facts = undefined;
  }

  /** Probes that write records cannot do without stops; those that only count can. */
  refuseRecords(why: string): void {
    for (const { index, counters } of this.#plan.sites) if (counters === 0) this.refuse(index, why);
    this.#plan = { ...this.#plan, sites: this.#plan.sites.filter(({ counters }) => counters > 0) };
    this.#facts = undefined;
  }

  /** What the kernel only maps for its programs is not patched: a program may be in the ELF of its kernel. */
  async refuseUserCode(session: Session): Promise<void> {
    const { sites } = this.#plan;
    const { arch } = this.#options;
    const addresses = sites.map(({ plan }) => plan.address);
    const found = await inUserCode(session, arch, addresses);
    if (found.size === 0) return;
    for (const { index, plan } of sites) if (found.has(plan.address)) this.refuse(index, programsRunIt);
    this.#plan = { ...this.#plan, sites: sites.filter(({ plan }) => !found.has(plan.address)) };
  }

  why(index: number): string | undefined {
    return this.#why.get(index);
  }

  /** Plans with the code that stands in the target now. */
  async planAnew(session: Session): Promise<void> {
    const batch = session.batch();
    const reads = this.#options.plans.map(codeOf).map(({ address, length }) => {
      return { address, reply: batch.readMemory(address, length) };
    });
    await batch.send();
    const code = new Map(reads.map(({ address, reply }) => [address, reply.value]));
    const bytesAt = (address: Addr, length: number): Uint8Array | undefined => code.get(address)?.subarray(0, length);
    this.#plan = planEngines({ ...this.#options, bytesAt, looks: undefined });
    for (const [index, why] of this.#plan.refused) this.#why.set(index, why);
    this.#facts = undefined;
    this.#leaveOutMany();
  }

  /** They have no breakpoint, so they are not had back where trampolines turn out to be impossible. */
  #leaveOutMany(): void {
    if (this.#options.wanted === 'target') return;
    for (const [index, { engine, why, leftOutBy, extra }] of this.facts.entries())
      if (engine === 'none' && extra === undefined && why !== undefined) this.#leftOut.set(index, { why, leftOutBy });
    this.#facts = undefined;
  }
}
