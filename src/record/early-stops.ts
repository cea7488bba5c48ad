import type { Addr } from '../base/addr.js';
import type { EngineName, Engines } from '../engines/index.js';
import type { TablePlace } from '../target/index.js';
import type { GuestNanos } from '../trace/index.js';
import type { CodeAsLoaded } from './code-as-loaded.js';
import type { Connection } from './connection.js';

/** Why nothing was recorded, though stops could have. */
export const tooEarly = 'the last page table was not in use yet';
/** The same, where no probe can be. */
const notAsLinked = 'the kernel ran where it is loaded, and its ELF has no code there';

/** So many stops are taken before the last page table is in use; the first calls of a boot are worth having. */
const mostStops = 500;
/** With more breakpoints a boot under QEMU hardly goes on: none is inserted. */
const mostBreakpoints = 1000;
/** So many cost a boot a third of its time at most. More are in the target for a limited time, in milliseconds. */
const fewBreakpoints = 100;
const longest = 1000;
/** So often the kernel may change its page table before it is the last one. Then probes stop again. */
const mostChanges = 50;

interface EarlyStopsOptions {
  readonly wanted: EngineName;
  /** Take them all. */
  readonly fromReset: boolean;
  /** Where the last page table may come into use; none if it is in use already, or if no place is known. */
  readonly places: readonly TablePlace[];
  /** The only place says for sure, and comes late: no probe need stop before, if none may. */
  readonly isSure: boolean;
  /** A change of the page table matters from now on. */
  readonly watch: () => Promise<void>;
  /** Why the kernel's first moments are not recorded. */
  readonly late: string | undefined;
  /** Every probe. */
  readonly addresses: readonly Addr[];
  readonly connection: Connection;
  readonly engines: Engines;
  /** Tries to place the trampolines. */
  readonly arrive: () => Promise<unknown>;
  /** Functions that are called where they are loaded, before paging is on. */
  readonly loaded: CodeAsLoaded;
  /** What is missing is known: from here to now, and why. Undefined: from the machine's start. */
  readonly unrecorded: (from: GuestNanos | undefined, why: string) => Promise<void>;
  /** The time of the last event. */
  readonly time: () => GuestNanos;
}

/**
 * Before a kernel's last page table is in use, trampolines have no memory, and each probe stops the target. After some
 * hundred such stops the probes are taken out until then, so that no boot is stopped to death. Breakpoints alone can
 * do that too: QEMU goes through all of them for each piece of code that it runs.
 */
export class EarlyStops {
  readonly #options: EarlyStopsOptions;
  /** The engine's stops when the machine began. */
  #before = 0;
  #changes = 0;
  /** So many breakpoints are in the target that it is slow until its last page table is in use. */
  #isSlow = false;
  /** Probes are out, since this time; undefined: from the machine's start. */
  #out: { readonly since: GuestNanos | undefined; readonly why: string } | undefined;
  #isLateTold = false;

  constructor(options: EarlyStopsOptions) {
    this.#options = options;
  }

  /** The machine begins. Returns the probes that may stop it. */
  async begin(): Promise<readonly Addr[]> {
    const { wanted, places, isSure, addresses, engines, loaded, watch } = this.#options;
    this.#before = this.#options.connection.engine.stops;
    this.#changes = 0;
    this.#out = undefined;
    const leftOut = new Set<Addr>(engines.isInstalled ? engines.unarmed : engines.withoutStops);
    const stopping = addresses.filter((address) => !leftOut.has(address));
    if (!isSure && places.length > 0 && (await loaded.begin())) await watch();
    this.#isSlow = isSure && this.#isLimited && stopping.length > fewBreakpoints;
    if (this.#isSlow) await watch();
    const isTooMany = this.#isSlow && stopping.length > mostBreakpoints;
    if ((wanted !== 'target' && !isTooMany) || !isSure || places.length === 0) return stopping;
    this.#out = { since: undefined, why: tooEarly };
    await watch();
    return [];
  }

  /** A probe was hit. */
  async hit(): Promise<void> {
    const { late, unrecorded } = this.#options;
    if (late === undefined || this.#isLateTold) return;
    this.#isLateTold = true;
    await unrecorded(undefined, late);
  }

  /** A probe was hit, and it was too early for trampolines. */
  async tooEarly(): Promise<void> {
    const { wanted, connection, engines } = this.#options;
    if (!engines.waitsForTable || (wanted !== 'target' && !this.#isLimited)) return;
    if (wanted === 'target' || connection.engine.stops - this.#before >= mostStops) await this.takeOut();
  }

  /** How long the target may run with the probes, in milliseconds; undefined: for ever. */
  get patience(): number | undefined {
    const isWanted = this.#isSlow && this.#options.engines.waitsForTable && this.#out === undefined;
    return isWanted ? longest : undefined;
  }

  /** Until the page table has changed, no probe stops the target. */
  async takeOut(): Promise<void> {
    const { places, addresses, connection, watch, fromReset } = this.#options;
    if (this.#out || fromReset || places.length === 0) return;
    this.#out = { since: this.#options.time(), why: tooEarly };
    await connection.engine.points.disarm(addresses);
    await watch();
  }

  /** Nobody wants all of the stops. */
  get #isLimited(): boolean {
    const { wanted, fromReset, places } = this.#options;
    return wanted === 'auto' && !fromReset && places.length > 0;
  }

  /** The recording ends: the probes may still be out. */
  async end(): Promise<void> {
    await this.hit();
    await this.#reportLoaded();
    await this.#reportOut();
  }

  async #reportOut(): Promise<void> {
    if (this.#out) await this.#options.unrecorded(this.#out.since, this.#out.why);
    this.#out = undefined;
  }

  async #reportLoaded(): Promise<void> {
    const { loaded, unrecorded, places } = this.#options;
    if (places.length > 0 && (await loaded.end())) await unrecorded(undefined, notAsLinked);
  }

  /** The page table has changed. Where trampolines can be, they are placed, and breakpoints where they cannot. */
  async changed(): Promise<void> {
    const { engines, arrive } = this.#options;
    await this.#reportLoaded();
    if (!this.#out && !this.#isSlow) return;
    // Of the breakpoints some wait for trampolines, and these are not left to the first hit.
    this.#isSlow = false;
    engines.settle();
    await arrive();
    if (!this.#out) return;
    if (engines.isWaiting && ++this.#changes < mostChanges) return;
    await this.#armAgain();
  }

  /** Breakpoints where no trampolines are, or will be. */
  async #armAgain(): Promise<void> {
    const { engines, connection, addresses } = this.#options;
    await this.#reportOut();
    const withoutStops = new Set<Addr>(engines.isWaiting ? engines.withoutStops : engines.unarmed);
    await connection.engine.points.arm(addresses.filter((address) => !withoutStops.has(address)));
  }
}
