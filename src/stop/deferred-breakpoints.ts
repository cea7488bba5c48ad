import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { type Batch, type Breakpoint, CoalescedReads, type Session, type SystemCalls } from '../rsp/index.js';
import { type CodeState, compareCode, type KnownCode } from '../target/index.js';

/** A probe whose code is not loaded in the target yet. */
interface Waiting {
  /** Its hardware breakpoint in the meantime, if the target has a free one: that kind writes nothing. */
  hardware: Breakpoint | undefined;
  /** See `Point`. */
  readonly pause: (() => void) | undefined;
}

/** A probe whose code is loaded now. */
interface Arrived {
  readonly address: Addr;
  readonly pause: (() => void) | undefined;
}

export interface DeferredBreakpointsOptions extends KnownCode {
  readonly session: Session;
  readonly arch: Architecture;
  /** System calls that are traced, by their numbers. */
  readonly systemCalls?: SystemCalls | undefined;
}

/** So many deferred probes are checked at each stop, in turn. */
const inTurn = 16;
/** More hardware breakpoints than chips have: a target that takes so many is asked for no more. */
const mostHardware = 16;
/**
 * How long the target runs until it is interrupted for a check, in milliseconds; doubled each time that no code was
 * loaded.
 */
const lookMs = { first: 100, last: 3200 };

/**
 * Defers probes at stubs that write trap instructions, because a trap must not overwrite memory that holds something
 * else yet. Each stop checks whether the code was loaded. So do stops after system calls that map memory, if the stub
 * reports these; else interrupts that grow rare. Meanwhile a hardware breakpoint takes the probe's place, if the
 * target has one.
 */
export class DeferredBreakpoints {
  readonly #options: DeferredBreakpointsOptions;
  readonly #waiting = new Map<Addr, Waiting>();
  #next = 0;
  #noHardware = false;
  #fruitless = 0;
  /** The system calls that are reported now, as a text. */
  #catching = '';
  #interrupted = false;

  constructor(options: DeferredBreakpointsOptions) {
    this.#options = options;
  }

