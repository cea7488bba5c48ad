import { controlBlock, type HookFrame, looksAtOnce } from '../arch/index.js';
import { type Addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, partOf, silent } from '../base/logger.js';
import { retry } from '../rsp/index.js';
import type { LetRun } from '../target/index.js';
import { Backlog } from './backlog.js';
import { ControlWords } from './control-words.js';
import { DrainedRecords } from './drained-records.js';
import { holdsCode, LeftCode, within } from './left-code.js';
import { LoggedRecords } from './logged-records.js';
import { Patches } from './patches.js';
import type { Placement } from './placement.js';
import { RecordDispatcher } from './record-dispatcher.js';
import { slotReader } from './record-format.js';
import { RingReader, unattended, type Write } from './ring.js';
import { RingDrain, type StoppedRead } from './ring-drain.js';
import type { Site } from './sites.js';
import { type CountedWords, TargetCounters } from './target-counters.js';
import type { TargetEngineOptions } from './target-engine-options.js';
import { layOutTrampolines, type TrampolineLayout } from './trampoline-layout.js';
import { joined, writeAll, writeChecked } from './transfers.js';
import { WaitLease } from './wait-lease.js';

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
 * The engine that does not stop the target. Trampolines follow the read plans and write records into a ring in the
 * target's memory. The client reads the ring: out of shared memory while the target runs, or at the stops that a full
 * ring makes. A record answers what a tracer would ask for at a stop, so both engines emit the same events.
 */
export class TargetEngine {
  readonly #options: TargetEngineOptions;
  readonly #logger: Logger;
  readonly #layout: TrampolineLayout;
  readonly patches: Patches;
  readonly #ring: RingReader;
  readonly #control: ControlWords;
  readonly #counters: TargetCounters;
  /** What was read out of the ring, and waits to be digested. */
  readonly drained: DrainedRecords;
  readonly #drain: RingDrain;
  /** What stays in the target when it is left. */
  readonly left: LeftCode;

  /** @throws RsptraceError `SCRATCH_UNUSABLE` */
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
    this.patches = new Patches(options.session, options.arch, placed.patches, this.#logger, options.chained);
    this.#ring = new RingReader(layout.ring, slotReader(options.isOneHart, insideIds(options.sites)));
    const sites = placed.patches.map(({ site }) => site);
    const slot = 2 ** slotShift;
    const queue = options.log ? new LoggedRecords(options.log, slot, this.#logger) : new Backlog();
    const dispatcher = new RecordDispatcher(options, sites);
    this.drained = new DrainedRecords(dispatcher, queue, slot, this.#logger, options.log?.isTrace);
    const parts = { options, ring: this.#ring, control: this.#control, drained: this.drained };
    const { breakpoint } = this;
    this.#drain = new RingDrain({ ...parts, memory: layout.memory, breakpoint, counters: this.#counters });
    this.left = new LeftCode({ ...parts, layout, patches: this.patches, drain: this.#drain });
  }

  /** By index: why sites that could be patched have no trampoline after all. */
  get refused(): ReadonlyMap<number, string> {
    return this.#layout.placement.refused;
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
    const sites = new Set(this.patches.planted);
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

  /** How often the target found no room and waited. A ring with a breakpoint stops it instead, with its clock. */
  get ringFull(): number {
    return this.breakpoint === undefined ? this.#ring.counts.full : 0;
  }

  /** Ticks of the records' counter that its writers waited, all together; 0 where a full ring stops the target. */
  get waitedTicks(): number {
    return this.breakpoint === undefined ? this.#control.waited : 0;
  }

  /** True for an address in a trampoline. */
  holds(pc: bigint): boolean {
    return holdsCode(this.#layout.placement, pc);
  }

  /**
   * Writes the trampolines and the ring, and reads them back. The target is stopped, or runs on between two portions.
   * @throws RsptraceError `SCRATCH_UNUSABLE`
   */
  async write(letRun?: LetRun): Promise<void> {
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
    const lost = await writeChecked(this.#options.session, writes, letRun);
    if (lost) {
      throw new RsptraceError(
        'SCRATCH_UNUSABLE',
        `the scratch memory at ${hex(lost.address)} does not keep what is written`,
        {
          hint: 'is it RAM, and mapped? --engine stop needs none',
        },
      );
    }
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
    this.#drain.renew(now);
  }

  /** See {@link RingDrain.live}. */
  drainLive(stopped?: StoppedRead): boolean {
    return this.#drain.live(stopped);
  }

  /** Reads the ring while the target is stopped. What is read waits for {@link digest}. */
  async drainStopped(how: StoppedRead = {}): Promise<void> {
    if (this.patches.planted.length > 0) await this.#drain.stopped(how);
  }

  /**
   * The last records were drained: those that are still held follow. They all wait for {@link digest}. Returns how many
   * records are missing: claimed and never committed, or not kept.
   */
  finish(): number {
    const missing = this.#ring.finish((...slots) => this.drained.add(...slots));
    this.drained.queue.settle();
    return missing + this.drained.lost;
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
    if (this.patches.planted.length === 0) return [];
    const { session } = this.#options;
    const foreign = await this.patches.remove();
    if (session.state.kind !== 'idle') return [];
    await retry(session, () => writeAll(session, [unattended(this.#control.address, true)]));
    return foreign;
  }

  /** At a stop: reads what is left, and removes the patches even if the reading failed. */
  async leave(): Promise<void> {
    const read = (): Promise<void> => this.drainStopped({ last: true });
    await retry(this.#options.session, read).finally(() => this.remove());
    await this.left.letWritersFinish();
  }
}

/** Of records that begin and end no call. */
function insideIds(sites: readonly Site[]): ReadonlySet<number> {
  return new Set(sites.flatMap(({ plan, index }) => (plan.inside || !plan.seesReturn ? [2 * index] : [])));
}

function tooSmall(bytes: number): RsptraceError {
  return new RsptraceError('SCRATCH_UNUSABLE', `${bytes} bytes of scratch memory are no room for a ring`, {
    hint: 'give at least 4 KiB for data, and about 300 bytes a probe for code',
  });
}
