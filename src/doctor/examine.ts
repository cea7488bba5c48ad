import { type Architecture, architectureNamed, type SystemState } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type ClockName, clockNames, findClock } from '../clock/index.js';
import type { ElfFile } from '../elf/index.js';
import { type Hart, isProcess, registersOf, type Session } from '../rsp/index.js';
import type { ScratchSources } from '../scratch/index.js';
import { runIntoKernel, unseenHarts } from '../target/index.js';
import type { ClockInfo } from '../trace/index.js';
import { type Advice, adviceFor } from './advice.js';
import { type HitReport, hitRate, type RunContext, whyUnstoppable } from './hits.js';
import { examineProgram, functionsAcross, type ProgramReport, type Subject } from './program.js';
import {
  abilitiesOf,
  countHardware,
  identify,
  type RoundTrips,
  roundTrips,
  type Server,
  type StubAbilities,
} from './stub.js';

export interface HartReport extends SystemState {
  readonly id: string;
  readonly name: string | undefined;
  readonly pc: Addr | undefined;
  readonly sp: Addr | undefined;
}

/** All that was found out. */
export interface Diagnosis {
  readonly server: Server;
  readonly session: Session;
  readonly abilities: StubAbilities;
  /** How many hardware breakpoints there are; undefined if there is no limit, or there are none. */
  readonly hardware: number | undefined;
  /** The target's architecture, if it can be traced. */
  readonly arch: Architecture | undefined;
  /** The guest was never started. */
  readonly fresh: boolean;
  /** At most 64 of them are examined. */
  readonly harts: readonly HartReport[];
  readonly hartCount: number;
  /** Those of the machine that the stub does not list. */
  readonly hartsUnseen: number;
  readonly clocks: readonly UsableClock[];
  readonly times: RoundTrips;
  readonly program: ProgramReport | undefined;
  readonly elf: ElfFile | undefined;
  readonly hits: HitReport;
  readonly advice: readonly Advice[];
}

interface ExamineOptions extends Pick<RunContext, 'session' | 'logger' | 'signal'> {
  /** The guest was never started. */
  readonly fresh: boolean;
  /** The program that should run there, if any is named. */
  readonly subject: Subject | undefined;
  readonly scratch: ScratchSources;
  readonly timebaseHz: number;
  /** Whether the guest may be let run. */
  readonly mayRun: boolean;
}

const mostHarts = 64;
/** How many harts' pcs are read when the guest is interrupted. */
const sampledHarts = 8;

/**
 * Finds out what a stub and its target are and can do, and how fast. The target is stopped before and after it. If it
 * may, it runs for about a second, with breakpoints that are all removed at the end.
 */
