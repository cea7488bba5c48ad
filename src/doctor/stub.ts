// Which server answers, and what it can do: the facts that docs/internals/stubs.md has for tested stubs, asked of
// this one.
import { type Addr, addOffset } from '../base/addr.js';
import type { Breakpoint, MemoryRegion, Session, StubName } from '../rsp/index.js';

/** Which server answers, and what it says about itself. */
export interface Server {
  readonly name: StubName;
  readonly recognizedBy: string;
  /** In its own words; undefined if it does not say (gdbserver, lldb-server, valgrind, QEMU in user mode). */
  readonly version: string | undefined;
  /** For QEMU alone: `kvm`, or `tcg` if it says that KVM is not in use. */
  readonly accelerator: 'kvm' | 'tcg' | undefined;
}

export async function identify(session: Session): Promise<Server> {
  const stub = await session.stub();
  const { name, recognizedBy } = stub;
  return { name, recognizedBy, accelerator: await stub.accelerator(), version: await stub.version() };
}

/** What a stub takes and says. */
export interface StubAbilities {
  /** The types of Z that are taken: 0 software, 1 hardware, 2 to 4 watchpoints for writing, reading, both. */
  readonly breakpoints: readonly number[];
  /** The packets that list threads. */
  readonly threads: 'qXfer' | 'qf' | 'none';
  readonly memoryMap: readonly MemoryRegion[] | undefined;
  /** It reads files of its machine (vFile). */
  readonly fileTransfer: boolean;
}

/**
 * Inserts a breakpoint of each type and removes it in the same write, while the target is stopped. `code` and `data`
 * are addresses where breakpoints are allowed.
 */
export async function abilitiesOf(
  session: Session,
  place: { readonly code: Addr; readonly data: Addr; readonly kind: number },
): Promise<StubAbilities> {
  const batch = session.batch();
  const tried = ([0, 1, 2, 3, 4] as const).map((type) => {
    const where = type < 2 ? { address: place.code, kind: place.kind } : { address: place.data, kind: 8 };
    const breakpoint: Breakpoint = { type, ...where };
    const reply = batch.insertBreakpoint(breakpoint);
    batch.removeBreakpoint(breakpoint);
    return { type, reply };
  });
  const first = batch.listsThreads();
  const files = batch.servesFiles();
  await batch.send();
  const { transfer } = session.features;
  return {
    breakpoints: tried.filter(({ reply }) => reply.value).map(({ type }) => type),
    threads: transfer.has('threads') ? 'qXfer' : first.value ? 'qf' : 'none',
    memoryMap: transfer.has('memory-map') ? await session.memoryRegions() : undefined,
    fileTransfer: files.value,
  };
}

/** More hardware breakpoints than any chip has: a stub that takes so many does not count them. */
const mostHardware = 16;

/** How many hardware breakpoints fit at once; undefined if there is no limit (an emulator), or there are none. */
export async function countHardware(session: Session, code: Addr, kind: number): Promise<number | undefined> {
  const batch = session.batch();
  const places = Array.from({ length: mostHardware }, (_, index) => addOffset(code, index * kind));
  const inserted = places.map((address) => batch.insertBreakpoint({ type: 1, address, kind }));
  await batch.send();
  const count = inserted.filter((reply) => reply.value).length;
  const out = session.batch();
  for (const breakpoint of session.breakpoints) if (breakpoint.type === 1) out.removeBreakpoint(breakpoint);
  await out.send();
  return count === 0 || count === mostHardware ? undefined : count;
}

/** How long one kind of request takes, in microseconds of the host. */
export interface RoundTrip {
  readonly samples: number;
  readonly medianUs: number;
  readonly p90Us: number;
}

export interface RoundTrips {
  /** The shortest question there is. */
  readonly smallest: RoundTrip;
  /** All registers of one hart. */
  readonly registers: RoundTrip;
  /** 4 KiB of memory, in as many packets as it takes, sent together. Undefined where no page could be read. */
  readonly page: RoundTrip | undefined;
}

const most = 50;
/** A slow wire is asked less often; in milliseconds. */
const enoughMs = 150;

/**
 * Asks each thing up to 50 times, one after the other; `pages` are addresses of which the first that can be read is
 * read.
 */
export async function roundTrips(session: Session, pages: readonly Addr[]): Promise<RoundTrips> {
  const smallest = await time(async () => {
    const batch = session.batch();
    batch.ping();
    await batch.send();
  });
  const registers = await time(async () => {
    const batch = session.batch();
    batch.readRegisters();
    await batch.send();
  });
  const memory = session.memory();
  for (const page of pages) {
    if ((await memory.read(page, 4096)) === undefined) continue;
    return { smallest, registers, page: await time(() => memory.read(page, 4096)) };
  }
  return { smallest, registers, page: undefined };
}

async function time(ask: () => Promise<unknown>): Promise<RoundTrip> {
  const samples: number[] = [];
  const began = performance.now();
  do {
    const before = performance.now();
    await ask();
    samples.push((performance.now() - before) * 1000);
  } while (samples.length < most && performance.now() - began < enoughMs);
  samples.sort((a, b) => a - b);
  return { samples: samples.length, medianUs: quantile(samples, 0.5), p90Us: quantile(samples, 0.9) };
}

/** The nearest rank of sorted numbers. */
function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
