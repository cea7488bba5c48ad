import { abortAtSignal } from '../api/index.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import {
  diagnosisJson,
  diagnosisText,
  examine,
  examineTrampolines,
  madeUpScratch,
  type Subject,
  type TrampolineReport,
  targetScratch,
  trampolinesJson,
  trampolinesText,
} from '../doctor/index.js';
import { ElfFile } from '../elf/index.js';
import { planEngines } from '../engines/index.js';
import { parseProbe } from '../probes/index.js';
import {
  addressesOf,
  enginePlan,
  loadedProgram,
  type Program,
  planHarts,
  prepare,
  trampolineRoom,
} from '../record/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { expectedAtReset, type ScratchSources } from '../scratch/index.js';
import { architectureFor, isLinuxProgram, loadedElf, verifyArchitecture } from '../target/index.js';
import { atStub } from './at-target.js';
import { ExitCode, reportError } from './failure.js';
import { checkFiles } from './files.js';
import { createLogger } from './logging.js';
import { debugFilesOf } from './options/common.js';
import type { DoctorArguments } from './options/target.js';
import { givenScratchOf, hidesRam } from './recording/asked.js';
import { printed } from './terminal.js';
import { usageError } from './usage-error.js';

/** A program before the target is known; without probes where there are none, and none were asked for. */
type Linked =
  | { readonly program: Program; readonly elf: ElfFile; readonly noProbes: undefined }
  | { readonly program: undefined; readonly elf: ElfFile; readonly noProbes: RsptraceError };

/** `rsptrace doctor --remote ADDR [kernel.elf]`: what is possible here, and how fast. Gives the exit status. */
export async function doctor(args: DoctorArguments): Promise<number> {
  if (args.trampolines || args.code !== undefined) return showTrampolines(args);
  const { remote } = args;
  if (remote === undefined) throw usageError('Missing required arguments: remote');
  if (remote.startsWith('replay:')) {
    throw new RsptraceError('USAGE', 'doctor measures times, which a recording of the wire cannot repeat', {
      hint: 'give --remote a stub',
    });
  }
  const logger = createLogger(args.log);
  const linked = args.elf === undefined ? undefined : await read(args.elf, args, logger);
  checkFiles(args, linked?.elf.debugFiles);
  const scratch = linked ? givenScratchOf(args, linked.elf) : {};
  const before = { args, logger, arch: linked && architectureFor(linked.elf), path: linked?.elf.path };
  const found = await atStub(remote, before, async ({ session, recordingBegins }) => {
    recordingBegins();
    const stopper = new AbortController();
    using _handled = abortAtSignal(stopper);
    const fresh = await (await session.stub()).neverRan();
    try {
      const hidden = linked && (await expectedRam(args, linked, session));
      const subject = linked && (await loaded(linked, session, args, logger));
      return await examine({
        ...{ session, logger, fresh, subject, scratch: { ...scratch, ...(hidden && { hidden }) } },
        ...{ timebaseHz: args.timebase, mayRun: args.run, signal: stopper.signal },
      });
    } finally {
      // A guest that was never started is left stopped; any other runs on.
      if (fresh && session.state.kind === 'idle') await session.clearBreakpoints();
      if (fresh) session.close();
    }
  });
  printed(args, diagnosisJson(found), () => diagnosisText(found));
  const problem = found.program?.problem;
  if (problem === undefined) return ExitCode.recorded;
  reportError(problem);
  return ExitCode.failed;
}

/** What a recording would keep from the guest of a machine that stands at its reset. */
async function expectedRam(
  args: DoctorArguments,
  { elf, program }: Linked,
  session: Session,
): Promise<ScratchSources['hidden'] | undefined> {
  if (!hidesRam(args, elf)) return undefined;
  const codeSize = program ? trampolineRoom(program, { stackDepth: args.bt }) : 0;
  return expectedAtReset({ session, arch: architectureFor(elf), elf, codeSize });
}

