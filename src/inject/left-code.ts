// What a target is left as: whether code of ours can still run there, and how open calls come past it.
import { controlBlock, type ProbeCode } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { madeOnce } from '../base/made-once.js';
import { firstWhere } from '../base/search.js';
import type { ElfFile } from '../elf/index.js';
import { type Breakpoint, registerOf, type Session, type StandingMemory, standingMemory } from '../rsp/index.js';
import { accessTo, PAGE, type Region } from '../scratch/index.js';
import type { ControlWords } from './control-words.js';
import type { DrainedRecords } from './drained-records.js';
import { interruptedInside } from './interrupted.js';
import { runForMoment, stepOut } from './leave-patches.js';
import { leadPast, type SearchedRam } from './open-returns.js';
import type { Patches } from './patches.js';
import type { Placement } from './placement.js';
import { inOrder, type RingReader, unattended, type Write } from './ring.js';
import type { RingDrain } from './ring-drain.js';
import type { TargetEngineOptions } from './target-engine-options.js';
import type { TrampolineLayout } from './trampoline-layout.js';
import { controlWord, writeAll, writeChecked, writeData } from './transfers.js';

/** Bytes that are written at once. */
const mostErased = 1 << 20;

/**
 * When a recording ends, its open calls may take twice this time to end, in milliseconds. The target runs for times
 * that double.
 */
const longestMoment = 512;

/** The longest of the runs in which a hart may finish its record, in milliseconds. Each is twice the one before. */
const longestWrite = 8;

/** A trampoline has fewer instructions, and does not wait any more. */
const mostStepsOut = 1000;

interface LeftCodeParts {
  readonly options: TargetEngineOptions;
  readonly layout: TrampolineLayout;
  readonly patches: Patches;
  readonly ring: RingReader;
  readonly control: ControlWords;
  readonly drained: DrainedRecords;
  readonly drain: RingDrain;
}

/** Our code in the target after its patches are removed. */
export class LeftCode {
  readonly #parts: LeftCodeParts;

  constructor(parts: LeftCodeParts) {
    this.#parts = parts;
  }

  /** A hart that stands in the middle of writing a record gets a moment to finish it. The patches are removed. */
  async letWritersFinish(): Promise<void> {
    const { session } = this.#parts.options;
    for (
      let moment = 1;
      this.#parts.ring.waits && moment <= longestWrite && session.state.kind === 'idle';
      moment *= 2
    ) {
      // Nobody answers a stop any more.
      await session.clearBreakpoints();
      await runForMoment(session, moment);
      if (session.state.kind === 'idle') await this.#parts.drain.stopped({ last: true });
    }
  }

