/*
 * A process of this machine, copied while it runs, from /proc: nothing stops it, no signal or breakpoint is involved.
 * It is copied twice. What is the same in both copies stood still between them, so each part of it was there at the
 * same time. The registers are those of threads that waited in the kernel meanwhile, as far as Linux has them: enough
 * to walk their stacks.
 */
import type { Architecture } from '../arch/index.js';
import { mostCopied, type Region, type Snapshot, takeSnapshot, writableRegions } from '../async/tasks/index.js';
import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { textOf } from '../base/proc.js';
import type { ElfFile } from '../elf/index.js';
import {
  CopyRoom,
  type Libraries,
  librariesOfProcess,
  memoryOfProcess,
  parseMaps,
  threadsOf,
} from '../target/index.js';
import { isSeen } from '../target/stacks/index.js';
import { Stacks } from '../target/unwind/index.js';
import { type CopyOptions, clipped, constantsOf, isSearched, processRegions, type TargetCopy } from './task-copy.js';
import type { Understood } from './views.js';

/** A copy, and what in it can be relied on. */
export interface RunningCopy extends TargetCopy {
  readonly threads: number;
  /** How many of them ran, so that their stacks are not known. */
  readonly running: number;
  /** How many there are of which Linux does not say where they are. */
  readonly unseen: number;
  /** Whether these bytes stood still while they were copied. */
  stood(address: Addr, length: number): Promise<boolean>;
}

export class RunningProcess {
  readonly #pid: number;
  readonly #elf: ElfFile;
  readonly #options: CopyOptions;
  /** The last stack pointer of each thread: a thread that runs has its stack there. */
  readonly #tops = new Map<number, Addr>();
  #rooms: readonly [CopyRoom, CopyRoom] = [new CopyRoom(0), new CopyRoom(0)];
  #roomBytes = 0;
  #stacks: { readonly key: string; readonly stacks: Stacks } | undefined;

  /** `elf`: as it is loaded there. */
  constructor(pid: number, elf: ElfFile, options: CopyOptions) {
    this.#pid = pid;
    this.#elf = elf;
    this.#options = options;
  }

