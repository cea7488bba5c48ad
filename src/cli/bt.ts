import { stacksAt } from '../api/index.js';
import type { Architecture } from '../arch/index.js';
import type { Logger } from '../base/logger.js';
import { jsonLine } from '../base/visible.js';
import { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { architectureFor, loadedElf, verifyArchitecture } from '../facts/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { SourceFrames } from '../unwind/index.js';
import { atTarget, stubOpener } from './at-target.js';
import { ExitCode } from './failure.js';
import { createLogger } from './logging.js';
import { openElf } from './open-elf.js';
import { type CommonArguments, debugFilesOf } from './options.js';
import { stacksJson, stacksText } from './stacks-report.js';
import { lineWidth } from './terminal.js';
import { wireRecorder } from './wire-file.js';

export interface BacktraceArguments extends CommonArguments {
  readonly elf: string;
  readonly remote: string;
  readonly unwinder: 'auto' | 'cfi' | 'fp' | 'prologue';
  readonly depth: number;
  readonly locals: boolean;
}

/** `rsptrace bt --remote ADDR kernel.elf`: every hart's stack. Gives the exit status. */
export async function backtrace(args: BacktraceArguments): Promise<number> {
  const logger = createLogger(args.log);
  const linked = await openElf(args, logger);
  const arch = architectureFor(linked);
  await arch.prepare();
  const load = (elf: ElfFile): DebugInfo | undefined =>
    elf.has('.debug_info') ? DebugInfo.load(elf, { logger }) : undefined;
  const known = load(linked);
  using wire = wireRecorder(args, logger);
  const open = stubOpener(args.remote, { args, logger, wire, arch });
  return await atTarget(open, ({ session }) => printStacks(session, args, { linked, arch, known, load, logger }));
}

interface Linked {
  readonly linked: ElfFile;
  readonly arch: Architecture;
  readonly known: DebugInfo | undefined;
  readonly load: (elf: ElfFile) => DebugInfo | undefined;
  readonly logger: Logger;
}

async function printStacks(
  session: Session,
  args: BacktraceArguments,
  { linked, arch, known, load, logger }: Linked,
): Promise<number> {
  verifyArchitecture(session, arch);
  const elf = await loadedElf(session, linked);
  const debug = elf === linked ? known : load(elf);
  const options = { unwinder: args.unwinder, depth: args.depth, locals: args.locals };
  const program = { elf, arch, debug, logger, ...debugFilesOf(args) };
  const { harts: found, libraries } = await stacksAt(session, program, options);
  const sources = new SourceFrames(elf, debug);
  if (await (await session.stub()).neverRan()) session.close();
  else await session.detach();
  const { loaded, missing } = libraries;
  const notes = missing.map(({ name, why }) => `not read: ${name}: ${why}\n`);
  process.stdout.write(
    args.json
      ? jsonLine({
          ...{ version: 1, program: args.elf, libraries: loaded.map(({ path }) => path), missing_libraries: missing },
          harts: stacksJson(found, sources),
        })
      : [stacksText(found, sources, isProcess(session.features), lineWidth()), ...notes].join('\n'),
  );
  return ExitCode.recorded;
}
