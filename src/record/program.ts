import type { Architecture } from '../arch/index.js';
import { taskPlaces } from '../async/tasks/index.js';
import { type Addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, partOf, silent } from '../base/logger.js';
import { DebugInfo, demangle } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import {
  type EngineName,
  type EnginePlanOptions,
  endsThere,
  lookAtPlans,
  planEngines,
  whyNoTrampolines,
} from '../engines/index.js';
import { codeRoom } from '../inject/index.js';
import {
  type AnyProbe,
  askedKinds,
  CodeEntries,
  codeFacts,
  compileGlob,
  type Found,
  type FoundKind,
  type FoundSamples,
  type FoundWatches,
  type InlinedPolls,
  kinds,
  mergePlans,
  type PlanWishes,
  type ProbeKind,
  type ReadPlan,
  type Wakes,
} from '../probes/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import {
  architectureFor,
  changesItsCode,
  hartSource,
  type KernelWait,
  loadedElf,
  refuseObject,
  verifyCode,
} from '../target/index.js';
import { verifyNamed } from './named-programs.js';
import { isUnfound, matchesNothing, whyAlone } from './unmatched.js';

/** A program that was read, with its probes resolved: everything that can be known before the target is used. */
export interface Program {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** Undefined for a program without debug info, whose functions are known by their symbols. */
  readonly debug: DebugInfo | undefined;
  /** The kinds of probes that are asked for, in the order of the list of kinds. */
  readonly kinds: readonly FoundKind[];
  readonly specs: readonly AnyProbe[];
  /** See {@link InlinedPolls}. */
  readonly inlined: InlinedPolls | undefined;
  readonly wakes: Wakes | undefined;
  /** The kinds of probes that there are. */
  readonly known: readonly ProbeKind[];
  /** What `enginePlan` has given, by its wishes. */
  readonly planned: Map<string, EnginePlanOptions>;
  /** Further programs of the same machine, in user mode, with probes of their own. */
  readonly others: readonly Program[];
  /** One of several programs: what it has not, another one may have. */
  readonly isAmong: boolean;
  /** Kinds of probes of which one among several has nothing, and why. */
  readonly unfound: readonly { readonly kind: string; readonly error: RsptraceError }[];
}

/** How polls are traced. */
export interface PollOptions {
  readonly inlined?: InlinedPolls | undefined;
  readonly wakes?: Wakes | undefined;
}

/** See {@link Program}. */
type AmongOptions = Partial<Pick<Program, 'others' | 'isAmong'>>;

export interface PlaceOptions {
  /** How far the target has moved the program, where that is known before it is stopped. */
  readonly place?: ((elf: ElfFile) => bigint) | undefined;
}

/**
 * Resolves probes against an ELF that has been read. `known`: the kinds of probes that there are; `specs`: undefined
 * for no probe at all.
 * @throws RsptraceError as {@link prepare} does
 */
export async function understand(
  elf: ElfFile,
  specs: readonly AnyProbe[] | undefined,
  known: readonly ProbeKind[],
  logger: Logger = silent,
  { inlined, wakes, others = [], isAmong = false }: PollOptions & AmongOptions = {},
): Promise<Program> {
  refuseObject(elf);
  const arch = architectureFor(elf);
  const asked = specs ? askedKinds(specs, known) : [];
  const read = elf.has('.debug_info')
    ? DebugInfo.load(elf, { logger: partOf(logger, 'dwarf'), linesSuffice: true })
    : undefined;
  // A program none of whose entries were found is probed like one without debug info: nothing says its signatures.
  const debug = read?.missing === undefined ? read : undefined;
  await arch.prepare();
  const found: FoundKind[] = [];
  const unfound: Program['unfound'][number][] = [];
  const whys = new Map<string, string>();
  const probed = { elf, arch, debug, inlined, wakes, places: taskPlaces };
  for (const { kind, probes } of asked) {
    let unmatched: readonly string[] | undefined;
    try {
      const resolved = await kind.resolve(probed, probes);
      unmatched = resolved.unmatched ?? [];
      found.push({ kind, found: resolved });
      logFound(partOf(logger, 'probes'), kind.name, resolved);
      // Of the first alone: it takes as long as finding all of its kind.
      const first = isAmong ? undefined : probes.find(({ text }) => unmatched?.includes(text));
      if (first) whys.set(first.text, await whyAlone(kind, first, probed));
    } catch (error) {
      if (!isAmong || !isUnfound(error)) throw error;
      unfound.push({ kind: kind.name, error });
    }
    await verifyNamed(kind, probes, probed, unmatched);
  }
  const unmatched = isAmong ? [] : found.flatMap((each) => each.found.unmatched ?? []);
  for (const probe of unmatched) logger.warn({ probe }, whys.get(probe) ?? matchesNothing);
  const asks = { specs: specs ?? [], inlined, wakes, known };
  return { elf, arch, debug, kinds: found, ...asks, planned: new Map(), others, isAmong, unfound };
}

