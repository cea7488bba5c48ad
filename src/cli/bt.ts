import { type CoreStacks, stacksAt, stacksInCore } from '../api/index.js';
import type { Architecture } from '../arch/index.js';
import { openMemoryImage } from '../async/tasks/index.js';
import type { Logger } from '../base/logger.js';
import { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { architectureFor, loadedElf, verifyArchitecture } from '../target/index.js';
import { SourceFrames } from '../target/unwind/index.js';
import { jsonLine } from '../text/index.js';
import { ExitCode } from './failure.js';
import { lookAt, placedAsIn, programOf } from './local-process.js';
import { createLogger } from './logging.js';
import { openElf } from './open-elf.js';
import { wireRecorder } from './open-output.js';
import { debugFilesOf } from './options/common.js';
import type { BacktraceArguments } from './options/target.js';
import { stacksJson, stacksText } from './stacks-report.js';
import { lineWidth } from './terminal.js';

/**
 * `rsptrace bt --remote ADDR kernel.elf`, `--pid PID` or `--core FILE`: the stack of each hart or thread. Gives the
 * exit status.
 */
export async function backtrace(given: BacktraceArguments): Promise<number> {
  const logger = createLogger(given.log);
  const args = { ...given, elf: programOf(given) };
  const linked = placedAsIn(args, await openElf(args, logger));
  const arch = architectureFor(linked);
  await arch.prepare();
  const load = (elf: ElfFile): DebugInfo | undefined =>
    elf.has('.debug_info') ? DebugInfo.load(elf, { logger, linesSuffice: true }) : undefined;
  const known = load(linked);
  if (args.core !== undefined) {
    using image = await openMemoryImage(args.core, undefined, linked);
    const options = { unwinder: args.unwinder, depth: args.depth, locals: args.locals };
    const program = { arch, debugOf: load, logger, ...debugFilesOf(args) };
    return print(args, await stacksInCore(image, linked, program, options));
  }
  using wire = wireRecorder(args, logger);
  const stub = { args, logger, wire, arch, elf: args.elf };
  return await lookAt(args, stub, ({ session }) => printStacks(session, args, { linked, arch, known, load, logger }));
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
  args: BacktraceArguments & { readonly elf: string },
  { linked, arch, known, load, logger }: Linked,
): Promise<number> {
  verifyArchitecture(session, arch);
  const elf = await loadedElf(session, linked);
  const debug = elf === linked ? known : load(elf);
  const options = { unwinder: args.unwinder, depth: args.depth, locals: args.locals };
  const program = { elf, arch, debug, logger, ...debugFilesOf(args) };
  const { harts: found, libraries } = await stacksAt(session, program, options);
  if (await (await session.stub()).neverRan()) session.close();
  else await session.detach();
  return print(args, { elf, debug, harts: found, libraries, isProcess: isProcess(session.features) });
}

function print(
  args: BacktraceArguments & { readonly elf: string },
  { elf, debug, harts: found, libraries, isProcess: hasThreads }: CoreStacks,
): number {
  const sources = new SourceFrames(elf, debug);
  const { loaded, missing } = libraries;
  const notes = missing.map(({ name, why }) => `not read: ${name}: ${why}\n`);
  process.stdout.write(
    args.json
      ? jsonLine({
          ...{ version: 1, program: args.elf, libraries: loaded.map(({ path }) => path), missing_libraries: missing },
          harts: stacksJson(found, sources),
        })
      : [stacksText(found, sources, hasThreads, lineWidth()), ...notes].join('\n'),
  );
  return ExitCode.recorded;
}