  /** The deferred ones. */
  get addresses(): readonly Addr[] {
    return [...this.#waiting.keys()];
  }

  /** Defers those whose code is not loaded; returns the others, which can be inserted now. */
  async hold(addresses: readonly Addr[], pause?: () => void): Promise<Addr[]> {
    const { session } = this.#options;
    const batch = new CoalescedReads(session);
    const compared = addresses.map((address) => ({ address, state: compareCode(batch, this.#options, address) }));
    if (compared.every(({ state }) => state === undefined) || !(await (await session.stub()).writesTraps()))
      return [...addresses];
    await batch.send();
    const there: Addr[] = [];
    for (const { address, state } of compared) {
      if (state === undefined || this.#isThere(state())) there.push(address);
      else if (!this.#waiting.has(address)) this.#waiting.set(address, { hardware: undefined, pause });
    }
    return there;
  }

  /**
   * Checks some of them together with a stop's own requests. Once these are answered, the returned function says
   * whether any code was loaded.
   */
  ask(batch: Batch): () => boolean {
    if (this.#waiting.size === 0) return () => false;
    const all = [...this.#waiting];
    const asked = new Set(all.filter(([, { hardware }]) => hardware).map(([address]) => address));
    for (let i = 0; i < Math.min(inTurn, all.length); i++) {
      const [address] = all[this.#next++ % all.length] ?? [];
      if (address !== undefined) asked.add(address);
    }
    const states = [...asked].map((address) => compareCode(batch, this.#options, address));
    return () => this.#interrupted || states.some((state) => state && this.#isThere(state()));
  }

  /**
   * Checks all of them while the target is stopped. Those with loaded code are deferred no more, and have no
   * breakpoint yet.
   */
  async take(): Promise<Arrived[]> {
    if (this.#waiting.size === 0) return [];
    const { session } = this.#options;
    const batch = session.batch();
    const compared = this.addresses.map((address) => ({ address, state: compareCode(batch, this.#options, address) }));
    await batch.send();
    const arrived = compared.filter(({ state }) => state && this.#isThere(state())).map(({ address }) => address);
    this.#fruitless = arrived.length > 0 ? 0 : this.#fruitless + 1;
    const pauses = arrived.map((address) => ({ address, pause: this.#waiting.get(address)?.pause }));
    await this.drop(arrived);
    return pauses;
  }

  /** They are deferred no more. */
  async drop(addresses: readonly Addr[]): Promise<void> {
    const batch = this.#options.session.batch();
    for (const address of addresses) {
      const hardware = this.#waiting.get(address)?.hardware;
      if (hardware) batch.removeBreakpoint(hardware);
      this.#waiting.delete(address);
    }
    await batch.send();
    this.#noHardware &&= addresses.length === 0;
    if (this.#waiting.size === 0) await this.#catchCalls(this.#traced);
  }

  /** The program has ended; returns its deferred probes. */
  forget(): readonly Addr[] {
    const { addresses } = this;
    this.#waiting.clear();
    this.#noHardware = false;
    return addresses;
  }

  /** The hardware breakpoint of a deferred probe, by address. */
  guardAt(pc: Addr): Breakpoint | undefined {
    return this.#waiting.get(pc)?.hardware;
  }

  /**
   * The target is about to run for long. Deferred probes get the free hardware breakpoints; if some get none, system
   * calls are reported.
   */
  async prepare(): Promise<void> {
    const { session, arch, code } = this.#options;
    while (!this.#noHardware) {
      const bare = [...this.#waiting].filter(([, { hardware }]) => !hardware).slice(0, mostHardware);
      if (bare.length === 0) break;
      const batch = session.batch();
      const tried = bare.map(([address, waiting]) => {
        const kind = arch.breakpointKind(code(address, 4) ?? code(address, 2) ?? new Uint8Array(4));
        const hardware: Breakpoint = { type: 1, address, kind };
        return { waiting, hardware, reply: batch.insertBreakpoint(hardware) };
      });
      await batch.send();
      for (const { waiting, hardware, reply } of tried) if (reply.value) waiting.hardware = hardware;
      const guarded = [...this.#waiting.values()].filter(({ hardware }) => hardware).length;
      this.#noHardware = guarded >= mostHardware || tried.some(({ reply }) => !reply.value);
    }
    await this.#catchCalls(this.#isBlind ? this.#withMapping : this.#traced);
  }

  /** Others need the hardware breakpoints more. */
  giveWay(batch: Batch): void {
    this.#noHardware = true;
    for (const waiting of this.#waiting.values()) {
      if (waiting.hardware) batch.removeBreakpoint(waiting.hardware);
      waiting.hardware = undefined;
    }
  }

  /** While this runs in the target, no system call stops it. */
  async undisturbed<T>(work: () => Promise<T>): Promise<T> {
    await this.quiet();
    const done = await work();
    await this.prepare();
    return done;
  }

  /** The target is about to be left. */
  async quiet(): Promise<void> {
    await this.#catchCalls([]);
  }

  /**
   * The target runs until the returned function is called. It is interrupted after a while, if interrupts are the way
   * to check.
   */
  runs(): () => void {
    this.#interrupted = false;
    if (!this.#isBlind || this.#reportsCalls) return () => {};
    const { session } = this.#options;
    const look = (): void => {
      if (session.state.kind !== 'running') return;
      this.#interrupted = true;
      // An error here also ends the run, which reports it.
      session.interrupt().catch(() => {});
    };
    const timer = setTimeout(look, Math.min(lookMs.last, lookMs.first * 2 ** this.#fruitless));
    return () => clearTimeout(timer);
  }

  /** The last stop may have been an interrupt for a check. */
  get hasInterrupted(): boolean {
    return this.#interrupted;
  }

  /** Some hits would be missed. */
  get #isBlind(): boolean {
    for (const { hardware } of this.#waiting.values()) if (!hardware) return true;
    return false;
  }

  get #reportsCalls(): boolean {
    const { session, arch } = this.#options;
    return arch.linux !== undefined && session.features.supported.get('QCatchSyscalls') === '+';
  }

  get #traced(): SystemCalls {
    return this.#options.systemCalls ?? [];
  }

  /** Those that map code too. */
  get #withMapping(): SystemCalls {
    const traced = this.#traced;
    return traced === 'all' ? traced : [...traced, ...(this.#options.arch.linux?.mappingCalls ?? [])];
  }

  async #catchCalls(wanted: SystemCalls): Promise<void> {
    if (String(wanted) === this.#catching || !this.#reportsCalls) return;
    this.#catching = String(wanted);
    await this.#options.session.catchSystemCalls(wanted);
  }

  /** Code that a program changes itself differs here and there. */
  #isThere(state: CodeState): boolean {
    return state === 'same' || (state === 'different' && this.#options.codeChanges === true);
  }
}
