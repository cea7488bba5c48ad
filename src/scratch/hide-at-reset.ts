import type { Architecture } from '../arch/index.js';
import { addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { commandLineOf, type MemoryPiece, qemuOptions, ResetVector, readMemoryTree } from '../target/index.js';
import { HiddenMemory } from './hidden-memory.js';
import { machinesWith } from './machines/index.js';
import { type Hide, largestRam } from './machines/machine.js';
import { machineOf } from './plan-hidden-memory.js';
import { alignDown, LARGE_PAGE, ramFor } from './scratch.js';
import type { HiddenSource } from './source.js';

const PT_LOAD = 1;
/** A page for the device tree, and one for code, and one for data. */
const LEAST = 3 * LARGE_PAGE;

/** A machine that may stand at its reset. */
interface AtReset {
  readonly session: Session;
  readonly arch: Architecture;
  readonly elf: ElfFile;
  /** Bytes that trampolines may need, see `codeRoom`. */
  readonly codeSize: number;
  readonly logger?: Logger;
}

/** A machine that stands at its reset, with RAM that its guest will not know of. */
interface HiddenAtReset {
  readonly hidden: HiddenMemory;
  readonly resetVector: ResetVector;
  /** QEMU's command line; empty if QEMU is not on this machine. */
  readonly command: readonly string[];
  /** Bytes of RAM that the guest does not know of. */
  readonly taken: number;
}

/** How RAM can be hidden at a reset. */
interface PlanAtReset extends Omit<HiddenAtReset, 'hidden'> {
  readonly visible: number;
  readonly hide: Hide;
}

/**
 * Whether RAM can be hidden from the guest of a QEMU that was started elsewhere with `-S` and has not run an
 * instruction. Changes nothing. Undefined for a target that has run, or that is no machine of QEMU.
 */
async function planAtReset({
  session,
  arch,
  elf,
  codeSize,
  logger,
}: AtReset): Promise<PlanAtReset | Refusal | undefined> {
  if (!(await (await session.stub()).neverRan())) return undefined;
  const resetVector = await ResetVector.find(session, arch, logger);
  if (resetVector === undefined) return undefined;
  const tree = readMemoryTree((await session.monitor('info mtree -f')) ?? '');
  const server = session.serverProcess('qemu');
  const command = typeof server === 'number' ? commandLineOf(server) : [];
  const largest = largestRam(tree) ?? { start: 0n, end: 0n };
  const ram = Number(largest.end - largest.start);
  const taken = Math.min(ramFor(codeSize), alignDown(ram / 4, LARGE_PAGE));
  if (taken < LEAST) return { refused: `the guest has only ${ram / 2 ** 20} MiB of RAM` };
  const known = knownIn(elf, largest.end - BigInt(taken), largest.end);
  if (known !== undefined) return { refused: `the kernel knows the end of RAM without being told: ${known}` };
  const hide = await hidingOf(arch, tree, command, ram);
  return isRefusal(hide) ? hide : { hide, visible: ram - taken, taken, resetVector, command };
}

/**
 * Hides RAM that is part of what `-m` gives, see {@link planAtReset}. A PC's firmware is run first; then the machine is
 * at the kernel's entry.
 */
export async function hideAtReset(machine: AtReset): Promise<HiddenAtReset | Refusal | undefined> {
  const plan = await planAtReset(machine);
  if (plan === undefined || isRefusal(plan)) return plan;
  const { hide, visible, taken, resetVector, command } = plan;
  const hidden = await HiddenMemory.reserve(machine.session, { hide, visible, hidden: taken });
  return isRefusal(hidden) ? hidden : { hidden, resetVector, command, taken };
}

/** What {@link hideAtReset} would give, for who only examines the machine. */
export async function expectedAtReset(machine: AtReset): Promise<HiddenSource | Refusal | undefined> {
  const plan = await planAtReset(machine);
  if (plan === undefined || isRefusal(plan)) return plan;
  const refused = `a recording that begins here keeps ${plan.taken / 2 ** 20} MiB of the guest's RAM from it`;
  return { isShared: false, map: async () => ({ refused, later: true }), hideAgain: async () => undefined };
}

/**
 * What of a program lies in physical memory, or names its end: a segment or a symbol. `_stack_start` of riscv-rt is
 * such a symbol: the end of the RAM that the linker script knows of.
 */
function knownIn(elf: ElfFile, start: bigint, end: bigint): string | undefined {
  const segment = elf.segments.find(
    ({ type, physical, memorySize }) =>
      type === PT_LOAD && memorySize > 0 && physical < end && physical + BigInt(memorySize) > start,
  );
  if (segment) return `its ELF is loaded at ${hex(segment.physical)}`;
  const symbol = elf.symbols.above(addr(start - 1n));
  return symbol && symbol.address <= end ? `its symbol ${symbol.name} is ${hex(symbol.address)}` : undefined;
}

async function hidingOf(
  arch: Architecture,
  tree: readonly MemoryPiece[],
  command: readonly string[],
  ram: number,
): Promise<Hide | Refusal> {
  const options = qemuOptions(command.slice(1));
  const type = machineOf(options).get('type');
  const machine = machinesWith(arch).find(({ isType, hasDeviceTree }) =>
    hasDeviceTree ? hasDeviceTree(tree) : command.length > 0 && isType(type),
  );
  if (machine === undefined) {
    return {
      refused: command.length > 0 ? 'this machine of QEMU is not known' : 'the command line of QEMU is not known',
    };
  }
  const hiding = await machine.hiding(options, type, ram, 0);
  return isRefusal(hiding) ? hiding : hiding.hide;
}
