import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import {
  examineTrampolines,
  madeUpScratch,
  type TrampolineReport,
  type TrampolineSubject,
  targetScratch,
  trampolinesJson,
  trampolinesText,
} from '../doctor/index.js';
import { planEngines } from '../engines/index.js';
import { parseProbe } from '../probes/index.js';
import { enginePlan, loadedProgram, type Program, planHarts, prepare } from '../record/index.js';
import { isProcess } from '../rsp/index.js';
import { verifyArchitecture } from '../target/index.js';
import { jsonLine } from '../text/index.js';
import { atTarget, stubOpener } from './at-target.js';
import { ExitCode } from './failure.js';
import { checkFiles } from './files.js';
import { createLogger } from './logging.js';
import { debugFilesOf } from './options/common.js';
import type { DoctorArguments } from './options/target.js';
import { givenScratchOf } from './scratch-options.js';

/**
 * `rsptrace doctor --trampolines kernel.elf`: the code that a recording would write; `--code FUNCTION`: this
 * function's, with the proof. Gives the exit status.
 */
export async function showTrampolines(args: DoctorArguments): Promise<number> {
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
  process.stdout.write(args.json ? jsonLine(trampolinesJson(report)) : trampolinesText(report));
  return ExitCode.recorded;
}

function isWhole({ code }: DoctorArguments): boolean {
  return code !== undefined;
}

/** Marks a program that an operating system loads: the path of its dynamic linker (gABI, chapter 5). */
const PT_INTERP = 3;

function fromElf(args: DoctorArguments, program: Program): TrampolineReport {
  const { elf, arch } = program;
  const process = elf.segments.some(({ type }) => type === PT_INTERP);
  const plan = { ...enginePlan(program, { stackDepth: args.bt }), process };
  const { given } = givenScratchOf(args, elf);
  const why = 'without --remote no target says where memory is free';
  return examineTrampolines(
    { elf, arch, plan },
    madeUpScratch(elf, planEngines(plan), why, given?.address),
    isWhole(args),
  );
}

/** At the places that a recording would use. The target is stopped meanwhile; no code is written. */
function fromTarget(args: DoctorArguments, remote: string, linked: Program, logger: Logger): Promise<TrampolineReport> {
  const open = stubOpener(remote, { args, logger, arch: linked.arch, elf: linked.elf.path });
  return atTarget(open, async ({ session }) => {
    const program = await loadedProgram(linked, session, logger);
    const { elf, arch } = program;
    verifyArchitecture(session, arch);
    const harts = (await session.harts()).length;
    const wanted = { ...enginePlan(program, { stackDepth: args.bt }), process: isProcess(session.features) };
    const subject: TrampolineSubject = { elf, arch, plan: { ...wanted, ...planHarts(program, session, harts) } };
    return examineTrampolines(subject, await targetScratch(session, subject, givenScratchOf(args, elf)), isWhole(args));
  });
}