/** The probes of a program, to resolve them once more. */
function specsAgain({ specs, kinds: found, unfound }: Program): readonly AnyProbe[] | undefined {
  return specs.length === 0 && found.length + unfound.length === 0 ? undefined : specs;
}

function logFound(logger: Logger, kind: string, { addresses, excluded = [] }: Found): void {
  logger.debug({ kind, places: addresses.length, excluded: excluded.length }, 'probes are resolved');
  for (const { name, reason } of excluded) logger.debug({ function: name, why: reason }, 'is not probed');
}

/**
 * The program with its addresses in the target: a position-independent one is read once more if it is not where it
 * was prepared for. `wait`: for a kernel that its loader moves.
 */
export async function loadedProgram(
  program: Program,
  session: Session,
  logger: Logger,
  wait?: Partial<KernelWait>,
): Promise<Program> {
  const elf = await loadedElf(session, program.elf, wait);
  const inlined = inlinedIn(program, session);
  if (elf === program.elf && inlined === program.inlined) return program;
  if (elf !== program.elf) logger.info({ bias: hex(elf.loadBias) }, 'the program is position-independent');
  return understand(elf, specsAgain(program), program.known, logger, { ...program, inlined });
}

/** Where no probe can do without stops, they are spared. */
function inlinedIn({ inlined, arch }: Program, session: Session): PollOptions['inlined'] {
  const why = whyNoTrampolines(arch, isProcess(session.features));
  return (inlined ?? 'auto') === 'auto' && why !== undefined ? 'needed' : inlined;
}

/** The same, where it is known how far the program was moved. */
export async function programAt(program: Program, bias: bigint, logger: Logger): Promise<Program> {
  if (bias === program.elf.loadBias) return program;
  return understand(program.elf.loadedAt(bias), specsAgain(program), program.known, logger, program);
}

/**
 * Addresses at which the target's code is compared with the ELF's: those of the probes, or the program's entry if
 * only data is watched.
 */
export function codeToVerify(program: Program): Addr[] {
  const probes = addressesOf(program);
  const { entry } = program.elf;
  return probes.length > 0 || program.elf.bytesAt(entry, 1) === undefined ? probes : [entry];
}

/** Every address of a probe, each once, in ascending order. */
export function addressesOf({ kinds: found }: Program): Addr[] {
  return [...new Set(found.flatMap((each) => each.found.addresses))].sort((a, b) => (a < b ? -1 : 1));
}

/** What is traced by watchpoints. */
export function watchesOf({ kinds: found }: Program): readonly FoundWatches[] {
  return found.flatMap((each) => each.found.watches ?? []);
}

/** The system calls that are traced of a process, if any are. */
export function systemCallsOf({ kinds: found }: Program): Found['systemCalls'] {
  const asked = found.flatMap((each) => each.found.systemCalls ?? []);
  if (asked.length === 0) return undefined;
  const numbers = asked.flatMap(({ of }) => (of === 'all' ? [] : of));
  return {
    of: asked.some(({ of }) => of === 'all') ? 'all' : [...new Set(numbers)],
    text: asked.map(({ text }) => text).join(', '),
  };
}

/** How often stacks are sampled, if they are. */
export function samplesOf({ kinds: found }: Program): FoundSamples | undefined {
  return found.find((each) => each.found.samples)?.found.samples;
}

/** After an exec: whether the process runs the ELF, loaded at the same address. */
export async function isLoadedAlike(
  session: Session,
  linked: ElfFile,
  loaded: ElfFile,
  code: readonly Addr[],
): Promise<boolean> {
  try {
    const now = await loadedElf(session, linked);
    return now.loadBias === loaded.loadBias && (await verifyCode(session, loaded, code)).absent.length < code.length;
  } catch (error) {
    if (error instanceof RsptraceError && /^(LOAD_ADDRESS_UNKNOWN|ELF_MISMATCH)$/.test(error.code)) return false;
    throw error;
  }
}

/** The options of a recording that decide which engine a probe can have. */
export interface EnginePlanWishes {
  readonly wanted?: EngineName | undefined;
  readonly stackDepth?: number | undefined;
  /** Arguments and results are recorded. */
  readonly values?: boolean | undefined;
  /** Every return is wanted, where it takes a stop too: for limits of times. `mixed` wants them always. */
  readonly returns?: boolean | undefined;
  /** Where the recording ends. */
  readonly until?: Addr | undefined;
  readonly panics?: readonly Addr[] | undefined;
}

