import type { Architecture, HartSource } from '../arch/index.js';
import type { Refusal } from '../base/errors.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { plural } from '../text/index.js';
import { cpuInTask, isLinux } from './linux.js';

/** A hart, as the stub calls it. */
interface HartCalled {
  readonly id: string;
  readonly name?: string | undefined;
}

/**
 * The stub's name for a hart, without its present activity: QEMU says `CPU#0 [running]`. Of a process the thread's
 * number in the system: `thread 1234 (worker)`.
 */
export function hartName({ id, name }: HartCalled, isProcess: boolean): string {
  if (!isProcess) return name?.replace(/\s*\[.*\]$/, '') || `hart ${id}`;
  const thread = /^(?:p[0-9a-f]+\.)?([0-9a-f]+)$/i.exec(id)?.[1];
  const number = thread === undefined ? id : Number.parseInt(thread, 16);
  return `thread ${number}${name ? ` (${name})` : ''}`;
}

/**
 * How the harts of a machine can be told apart from inside during the whole life of the program; refused in words for
 * the user.
 */
export function hartSource(
  { name, probeCode }: Architecture,
  elf: ElfFile,
  debug: DebugInfo | undefined,
  harts: number,
): HartSource | Refusal {
  if (!probeCode) return { refused: `trampolines for ${name} are not known` };
  return probeCode.hartSource({
    count: harts,
    cpuInTask: isLinux(elf) ? () => cpuInTask(elf, debug) : undefined,
  });
}

/**
 * How many harts a machine has that its stub does not list, where the stub can be asked. `listed`: those that it does.
 */
export async function unseenHarts(session: Session, listed: number): Promise<number> {
  const all = (await (await session.stub()).processors()) ?? listed;
  return Math.max(0, all - listed);
}

export function unseenText(unseen: number, listed: number): string {
  const [are, them] = unseen === 1 ? ['is', 'it'] : ['are', 'them'];
  return `QEMU lists ${plural(listed, 'hart')} of ${listed + unseen} to its debugger: ${unseen} ${are} not traced, and code on ${them} runs past all breakpoints; a machine with its harts in one cluster shows all (-M virt)`;
}

/** Longer instructions make a turn so short that stops cost more: 2^8 ns. */
const shortTurn = 256;

/**
 * Whether QEMU runs the harts one after another, each for so many instructions that a target that stops hardly goes on.
 */
export function takesTurns(nanosPerInstruction: number | undefined, harts: number): boolean {
  return harts > 1 && nanosPerInstruction !== undefined && nanosPerInstruction < shortTurn;
}

export const turnsText =
  "QEMU's -icount runs one hart at a time, each for up to 0.1 s of the guest's time: after a stop it may be another's turn, and one that spins for a lock uses it up; -icount shift=10 makes turns short, -smp 1 spares them";
