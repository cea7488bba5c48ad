import { architectureOf } from '../arch/index.js';
import { hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { ElfFile } from '../dwarf/index.js';
import { type Leftovers, removeLeftovers, verifyArchitecture } from '../probes/index.js';
import { connect } from '../rsp/index.js';
import { ExitCode } from './failure.js';
import { createLogger } from './logging.js';
import { type CommonArguments, debugFilesOf } from './options.js';

export interface DetachArguments extends CommonArguments {
  readonly elf: string;
  readonly remote: string;
}

/** `rsptrace detach --remote ADDR kernel.elf`: cleans up after an rsptrace that was killed. Gives the exit status. */
export async function detach(args: DetachArguments): Promise<number> {
  const logger = createLogger(args.log);
  const elf = await ElfFile.open(args.elf, { ...debugFilesOf(args), logger });
  const arch = architectureOf(elf.machine);
  if (arch === undefined) {
    throw new RsptraceError(
      'ARCH_UNSUPPORTED',
      `${args.elf} is for an architecture (e_machine ${elf.machine}) that rsptrace does not know`,
      { hint: 'riscv64 (243) and x86_64 (62) are supported' },
    );
  }
  await arch.prepare();
  await using session = await connect(args.remote, {
    logger,
    timeoutMs: args.timeout,
    expectedArchitecture: arch.name,
    onConsole: (text) => process.stderr.write(text),
  });
  verifyArchitecture(session, arch);
  const leftovers = await removeLeftovers(session, arch, elf);
  await session.detach();
  process.stdout.write(args.json ? `${JSON.stringify(asJson(args, elf, leftovers))}\n` : asText(leftovers));
  return ExitCode.recorded;
}

function asJson(args: DetachArguments, elf: ElfFile, leftovers: Leftovers): object {
  const named = (addresses: Leftovers['restored']): object[] =>
    addresses.map((address) => ({ address: hex(address), function: elf.symbols.at(address)?.name ?? null }));
  return {
    version: 1,
    program: args.elf,
    compared: leftovers.compared,
    restored: named(leftovers.restored),
    breakpoints: named(leftovers.breakpoints),
    different: named(leftovers.different),
    absent: leftovers.absent,
  };
}

function asText({ compared, restored, breakpoints, different, absent }: Leftovers): string {
  const lines = [];
  if (restored.length > 0) lines.push(`${functions(restored.length)} restored`);
  if (breakpoints.length > 0) lines.push(`${functions(breakpoints.length)} freed of a breakpoint`);
  if (lines.length === 0) lines.push(`nothing to do: no function of ${compared} jumps to a trampoline`);
  if (different.length > 0)
    lines.push(`${functions(different.length)} not as in the ELF for another reason: left alone`);
  if (absent > 0) lines.push(`${functions(absent)} not loaded`);
  return `${lines.join('\n')}\n`;
}

function functions(count: number): string {
  return count === 1 ? '1 function' : `${count} functions`;
}
