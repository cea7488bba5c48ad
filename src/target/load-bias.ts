/*
 * How far from its own addresses a position-independent program was loaded. A stub on Linux gives it from the first
 * stop on:
 *
 *   qXfer:auxv   AT_ENTRY less the ELF's entry, AT_PHDR less the address of its program headers: both must agree
 *   qOffsets     `Text=...`, where there is no auxiliary vector
 *   /proc/PID/maps   where the ELF is not the program itself: a shared library, or a program run through its loader
 *
 * A machine's stub says nothing; see moved-kernel.ts.
 */

import { basename } from 'node:path';
import { RsptraceError } from '../base/errors.js';
import { type ElfFile, ET } from '../elf/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { AT, auxvOf, readAuxv } from './auxv.js';
import { architectureFor } from './connect.js';
import { biasWhenItRuns, isMovedAtBoot, type KernelWait } from './moved-kernel.js';
import { type Mapping, mapsOf, processMappings } from './process-memory.js';

const PT_PHDR = 6;
const page = 0x1000n;

/** Throws `ELF_NOT_LINKED` for an object file. */
export function refuseObject(elf: ElfFile): void {
  if (elf.type !== ET.REL) return;
  throw new RsptraceError(
    'ELF_NOT_LINKED',
    `${elf.path} is an object file, and where the target has its sections is not known`,
    {
      hint: 'give the kernel or program that it is linked into; futures and types read an object file without a target',
    },
  );
}

/**
 * The ELF with its addresses in the target. Unchanged if it is not position-independent, or is known to be moved. A
 * kernel that its loader moves is looked for: a machine runs until a hart is in it. Without `wait` none that stands at
 * its reset is run.
 * @throws RsptraceError `LOAD_ADDRESS_UNKNOWN` if the stub's process has not loaded it, or the kernel does not run;
 * `ELF_NOT_LINKED` for an object file
 */
export async function loadedElf(session: Session, elf: ElfFile, wait: Partial<KernelWait> = {}): Promise<ElfFile> {
  refuseObject(elf);
  if (elf.type !== ET.DYN) return elf;
  const auxv = await readAuxv(session);
  const bias =
    (auxv && biasFromAuxv(auxv, elf)) ?? (await biasFromOffsets(session)) ?? (await biasFromMaps(session, elf));
  if (bias !== undefined) return bias === elf.loadBias ? elf : elf.loadedAt(bias);
  if (auxv === undefined) return isProcess(session.features) ? elf : await loadedKernel(session, elf, wait);
  throw notLoaded('the process at the stub', elf);
}

/** Throws `LOAD_ADDRESS_UNKNOWN` if a process of this machine, as far as it shows that, has not loaded the ELF. */
export function verifyLoadedIn(pid: number, elf: ElfFile): void {
  const auxv = auxvOf(pid);
  if (elf.type !== ET.DYN || auxv.size === 0) return;
  const bias = biasFromAuxv(auxv, elf) ?? biasFromMappings(mapsOf(pid), elf);
  if (bias === undefined) throw notLoaded(`process ${pid}`, elf);
}

function notLoaded(process: string, { path }: ElfFile): RsptraceError {
  return new RsptraceError('LOAD_ADDRESS_UNKNOWN', `${process} has not loaded ${path}`, {
    hint: 'give the program that runs there; one that a script or another program starts is not there yet at its first stop',
  });
}

/** How long commands that only look let a machine run until it is in its kernel, and how often they look meanwhile. */
const shortWait = { mostMs: 3000, everyMs: 20 };

async function loadedKernel(session: Session, elf: ElfFile, wait: Partial<KernelWait>): Promise<ElfFile> {
  if (elf.loadBias !== 0n || !isMovedAtBoot(elf)) return elf;
  // Who only looks does not start a machine.
  if (wait.mostMs === undefined && wait.known === undefined && (await (await session.stub()).neverRan())) return elf;
  const bias = await biasWhenItRuns(session, architectureFor(elf), elf, { ...shortWait, ...wait });
  if (bias !== undefined) return bias === 0n ? elf : elf.loadedAt(bias);
  throw kernelNotFound(elf, session);
}

export function kernelNotFound({ path }: ElfFile, { state }: Session): RsptraceError {
  const until = state.kind === 'idle' ? 'while it was looked for' : 'before the machine ended';
  return new RsptraceError(
    'LOAD_ADDRESS_UNKNOWN',
    `${path} is linked at address 0, so a loader moves it, and none of its code ran ${until}, which would show how far`,
    {
      hint: 'is it the ELF that runs there? If its loader or the documentation of that says how far, give --load-bias 0x...',
    },
  );
}

/** The ELF where a process had it, by its auxiliary vector; undefined if that is another program's. */
export function shiftedByAuxv(elf: ElfFile, auxv: ReadonlyMap<number, bigint>): ElfFile | undefined {
  const bias = biasFromAuxv(auxv, elf);
  if (bias === undefined || (elf.type !== ET.DYN && bias !== 0n)) return undefined;
  return bias === elf.loadBias ? elf : elf.loadedAt(bias);
}

/**
 * Where x86_64's Linux puts a position-independent program that is started without randomisation, as gdbserver does
 * (ELF_ET_DYN_BASE, arch/x86/include/asm/elf.h, rounded down to a page by fs/binfmt_elf.c).
 */
const unrandomized = 0x555555554000n;

/** How far the ELF will be moved when gdbserver starts it. */
export function placeAtStart(elf: ElfFile): bigint {
  return elf.type === ET.DYN ? unrandomized : 0n;
}

/** How far a process of this machine has moved the ELF; 0 where that is not known, and is found when it is stopped. */
export function placeInProcess(pid: number, elf: ElfFile): bigint {
  if (elf.type !== ET.DYN) return 0n;
  return biasFromAuxv(auxvOf(pid), elf) ?? biasFromMappings(mapsOf(pid), elf) ?? 0n;
}

/** By the auxiliary vector of a process; undefined if that is another program's. */
function biasFromAuxv(auxv: ReadonlyMap<number, bigint>, elf: ElfFile): bigint | undefined {
  const entry = auxv.get(AT.ENTRY);
  if (entry === undefined) return undefined;
  const bias = entry - elf.entry + elf.loadBias;
  const headers = elf.segments.find(({ type }) => type === PT_PHDR)?.address;
  const loaded = auxv.get(AT.PHDR);
  const agree = headers === undefined || loaded === undefined || loaded - headers + elf.loadBias === bias;
  return agree && bias % page === 0n ? bias : undefined;
}

async function biasFromOffsets(session: Session): Promise<bigint | undefined> {
  const batch = session.batch();
  const reply = batch.sectionOffsets();
  await batch.send();
  const { text, data } = reply.value ?? {};
  return text === data ? text : undefined;
}

async function biasFromMaps(session: Session, elf: ElfFile): Promise<bigint | undefined> {
  return biasFromMappings((await processMappings(session)) ?? [], elf);
}

/** By where the lowest mapping of a file of its name begins. */
function biasFromMappings(mappings: readonly Mapping[], elf: ElfFile): bigint | undefined {
  const start = mappings.find(({ path }) => basename(path) === basename(elf.path))?.start;
  const [lowest] = elf.loads.map(({ address }) => address).sort((a, b) => (a < b ? -1 : 1));
  return start === undefined || lowest === undefined ? undefined : start - (lowest & ~(page - 1n)) + elf.loadBias;
}
