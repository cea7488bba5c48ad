import type { Architecture, Mapping as PageMapping } from '../arch/index.js';
import {
  deadStack,
  isIn,
  merged,
  type Region,
  type Snapshot,
  takeSnapshot,
  writableRegions,
} from '../async/tasks/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import { firstWhere } from '../base/search.js';
import type { ElfFile } from '../elf/index.js';
import { isProcess, registersOf, type Session } from '../rsp/index.js';
import {
  type CopyRoom,
  type Libraries,
  type Mapping,
  processMappings,
  processMemory,
  seeLibraries,
} from '../target/index.js';
import { type HartStack, hartStack, isSeen } from '../target/stacks/index.js';
import { type Stack, Stacks } from '../target/unwind/index.js';
import { asHartSees, MachineKept, ramReader, readerPastWire } from './machine-kept.js';
import type { LookedAt, Understood } from './views.js';

/** All that a look at tasks needs of a target, copied while it stood. */
export interface TargetCopy {
  readonly memory: Snapshot;
  /** Heaps of the C library's allocator. */
  readonly heaps: readonly Region[];
  /** Whether something says where heaps may lie; else only the program's own segments were copied. */
  readonly knowsHeaps: boolean;
  /** Memory with stacks, and the parts of it that are not in use. */
  readonly stacks: readonly Region[];
  readonly dead: readonly Region[];
  /** Each hart's frames, the innermost first; with the hart's number if it is a machine's. */
  readonly walk: (program: Described) => Promise<readonly (Pick<Stack, 'frames'> & { readonly hart?: number })[]>;
}

/** A program as it is loaded; what Futures it has may be found out later. */
type Described = Pick<Understood, 'elf' | 'debug'>;

export interface CopyOptions extends Pick<LookedAt, 'arch' | 'debugDirs'> {
  /** More memory that may hold tasks. */
  readonly scan?: readonly Region[];
  /** Where the copy of a process is put, as long as it fits. */
  readonly room?: CopyRoom;
  /** For a machine that is copied again and again. */
  readonly kept?: MachineKept;
  readonly logger?: Logger;
}

/** Below the stack pointer a leaf function may use bytes without moving it (the red zone of AMD64's ABI). */
const RED_ZONE = 128;
/** HEAP_MAX_SIZE of glibc, where words have 8 bytes. */
const ARENA = 2n ** 26n;
/** Of a stack outside of the program's own memory, from its pointer on. */
const FIRST_OF_STACK = 1 << 14;

/**
 * Copies a target's memory and registers. The program is the ELF as it is loaded.
 * @throws RsptraceError `PROGRAM_NOT_SEEN`
 */
export async function copyTarget(session: Session, program: Described, options: CopyOptions): Promise<TargetCopy> {
  return isProcess(session.features)
    ? copyProcess(session, program.elf, options)
    : copyMachine(session, program, options);
}

/** The program's own constants: they are in its file. `memory`: what has them, or more, before that. */
export function constantsOf(elf: ElfFile, memory?: MemoryReader): MemoryReader {
  return { read: async (address, length) => (await memory?.read(address, length)) ?? elf.bytesAt(address, length) };
}

/** Stacks are walked after the process runs again: its threads' registers and the copy are enough. */
export async function copyProcess(
  session: Session,
  elf: ElfFile,
  { arch, scan = [], room, debugDirs, logger = silent }: CopyOptions,
): Promise<TargetCopy> {
  const registers = await allRegisters(session);
  const tops = stackPointers(registers, arch);
  const mappings = (await processMappings(session)) ?? [];
  const writable = mappings.filter(isSearched);
  const { regions, heaps, stacks, dead } = processRegions(writable, tops);
  using reader = await processMemory(session, tops[0] ?? elf.entry, room);
  logger.debug({ source: reader.source, regions: regions.length }, 'memory is copied');
  const all = clipped([...writableRegions(elf), ...scan, ...regions], dead);
  const memory = await takeSnapshot(reader, all, { beyond: constantsOf(elf), pointerBits: arch.pointerBits });
  const seen = await seeLibraries(session, elf, { debugDirs, logger, memory: reader });
  return {
    memory,
    heaps,
    knowsHeaps: mappings.length > 0,
    stacks,
    dead,
    walk: async (program) => walkAll(registers, memory, await seen.open(), arch, program),
  };
}

