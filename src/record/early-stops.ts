import { type Addr, addOffset, hex } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import type { EngineName } from '../engines/index.js';
import { entryToCome } from '../target/index.js';
import type { GuestNanos } from '../trace/index.js';
import type { Boot } from './boot.js';
import type { Connection } from './connection.js';
import type { Parts } from './parts.js';
import { addressesOf } from './program.js';

/** Why nothing was recorded, though stops could have. */
export const tooEarly = 'the last page table was not in use yet';
/** The same, where no probe can be. */
const notAsLinked = 'the kernel ran where it is loaded, and its ELF has no code there';

/** So many stops are taken before the last page table is in use; the first calls of a boot are worth having. */
const mostStops = 500;
/** With more breakpoints a boot under QEMU hardly goes on, and a gdbserver takes minutes to insert them: none is. */
const mostBreakpoints = 1000;
/** So many cost a boot a third of its time at most. More are in the target for a limited time, in milliseconds. */
const fewBreakpoints = 100;
const longest = 1000;
/** So often the kernel may change its page table before it is the last one. Then probes stop again. */
const mostChanges = 50;

/**
 * Before a kernel's last page table is in use, trampolines have no memory, and each probe stops the target. After some
 * hundred such stops the probes are taken out until then, so that no boot is stopped to death. Breakpoints alone can
 * do that too: QEMU goes through all of them for each piece of code that it runs.
 */
export class EarlyStops {
  readonly #parts: Parts;
  readonly #boot: Boot;
  readonly #wanted: EngineName;
  readonly #addresses: readonly Addr[];
  /** Functions that are called where they are loaded, before paging is on. */
  readonly #loaded: CodeAsLoaded;
  /** The engine's stops when the machine began. */
  #before = 0;
  #changes = 0;
  /** So many breakpoints are in the target that it is slow until its last page table is in use. */
  #isSlow = false;
  /** Probes are out, since this time; undefined: from the machine's start. */
  #out: { readonly since: GuestNanos | undefined; readonly why: string } | undefined;
  #isLateTold = false;

  constructor(parts: Parts, boot: Boot) {
    const { options, target, connection } = parts;
    this.#parts = parts;
    this.#boot = boot;
    this.#wanted = options.engine ?? 'auto';
    this.#addresses = addressesOf(target.program);
    this.#loaded = new CodeAsLoaded(target.program.elf, this.#addresses, connection);
  }

