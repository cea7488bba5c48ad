import { type Architecture, controlBlock, type HookFrame, looksAtOnce, type ProbeCode } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, partOf, silent } from '../base/logger.js';
import type { CallTracer } from '../calls/index.js';
import type { ElfFile } from '../elf/index.js';
import { type Batch, type Reply, retry, type Session } from '../rsp/index.js';
import type { Region, Scratch } from '../scratch/index.js';
import { Backlog } from './backlog.js';
import { ControlWords } from './control-words.js';
import { DrainedRecords } from './drained-records.js';
import { interruptedInside } from './interrupted.js';
import { runForMoment } from './leave-patches.js';
import { LoggedRecords } from './logged-records.js';
import { leadPast, type SearchedRam } from './open-returns.js';
import { Patches } from './patches.js';
import type { Placement } from './placement.js';
import type { RawLog } from './raw-log.js';
import { RecordDispatcher, type RecordTime } from './record-dispatcher.js';
import { slotReader } from './record-format.js';
import { type Piece, RingReader, unattended, type Write } from './ring.js';
import type { Site } from './sites.js';
import { type CountedWords, TargetCounters } from './target-counters.js';
import { layOutTrampolines, type TrampolineLayout } from './trampoline-layout.js';
import { controlWord, joined, lostRing, queue, readRing, writeAll, writeChecked, writeData } from './transfers.js';
import { WaitLease, type WaitLimit } from './wait-lease.js';

/** Bytes of zeros that are sent at once. */
const mostErased = 1 << 20;

export interface TargetEngineOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly code: ProbeCode;
  readonly sites: readonly Site[];
  readonly slotShift: number;
  readonly scratch: Scratch;
  /** Bytes at the end of the scratch memory's code that trampolines must not use. */
  readonly reserved?: number;
  /** Executable zero bytes near the program's text, for hops. */
  readonly near: Region | undefined;
  readonly tracer: CallTracer;
  readonly time: RecordTime;
  /** The number of the hart that a record names. */
  readonly hartNumber: (word: bigint) => number;
  /** Records need not name their harts. */
  readonly isOneHart: boolean;
  /**
   * Polls can read the Future around them, because there is one hart only, or threads have words of their own for it.
   */
  readonly nests: boolean;
  /** Bytes from fs's base to these words. */
  readonly outerWords?: number | undefined;
  /** The program's functions keep frame pointers. */
  readonly chained?: boolean;
  /** The target gets its room at stops alone, so that no two runs differ by how fast this process reads. */
  readonly isRepeatable?: boolean;
  /** How long a process's writers may wait for room. */
  readonly waits?: WaitLimit | undefined;
  /** Where drained records wait; without it, in memory. */
  readonly log?: RawLog | undefined;
  readonly logger?: Logger;
}

/**
 * How often a full ring may stop the target and stay full before a writer gives up, unless the client has said
 * meanwhile that it lives. If the breakpoint is gone, that point is reached soon.
 */
const vainStops = 1000;
/** A writer that polls for long before each of these stops gives a client up after about this part of a second. */
const longestVain = 1 / 4;
/**
 * Bytes of a process's ring that is drained at stops. A larger ring makes each stop longer, and more is lost when the
 * target ends.
 */
const mostAtStops = 4 << 20;
/**
 * When a recording ends, its open calls may take twice this time to end, in milliseconds. The target runs for times
 * that double.
 */
const longestMoment = 512;

/** The longest of the runs in which a hart may finish its record, in milliseconds. Each is twice the one before. */
const longestWrite = 8;

/** How a ring is read at a stop. */
export interface StoppedRead {
  /** Flush every committed record, even past another hart's uncommitted slot: the next event is this stop. */
  readonly all?: boolean;
  /** The recording ends: what is read waits however much waits already, because the ring is small beside it. */
  readonly last?: boolean;
  /**
   * Writes for the target go out together with its resume. If the ring cannot be read at this stop, another stop is
   * tried.
   */
  readonly resume?: Batch | undefined;
}

/**
 * The engine that does not stop the target. Trampolines follow the read plans and write records into a ring in the
 * target's memory. The client reads the ring: out of shared memory while the target runs, or at the stops that a full
 * ring makes. A record answers what a tracer would ask for at a stop, so both engines emit the same events.
 */
export class TargetEngine {
  readonly #options: TargetEngineOptions;
  readonly #logger: Logger;
  readonly #layout: TrampolineLayout;
  readonly #patches: Patches;
  readonly #ring: RingReader;
  readonly #control: ControlWords;
  readonly #counters: TargetCounters;
  readonly #drained: DrainedRecords;
  /** What was read while the target ran gives it this room, at its next stop. */
  #owed: readonly Write[] = [];
  /** The stub's answers to the writes that went with the last resume. */
  #told: readonly Reply<boolean>[] = [];

