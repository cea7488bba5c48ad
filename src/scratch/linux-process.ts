/*
 * Memory of our own in a Linux process. The process itself runs the system calls (system-calls.ts):
 *
 *     | no access | code r-x | no access | data rw- (a memfd, shared) | no access | own rw- | no access |
 *
 * First the whole range is reserved without access, at an address where nothing is mapped (MAP_FIXED_NOREPLACE). Then
 * code and data are mapped over it. The pages between them belong to us as well, so code that runs past an end
 * faults. No page is ever writable and executable at once. Code is written through the stub, because its ptrace
 * ignores permissions.
 *
 * If the stub runs on this machine, the data is read and written through /proc/PID/fd/N, without a packet. On another
 * machine it reads that file for us (vFile:pread) at a stop: with gdbserver four times as fast as memory.
 */

import { randomBytes } from 'node:crypto';
import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { messageOf } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { Session } from '../rsp/index.js';
import { limitsOf } from '../target/index.js';
import type { BulkReads, Region, Scratch, SharedMemory } from './scratch.js';
import { isSame, openMemfd } from './shared-memory.js';
import { errnoOf, type SystemCall, SystemCalls, unavailable } from './system-calls.js';

interface ProcessScratchOptions {
  /** The target is stopped. */
  readonly session: Session;
  readonly arch: Architecture;
  /** The program's code in the target: a 32-bit jump from any place in it must reach the new code. */
  readonly text: Region;
  /** Rounded up to pages. */
  readonly codeSize: number;
  readonly dataSize: number;
  readonly logger?: Logger;
}

const PROT = { NONE: 0, READ: 1, WRITE: 2, EXEC: 4 } as const;
const MAP = { SHARED: 1, PRIVATE: 2, FIXED: 0x10, ANONYMOUS: 0x20, FIXED_NOREPLACE: 0x10_0000 } as const;
const MFD_CLOEXEC = 1;
const page = 4096;
/** Its last page is for data, the rest for that and a stack. */
const ownSize = 8 * page;
/** vm.mmap_min_addr on nearly every system. */
const lowest = 0x1_0000n;
/** The range of a 32-bit jump, less what the displaced instructions may refer to. */
const reach = 2n ** 31n - 2n ** 24n;
const MiB = 2n ** 20n;
/** Distances from the program that are tried. Below it first, because its heap grows above: there the farthest first. */
const distances = [1n, 16n, 64n, 256n, 512n, 1024n, 1536n];
const largest = 2 ** 30;

/**
 * Maps code and data into the process of a session.
 * @throws RsptraceError `SCRATCH_UNAVAILABLE` if that is impossible, `RSP_*`
 */
export async function mapIntoProcess(options: ProcessScratchOptions): Promise<Scratch> {
  const { session, logger = silent } = options;
  const [codeSize, dataSize] = [wholePages(options.codeSize), wholePages(options.dataSize)];
  const calls = await SystemCalls.open(session, options.arch);
  const size = page + codeSize + page + dataSize + page + ownSize + page;
  const sizes = { bytes: codeSize + dataSize, file: dataSize };
  const limits = await limitsOf((path) => session.remoteFile(path), calls.pid, sizes);
  if (limits !== undefined) throw unavailable(limits);
  const mapped = await calls.with(async (call) => {
    const start = await reserve(call, options.text, size);
    try {
      const code = { address: addOffset(start, page), size: codeSize };
      const data = { address: addOffset(code.address, codeSize + page), size: dataSize };
      const own = { address: addOffset(data.address, dataSize + page), size: ownSize };
      await mapAt(call, own, PROT.READ | PROT.WRITE, MAP.PRIVATE | MAP.ANONYMOUS, -1);
      await mapAt(call, code, PROT.READ | PROT.EXEC, MAP.PRIVATE | MAP.ANONYMOUS, -1);
      await mapAt(call, data, PROT.READ | PROT.WRITE, MAP.PRIVATE | MAP.ANONYMOUS, -1);
      const shared = await share({ session, pid: calls.pid, data, logger }, call);
      return { start, code, data, own, ...shared };
    } catch (error) {
      if (session.state.kind === 'idle') await call('munmap', start, size);
      throw error;
    }
  });
  return processScratch(calls, mapped, size, logger);
}

interface Mapped {
  readonly start: Addr;
  readonly code: Region;
  readonly data: Region;
  readonly own: Region;
  readonly shared: SharedMemory | undefined;
  readonly bulk?: BulkReads;
}

/** Where the data of a process is. */
interface DataOf {
  readonly session: Session;
  readonly pid: number;
  readonly data: Region;
  readonly logger: Logger;
}