export function stackPointers(registers: readonly RegisterReader[], { sp }: Architecture): Addr[] {
  return registers.flatMap((each) => each.register(sp) ?? []).map((each) => addr(each));
}

/** What of a process may have tasks in it: memory that it writes, and no device. */
export function isSearched({ permissions, path }: Pick<Mapping, 'permissions' | 'path'>): boolean {
  return permissions.startsWith('rw') && !path.startsWith('/dev/');
}

interface ProcessRegions extends Pick<TargetCopy, 'heaps' | 'stacks' | 'dead'> {
  /** What is searched. */
  readonly regions: readonly Region[];
}

/** What a process's writable mappings are. `tops`: the stack pointers of its threads. */
export function processRegions(
  mappings: readonly Pick<Mapping, 'start' | 'end' | 'path'>[],
  tops: readonly Addr[],
): ProcessRegions {
  const [stacks, dead, regions, heaps]: [Region[], Region[], Region[], Region[]] = [[], [], [], []];
  for (const { start, end, path } of mappings) {
    const top = tops.find((each) => each >= start && each < end);
    const used = top === undefined ? start : addr(top - BigInt(RED_ZONE) < start ? start : top - BigInt(RED_ZONE));
    regions.push({ start: used, length: Number(end - used) });
    if (isAllocators(start, path)) heaps.push({ start, length: Number(end - start) });
    if (top === undefined) continue;
    stacks.push({ start, length: Number(end - start) });
    dead.push({ start, length: Number(used - start) });
  }
  return { regions, heaps, stacks, dead };
}

/** As /proc/PID/maps calls the heap behind the program. */
export const HEAP = '[heap]';

/** glibc's heaps: behind the program, and for more threads at multiples of 64 MiB. Other allocators map elsewhere. */
function isAllocators(start: Addr, path: string): boolean {
  return path === HEAP || (path === '' && start % ARENA === 0n);
}

/** Without what is dead; of a process with thousands of threads, too, which stands meanwhile. */
export function clipped(regions: readonly Region[], dead: readonly Region[]): Region[] {
  const parts = [...dead].sort((a, b) => (a.start < b.start ? -1 : 1));
  return regions.filter(({ start, length }) => {
    const part = parts[firstWhere(parts.length, (i) => (parts[i] as Region).start > start) - 1];
    return !part || addOffset(start, length) > addOffset(part.start, part.length);
  });
}

async function allRegisters(session: Session): Promise<RegisterReader[]> {
  const found: RegisterReader[] = [];
  for (const { id } of await session.harts()) {
    const block = await registersOf(session, id, []);
    found.push(block);
  }
  return found;
}

export async function walkAll(
  registers: readonly RegisterReader[],
  memory: MemoryReader,
  libraries: Libraries,
  arch: Architecture,
  { elf, debug }: Described,
): Promise<Stack[]> {
  const stacks = new Stacks(elf, arch, debug, libraries.loaded);
  const found: Stack[] = [];
  for (const each of registers) found.push(await stacks.unwind(each, memory));
  return found;
}

/** A kernel: its harts may stand in other programs, from which its memory is reached through its page tables. */
async function copyMachine(session: Session, program: Described, options: CopyOptions): Promise<TargetCopy> {
  const { arch, scan = [], logger = silent } = options;
  const { elf } = program;
  using own = options.kept ? undefined : new MachineKept();
  const kept = options.kept ?? (own as MachineKept);
  const stacks = kept.stacks(program, arch);
  const dead: Region[] = [];
  const harts: HartStack[] = [];
  const ram = await kept.pastWire(session, logger);
  const faster =
    ram && ((registers: RegisterReader, packets: MemoryReader) => asHartSees(ram, arch, registers, packets));
  for (const { id } of await session.harts()) {
    const hart = await hartStack(session, id, arch, stacks, { faster, ownPages: kept.ownPages });
    harts.push(hart);
    const stackPointer = hart.other ? undefined : hart.registers.register(arch.sp);
    if (stackPointer !== undefined) dead.push(...deadStack(elf, addr(stackPointer)));
  }
  const seer = await hartThatSees(elf, harts);
  const tops = harts.flatMap(({ registers }) => registers.register(arch.sp) ?? []);
  // A stack may lie in memory that the kernel has allocated.
  const used = tops.map((sp) => ({ start: addr(sp & -16n), length: FIRST_OF_STACK }));
  const { heaps, reader } = await machineRam(session, { arch, kept, logger }, harts, seer);
  logger.debug({ ram: heaps.length }, 'memory is copied');
  const regions = [...writableRegions(elf), ...scan, ...used.filter(({ start }) => isIn(heaps, start))];
  const memory = await takeSnapshot(reader, regions, {
    beyond: constantsOf(elf),
    heaps,
    pointerBits: arch.pointerBits,
  });
  const walked = harts.flatMap(({ other, stack: { frames } }, hart) => (other ? [] : [{ frames, hart }]));
  return { memory, heaps: [], knowsHeaps: heaps.length > 0, stacks: [], dead, walk: async () => walked };
}

