// Calls that are open when a recording ends return to trampolines. A kernel may turn to a page table that has none.
import type { Architecture, HookFrame, ProbeCode } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { isDamage } from '../base/errors.js';
import type { UnwindRow } from '../base/unwind-row.js';
import { CallFrames } from '../dwarf/index.js';
import { type ElfFile, type ElfSection, SHF } from '../elf/index.js';
import { registersOf, type Session, setRegister } from '../rsp/index.js';
import { PAGE, type Region } from '../scratch/index.js';
import type { RamChunk, RamRange } from '../target/index.js';
import type { Placement } from './placement.js';
import { wordWrite } from './ring.js';

/** So many places of a section that have the right bytes are compared with the target's memory. */
const mostPlaces = 8;
/** No call has more bytes. */
const longestCall = 8;
/** Alignment of code that is written. */
const ALIGN = 16;

/** A machine's RAM, at a stop. */
export interface SearchedRam {
  /** What may have been touched. */
  touched(): readonly RamRange[];
  chunks(ranges: readonly RamRange[]): Iterable<RamChunk> | AsyncIterable<RamChunk>;
  write(physical: bigint, bytes: Uint8Array): boolean | Promise<boolean>;
}

interface OpenReturnsOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly code: ProbeCode;
  readonly elf: ElfFile;
  readonly ram: SearchedRam;
  readonly placement: Pick<Placement, 'trampolines' | 'hooks'>;
  /** Memory of ours, which is not searched. */
  readonly ours: readonly Region[];
}

/** An exit trampoline, and the function that returns to it. */
interface Exit {
  readonly hook: HookFrame;
  readonly function: Addr;
}

/** Where a return address was found that is an exit trampoline's. */
type Found = { readonly exit: bigint } & (
  | { readonly physical: bigint }
  | { readonly hart: string; readonly register: string }
);

/**
 * Lets open calls return past the trampolines. Each word that is the address of an exit trampoline becomes the address
 * of other code, which does the same and records nothing. That is right for any such word, wherever it lies. The code
 * is in the function's own section, which is there as long as the function runs. The program has such instructions
 * there already, or they are written behind the section's end. The target stands, and its patches are removed.
 * @returns false if some calls still return through trampolines
 */
export async function leadPast(options: OpenReturnsOptions): Promise<boolean> {
  const exits = exitsOf(options.placement);
  if (exits.size === 0) return true;
  const found = [...(await wordsInRam(options, exits)), ...(await wordsInRegisters(options, exits))];
  const stand = new StandIns(options);
  let isAll = true;
  for (const each of found) {
    const exit = exits.get(each.exit);
    const to = exit && (await stand.inFor(exit));
    if (to === undefined || !(await write(options, each, to))) isAll = false;
  }
  return isAll;
}

function exitsOf({ trampolines, hooks }: OpenReturnsOptions['placement']): ReadonlyMap<bigint, Exit> {
  const exits = new Map<bigint, Exit>();
  for (const { site, exit } of trampolines) {
    const hook = exit && hooks.get(exit.address);
    if (hook) exits.set(exit.address, { hook, function: site.plan.address });
  }
  return exits;
}

/** The machine's RAM is searched word by word, as far as it was ever touched. */
async function wordsInRam(
  { ram, ours }: OpenReturnsOptions,
  exits: ReadonlyMap<bigint, Exit>,
): Promise<readonly Found[]> {
  const found: Found[] = [];
  // A word is looked up if its high half is that of an exit, because a lookup costs a hundred times as much.
  const highs = [...new Set([...exits.keys()].map((exit) => Number(exit >> 32n)))];
  const [first = -1, second = first, ...more] = highs;
  for await (const { start, bytes } of ram.chunks(without(ram.touched(), ours))) {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    for (let high = 1; high < words.length; high += 2) {
      const value = words[high] as number;
      if (value !== first && value !== second && !more.includes(value)) continue;
      const low = words[high - 1] as number;
      const exit = (BigInt(value) << 32n) | BigInt(low);
      if (exits.has(exit)) found.push({ exit, physical: start + BigInt(4 * (high - 1)) });
    }
  }
  return found;
}

/** The parts of ranges that are in none of these regions. */
function without(ranges: readonly RamRange[], regions: readonly Region[]): readonly RamRange[] {
  let left = ranges;
  for (const { physical, size } of regions) {
    if (physical === undefined) continue;
    const end = physical + BigInt(size);
    left = left.flatMap((range) => {
      if (end <= range.start || physical >= range.end) return [range];
      const before = physical > range.start ? [{ start: range.start, end: physical }] : [];
      return end < range.end ? [...before, { start: end, end: range.end }] : before;
    });
  }
  return left;
}

/** Where the architecture returns by a register, it may be in any register. A hart may stand at the exit itself. */
async function wordsInRegisters(
  { session }: OpenReturnsOptions,
  exits: ReadonlyMap<bigint, Exit>,
): Promise<readonly Found[]> {
  const found: Found[] = [];
  for (const { id } of await session.harts()) {
    const block = await registersOf(session, id);
    for (const { name, bits } of session.target.registers.values()) {
      const value = bits === 64 ? block.register(name) : undefined;
      if (value !== undefined && exits.has(value)) found.push({ exit: value, hart: id, register: name });
    }
  }
  return found;
}