function processScratch(calls: SystemCalls, mapped: Mapped, size: number, logger: Logger): Scratch {
  const { start, code, data, own, shared, bulk } = mapped;
  const { session, pid } = calls;
  let isReleased = false;
  const unmap = async (address: Addr, bytes: number): Promise<void> => {
    if (isReleased) return;
    isReleased = true;
    shared?.close();
    await bulk?.close();
    if (session.state.kind === 'gone') return;
    const refused = await calls.refusal();
    if (refused !== undefined) {
      logger.warn({ size: bytes }, `the memory of the trampolines stays in the process, unused: ${refused}`);
      return;
    }
    const result = await calls.with((call) => call('munmap', address, bytes));
    if (result !== 0n) throw unavailable(`munmap answers ${result}`);
  };
  return {
    source: `memory mapped into process ${pid} (${shared ? 'memfd' : 'memfd on another machine'})`,
    owned: true,
    ...{ code, data, own, shared, calls },
    ...(bulk && { bulk }),
    // The process cannot access the pages around; only another debugger could have written there.
    async verifyGuards() {
      const behind = [data, own].map((region) => addOffset(region.address, region.size));
      for (const guard of [start, addOffset(data.address, -page), ...behind]) {
        const bytes = await session.memory().read(guard, page);
        if (bytes?.some((byte) => byte !== 0))
          return `somebody wrote into the page at ${hex(guard)}, which nobody may use`;
      }
      return undefined;
    },
    release: () => unmap(start, size),
    // The pages without access around it stay mapped, so that no other memory comes between.
    releaseData: () => unmap(data.address, data.size),
  };
}

async function reserve(call: SystemCall, text: Region, size: number): Promise<Addr> {
  let refused = 0n;
  for (const wanted of places(text, BigInt(size))) {
    const flags = MAP.PRIVATE | MAP.ANONYMOUS | MAP.FIXED_NOREPLACE;
    const got = await call('mmap', wanted, size, PROT.NONE, flags, -1, 0);
    if (got === wanted) return wanted;
    if (errnoOf(got) !== undefined) refused = got;
    // A kernel before 4.17 takes the address as a mere hint.
    else await call('munmap', got, size);
  }
  throw unavailable(`mmap near the program answers ${refused}`);
}

/** Page-aligned addresses from which all of the region and all of the text reach each other. */
function places(text: Region, size: bigint): Addr[] {
  const low = text.address & ~0xfffn;
  const high = (text.address + BigInt(text.size) + 0xfffn) & ~0xfffn;
  const below = distances.map((distance) => low - distance * MiB - size);
  const above = distances
    .slice(1)
    .map((distance) => high + distance * MiB)
    .reverse();
  // A program that is not position-independent has little room below.
  const tight = low - size - lowest > 0n ? [lowest] : [];
  return [...below, ...tight, ...above]
    .filter((start) => start >= lowest && high - start < reach && start + size - low < reach)
    .map((start) => addOffset(text.address, start - text.address));
}

async function mapAt(call: SystemCall, region: Region, protection: number, flags: number, file: number): Promise<void> {
  const got = await call('mmap', region.address, region.size, protection, flags | MAP.FIXED, file, 0);
  if (got !== region.address) throw unavailable(`mmap at ${hex(region.address)} answers ${got}`);
}

/** Replaces the data by a memfd. Opens it here, if the process runs on this machine. */
async function share(process: DataOf, call: SystemCall): Promise<Pick<Mapped, 'shared' | 'bulk'>> {
  const { session, pid, data } = process;
  // No other memfd has this name, so it is known to be ours before anything is written to it.
  const name = `rsptrace-${randomBytes(8).toString('hex')}`;
  const memory = session.memory();
  if (!(await memory.write(data.address, Buffer.from(`${name}\0`))))
    throw unavailable('the stub does not write memory');
  const file = await call('memfd_create', data.address, MFD_CLOEXEC);
  if (errnoOf(file) !== undefined) throw unavailable(`memfd_create answers ${file}`);
  try {
    const sized = await call('ftruncate', file, data.size);
    if (sized !== 0n) throw unavailable(`ftruncate of a memfd answers ${sized}`);
    await mapAt(call, data, PROT.READ | PROT.WRITE, MAP.SHARED, Number(file));
    const shared = await usable(process, openMemfd(`/proc/${pid}/fd/${file}`, name, data.size));
    if (shared) return { shared };
    const bulk = await bulkReads(session, `/proc/${pid}/fd/${file}`, data);
    return { shared: undefined, ...(bulk ? { bulk } : {}) };
  } finally {
    if (session.state.kind === 'idle') await call('close', file);
  }
}

/** The file as the stub reads it, if it is that memory; its beginning is zero again. */
async function bulkReads(session: Session, path: string, data: Region): Promise<BulkReads | undefined> {
  const file = await session.openRemoteFile(path);
  const there = randomBytes(64);
  const memory = session.memory();
  if (file && (await memory.write(data.address, there))) {
    const back = await file.read(0, there.length);
    await memory.write(data.address, new Uint8Array(there.length));
    if (back && there.equals(back)) {
      const close = async (): Promise<void> => (session.state.kind === 'idle' ? file.close() : undefined);
      return { read: (offset, length) => file.read(offset, length), close };
    }
  }
  await file?.close();
  return undefined;
}

/** The data of a process as this machine has it, if that is the same memory, see {@link isSame}; else it is closed. */
async function usable(
  { session, data, logger }: DataOf,
  shared: SharedMemory | undefined,
): Promise<SharedMemory | undefined> {
  try {
    if (shared && (await isSame(session, data, shared))) return shared;
  } catch (error) {
    logger.info({ error: messageOf(error) }, 'the memfd of the process cannot be used from here');
  }
  shared?.close();
  return undefined;
}

function wholePages(size: number): number {
  if (!Number.isSafeInteger(size) || size <= 0 || size > largest) {
    throw new RangeError(`${size} bytes of memory cannot be mapped`);
  }
  return Math.ceil(size / page) * page;
}
