import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal, RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import {
  cautionsOf,
  type EngineName,
  type EnginePlanOptions,
  findHurdles,
  type Hurdle,
  unavailable,
} from '../engines/index.js';
import type { ReadPlan, WatchPlace } from '../probes/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import {
  GuestRam,
  hartName,
  insideKernel,
  meanwhile,
  pageTableChanges,
  pagingIsFinal,
  type TablePlace,
  takesTurns,
  turnsText,
  unseenHarts,
  unseenText,
  verifyArchitecture,
  verifyCode,
  verifyPlace,
} from '../target/index.js';
import type { ProbeFact } from '../trace/index.js';
import { HartNumbers, HartWords } from './harts.js';
import {
  codeToVerify,
  enginePlan,
  loadedProgram,
  type Program,
  planHarts,
  plansOf,
  samplesOf,
  systemCallsOf,
  watchesOf,
} from './program.js';
import { choicesOfOthers } from './programs.js';
import type { RecordOptions } from './recording.js';
import { verifySampling } from './sampler.js';

/** A target that runs the program: what is known about both before anything is inserted. */
export interface Verified {
  /** With its addresses in the target. */
  readonly program: Program;
  /** A process of Linux; else a machine. */
  readonly isProcess: boolean;
  /** Where the target's code was compared with the ELF's. */
  readonly code: readonly Addr[];
  /** None of that code is in the target yet. */
  readonly isAbsent: boolean;
  /** It runs already, with all of that code: trampolines need not wait for a hit. */
  readonly runs: boolean;
  /**
   * The program is there and has begun, as far as the stub says whether it has: its clock is what it will be at a hit.
   */
  readonly hasBegun: boolean;
  /** Other code is there now: the program runs in other address spaces than the present one. */
  readonly isElsewhere: boolean;
  readonly plan: EnginePlanOptions;
  /** Of the probes of further programs: what hits read, and how they are carried out. */
  readonly plansOfOthers: readonly ReadPlan[];
  readonly choicesOfOthers: readonly ProbeFact[];
  readonly harts: HartNumbers;
  /** Harts of the machine that the stub does not list. */
  readonly unseen: number;
  /** Stops will make the harts take long turns. */
  readonly inTurn: boolean;
  readonly words: HartWords;
  readonly places: readonly WatchPlace[];
  /** The recording ends there. */
  readonly until: Addr | undefined;
  readonly panics: readonly Addr[];
  /**
   * The address where the kernel's page table is its last one; undefined if it is that already, or if the address is
   * not known.
   */
  readonly settlesAt: Addr | undefined;
  /** Where the last page table may come into use: {@link settlesAt}, or behind what turns paging on. */
  readonly pagingAt: readonly TablePlace[];
  /** The machine's RAM past the wire, or why it is read by packets; undefined where there is only the wire. */
  readonly ram: GuestRam | Refusal | undefined;
  /** What will keep probes from running without stops: what shows itself later is added. */
  readonly hurdles: Hurdle[];
  /** Why the kernel's first moments are not recorded, if it had to be found while it ran. */
  readonly foundLate: string | undefined;
}

/**
 * Whether a machine has the code of a program, as far as that is loaded. For who changes the machine before it is
 * recorded.
 * @throws RsptraceError `ARCH_MISMATCH`, `ELF_MISMATCH`, `KERNEL_MOVES`, `RSP_*`
 */
export async function verifyProgram(session: Session, program: Program): Promise<void> {
  verifyArchitecture(session, program.arch);
  await verifyCode(session, program.elf, codeToVerify(program));
}

/**
 * First phase: compares the target with the ELF, before anything is inserted.
 * @throws RsptraceError `ARCH_MISMATCH`, `ELF_MISMATCH`, `KERNEL_MOVES`, `LOAD_ADDRESS_UNKNOWN`, `RSP_*`, `WATCH_*`,
 * `SAMPLES_UNAVAILABLE`, `CALLS_UNAVAILABLE`
 */