export async function examine(options: ExamineOptions): Promise<Diagnosis> {
  const { session, logger, fresh, subject, signal } = options;
  const server = await identify(session);
  const named = architectureNamed(session.target.architecture ?? '');
  const arch = named ?? (session.target.architecture === undefined ? subject?.arch : undefined);
  await arch?.prepare();
  if (arch && !arch.systemRegisters && !isProcess(session.features))
    logger.warn({ arch: arch.name }, 'modes and paging are not told: system registers are not known');
  const all = await session.harts();
  const hartsUnseen = await unseenHarts(session, all.length);
  const harts = await hartReports(session, arch, all.slice(0, mostHarts));
  const [first] = harts;
  const { pc = addr(0), sp } = first ?? {};
  const kind = arch?.breakpointKind(new Uint8Array(4)) ?? 4;
  const abilities = await abilitiesOf(session, { code: pc, data: addr((sp || pc) & ~7n), kind });
  const hardware =
    !(await session.stub()).isQemu && abilities.breakpoints.includes(1)
      ? await countHardware(session, pc, kind)
      : undefined;
  // A program in user mode sees neither the kernel's code nor all of its clocks.
  const text = subject && (subject.addresses[0] ?? functionsAcross(subject.elf)[0]);
  if (options.mayRun && arch && !isProcess(session.features)) await runIntoKernel(session, arch, text, logger);
  let clocks = arch ? await usableClocks(session, arch, options.timebaseHz) : [];
  const page = (address: Addr): Addr => addr(address & ~0xfffn);
  const texts = subject?.addresses.slice(0, 1) ?? [];
  const times = await roundTrips(
    session,
    [pc, sp, ...texts].flatMap((each) => (each === undefined ? [] : page(each))),
  );
  const program = subject && (await examineProgram(session, subject, options.scratch));

  const usable = subject && program?.problem === undefined && subject.arch === arch ? subject : undefined;
  let hits: HitReport = notRun(options.mayRun ? 'the architecture is not known' : '--no-run');
  if (options.mayRun && arch) {
    const bytesAt: RunContext['bytesAt'] = (address, length) => usable?.elf.bytesAt(address, length);
    const context: RunContext = { session, arch, logger, bytesAt, signal };
    const unstoppable = await whyUnstoppable(context, server);
    if (unstoppable !== undefined) hits = notRun(unstoppable);
    else {
      await session.passSignals();
      hits = await hitRate(context, {
        wanted: usable && program ? placesFor(usable, program, server) : [],
        functionAt: (at) => functionAt(usable?.elf, at),
        fresh,
        harts: harts.slice(0, sampledHarts).map(({ id }) => id),
      });
    }
  }
  // Firmware and kernel set clocks up, so a recording chooses at its first hit.
  if (fresh && arch && session.state.kind === 'idle' && hits.ranMs > 0) {
    clocks = await usableClocks(session, arch, options.timebaseHz);
  }
  const found = {
    ...{ server, session, abilities, hardware, arch, fresh, harts, hartCount: all.length, hartsUnseen, clocks, times },
    ...{ program, elf: usable?.elf, hits },
  };
  return { ...found, advice: adviceFor(found) };
}

function notRun(why: string): HitReport {
  return { rate: undefined, why, ranMs: 0, stands: true };
}

async function hartReports(
  session: Session,
  arch: Architecture | undefined,
  harts: readonly Hart[],
): Promise<HartReport[]> {
  const reports: HartReport[] = [];
  const wanted = (arch?.systemRegisters?.names ?? []).filter((name) => session.target.register(name));
  for (const { id, name } of harts) {
    const reply = await registersOf(session, id, wanted);
    const read = (register: string | undefined): Addr | undefined => {
      const value = register === undefined ? undefined : reply.register(register);
      return value === undefined ? undefined : addr(value);
    };
    // A process has no such registers of its own, even where its stub shows some.
    const system = isProcess(session.features) ? undefined : arch?.systemRegisters?.state(reply);
    reports.push({
      ...(system ?? { mode: undefined, paging: undefined, registers: [] }),
      id,
      name,
      pc: read(arch?.pc),
      sp: read(arch?.sp),
    });
  }
  return reports;
}

/**
 * Places that the guest may pass: its probes, else its functions. Only if the ELF's code is loaded. Elsewhere loading
 * would overwrite a trap instruction, and removing the trap would overwrite the code. QEMU's translator writes none.
 */
function placesFor({ elf, addresses }: Subject, { same }: ProgramReport, server: Server): readonly Addr[] {
  const translated = server.name === 'qemu-system' && server.accelerator !== 'kvm';
  if (!translated) return same;
  return addresses.length > 0 ? addresses : functionsAcross(elf);
}

function functionAt(elf: ElfFile | undefined, pc: Addr): Addr | undefined {
  const symbol = elf?.symbols.at(pc);
  return symbol?.type === 'function' ? symbol.address : undefined;
}

/** A clock that can be read now. */
interface UsableClock extends ClockInfo {
  /** Its name for `--clock`. */
  readonly option: ClockName;
  /** The one that `--clock auto` would take now. */
  readonly chosen: boolean;
}

/**
 * The clocks that answer at this stop, the best one first. On x86 the firmware or the kernel has to start some of them
 * first.
 */
async function usableClocks(session: Session, arch: Architecture, timebaseHz: number): Promise<UsableClock[]> {
  const found: UsableClock[] = [];
  for (const option of clockNames) {
    if (option === 'auto') continue;
    try {
      const { info } = await findClock(session, arch, () => 0, option, { timebaseHz });
      found.push({ ...info, option, chosen: found.length === 0 });
    } catch (error) {
      if (!(error instanceof RsptraceError && error.code === 'CLOCK_UNAVAILABLE')) throw error;
    }
  }
  return found;
}