/**
 * Chooses engines as far as possible before the target is known; for `record`, and for a preview. Slow with many
 * probes: it takes as long as reading the program. So call it before connecting, with the options of `record`. The
 * result is cached on the program.
 *
 * @throws RsptraceError `ENGINE_UNAVAILABLE` if the engine without stops is asked for and something is watched;
 * `STACKS_UNAVAILABLE` if stacks are asked for and no poll is traced
 */
export function enginePlan(program: Program, options: EnginePlanWishes = {}): EnginePlanOptions {
  const { wanted = 'auto', stackDepth, values = true, until, panics = [] } = options;
  const ends = [...(until === undefined ? [] : [until]), ...panics];
  const returns = wanted === 'mixed' || options.returns === true;
  const key = [wanted, stackDepth, values, returns, ...ends].join();
  const plan = program.planned.get(key) ?? planAll(program, wanted, { stackDepth, values, returns }, ends);
  program.planned.set(key, plan);
  return plan;
}

/** Bytes of code that the trampolines of a recording may need, see `codeRoom`. */
export function trampolineRoom(program: Program, options?: EnginePlanWishes): number {
  return codeRoom(planEngines(enginePlan(program, options)).sites);
}

function planAll(
  program: Program,
  wanted: EngineName,
  asked: Pick<PlanWishes, 'stackDepth' | 'values' | 'returns'>,
  ends: readonly Addr[],
): EnginePlanOptions {
  const { arch, elf, debug } = program;
  const [watch] = watchesOf(program).flatMap(({ planned }) => planned);
  if (wanted === 'target' && watch) {
    throw new RsptraceError('ENGINE_UNAVAILABLE', `'${watch.spec.text}' cannot be carried out without stops`, {
      hint: '--engine auto stops for what is watched, and for what else needs it',
    });
  }
  if (asked.stackDepth !== undefined && ![program, ...program.others].some(readsStacks)) {
    const reader = kinds.find((kind) => kind.readsStacks)?.name;
    throw new RsptraceError('STACKS_UNAVAILABLE', `--bt records who polls, and no ${reader} is traced`, {
      hint: `add --probe '${reader}:GLOB', or leave --bt out`,
    });
  }
  const plans = plansOf(program, asked);
  const options: EnginePlanOptions = {
    arch,
    wanted,
    plans: plans.map((plan) => (ends.includes(plan.address) ? { ...plan, needsStop: endsThere } : plan)),
    bytesAt: (address, length) => elf.bytesAt(address, length),
    entries: wanted === 'stop' || !arch.probeCode ? undefined : CodeEntries.of(elf, arch),
    facts: changesItsCode(elf) ? undefined : codeFacts(elf, arch, debug),
    harts: 1,
  };
  const looks = lookAtPlans(options);
  options.entries?.keep();
  return { ...options, looks };
}

/** What hits of a program's probes read. */
export function plansOf(
  { kinds: found, arch }: Program,
  asked: Pick<PlanWishes, 'stackDepth' | 'values' | 'returns'>,
): readonly ReadPlan[] {
  const [general, floats] = [new Set(arch.generalRegisters), new Set(arch.probeCode?.floats)];
  const wishes = { arch, general, floats, ...asked };
  return mergePlans(found.flatMap((each) => each.kind.plans?.(each.found, wishes) ?? []));
}

function readsStacks({ kinds: found }: Program): boolean {
  return found.some(({ kind }) => kind.readsStacks);
}

/** The choice of engines once the target is known: how many harts it has, and how trampolines tell them apart. */
export function planHarts(
  { arch, elf, debug }: Program,
  session: Session,
  harts: number,
): Pick<EnginePlanOptions, 'harts' | 'hart'> {
  const several = harts > 1 && !isProcess(session.features);
  return { harts, hart: several ? hartSource(arch, elf, debug, harts) : undefined };
}

/**
 * The address of a function by its symbol, mangled or not, as the ELF counts.
 * @throws RsptraceError `UNTIL_NO_FUNCTION`
 */
export function functionNamed(elf: ElfFile, name: string): Addr {
  const matches = compileGlob(name);
  const exact = elf.symbols.named(name).find(({ type }) => type !== 'object');
  const found =
    exact ??
    [...elf.symbols].find((symbol) => symbol.type === 'function' && matches(demangle(symbol.name, elf.budget)));
  if (found) return found.address;
  throw new RsptraceError('UNTIL_NO_FUNCTION', `${elf.path} has no function ${name}`, {
    hint: 'give its symbol, or its path with * for what you do not know',
  });
}