export async function verify(options: RecordOptions): Promise<Verified> {
  const { session, logger = silent } = options;
  verifyArchitecture(session, options.program.arch);
  const boots = isHiding(options.scratch) || (await isAtReset(session));
  const { program, missedMs } = await programInPlace(options, boots);
  const { arch, elf } = program;
  if (samplesOf(program)) await verifySampling(session);
  verifySystemCalls(session, systemCallsOf(program)?.text);
  const offset = elf.loadBias - options.program.elf.loadBias;
  const until = options.until && addOffset(options.until, offset);
  const panics = (options.panics ?? []).map((address) => addOffset(address, offset));
  const wanted = wantedEngine(options, logger);
  const returns = options.returns === true || (options.thresholdNs ?? 0) > 0;
  const wishes = { ...options, wanted, values: options.functions?.values, returns, until, panics };
  const plan = await meanwhile(options.letRun, () => enginePlan(program, wishes));
  const code = codeToVerify(program);
  await verifyPlace(session, arch, elf);
  const { absent, elsewhere } = await verifyCode(session, elf, code);
  verifyElsewhere(elsewhere.length, wanted, logger);
  const process = isProcess(session.features);
  await verifyOthers(session, program, wanted);
  if (!process && !arch.privilege)
    logger.warn(
      { arch: arch.name },
      'who runs on a hart is not known: hits by other programs are known by their code only',
    );
  for (const { text } of cautionsOf(elf)) logger.warn({}, text);
  const { harts, count, unseen } = await listedHarts(session, process, logger);
  const places = await Promise.all(watchesOf(program).map((watches) => watches.locate(session.memory())));
  const { settlesAt, pagingAt } = await pagingPlaces(options, program);
  const all = { ...plan, ...planHarts(program, session, count), process };
  const ram = await GuestRam.find(session, logger);
  const read = { stackDepth: options.stackDepth, values: options.functions?.values ?? true };
  // A recording begins with stops, also where its probes need none.
  const inTurn = takesTurns(options.nanosPerInstruction, count);
  if (inTurn) logger.warn({}, turnsText);
  const facts = { ...options.scratch, session, arch, elf, plan: all, pastWire: ram, logger };
  return {
    program,
    isProcess: process,
    code,
    ...{ isAbsent: absent.length === code.length, isElsewhere: elsewhere.length > 0 },
    runs: options.letRun !== undefined && absent.length + elsewhere.length === 0,
    hasBegun: process || (absent.length < code.length && !boots && (await isUnderWay(options))),
    plan: all,
    plansOfOthers: program.others.flatMap((other) => plansOf(other, read)),
    choicesOfOthers: choicesOfOthers(program, read),
    harts,
    ...{ unseen, inTurn },
    words: new HartWords(count),
    places: places.flat(),
    until,
    panics,
    settlesAt,
    pagingAt,
    ram,
    hurdles: [...(await findHurdles(facts))],
    foundLate: boots && missedMs > 0 ? late(program.elf, missedMs) : undefined,
  };
}

const taken =
  'calls still return through trampolines of the recording before: their memory is not taken twice, and all probes stop';

/** @throws RsptraceError `ENGINE_UNAVAILABLE` */
function wantedEngine({ reconnect, before, engine }: RecordOptions, logger: Logger): EngineName | undefined {
  // A second connection would not know what was written over the first.
  if (!before?.trampolinesNeeded) return reconnect ? 'stop' : engine;
  if (engine === 'target') throw unavailable(taken);
  logger.warn({}, taken);
  return 'stop';
}

/** `places`: how many have other code now. */
function verifyElsewhere(places: number, wanted: EngineName | undefined, logger: Logger): void {
  if (places === 0) return;
  // Its code would be patched in whatever address space is in use.
  if (wanted === 'target') throw unavailable(insideKernel);
  logger.info({ places }, 'other code is there now: hits count in the address spaces where the program runs');
}

