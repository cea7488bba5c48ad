import type { Architecture, Privilege, Standing } from '../../arch/index.js';
import { type Addr, addOffset, addr, distance } from '../../base/addr.js';
import { isRefusal } from '../../base/errors.js';
import type { MemoryReader, RegisterReader } from '../../base/memory-reader.js';
import type { ElfFile } from '../../elf/index.js';
import { type Batch, isProcess, type Session } from '../../rsp/index.js';
import { changesItsCode, isOwnPage, pageBytes, seenMemory } from '../index.js';
import type { Frame, Stack, StackOptions, Stacks } from '../unwind/index.js';
import type { OtherPrograms } from './other-programs.js';

/** A stopped hart's stack. */
export interface HartStack {
  readonly stack: Stack;
  readonly registers: RegisterReader;
  /** The memory with the stack, as the hart's code sees it. */
  readonly memory: MemoryReader;
  /** The hart is in the firmware: the stack is that of the kernel below. */
  readonly firmware: Addr | undefined;
  /** The program whose stack it is. */
  readonly program: ElfFile;
  /** The hart runs a program that no ELF here describes: there are no frames. */
  readonly other: OtherCode | undefined;
}

export interface OtherCode {
  readonly pc: Addr;
  readonly privilege: Privilege | undefined;
  /** Programs that have this code, but cannot be told apart by what the hart sees of them. */
  readonly oneOf: readonly ElfFile[];
}

/** What is known of a hart, or of code, before its stack is walked. */
interface HartStackOptions extends StackOptions {
  /** The answer to {@link askRegisters}; without it they are read. */
  readonly registers?: RegisterReader;
  /** Reads what a hart with these registers sees, faster than by packets, which read what it does not. */
  readonly faster?: ((registers: RegisterReader, packets: MemoryReader) => MemoryReader) | undefined;
  /** Pages that were found to have the ELF's code, for harts outside of user mode: more are added. */
  readonly ownPages?: Set<string>;
  /** Further programs of the machine. */
  readonly others?: OtherPrograms | undefined;
}

/** Asks for the registers that a hart's stack is walked with. */
export function askRegisters(
  batch: Batch,
  { addressSpaces, privilege }: Architecture,
  stacks: Stacks,
): { readonly value: RegisterReader } {
  const names = new Set([
    ...stacks.specialRegisters,
    ...(addressSpaces?.registers ?? []),
    ...(privilege?.belowFirmware?.registers ?? []),
  ]);
  return batch.readRegisters([...names]);
}

/**
 * Walks the stack of a hart. In its present mode the hart cannot read everything, for example not the kernel's stack
 * from firmware. The rest is read through its page tables, if the stub gives physical memory.
 */
export async function hartStack(
  session: Session,
  hart: string,
  arch: Architecture,
  stacks: Stacks,
  options: HartStackOptions = {},
): Promise<HartStack> {
  const belowFirmware = arch.privilege?.belowFirmware;
  const registers = options.registers ?? (await readRegisters(session, hart, arch, stacks));
  const packets = session.memory(hart);
  const direct = options.faster?.(registers, packets) ?? packets;
  const pc = registers.register(arch.pc);
  const physical = async (): Promise<MemoryReader | undefined> => session.physicalMemory();
  if (pc !== undefined && !stacks.isCode(pc)) {
    // In machine mode addresses are physical.
    const found = await belowFirmware?.find(registers, (await physical()) ?? direct);
    if (found !== undefined) {
      const below = { firmware: addr(pc), program: stacks.elf, other: undefined };
      if (found.from === 'nowhere') return { stack: atFirmware, registers, memory: direct, ...below };
      // These reads fail where there is no memory. By physical address QEMU answers zeros there.
      const memory = memoryFor(arch, found.below, undefined, async () => direct);
      const stack = await stacks.unwind(found.below, memory, { ...options, ahead: undefined });
      const end = found.from === 'pc' ? atFirmware.end : stack.end;
      return { stack: { frames: stack.frames, end }, registers: found.below, memory, ...below };
    }
  }
  const memory = memoryFor(arch, registers, direct, physical);
  const running = await runningOn({ ...options, session, hart, arch, stacks, registers });
  const isKnown = 'elf' in running;
  const stack = isKnown ? whereItWaits(await running.unwind(registers, memory, options), arch) : inOtherCode;
  const [program, other] = isKnown ? [running.elf, undefined] : [stacks.elf, running];
  return { stack, registers, memory, firmware: undefined, program, other };
}

/** Of a hart that waits for an interrupt the pc is behind that instruction, which may be in another function. */
function whereItWaits(stack: Stack, arch: Architecture): Stack {
  const [own, ...callers] = stack.frames;
  return own && isBehindWait(own, arch) ? { ...stack, frames: [{ ...own, exact: false }, ...callers] } : stack;
}