/**
 * A hart that sees the program's memory. It runs the program, or another one in an address space that has this one too.
 * @throws RsptraceError `PROGRAM_NOT_SEEN`
 */
async function hartThatSees(elf: ElfFile, harts: readonly HartStack[]): Promise<HartStack> {
  for (const hart of harts) if (!hart.other || (await isSeen(elf, hart.memory))) return hart;
  const [first] = harts;
  const mode = first?.other?.privilege === undefined ? '' : ` in ${first.other.privilege} mode`;
  throw new RsptraceError(
    'PROGRAM_NOT_SEEN',
    `no hart runs ${elf.path} or has it in its address space: the first stands at ${hex(first?.other?.pc ?? (0n as Addr))}${mode}, in another program`,
    { hint: 'look again, or stop it where the program runs; a build of another day is another program too' },
  );
}

interface MachineParts {
  readonly arch: Architecture;
  readonly kept: MachineKept;
  readonly logger: Logger;
}

interface MachineRam {
  /** At the addresses that the kernel uses. Empty if nobody says where RAM is, because reading a device changes it. */
  readonly heaps: readonly Region[];
  /** The program's memory. */
  readonly reader: MemoryReader;
}

/**
 * Where a machine's RAM is: without paging all of it, else what the page table in force maps for the kernel to write.
 * If QEMU runs here, it is read past the wire.
 */
async function machineRam(
  session: Session,
  { arch, kept, logger }: MachineParts,
  harts: readonly HartStack[],
  seer: HartStack,
): Promise<MachineRam> {
  const ram = await kept.ram(session);
  const physical = ram.length === 0 ? undefined : await session.physicalMemory();
  if (physical === undefined) return { heaps: [], reader: seer.memory };
  const found: Region[] = [];
  const isRam = ({ physical: at, size, writable, user }: PageMapping): boolean =>
    writable && !user && ram.some(({ start, length }) => at < start + BigInt(length) && at + BigInt(size) > start);
  // A loader may have mapped all physical addresses, with a thousand tables.
  const shared = await kept.pastWire(session, logger);
  const tables = shared ? ramReader(shared, physical) : physical;
  let reader = seer.memory;
  for (const hart of harts) {
    const space = arch.addressSpaces?.of(hart.registers, tables);
    if (space === undefined || 'refused' in space) continue;
    if (hart === seer && shared) reader = readerPastWire(shared, space, seer.memory);
    if (space.scheme === 'off') {
      found.push(...ram);
      continue;
    }
    try {
      for await (const { virtual, physical: at, size } of space.mappings({ wants: isRam }))
        found.push(...overlaps(virtual, at, size, ram));
    } catch (error) {
      if (!(error instanceof RsptraceError) || error.code !== 'PAGE_TABLES_TOO_LARGE') throw error;
    }
  }
  return { heaps: merged(found), reader };
}

/** The parts of a mapping that are RAM. */
function overlaps(virtual: Addr, physical: Addr, size: number, ram: readonly Region[]): Region[] {
  return ram.flatMap(({ start, length }) => {
    const from = start > physical ? start : physical;
    const end = start + BigInt(length);
    const to = physical + BigInt(size) < end ? physical + BigInt(size) : end;
    return to > from ? [{ start: addr(virtual + (from - physical)), length: Number(to - from) }] : [];
  });
}