/** Whether the target may have further programs. */
async function verifyOthers(session: Session, { others }: Program, wanted: EngineName | undefined): Promise<void> {
  if (others.length === 0) return;
  if (wanted === 'target' && others.some(({ kinds }) => kinds.length > 0)) throw unavailable(insideKernel);
  if ((await session.stub()).name === 'qemu-system') return;
  throw new RsptraceError(
    'ENGINE_UNAVAILABLE',
    'further programs are traced in a machine of QEMU, and this stub is another',
    {
      hint: 'leave --elf out',
    },
  );
}

async function listedHarts(session: Session, process: boolean, logger: Logger) {
  const known = (await session.harts()).map((hart) => ({ id: hart.id, name: hartName(hart, process) }));
  const harts = new HartNumbers(known, process);
  const { count } = harts;
  const unseen = await unseenHarts(session, count);
  if (unseen > 0) logger.warn({ unseen }, unseenText(unseen, count));
  return { harts, count, unseen };
}

/** The program with its addresses in the target, and what was missed at most of a kernel that had to be looked for. */
async function programInPlace(
  { session, program: linked, signal, loadBias, logger = silent }: RecordOptions,
  boots: boolean,
): Promise<{ readonly program: Program; readonly missedMs: number }> {
  let missedMs = 0;
  const onFound = (ms: number): void => {
    missedMs = ms;
  };
  const wait = { signal, known: loadBias, onFound, ...(boots ? bootWait : {}) };
  const program = await loadedProgram(linked, session, logger, wait);
  return { program, missedMs };
}

/** How long the boot of a kernel that its loader moves may take, and how often it is looked for, in milliseconds. */
const bootWait = { mostMs: 120_000, everyMs: 5 };

function late({ loadBias }: ElfFile, missedMs: number): string {
  return `where its loader puts the kernel was seen up to ${missedMs} ms after it began; --load-bias ${hex(addr(loadBias))} records that`;
}

/** Whether it is a machine that has not run yet. */
async function isAtReset(session: Session): Promise<boolean> {
  return !isProcess(session.features) && (await (await session.stub()).neverRan());
}

/** Whether it is a QEMU that somebody else has started, and that is not at a reset: other stubs do not say that. */
async function isUnderWay({ session, scratch, resetVector }: RecordOptions): Promise<boolean> {
  return !resetVector && scratch?.hidden === undefined && (await session.stub()).name === 'qemu-system';
}

/** Whether RAM was hidden from the guest: its kernel has not begun, though firmware may have run. */
function isHiding(scratch: RecordOptions['scratch']): boolean {
  return scratch?.hidden !== undefined && !isRefusal(scratch.hidden);
}

/** Before its kernel's first instruction a machine has not set up its last page table. */
async function pagingPlaces(
  { session, scratch }: RecordOptions,
  { elf, arch }: Program,
): Promise<Pick<Verified, 'settlesAt' | 'pagingAt'>> {
  const settlesAt = pagingIsFinal(elf);
  const places = settlesAt === undefined ? pageTableChanges(elf, arch) : [{ addresses: [settlesAt] }];
  const mayBegin = scratch?.hidden === undefined && !scratch?.given && places.length > 0;
  const begins = isHiding(scratch) || (mayBegin && (await isAtReset(session)));
  return begins ? { settlesAt, pagingAt: places } : { settlesAt: undefined, pagingAt: [] };
}

/** `text`: of the probe that asks for a process's system calls, if one does. */
function verifySystemCalls(session: Session, text: string | undefined): void {
  const { features } = session;
  if (text === undefined || (isProcess(features) && features.supported.get('QCatchSyscalls') === '+')) return;
  throw new RsptraceError('CALLS_UNAVAILABLE', `the stub cannot stop at system calls, which '${text}' needs`, {
    hint: isProcess(features)
      ? 'gdbserver can; strace shows them without any'
      : 'it debugs a machine: record its kernel to see the system calls of its programs',
  });
}
