import { hex } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import { type Leftovers, removeLeftovers } from '../inject/index.js';
import { isProcess } from '../rsp/index.js';
import { plural } from '../text/index.js';
import { loadedThere, lookAt, readProgram } from './look-at.js';
import type { DetachArguments } from './options/target.js';
import { printed } from './terminal.js';

/** `rsptrace detach --remote ADDR kernel.elf`: cleans up after an rsptrace that was killed. Gives the exit status. */
export async function detach(args: DetachArguments): Promise<number> {
  const read = await readProgram(args);
  const { logger, arch } = read;
  return await lookAt(read, async ({ session }) => {
    const elf = await loadedThere(session, read);
    const isOfServer = isProcess(session.features) && !(await session.stub()).isQemu;
    if (isOfServer && !arch.linux?.forgottenTraps)
      logger.warn({ arch: arch.name }, 'breakpoints that the server may have kept are not looked for: not known how');
    const leftovers = await removeLeftovers(session, arch, elf);
    await session.detach();
    return printed(args, asJson(args, elf, leftovers), () => asText(leftovers));
  });
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
    threads: leftovers.threads,
    traps: named(leftovers.traps),
  };
}

function asText({ compared, restored, breakpoints, different, absent, threads, traps }: Leftovers): string {
  const lines = [];
  if (restored.length > 0) lines.push(`${plural(restored.length, 'function')} restored`);
  if (breakpoints.length > 0) lines.push(`${plural(breakpoints.length, 'function')} freed of a breakpoint`);
  if (traps.length > 0) lines.push(`${plural(traps.length, 'breakpoint')} of the server taken out`);
  if (threads.length > 0) lines.push(`${plural(threads.length, 'thread')} freed of a system call of rsptrace`);
  if (lines.length === 0) lines.push(`nothing to do: no function of ${compared} jumps to a trampoline`);
  if (different.length > 0)
    lines.push(`${plural(different.length, 'function')} not as in the ELF for another reason: left alone`);
  if (absent > 0) lines.push(`${plural(absent, 'function')} not loaded`);
  return `${lines.join('\n')}\n`;
}