/** The bytes before the pc may be those of such an instruction, and the end of another one. */
function isBehindWait({ pc, image }: Frame, { waits, codeFlow }: Architecture): boolean {
  const ranges = image?.functionAt(image.toCode(pc) - 1)?.ranges ?? [];
  return ranges.some(({ start, bytes }) => {
    const end = distance(start, pc);
    if (end <= 0 || end > bytes.length) return false;
    const isWait = (length: number): boolean => waits?.(bytes.subarray(Math.max(0, end - length), end)) === true;
    if (![1, 3, 4].some(isWait)) return false;
    const last = codeFlow?.steps(bytes.subarray(0, end), start).at(-1);
    return last !== undefined && addOffset(last.address, last.length) === pc && isWait(last.length);
  });
}

/** What walks the stack of the program that a hart runs. */
async function runningOn(running: Running): Promise<Stacks | OtherCode> {
  const { session, hart, arch, stacks, registers, others } = running;
  const pc = registers.register(arch.pc);
  if (pc === undefined || isProcess(session.features)) return stacks;
  const standing = arch.privilege?.standing(registers);
  const privilege = standing?.privilege;
  const isOwn = stacks.isCode(pc)
    ? await isOwnCode(running, addr(pc), standing)
    : privilege === 'user'
      ? false
      : undefined;
  const other = { pc: addr(pc), privilege, oneOf: [] };
  // Nothing but the kernel runs in its mode at its code.
  if (others === undefined || (isOwn && privilege !== 'user')) return (isOwn ?? true) ? stacks : other;
  const found = await others.at(addr(pc), session.memory(hart), isOwn ? stacks : undefined);
  const [first] = found;
  if (first === undefined) return isOwn === undefined ? stacks : other;
  return found.length === 1 ? first : { ...other, oneOf: found.map(({ elf }) => elf) };
}

/** Whether a hart at an address of the ELF's code runs that, and not another program's. */
async function isOwnCode(
  { session, hart, stacks: { elf }, ownPages }: Running,
  pc: Addr,
  standing: Standing | undefined,
): Promise<boolean> {
  // Programs change within one address space; what is beneath them does not.
  const page = standing?.privilege === 'user' ? undefined : `${standing?.root} ${pc / BigInt(pageBytes)}`;
  if (changesItsCode(elf) || (page !== undefined && ownPages?.has(page))) return true;
  const isOwn = (await isOwnPage(session.memory(hart), (at, length) => elf.bytesAt(at, length), pc)) ?? true;
  if (isOwn && page !== undefined) ownPages?.add(page);
  return isOwn;
}

/** A hart, and the code that it may run. */
interface Running extends Pick<HartStackOptions, 'ownPages' | 'others'> {
  readonly session: Session;
  readonly hart: string;
  readonly arch: Architecture;
  readonly stacks: Stacks;
  readonly registers: RegisterReader;
}

async function readRegisters(
  session: Session,
  hart: string,
  arch: Architecture,
  stacks: Stacks,
): Promise<RegisterReader> {
  const batch = session.batch(hart);
  const registers = askRegisters(batch, arch, stacks);
  await batch.send();
  return registers.value;
}

/** Whether some memory has a program's code, judged by the page where the code begins. */
export async function isSeen(elf: ElfFile, memory: MemoryReader): Promise<boolean> {
  return (await isOwnPage(memory, (at, length) => elf.bytesAt(at, length), elf.entry)) ?? false;
}

const inOtherCode: Stack = { frames: [], end: { reason: 'other-code', complete: false } };
const atFirmware: Stack = { frames: [], end: { reason: 'firmware', complete: false } };

/** Memory as code with these registers sees it: as the hart sees it now, else through the page tables. */
function memoryFor(
  { addressSpaces }: Architecture,
  registers: RegisterReader,
  direct: MemoryReader | undefined,
  physical: () => Promise<MemoryReader | undefined>,
): MemoryReader {
  const throughTables = async (): Promise<MemoryReader | undefined> => {
    const all = await physical();
    const space = all && addressSpaces?.of(registers, all);
    if (!all || !space || isRefusal(space)) return undefined;
    // Without paging the hart sees all memory there is.
    return space.scheme === 'off' && direct ? undefined : seenMemory(space, all);
  };
  let tables: ReturnType<typeof throughTables> | undefined;
  return {
    async read(address, length) {
      const seen = await direct?.read(address, length);
      if (seen) return seen;
      tables ??= throughTables();
      return (await tables)?.read(address, length);
    },
  };
}