  /** The machine begins. Returns the probes that may stop it. */
  async begin(): Promise<readonly Addr[]> {
    const { target, connection, engines } = this.#parts;
    // The only place says for sure, and comes late: no probe need stop before, if none may.
    const isSure = this.#settlesAt !== undefined;
    const hasPlaces = target.pagingAt.length > 0;
    this.#before = connection.engine.stops;
    this.#changes = 0;
    this.#out = undefined;
    const leftOut = new Set<Addr>(engines.isInstalled ? engines.unarmed : engines.withoutStops);
    const stopping = this.#addresses.filter((address) => !leftOut.has(address));
    if (stopping.length > mostBreakpoints && (await this.#waitsForEntry(stopping))) return [];
    if (!isSure && hasPlaces && (await this.#loaded.begin())) await this.#boot.tables.watch();
    this.#isSlow = this.#isLimited && stopping.length > fewBreakpoints;
    if (this.#isSlow) await this.#boot.tables.watch();
    const isTooMany = isSure && this.#isSlow && stopping.length > mostBreakpoints;
    if ((this.#wanted !== 'target' && !isTooMany) || !isSure || !hasPlaces) return stopping;
    this.#out = { since: undefined, why: tooEarly };
    await this.#boot.tables.watch();
    return [];
  }

  /**
   * A process that begins, and has more breakpoints than it can well have: trampolines are placed where its program is
   * entered, and breakpoints only where they cannot be. What calls into the program earlier is the loader.
   */
  async #waitsForEntry(stopping: readonly Addr[]): Promise<boolean> {
    const { options, target, connection, engines } = this.#parts;
    const { session, engine } = connection;
    if (!target.isProcess || this.#wanted === 'stop' || engines.isInstalled) return false;
    const entry = await entryToCome(session, target.program.arch.pc);
    if (entry === undefined) return false;
    options.logger?.info({ entry: hex(entry) }, 'nothing is recorded before the program is entered');
    await engine.points.intercept([entry], async () => {
      await this.#boot.firstHit(false);
      // A static program has no threads' blocks yet: its first hit comes when it has.
      const out = new Set<Addr>(engines.isWaiting ? engines.withoutStops : engines.unarmed);
      // Its code is there. Patches beside a place would be taken for other code.
      await engine.points.armNow(stopping.filter((address) => !out.has(address)));
    });
    return true;
  }

  async hit(): Promise<void> {
    const { foundLate } = this.#parts.target;
    if (foundLate === undefined || this.#isLateTold) return;
    this.#isLateTold = true;
    await this.#boot.unrecorded(undefined, foundLate);
  }

  /** A probe was hit, and it was too early for trampolines. */
  async tooEarly(): Promise<void> {
    const { connection, engines } = this.#parts;
    if (!engines.waitsForTable || (this.#wanted !== 'target' && !this.#isLimited)) return;
    if (this.#wanted === 'target' || connection.engine.stops - this.#before >= mostStops) await this.takeOut();
  }

  /** How long the target may run with the probes, in milliseconds; undefined: for ever. */
  get patience(): number | undefined {
    const isWanted = this.#isSlow && this.#parts.engines.waitsForTable && this.#out === undefined;
    return isWanted ? longest : undefined;
  }

  /** The target has run so long with the probes. If nothing says which table is the last one, this one may be it. */
  async tooSlow(): Promise<void> {
    const { engines } = this.#parts;
    if (this.#settlesAt === undefined) await this.#boot.firstHit(false);
    if (engines.waitsForTable) await this.takeOut();
  }

  /** No probe stops the target now, and any look at it may find that its page table has changed. */
  get mayLook(): boolean {
    return this.#out !== undefined && this.#settlesAt === undefined;
  }

  /** The target was interrupted: trampolines are placed if that is possible by now. */
  async look(): Promise<void> {
    await this.#boot.firstHit(false);
    if (this.#out && !this.#parts.engines.isWaiting) await this.#armAgain();
  }

  /** Until the page table has changed, no probe stops the target. */
  async takeOut(): Promise<void> {
    const { options, target, connection, tracers } = this.#parts;
    if (this.#out || options.fromReset || target.pagingAt.length === 0) return;
    this.#out = { since: tracers.output.time, why: tooEarly };
    await connection.engine.points.disarm(this.#addresses);
    await this.#boot.tables.watch();
  }

  /** The place that says for sure when the last page table is in use, if that is to come. */
  get #settlesAt(): Addr | undefined {
    return this.#parts.engines.isSettled ? undefined : this.#parts.target.settlesAt;
  }

  /** Nobody wants all of the stops. */
  get #isLimited(): boolean {
    const { options, target } = this.#parts;
    return this.#wanted === 'auto' && !options.fromReset && target.pagingAt.length > 0;
  }

  /** The recording ends: the probes may still be out. */
  async end(): Promise<void> {
    await this.hit();
    await this.#reportLoaded();
    await this.#reportOut();
  }

  async #reportOut(): Promise<void> {
    if (this.#out) await this.#boot.unrecorded(this.#out.since, this.#out.why);
    this.#out = undefined;
  }

  async #reportLoaded(): Promise<void> {
    const hasPlaces = this.#parts.target.pagingAt.length > 0;
    if (hasPlaces && (await this.#loaded.end())) await this.#boot.unrecorded(undefined, notAsLinked);
  }

  /** The page table has changed. Where trampolines can be, they are placed, and breakpoints where they cannot. */
  async changed(): Promise<void> {
    const { engines } = this.#parts;
    await this.#reportLoaded();
    if (!this.#out && !this.#isSlow) return;
    // Of the breakpoints some wait for trampolines, and these are not left to the first hit.
    this.#isSlow = this.#settlesAt === undefined;
    engines.settle();
    await this.#boot.firstHit(false);
    if (!this.#out) return;
    if (engines.isWaiting && ++this.#changes < mostChanges) return;
    await this.#armAgain();
  }

  /** Breakpoints where no trampolines are, or will be. */
  async #armAgain(): Promise<void> {
    const { engines, connection } = this.#parts;
    await this.#reportOut();
    const withoutStops = new Set<Addr>(engines.isWaiting ? engines.withoutStops : engines.unarmed);
    await connection.engine.points.arm(this.#addresses.filter((address) => !withoutStops.has(address)));
  }
}

const PT_LOAD = 1;
/** So many bytes of a function's begin tell it from other code. */
const compared = 16;

/**
 * A kernel that is linked elsewhere than it is loaded runs its first code where it was loaded. No probe sees that code.
 * One stop at the first of its functions that is called there says that something is missing.
 */
class CodeAsLoaded {
  readonly #elf: ElfFile;
  readonly #connection: Connection;
  /** Where probes' functions are loaded, and where they are linked. */
  readonly #linked: ReadonlyMap<Addr, Addr>;
  #hasRun = false;

  /** `probes`: every probe. */
  constructor(elf: ElfFile, probes: readonly Addr[], connection: Connection) {
    this.#elf = elf;
    this.#connection = connection;
    const moved = elf.segments.filter(({ type, address, physical }) => type === PT_LOAD && address !== physical);
    this.#linked = new Map(
      probes.flatMap((probe) => {
        const segment = moved.find(({ address, fileSize }) => probe >= address && probe < addOffset(address, fileSize));
        return segment ? [[addOffset(segment.physical, probe - segment.address), probe]] : [];
      }),
    );
  }

  /** The machine begins. Returns whether there is anything to wait for. */
  async begin(): Promise<boolean> {
    this.#hasRun = false;
    if (this.#linked.size === 0) return false;
    await this.#connection.engine.points.intercept([...this.#linked.keys()], (_, at) => this.#reached(at));
    return true;
  }

  /** The code runs where it is linked now. Returns true if some of it has run before. */
  async end(): Promise<boolean> {
    const { session, engine } = this.#connection;
    if (session.state.kind === 'idle') await engine.points.release([...this.#linked.keys()]);
    const hasRun = this.#hasRun;
    this.#hasRun = false;
    return hasRun;
  }

  /** Firmware may have other code there. */
  async #reached(at: Addr): Promise<void> {
    const linked = this.#linked.get(at);
    const expected = linked && this.#elf.bytesAt(linked, compared);
    const found = await this.#connection.session.memory().read(at, compared);
    this.#hasRun ||= expected !== undefined && found !== undefined && Buffer.compare(expected, found) === 0;
  }
}