  /**
   * That the process runs this program.
   * @throws RsptraceError `PROGRAM_NOT_SEEN`, `ATTACH_NO_PROCESS`, `GDBSERVER_FAILED`
   */
  async verify(): Promise<void> {
    using memory = memoryOfProcess(this.#pid);
    if (memory === undefined) throw unreadable(this.#pid);
    if (await isSeen(this.#elf, memory)) return;
    throw new RsptraceError('PROGRAM_NOT_SEEN', `process ${this.#pid} does not have ${this.#elf.path} in its memory`, {
      hint: 'leave the ELF out: it is the one that the process runs then. A build of another day is another program',
    });
  }

  /**
   * What was copied before is overwritten.
   * @throws RsptraceError `ATTACH_NO_PROCESS` if it has ended, `GDBSERVER_FAILED`
   */
  async copy(): Promise<RunningCopy> {
    const { arch, scan = [] } = this.#options;
    const before = threadsOf(this.#pid);
    const text = textOf(`/proc/${this.#pid}/maps`);
    for (const [id, thread] of before) if (typeof thread === 'object') this.#tops.set(id, thread.sp);
    for (const id of this.#tops.keys()) if (!before.has(id)) this.#tops.delete(id);
    const { regions, heaps, stacks, dead } = processParts(text, before, this.#tops);
    const all = clipped([...writableRegions(this.#elf), ...scan, ...regions], dead);
    const [first, second] = await this.#twice(all);
    const after = threadsOf(this.#pid);
    const registers = [...before].flatMap(([id, thread]) => {
      const later = after.get(id);
      const hasWaited = typeof thread === 'object' && typeof later === 'object' && later.moment === thread.moment;
      return hasWaited ? [registersOf(thread, arch)] : [];
    });
    const unseen = [...before.values()].filter((thread) => thread === 'unseen').length;
    return {
      ...{ memory: first, heaps, stacks, dead, knowsHeaps: true },
      threads: before.size,
      running: before.size - registers.length - unseen,
      unseen,
      walk: async (program) => {
        const walker = await this.#walker(program, text, first);
        return await Promise.all(registers.map((each) => walker.unwind(each, first)));
      },
      stood: async (address, length) => {
        const [one, other] = [await first.read(address, length), await second.read(address, length)];
        return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0;
      },
    };
  }

  async #twice(regions: readonly Region[]): Promise<[Snapshot, Snapshot]> {
    const all = regions.reduce((sum, { length }) => sum + length, 0);
    const bytes = Math.min(all, mostCopied);
    if (bytes > this.#roomBytes) {
      this.#roomBytes = Math.ceil(bytes * GROWTH);
      this.#rooms = [new CopyRoom(this.#roomBytes), new CopyRoom(this.#roomBytes)];
    }
    const copies: Snapshot[] = [];
    const { pointerBits } = this.#options.arch;
    for (const room of this.#rooms) {
      room.empty();
      using memory = memoryOfProcess(this.#pid, room);
      if (memory === undefined) throw unreadable(this.#pid);
      copies.push(await takeSnapshot(memory, regions, { beyond: constantsOf(this.#elf), pointerBits }));
    }
    const [first, second] = copies as [Snapshot, Snapshot];
    if (first.searched === 0) throw unreadable(this.#pid);
    return [first, second];
  }

  /** Is kept as long as the same code is loaded. */
  async #walker({ elf, debug }: Pick<Understood, 'elf' | 'debug'>, maps: string, memory: Snapshot): Promise<Stacks> {
    const key = maps
      .split('\n')
      .filter((line) => line.includes('r-xp'))
      .join('\n');
    if (this.#stacks?.key === key) return this.#stacks.stacks;
    using reader = memoryOfProcess(this.#pid);
    const libraries: Libraries = await librariesOfProcess(this.#pid, elf, reader ?? memory);
    this.#stacks = { key, stacks: new Stacks(elf, this.#options.arch, debug, libraries.loaded) };
    return this.#stacks.stacks;
  }
}

/** Room for a process that grows. */
const GROWTH = 1.25;

/** Of a thread that runs the whole stack is in use, for all that is known. */
function processParts(
  text: string,
  threads: ReturnType<typeof threadsOf>,
  tops: ReadonlyMap<number, Addr>,
): ReturnType<typeof processRegions> {
  const writable = parseMaps(text).filter(isSearched);
  const known = [...threads.values()].flatMap((thread) => (typeof thread === 'object' ? thread.sp : []));
  const found = processRegions(writable, known);
  const runs = [...tops].filter(([id]) => typeof threads.get(id) !== 'object').map(([, top]) => top);
  const more = writable.filter(({ start, end }) => runs.some((top) => top >= start && top < end));
  const stacks = more.map(({ start, end }) => ({ start, length: Number(end - start) }));
  return { ...found, stacks: [...found.stacks, ...stacks] };
}

/** A frame's caller is found by these two, unless a frame pointer is needed: then its walk ends there. */
function registersOf({ sp, pc }: { readonly sp: Addr; readonly pc: Addr }, arch: Architecture): RegisterReader {
  return { register: (name) => (name === arch.sp ? sp : name === arch.pc ? pc : undefined) };
}

function unreadable(pid: number): RsptraceError {
  // Of one that has ended, and that its parent has not waited for, nothing is mapped any more.
  if (textOf(`/proc/${pid}/cmdline`) === '')
    return new RsptraceError('ATTACH_NO_PROCESS', `process ${pid} has ended`, {
      hint: '`pgrep -a NAME` shows the numbers of those that run',
    });
  return new RsptraceError('GDBSERVER_FAILED', `the memory of process ${pid} may not be read`, {
    hint: 'it needs the same user and `sysctl kernel.yama.ptrace_scope=0`, or root; a container needs CAP_SYS_PTRACE',
  });
}