  /** @throws RsptraceError `SCRATCH_TOO_SMALL` */
  constructor(options: TargetEngineOptions) {
    this.#options = options;
    this.#logger = partOf(options.logger ?? silent, 'inject');
    const { scratch, slotShift } = options;
    const size = scratch.shared || !scratch.calls ? scratch.data.size : Math.min(scratch.data.size, mostAtStops);
    const regions = { code: scratch.code, data: { address: scratch.data.address, size } };
    const layout = layOutTrampolines({ ...options, scratch: regions });
    if (!layout) throw tooSmall(scratch.data.size);
    const { control, placement: placed } = layout;
    this.#layout = layout;
    const { waits } = options;
    // A breakpoint ends each of a writer's waits.
    const lease = new WaitLease(waits && { ...waits, isLossless: waits.isLossless || this.breakpoint !== undefined });
    this.#control = new ControlWords(control, lease);
    this.#counters = new TargetCounters(options.session, scratch, layout.counters, placed);
    this.#patches = new Patches(options.session, options.arch, placed.patches, this.#logger, options.chained);
    this.#ring = new RingReader(layout.ring, slotReader(options.isOneHart, insideIds(options.sites)));
    const sites = placed.patches.map(({ site }) => site);
    const slot = 2 ** slotShift;
    const queue = options.log ? new LoggedRecords(options.log, slot, this.#logger) : new Backlog();
    this.#drained = new DrainedRecords(new RecordDispatcher(options, sites), queue, slot, this.#logger);
  }

  /** By index: why sites that could be patched have no trampoline after all. */
  get refused(): ReadonlyMap<number, string> {
    return this.#layout.placement.refused;
  }

  /** Sites whose functions are patched. */
  get sites(): readonly Site[] {
    return this.#patches.planted;
  }

  /** Code of ours at the exits of functions. */
  get ends(): readonly Piece[] {
    return this.#patches.ends;
  }

  /** How many functions are not patched yet (deferred). */
  get waiting(): number {
    return this.#patches.waiting;
  }

  /** Sites whose code in the target differs from the ELF: they are not patched. */
  get changed(): readonly Site[] {
    return this.#patches.changed;
  }

  /** Where a full ring stops the target; undefined if the target gets room while it runs. */
  get breakpoint(): Addr | undefined {
    const { scratch, isRepeatable = false } = this.#options;
    return scratch.shared && !isRepeatable ? undefined : this.#layout.placement.breakpoint;
  }

  get placement(): Placement {
    return this.#layout.placement;
  }

  /** Where a hart comes by that would run the instruction at an address: the patch that has displaced it, or itself. */
  passedBefore(address: Addr): Addr {
    const sites = new Set(this.sites);
    const found = this.#layout.placement.trampolines.find(
      ({ site, displaced: { start, length } }) => sites.has(site) && within(address, start, length),
    );
    return found?.displaced.start ?? address;
  }

  get records(): number {
    return this.#ring.counts.records;
  }

  /** The share of the ring that was claimed between the last two drains. */
  get filled(): number {
    return this.#ring.filled;
  }

  /** More records may be drained before some are digested. */
  get hasRoom(): boolean {
    return this.#drained.queue.room > 0;
  }

  /** How often the target found no room and waited. A ring with a breakpoint stops it instead, with its clock. */
  get ringFull(): number {
    return this.breakpoint === undefined ? this.#ring.counts.full : 0;
  }

  /** Ticks of the records' counter that its writers waited, all together; 0 where a full ring stops the target. */
  get waitedTicks(): number {
    return this.breakpoint === undefined ? this.#control.waited : 0;
  }

  /** Records that came later than their place in the order. */
  get outOfOrder(): number {
    return this.#ring.counts.outOfOrder;
  }

  /** True for an address in a trampoline. */
  holds(pc: bigint): boolean {
    return this.#layout.placement.ranges.some(({ address, length }) => within(addr(pc), address, length));
  }