async function read(path: string, args: DoctorArguments, logger: Logger): Promise<Linked> {
  const specs = args.probe.map((text) => parseProbe(text));
  try {
    const program = await prepare(path, specs, logger, debugFilesOf(args));
    return { program, elf: program.elf, noProbes: undefined };
  } catch (error) {
    // A program without Futures, or without debug info, can be examined all the same.
    if (
      specs.length > 0 ||
      !(error instanceof RsptraceError) ||
      !/^(DWARF_MISSING|FUTURES_NONE|PROBE_)/.test(error.code)
    )
      throw error;
    const elf = await ElfFile.open(path, { ...debugFilesOf(args), logger });
    return { program: undefined, elf, noProbes: error };
  }
}

/**
 * The program at its addresses in the target. A process that has not loaded it is compared at the ELF's own
 * addresses, and found different.
 */
async function loaded(linked: Linked, session: Session, args: DoctorArguments, logger: Logger): Promise<Subject> {
  if (linked.program === undefined) {
    const elf = await loadedElf(session, linked.elf);
    return { elf, arch: architectureFor(elf), addresses: [], plan: undefined, previews: [], noProbes: linked.noProbes };
  }
  const { program, ...known } = await planned(linked.program, session, args, logger);
  const previews = program.kinds.flatMap(({ kind, found }) => kind.preview?.(found) ?? []);
  return { ...known, addresses: addressesOf(program), previews, noProbes: undefined };
}

/** The program at its addresses in the target, planned as a recording would. */
async function planned(linked: Program, session: Session, args: DoctorArguments, logger: Logger) {
  const program = await loadedProgram(linked, session, logger);
  const { elf, arch } = program;
  const harts = planHarts(program, session, (await session.harts()).length);
  const process = isProcess(session.features);
  return { program, elf, arch, plan: { ...enginePlan(program, { stackDepth: args.bt }), ...harts, process } };
}

/**
 * `rsptrace doctor --trampolines kernel.elf`: the code that a recording would write; `--code FUNCTION`: this
 * function's, with the proof. Gives the exit status.
 */
async function showTrampolines(args: DoctorArguments): Promise<number> {
  if (args.elf === undefined) {
    const option = args.code === undefined ? '--trampolines' : `--code ${args.code}`;
    throw new RsptraceError('USAGE', `${option} shows code of a program, and no ELF is given`, {
      hint: `rsptrace doctor ${option} kernel.elf`,
    });
  }
  const logger = createLogger(args.log);
  const program = await prepare(
    args.elf,
    [...(args.code === undefined ? [] : [`fn:${args.code}`]), ...args.probe].map((text) => parseProbe(text)),
    logger,
    debugFilesOf(args),
  );
  checkFiles(args, program.elf.debugFiles);
  const report =
    args.remote === undefined ? fromElf(args, program) : await fromTarget(args, args.remote, program, logger);
  return printed(args, trampolinesJson(report), () => trampolinesText(report));
}

function fromElf(args: DoctorArguments, program: Program): TrampolineReport {
  const { elf, arch } = program;
  const plan = { ...enginePlan(program, { stackDepth: args.bt }), process: isLinuxProgram(elf) };
  const { given } = givenScratchOf(args, elf);
  const why = 'without --remote no target says where memory is free';
  return examineTrampolines(
    { elf, arch, plan },
    madeUpScratch(elf, planEngines(plan), why, given?.address),
    args.code !== undefined,
  );
}

/** At the places that a recording would use. The target is stopped meanwhile; no code is written. */
function fromTarget(args: DoctorArguments, remote: string, linked: Program, logger: Logger): Promise<TrampolineReport> {
  return atStub(remote, { args, logger, arch: linked.arch, path: linked.elf.path }, async ({ session }) => {
    verifyArchitecture(session, linked.arch);
    const subject = await planned(linked, session, args, logger);
    const scratch = await targetScratch(session, subject, givenScratchOf(args, subject.elf));
    await session.leaveAsFound();
    return examineTrampolines(subject, scratch, args.code !== undefined);
  });
}