async function write({ session, ram }: OpenReturnsOptions, found: Found, to: Addr): Promise<boolean> {
  if ('physical' in found) return ram.write(found.physical, wordWrite(addr(found.physical), to).bytes);
  return setRegister(session, found.register, to, found.hart);
}

/** Code that stands in for exit trampolines. */
class StandIns {
  readonly #options: OpenReturnsOptions;
  readonly #sections: readonly ElfSection[];
  /** By section and stack frame. */
  readonly #known = new Map<string, Addr | undefined>();
  #callFrames: CallFrames | undefined;
  /** By section: how many bytes before the end of its room are used. */
  readonly #used = new Map<ElfSection, number>();

  constructor(options: OpenReturnsOptions) {
    this.#options = options;
    this.#sections = options.elf.sections.filter(({ flags }) => (flags & SHF.EXECINSTR) !== 0);
  }

  async inFor({ hook, function: start }: Exit): Promise<Addr | undefined> {
    const section = this.#sections.find(({ address, size }) => start >= address && start < addOffset(address, size));
    if (section === undefined) return undefined;
    const key = `${section.index} ${hook.offset} ${hook.size}`;
    if (!this.#known.has(key)) {
      this.#known.set(key, (await this.#inProgram(section, hook)) ?? (await this.#written(section, hook)));
    }
    return this.#known.get(key);
  }

  /**
   * Any bytes of the section will do, also from the middle of an instruction on, but not behind a call: a stack may
   * have that address for another reason. Best are places where call frame information describes the hook's frame,
   * because a debugger that comes later goes by it.
   */
  async #inProgram(section: ElfSection, hook: HookFrame): Promise<Addr | undefined> {
    const { session, code, elf } = this.#options;
    const text = elf.bytesAt(section.address, section.size);
    if (text === undefined) return undefined;
    const ways = [code.likeBareExit(hook.offset, hook.size), code.bareExit(hook.offset, hook.size)];
    const places = ways.flatMap((bytes) =>
      [...this.#placesOf(bytes, text, section)].map((address) => ({ address, bytes })),
    );
    const isDescribed = (address: Addr): boolean => describes(this.#rowBefore(address), hook, this.#options.arch);
    const described = places.filter(({ address }) => isDescribed(address));
    for (const { address, bytes } of [...described, ...places].slice(0, mostPlaces)) {
      const there = await session.memory().read(address, bytes.length);
      if (there !== undefined && Buffer.compare(there, bytes) === 0) return address;
    }
    return undefined;
  }

  *#placesOf(wanted: Uint8Array, bytes: Uint8Array, { address }: ElfSection): Generator<Addr> {
    const { frames } = this.#options.arch;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
      const from = Math.max(0, at - longestCall);
      const before = { start: addOffset(address, from), bytes: bytes.subarray(from, at) };
      if (frames?.code && !frames.code.endsInCall(before)) yield addOffset(address, at);
    }
  }

  /** What call frame information says of the byte before, as of any return address. */
  #rowBefore(address: Addr): UnwindRow | undefined {
    try {
      this.#callFrames ??= CallFrames.load(this.#options.elf);
      return this.#callFrames.row(this.#options.elf.codes.toCode(address) - 1);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return undefined;
    }
  }

  /** Into the zeros behind the section, at their end, because hops may lie where they begin. */
  async #written(section: ElfSection, { offset, size }: HookFrame): Promise<Addr | undefined> {
    const { session, code, elf } = this.#options;
    const bytes = code.bareExit(offset, size);
    const used = (this.#used.get(section) ?? 0) + ALIGN * Math.ceil(bytes.length / ALIGN);
    const room = roomBehind(elf, section);
    if (used > room.size) return undefined;
    const address = addOffset(room.address, room.size - used);
    const memory = session.memory();
    const there = await memory.read(address, bytes.length);
    // An earlier recording has written it.
    const isThere = there !== undefined && Buffer.compare(there, bytes) === 0;
    if (!isThere && (!there || there.some((byte) => byte !== 0) || !(await memory.write(address, bytes))))
      return undefined;
    this.#used.set(section, used);
    return address;
  }
}

/** Whether a row says of its frame what is true of a hook's frame, and nothing else. */
function describes(row: UnwindRow | undefined, { offset, size }: HookFrame, { frames }: Architecture): boolean {
  if (row === undefined || frames === undefined || row.cfa.kind !== 'register') return false;
  const { register, offset: above } = row.cfa;
  const back = row.registers.get(row.returnAddress);
  const others = [...row.registers].filter(([number, { kind }]) => number !== row.returnAddress && kind !== 'same');
  const isHook = register === frames.stackPointer && above === size;
  return isHook && back?.kind === 'saved' && back.offset === offset - size && others.length === 0;
}

/** The rest of a section's last page, as far as nothing else of the program begins there. */
function roomBehind(elf: ElfFile, section: ElfSection): Region {
  const end = section.address + BigInt(section.size);
  const start = (end + BigInt(ALIGN - 1)) & -BigInt(ALIGN);
  let limit = (end + BigInt(PAGE - 1)) & -BigInt(PAGE);
  const sections = elf.sections.filter(({ flags, size }) => (flags & SHF.ALLOC) !== 0 && size > 0);
  for (const { address } of [...sections, ...elf.segments.filter(({ memorySize }) => memorySize > 0)])
    if (address >= end && address < limit) limit = address & -BigInt(ALIGN);
  return { address: addr(start), size: Math.max(0, Number(limit - start)) };
}