  /**
   * Writes the trampolines and the ring, reads them back, and then patches the functions, see {@link Patches.plant}.
   * The target is stopped. `holdsStop`: whether a breakpoint of ours is in these bytes.
   * @throws RsptraceError `SCRATCH_NOT_WRITABLE`, `PATCH_REFUSED`; then nothing is patched
   */
  async install(holdsStop: (piece: Piece) => boolean): Promise<void> {
    const { code: probeCode } = this.#options;
    if (this.#logger.isLevelEnabled('trace')) this.#traceTrampolines();
    const waits = this.breakpoint === undefined;
    const [spins, looks] = waits ? [probeCode.spinsPerSecond, looksAtOnce] : [vainStops, 1];
    const code = joined(this.#layout.placement.code, this.#layout.placement.ranges);
    const writes = [
      ...code,
      this.#ring.control([
        { offset: controlBlock.spins, value: BigInt(spins) },
        { offset: controlBlock.looks, value: BigInt(looks) },
        ...this.#control.first,
      ]),
      ...this.#layout.placement.lists,
      ...this.#counters.zeros(),
    ];
    if (this.#layout.notes.length > 0)
      writes.push({ address: this.#layout.notes.address, bytes: new Uint8Array(this.#layout.notes.length) });
    const lost = await writeChecked(this.#options.session, writes);
    if (lost) {
      throw new RsptraceError(
        'SCRATCH_NOT_WRITABLE',
        `the scratch memory at ${hex(lost.address)} does not keep what is written`,
        {
          hint: 'is it RAM, and mapped? --engine stop needs none',
        },
      );
    }
    await this.#patches.plant(holdsStop);
  }

  #traceTrampolines(): void {
    const at = (write: Write | undefined): string | undefined => write && hex(write.address);
    for (const { site, displaced, hop, entry, exit } of this.#layout.placement.trampolines) {
      const { name: probe } = site.plan;
      const { kind: patch, length: displacedBytes } = displaced;
      const places = { hop: at(hop), entry: at(entry), exit: at(exit) };
      this.#logger.trace({ probe, address: hex(site.plan.address), patch, displacedBytes, ...places }, 'trampoline');
    }
  }

  /** Patches deferred functions, see {@link Patches.plant}. */
  async patchWaiting(holdsStop: (piece: Piece) => boolean): Promise<readonly Site[]> {
    return this.#patches.plant(holdsStop);
  }

  /**
   * How often a writer polls a full ring before its breakpoint stops the target. Takes effect at the next
   * {@link drainStopped}.
   */
  set looks(looks: number) {
    const polls = this.#options.code.spinsPerSecond * looksAtOnce * longestVain;
    this.#control.waits = { looks, spins: looks === 1 ? vainStops : Math.ceil(polls / looks) };
  }

  /** Says to writers that this client lives, if it is time to, or `now`. */
  renew(now = false): void {
    const { shared, data } = this.#options.scratch;
    if (!shared || this.breakpoint !== undefined) return;
    for (const { address, bytes } of this.#control.renewed(now)) shared.write(Number(address - data.address), bytes);
  }

  /**
   * Reads the ring out of shared memory.
   * @param stopped the target does not run; its `all`: see {@link RingReader.accept}; `last`: also if too much waits to
   * be digested
   * @returns true if there is more
   */
  drainLive(stopped?: StoppedRead): boolean {
    const { all = false, last = false } = stopped ?? {};
    const { shared, data } = this.#options.scratch;
    const { queue } = this.#drained;
    this.renew();
    // A part at a time, so that the guest gets room soon: a writer that waits for long gives us up.
    const room = Math.max(queue.room, last ? 1 : 0);
    if (!shared || room === 0) return false;
    const { next } = this.#ring;
    const at = (address: Addr): number => Number(address - data.address);
    shared.read(0, this.#control.bytes);
    if (shared.endsWithTarget) this.#counters.readShared();
    const pieces = this.#ring.wanted(this.#control.head, room);
    const read = pieces.map(({ address, length }) => {
      const bytes = queue.open(length);
      shared.read(at(address), bytes);
      return bytes;
    });
    this.#owed = [...this.#owed, ...this.#accept(read, all)];
    for (const bytes of read) queue.close(bytes);
    if (this.breakpoint === undefined || stopped) {
      for (const { address, bytes } of this.#owed) shared.write(at(address), bytes);
      this.#owed = [];
    }
    return this.#ring.next > next && this.#ring.hasMore;
  }

  /** Reads the ring while the target is stopped. What is read waits for {@link digest}. */
  async drainStopped(how: StoppedRead = {}): Promise<void> {
    if (this.#patches.planted.length === 0) return;
    await this.#drainStopped(how);
  }

  async #drainStopped({ all = false, last = false, resume }: StoppedRead): Promise<void> {
    const { session, scratch } = this.#options;
    if (scratch.shared) {
      while (this.drainLive({ all, last }) || !(last || this.hasRoom)) if (!this.hasRoom) this.digestAll();
      return;
    }
    const read = await readRing({ session, scratch, memory: this.#layout.memory }, (head) => {
      this.#control.bytes.set(head);
      return this.#ring.wanted(this.#control.head);
    });
    // Outside the kernel, the hart may be unable to see the kernel's memory.
    if (!read && resume) return;
    if (!read || this.#told.some((reply) => !reply.value)) throw lostRing(this.#control.address);
    const writes = this.#accept(read, all);
    this.#told = resume ? queue(resume, writes) : [];
    const written = resume ? true : writeAll(session, writes);
    // If the digesting throws, nobody waits for this promise.
    if (written !== true) written.catch(() => {});
    // While the stub works on the writes.
    if (!last && !this.hasRoom) this.digestAll();
    if (!(await written)) throw lostRing(this.#control.address);
    await this.#counters.read();
  }

  /**
   * Digests drained records for about this many milliseconds.
   * @returns true while there is more
   */
  digest(budgetMs: number): boolean {
    return this.#drained.digest(budgetMs);
  }

  /** See {@link DrainedRecords.digestAll}. */
  digestAll(): void {
    this.#drained.digestAll();
  }

  /** How long records were digested, in milliseconds. */
  get digestedMs(): number {
    return this.#drained.digestedMs;
  }

  /** How much of that the target stood for. */
  get heldMs(): number {
    return this.#drained.heldMs;
  }

  /** Drained records that were not digested yet. */
  get undigested(): number {
    return this.#drained.queue.bytes / 2 ** this.#options.slotShift;
  }

  /** See {@link DrainedRecords.whenDigested}. */
  whenDigested(tell: () => void): void {
    this.#drained.whenDigested(tell);
  }

  get isEnough(): boolean {
    return this.#drained.isEnough;
  }

  /** The rest of the drained records is not wanted. */
  enough(): void {
    this.#drained.enough();
  }

  /**
   * The last records were drained: those that are still held follow. They all wait for {@link digest}. Returns how many
   * slots were claimed and never committed.
   */
  finish(): number {
    const missing = this.#ring.finish(this.#drained.add);
    this.#drained.queue.settle();
    return missing;
  }

  /** What the counters in the target have counted: now, or at the last stop. */
  async counted(reachable: boolean): Promise<readonly CountedWords[]> {
    if (reachable) await this.#counters.read();
    return this.#counters.all();
  }

  /** The return address that an exit trampoline's address stands for. */
  hooked(returnAddress: bigint): HookFrame | undefined {
    return this.#layout.placement.hooks.get(returnAddress);
  }

  /**
   * Removes the patches, at a stop. Trampolines stay, because open calls return through them. They do no harm.
   * @returns functions whose code the target had changed meanwhile, and that were left alone
   */
  async remove(): Promise<readonly Site[]> {
    if (this.#patches.planted.length === 0) return [];
    const { session } = this.#options;
    const foreign = await this.#patches.remove();
    if (session.state.kind !== 'idle') return [];
    await retry(session, () => writeAll(session, [unattended(this.#control.address, true)]));
    return foreign;
  }

  /** At a stop: reads what is left, and removes the patches even if the reading failed. */
  async leave(): Promise<void> {
    const read = (): Promise<void> => this.drainStopped({ last: true });
    await retry(this.#options.session, read).finally(() => this.remove());
    await this.#letWritersFinish();
  }

  /** A hart that stands in the middle of writing a record gets a moment to finish it. The patches are removed. */
  async #letWritersFinish(): Promise<void> {
    const { session } = this.#options;
    for (let moment = 1; this.#ring.waits && moment <= longestWrite && session.state.kind === 'idle'; moment *= 2) {
      // Nobody answers a stop any more.
      await session.clearBreakpoints();
      await runForMoment(session, moment);
      if (session.state.kind === 'idle') await this.#drainStopped({ last: true });
    }
  }

  /**
   * Whether no hart is in a trampoline and no call will return through one, so that no code of ours can run any more.
   * The patches are removed.
   */
  async idle(): Promise<boolean> {
    if (this.#patches.stays || this.#drained.openCalls !== 0 || (await this.dropped()) > 0) return false;
    return !(await this.#isInside());
  }

  /**
   * Like {@link idle}, but first open calls get some time to end. They write their last records, which are read.
   * `longest`: the longest of these runs in milliseconds; each is twice the one before.
   */
  async becomesIdle(longest = longestMoment): Promise<boolean> {
    const { session } = this.#options;
    for (let moment = 1; !(await this.idle()); moment *= 2) {
      if (moment > longest) {
        await writeAll(session, [unattended(this.#control.address, true)]);
        return false;
      }
      // Makes room for the last records, and lets their writers wait for it.
      await this.#drainStopped({ all: true, last: true });
      await runForMoment(session, moment);
      if (session.state.kind !== 'idle') return false;
      await this.#drainStopped({ all: true, last: true });
    }
    return true;
  }

  /**
   * For calls of a machine that are still open: they return past the trampolines from now on, see {@link leadPast}.
   * If a hart is in a trampoline, which may hook one more return, the target runs for moments. Not if it stays where it
   * stands.
   * @returns false if calls may still return through trampolines
   */
  async leadPast(elf: ElfFile, ram: SearchedRam, staysHere = false): Promise<boolean> {
    const { session, scratch } = this.#options;
    const options = { ...this.#options, elf, ram, placement: this.placement, ours: [scratch.code, scratch.data] };
    for (let moment = 1; await leadPast(options); moment *= 2) {
      if (!(await this.#isInside())) return true;
      if (staysHere || moment > longestWrite) return false;
      // Nobody answers a stop any more.
      await session.clearBreakpoints();
      await runForMoment(session, moment);
      if (session.state.kind !== 'idle') return true;
    }
    return false;
  }

  /**
   * For calls that are still open: they return without a record from now on. Only their trampolines' code stays.
   * @returns false if a hart is in the middle of that code, or if the code cannot be written
   */
  async mute(): Promise<boolean> {
    if (await this.#isInside()) return false;
    const { session, code } = this.#options;
    const batch = session.batch();
    const writes = [...this.#layout.placement.hooks].map(([exit, { offset, size }]) =>
      batch.writeMemory(addr(exit), code.bareExit(offset, size)),
    );
    await batch.send();
    return writes.every(({ value }) => value);
  }

  /** Whether a hart is in code of ours, or code interrupted by a handler or signal would resume there. */
  async #isInside(): Promise<boolean> {
    const { session, arch } = this.#options;
    for (const { id } of await session.harts()) {
      const batch = session.batch(id);
      const pc = batch.readRegister(arch.pc);
      await batch.send();
      if (pc.value === undefined || this.holds(pc.value)) return true;
    }
    // An exit trampoline's own address is a return address, or was one.
    const starts = [...this.#layout.placement.hooks.keys()].sort((a, b) => (a < b ? -1 : 1));
    const pieces = this.#layout.placement.ranges.flatMap(({ address, length }) => {
      const end = addOffset(address, length);
      const cuts = [address as bigint, ...starts.filter((exit) => exit > address && exit < end), end as bigint];
      return cuts.slice(1).map((to, i) => ({ address: addr(cuts[i] ?? to), length: Number(to - (cuts[i] ?? to)) }));
    });
    return (await interruptedInside(session, arch, pieces, this.#options.chained)).size > 0;
  }

  /**
   * Writes zeros over the records, at a stop when all are read. A search of the target's memory for what leads to an
   * object must not find it in them. If no code of ours can run any more, what trampolines keep is erased too.
   */
  async erase(isIdle: boolean): Promise<void> {
    const { address } = isIdle ? this.#layout.notes : this.#layout.memory;
    let left = Number(this.#layout.memory.address - address) + this.#ring.touched;
    for (let at = address; left > 0; at = addOffset(at, mostErased), left -= mostErased) {
      await writeData(this.#options, [{ address: at, bytes: new Uint8Array(Math.min(left, mostErased)) }]);
    }
  }

  /** Records that were dropped because the ring was not drained in time. */
  async dropped(): Promise<number> {
    return controlWord(this.#options, controlBlock.dropped);
  }

  /** The writes for the target. */
  #accept(read: readonly Uint8Array[], all: boolean): readonly Write[] {
    const writes = this.#ring.accept(read, this.#drained.add, all);
    // What has left the ring is safe before the target may overwrite it.
    this.#drained.queue.settle();
    const renewed = this.breakpoint === undefined ? [] : this.#control.renewed(true);
    return [...writes, ...this.#control.answer(), ...renewed];
  }
}

/** Of records that begin and end no call. */
function insideIds(sites: readonly Site[]): ReadonlySet<number> {
  return new Set(sites.flatMap(({ plan, index }) => (plan.inside || !plan.seesReturn ? [2 * index] : [])));
}

function within(address: Addr, start: Addr, length: number): boolean {
  return address >= start && address < addOffset(start, length);
}

function tooSmall(bytes: number): RsptraceError {
  return new RsptraceError('SCRATCH_TOO_SMALL', `${bytes} bytes of scratch memory are no room for a ring`, {
    hint: 'give at least 4 KiB for data, and about 300 bytes a probe for code',
  });
}