  /**
   * Whether no hart is in a trampoline and no call will return through one, so that no code of ours can run any more.
   * The patches are removed.
   */
  async idle(): Promise<boolean> {
    if (this.#parts.drained.openCalls !== 0 || (await this.#isUnknown())) return false;
    return !(await this.#isInside());
  }

  /** Nobody will find out which calls are open: jumps were left, or records are missing. */
  async #isUnknown(): Promise<boolean> {
    return this.#parts.patches.stays || (await this.dropped()) > 0;
  }

  /**
   * Like {@link idle}, but first open calls get some time to end. They write their last records, which are read.
   * `longest`: the longest of these runs in milliseconds; each is twice the one before. Where only harts may come out of
   * a trampoline, they are short.
   */
  async becomesIdle(longest = longestMoment): Promise<boolean> {
    const { session } = this.#parts.options;
    for (let moment = 1; !(await this.idle()); moment *= 2) {
      if (moment > longest || (moment > longestWrite && (await this.#isUnknown()))) {
        await writeAll(session, [unattended(this.#parts.control.address, true)]);
        return false;
      }
      // Makes room for the last records, and lets their writers wait for it.
      await this.#parts.drain.stopped({ all: true, last: true });
      await runForMoment(session, moment);
      if (session.state.kind !== 'idle') return false;
      await this.#parts.drain.stopped({ all: true, last: true });
    }
    return true;
  }

  /**
   * For calls of a machine that are still open: they return past the trampolines from now on, see {@link leadPast}.
   * If a hart is in a trampoline, which may hook one more return, the target runs for moments. If it `staysHere`, that
   * hart alone is stepped out.
   * @returns false if calls may still return through trampolines
   */
  async leadPast(elf: ElfFile, ram: SearchedRam, staysHere = false): Promise<boolean> {
    const { session, scratch, arch } = this.#parts.options;
    const { placement } = this.#parts.layout;
    const options = {
      ...this.#parts.options,
      elf,
      ram,
      placement,
      ours: [scratch.code, scratch.data],
    };
    for (let moment = 1; await leadPast(options); moment *= 2) {
      if (!(await this.#isInside())) return true;
      if (moment > longestWrite) return false;
      // Nobody answers a stop any more.
      await session.clearBreakpoints();
      // One that does not come out is inside still.
      if (staysHere) await stepOut(session, arch, (pc) => holdsCode(placement, pc), mostStepsOut);
      else await runForMoment(session, moment);
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
    const { session, code } = this.#parts.options;
    return (await writeChecked(session, bareExits(this.#parts.layout.placement, code))) === undefined;
  }

  /** Whether a hart is in code of ours, or code interrupted by a handler or signal would resume there. */
  async #isInside(): Promise<boolean> {
    const { session, arch } = this.#parts.options;
    for (const { id } of await session.harts()) {
      const pc = await registerOf(session, arch.pc, id);
      if (pc === undefined || holdsCode(this.#parts.layout.placement, pc)) return true;
    }
    // An exit trampoline's own address is a return address, or was one.
    const starts = [...this.#parts.layout.placement.hooks.keys()].sort((a, b) => (a < b ? -1 : 1));
    const pieces = this.#parts.layout.placement.ranges.flatMap(({ address, length }) => {
      const end = addOffset(address, length);
      const cuts = [address as bigint, ...starts.filter((exit) => exit > address && exit < end), end as bigint];
      return cuts.slice(1).map((to, i) => ({ address: addr(cuts[i] ?? to), length: Number(to - (cuts[i] ?? to)) }));
    });
    return (await interruptedInside(session, arch, pieces, this.#parts.options)).size > 0;
  }

  /**
   * Writes zeros over the records, at a stop when all are read. A search of the target's memory for what leads to an
   * object must not find it in them. If no code of ours can run any more, what trampolines keep is erased too.
   */
  async erase(isIdle: boolean): Promise<void> {
    const { address } = isIdle ? this.#parts.layout.notes : this.#parts.layout.memory;
    let left = Number(this.#parts.layout.memory.address - address) + this.#parts.ring.touched;
    for (let at = address; left > 0; at = addOffset(at, mostErased), left -= mostErased) {
      await writeData(this.#parts.options, [{ address: at, bytes: new Uint8Array(Math.min(left, mostErased)) }]);
    }
  }

  /** Records that were dropped because the ring was not drained in time. */
  async dropped(): Promise<number> {
    return controlWord(this.#parts.options, controlBlock.dropped);
  }
}

/** True for an address in a trampoline. */
export function holdsCode({ ranges }: Placement, pc: bigint): boolean {
  return ranges.some(({ address, length }) => within(addr(pc), address, length));
}

export function within(address: Addr, start: Addr, length: number): boolean {
  return address >= start && address < addOffset(start, length);
}

/** From now on open calls return without a record. */
export function bareExits({ hooks }: Placement, code: ProbeCode): readonly Write[] {
  const known = new Map<number, Uint8Array>();
  return [...hooks].map(([exit, { offset, size }]) => {
    return { address: addr(exit), bytes: madeOnce(known, (offset << 16) | size, () => code.bareExit(offset, size)) };
  });
}

/**
 * Removes from a forked child what it has inherited. Its patched functions get their bytes back, no others. Its open
 * calls return without a record, because the ring belongs to its parent too. Both processes are stopped. What cannot be
 * written is left as it is, because then the child is gone. Packets take a thousand times as long as the fork.
 */
export async function cleanChild(
  session: Session,
  child: string,
  { originals }: Pick<Patches, 'originals'>,
  exits: readonly Write[],
): Promise<boolean> {
  const stops = inOrder(session.breakpoints);
  const all = [...originals, ...exits];
  const free = inOrder(all).filter(({ address, bytes }) => {
    const next = stops[firstWhere(stops.length, (index) => (stops[index] as Breakpoint).address >= address)];
    return next === undefined || next.address >= addOffset(address, bytes.length);
  });
  const [first] = free;
  using here = first && (await standingMemory(session, first.address, child));
  const written = new Set([...nearby(free)].flatMap((group) => (here && writeInto(here, group) ? group : [])));
  const batch = session.batch(child);
  const writes = all
    .filter((write) => !written.has(write))
    .map((write) => batch.writeMemory(write.address, write.bytes));
  await batch.send();
  return writes.every(({ value }) => value);
}

/** In order of memory: those that are written at once, with what lies between them. */
function* nearby(sorted: readonly Write[]): Generator<readonly Write[]> {
  let group: Write[] = [];
  for (const write of sorted) {
    const [first = write, last = write] = [group[0], group.at(-1)];
    if (write.address - last.address > PAGE || write.address - first.address > mostErased) {
      yield group;
      group = [];
    }
    group.push(write);
  }
  yield group;
}

function writeInto(memory: StandingMemory, group: readonly Write[]): boolean {
  const [first, last] = [group[0], group.at(-1)];
  if (!first || !last) return true;
  const bytes = memory.read(first.address, Number(last.address - first.address) + last.bytes.length);
  for (const write of group) bytes?.set(write.bytes, Number(write.address - first.address));
  return bytes !== undefined && memory.write(first.address, bytes);
}

/**
 * After a reset: clears code of ours that is still behind the program's text, so that the slack there is found empty
 * again.
 */
export async function clearSlack(session: Session, slack: Region, code: readonly Write[]): Promise<void> {
  const access = await accessTo(session, slack);
  for (const { address, bytes } of code) {
    const at = Number(address - slack.address);
    if (at < 0 || at + bytes.length > slack.size) continue;
    const now = await access.read(at, bytes.length);
    if (now && Buffer.compare(now, bytes) === 0) await access.write(at, new Uint8Array(bytes.length));
  }
}
