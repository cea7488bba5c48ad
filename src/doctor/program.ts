import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { isRefusal, RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import { type EnginePlanOptions, engineChoices, findHurdles, type Hurdle, planEngines } from '../engines/index.js';
import { codeRoom, processMemory, type SitePlan, whyProcessStops } from '../inject/index.js';
import type { KindPreview } from '../probes/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { findScratch, type ScratchSources } from '../scratch/index.js';
import { type CodeCheck, GuestRam, verifyArchitecture, verifyCode } from '../target/index.js';
import type { ProbeFact } from '../trace/index.js';

/** The named program, with its addresses in the target. */
export interface Subject {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** Where probes go, in ascending order. */
  readonly addresses: readonly Addr[];
  /** What is known about each probe's engine before the target is known. */
  readonly plan: EnginePlanOptions | undefined;
  /** What the kinds of probes say before a recording. */
  readonly previews: readonly KindPreview[];
  /** Why nothing is probed. */
  readonly noProbes: RsptraceError | undefined;
}

export interface ProgramReport {
  readonly path: string;
  readonly buildId: string | undefined;
  readonly loadBias: bigint;
  readonly debugInfo: boolean;
  /** Call frame information, in `.eh_frame` or `.debug_frame`. */
  readonly frameInfo: boolean;
  /** Places whose code was compared with the target's: the probes, else functions all over the program. */
  readonly compared: number;
  /** Of these, not loaded (yet). */
  readonly absent: number;
  /** Those with other code, although the program may run in another address space. */
  readonly elsewhere: number;
  /** What prevents a recording. */
  readonly problem: RsptraceError | undefined;
  readonly noProbes: RsptraceError | undefined;
  readonly probes: readonly ProbeFact[];
  readonly previews: readonly KindPreview[];
  /** Memory for trampolines, or why there is none; undefined if no probe can use it. */
  readonly scratch: ScratchReport | undefined;
  /** What would keep probes from running without stops. */
  readonly hurdles: readonly Hurdle[];
  /** Places with the same code as in the ELF. */
  readonly same: readonly Addr[];
}

type ScratchReport =
  | { readonly source: string; readonly owned: boolean; readonly codeBytes: number; readonly ringBytes: number }
  /** `later`: it may be found once the program has gone on. */
  | { readonly refused: string; readonly later: boolean };

/** An empty .eh_frame of a linker's making. */
const emptyFrames = 100;

/**
 * Compares the program with the target, chooses its probes' engines and searches scratch memory, which is freed again
 * in a process.
 */
export async function examineProgram(
  session: Session,
  subject: Subject,
  sources: ScratchSources,
): Promise<ProgramReport> {
  const { elf, arch, noProbes, previews } = subject;
  const places = subject.addresses.length > 0 ? subject.addresses : functionsAcross(elf);
  let problem: RsptraceError | undefined;
  let code: CodeCheck = { same: [], absent: [], elsewhere: [] };
  try {
    verifyArchitecture(session, arch);
    code = await verifyCode(session, elf, places);
  } catch (error) {
    if (!(error instanceof RsptraceError) || !/^(ARCH|ELF)_/.test(error.code)) throw error;
    problem = error;
  }
  const engines =
    problem === undefined && subject.plan ? await enginesFor(session, subject, subject.plan, sources) : undefined;
  const hurdles = problem === undefined && subject.plan ? await hurdlesOf(session, subject, subject.plan, sources) : [];
  const frames = ['.eh_frame', '.debug_frame'].some((name) => (elf.section(name)?.length ?? 0) > emptyFrames);
  return {
    path: elf.path,
    buildId: elf.buildId,
    loadBias: elf.loadBias,
    debugInfo: elf.has('.debug_info'),
    frameInfo: frames,
    compared: places.length,
    absent: code.absent.length,
    elsewhere: code.elsewhere.length,
    same: code.same,
    problem: problem ?? engines?.problem,
    noProbes,
    probes: engines?.choices ?? [],
    previews,
    scratch: engines?.scratch,
    hurdles,
  };
}

async function hurdlesOf(
  session: Session,
  { elf, arch }: Subject,
  plan: EnginePlanOptions,
  sources: ScratchSources,
): Promise<readonly Hurdle[]> {
  const pastWire = await GuestRam.find(session);
  using _ram = pastWire && !isRefusal(pastWire) ? pastWire : undefined;
  return findHurdles({ ...sources, session, arch, elf, plan, pastWire });
}

interface EnginesReport {
  readonly choices: readonly ProbeFact[];
  readonly scratch: ScratchReport | undefined;
  readonly problem?: RsptraceError | undefined;
}

async function enginesFor(
  session: Session,
  { elf, arch }: Subject,
  plan: EnginePlanOptions,
  sources: ScratchSources,
): Promise<EnginesReport> {
  const planned = planEngines(plan);
  const choices = engineChoices(plan, planned);
  const refusedFor = (refused: string, problem?: RsptraceError): EnginesReport => {
    const all = new Map(plan.plans.map((_, index) => [index, planned.refused.get(index) ?? refused]));
    return { choices: engineChoices(plan, { refused: all }), scratch: { refused, later: false }, problem };
  };
  if (planned.sites.length === 0) return { choices, scratch: undefined };
  const stops = isProcess(session.features) ? whyProcessStops(session) : undefined;
  if (stops !== undefined) return refusedFor(stops);
  try {
    const found = await trialScratch(session, elf, arch, planned, sources);
    if (!isRefusal(found)) {
      const { source, owned, code, data } = found;
      return { choices, scratch: { source, owned, codeBytes: code.size, ringBytes: data.size } };
    }
    const later = 'later' in found && found.later;
    return later ? { choices, scratch: { refused: found.refused, later } } : refusedFor(found.refused);
  } catch (error) {
    if (!(error instanceof RsptraceError && error.code === 'SCRATCH_UNUSABLE')) throw error;
    return refusedFor(error.message, error);
  }
}

/** The memory that a recording would have, which is given back at once. */
export async function trialScratch(
  session: Session,
  elf: ElfFile,
  arch: Architecture,
  planned: SitePlan,
  sources: ScratchSources,
): ReturnType<typeof findScratch> {
  const text = planned.sites[0]?.plan.address ?? elf.entry;
  const process = isProcess(session.features) ? processMemory(planned) : undefined;
  const codeSize = codeRoom(planned.sites);
  const found = await findScratch({ ...sources, session, arch, elf, text, process, codeSize });
  if (isRefusal(found)) return found;
  await found.release();
  found.shared?.close();
  return found;
}

const mostFunctions = 64;

/** Functions from all over the program; its entry point where it names none. */
export function functionsAcross(elf: ElfFile): Addr[] {
  const all = new Set<bigint>();
  for (const { type, address, size } of elf.symbols) {
    if (type === 'function' && size > 0 && elf.bytesAt(address, 1) !== undefined) all.add(address);
  }
  if (all.size === 0 && elf.bytesAt(elf.entry, 1) !== undefined) all.add(elf.entry);
  const sorted = [...all];
  const step = Math.max(1, Math.ceil(sorted.length / mostFunctions));
  return sorted.filter((_, index) => index % step === 0).map(addr);
}
