import type { AddressSpace, Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal, RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { currentAddressSpace, type GuestRam } from '../target/index.js';
import { accessTo, checkMapped, keepContents, physicalOf, plantGuards } from './region-access.js';
import { alignDown, alignUp, LARGE_PAGE, type MapRefusal, PAGE, partOf, type Region, type Scratch } from './scratch.js';

/** Memory that the user names, or that the program sets aside. */
export interface ReservedMemory {
  /** The program itself reserves it. */
  readonly owned: boolean;
  /** `--scratch`, `the symbol TRACE_AREA`, `the section .rsptrace`. */
  readonly name: string;
  readonly address: Addr;
  readonly size: number;
}

/** More than can be of use. It is read once, to be restored later. */
const LARGEST = 256 * 2 ** 20;
/** Memory of at least this many bytes gets guard pages. */
const GUARDED = 64 * 2 ** 10;
const section = '.rsptrace';
/** Statics of examples/rsptrace-scratch: for data, and for code among the program's own. */
const statics = { data: '__rsptrace_data', code: '__rsptrace_code' } as const;
const units: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

/**
 * `ADDR,SIZE` of `--scratch`: numbers in decimal or with 0x; the size may end in K, M or G.
 * @throws RsptraceError `SCRATCH_SYNTAX`
 */
export function parseScratch(text: string): ReservedMemory {
  const match = /^(0x[0-9a-f]{1,16}|\d{1,20}),(0x[0-9a-f]{1,12}|\d{1,12})([kmg]?)$/i.exec(text);
  const size = match === null ? Number.NaN : Number(match[2]) * (units[(match[3] as string).toLowerCase()] as number);
  const address = BigInt(match?.[1] ?? 0);
  if (match === null || !Number.isSafeInteger(size) || address + BigInt(size) > 1n << 64n) {
    throw new RsptraceError('SCRATCH_SYNTAX', `'${text}' is not ADDR,SIZE`, {
      hint: 'as in --scratch 0x87000000,1M; or one of the words hidden, top and none',
    });
  }
  return { owned: false, name: '--scratch', address: addr(address), size };
}

/**
 * The memory of a symbol with a size, a static that the program reserves.
 * @throws RsptraceError `SCRATCH_NO_SYMBOL`
 */
export function symbolMemory(elf: ElfFile, name: string): ReservedMemory {
  const all = elf.symbols.named(name);
  const found = all.find(({ size, type }) => size > 0 && type !== 'function');
  if (found !== undefined) return { owned: true, name: `the symbol ${name}`, address: found.address, size: found.size };
  const why = all.length === 0 ? `has no symbol ${name}` : `has a symbol ${name}, but none that is data with a size`;
  throw new RsptraceError('SCRATCH_NO_SYMBOL', `${elf.path} ${why}`, {
    hint: 'make it a static with #[unsafe(no_mangle)] and #[used]',
  });
}

/** What a program sets aside for us: its section `.rsptrace`, or the statics of examples/rsptrace-scratch. */
export function reservedIn(elf: ElfFile): ReservedMemory | undefined {
  return sectionMemory(elf) ?? reservedStatic(elf, 'data');
}

/** The section that a program sets aside for us, `.rsptrace`; undefined if it has none that is loaded. */
export function sectionMemory(elf: ElfFile): ReservedMemory | undefined {
  const found = elf.sections.find(({ name, size, address }) => name === section && size > 0 && address !== 0n);
  return found && { owned: true, name: `the section ${section}`, address: found.address, size: found.size };
}

/** The static that a program sets aside for us with the crate of examples/rsptrace-scratch. */
export function reservedStatic(elf: ElfFile, use: keyof typeof statics): ReservedMemory | undefined {
  const name = statics[use];
  const found = elf.symbols.named(name).find(({ size }) => size > 0);
  return found && { owned: true, name: `the static ${name}`, address: found.address, size: found.size };
}

/** What must be known to use given memory. */
interface GivenOptions {
  /** Whether the program turns paging on at some time (see `turnsPagingOn`). */
  readonly pages: boolean;
  /** Where code may go if the memory has no place for it (see `textSlack`). */
  readonly slack: Region | undefined;
  /** Bytes of code that there may be. */
  readonly codeSize?: number | undefined;
  readonly ram?: GuestRam | undefined;
}

/**
 * Makes scratch memory of given memory. The parts for code and data share no page. The slack is used for code if the
 * memory is too small, or if the kernel maps it without execution.
 *
 *      address, rounded up to a page                                       end, rounded down to a page
 *      | code | guard page | data ...                                      | guard page |
 *
 * Code gets an eighth, at most 2 MiB. If the size of the code is known, it gets that much, at most half. Guard pages
 * only from 64 KiB on. `release` restores all contents.
 */
export async function reservedScratch(
  session: Session,
  arch: Architecture,
  given: ReservedMemory,
  { pages, slack, codeSize = 0, ram }: GivenOptions,
): Promise<Scratch | MapRefusal> {
  const start = -Number(given.address & BigInt(PAGE - 1)) & (PAGE - 1);
  const size = alignDown(given.size - start, PAGE);
  const where = `${given.name} (${hex(given.address)}, ${given.size} bytes)`;
  const no = (why: string, later = false): MapRefusal => ({ refused: `${where} ${why}`, later });
  if (given.size - start < PAGE) return no(`holds no whole page of ${PAGE} bytes`);
  if (size > LARGEST) return no(`is larger than ${LARGEST / 2 ** 20} MiB`);

  const space = await currentAddressSpace(session, arch);
  // Without physical memory (a process, a probe at hardware) only a write shows what is there.
  const paged = isRefusal(space) ? undefined : space;
  if (paged?.scheme === 'off' && pages) return no('cannot be used before the kernel has turned its paging on', true);
  if (paged?.user) return no('cannot be looked up in user mode', true);
  const from = addOffset(given.address, start);
  const physical = paged && (await physicalOf(paged, from));
  if (paged && physical === undefined) return no(`cannot be used: ${hex(from)} is not mapped`, true);
  const whole: Region = { address: from, size, ...(physical === undefined ? {} : { physical }) };
  const parts = await split(paged, whole, slack, codeSize);
  if (isRefusal(parts)) return no(`cannot be used: ${parts.refused}`);

  const isFirst = parts.code.address === whole.address;
  const regions = [
    { region: parts.code, isData: false },
    // The code is at its beginning, or elsewhere.
    { region: isFirst ? partOf(whole, parts.code.size, whole.size - parts.code.size) : whole, isData: true },
  ];
  const release = await keepContents(session, regions, ram);
  if (release === undefined) return no('cannot be read');
  const guarded = parts.guards.map(async ({ where, region }) => {
    return { where, address: region.address, access: await accessTo(session, region) };
  });
  const guards = await plantGuards(await Promise.all(guarded));
  if (isRefusal(guards)) {
    await release();
    return no(`cannot be used: ${guards.refused}`);
  }
  return {
    source: `${where}${parts.code === slack ? ', code among that of the program' : ''}`,
    owned: given.owned,
    code: parts.code,
    data: parts.data,
    shared: undefined,
    verifyGuards: guards,
    release,
  };
}

interface Parts {
  readonly code: Region;
  readonly data: Region;
  readonly guards: readonly { readonly where: string; readonly region: Region }[];
}

async function split(
  space: AddressSpace | undefined,
  whole: Region,
  slack: Region | undefined,
  codeSize: number,
): Promise<Parts | Refusal> {
  const part = (offset: number, size: number): Region => partOf(whole, offset, size);
  const check = async (region: Region, rights: 'code' | 'data'): Promise<string | undefined> =>
    space && region.physical !== undefined
      ? checkMapped(space, { ...region, physical: region.physical }, rights)
      : undefined;
  const guard = whole.size >= GUARDED ? PAGE : 0;
  const end = whole.size - guard;
  const behind = guard === 0 ? [] : [{ where: 'behind the data', region: part(end, PAGE) }];
  const only = (why: string): Parts | Refusal =>
    slack === undefined ? { refused: why } : { code: slack, data: part(0, end), guards: behind };

  const noData = await check(part(0, whole.size), 'data');
  if (noData !== undefined) return { refused: noData };
  if (whole.size < 2 * PAGE) return only('code and data need a page each, and this is one');
  const most = alignDown(whole.size / 2, PAGE);
  const eighth = Math.min(Math.max(alignDown(whole.size / 8, PAGE), PAGE), LARGE_PAGE);
  const size = Math.max(eighth, Math.min(alignUp(codeSize, PAGE), most));
  const code = part(0, size);
  const noCode = await check(code, 'code');
  if (noCode !== undefined) return only(noCode);
  const between = guard === 0 ? [] : [{ where: 'behind the code', region: part(size, PAGE) }];
  return { code, data: part(size + guard, end - size - guard), guards: [...between, ...behind] };
}
