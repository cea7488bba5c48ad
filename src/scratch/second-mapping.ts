// Pages that a kernel has allocated are mapped a second time, near enough for trampolines, and executable. Free entries
// of the table that maps the kernel's text are set to tables in the first of these pages.
//
//   entry  0      1 ...     behind them   then ...    the rest
//          empty  code r-x  empty         data rw-    empty
//
// Every address space with the kernel has these entries, so no page fault must be handled there, whatever happens to
// the kernel's own mapping of the pages. That mapping is left unchanged: writable and not executable.

import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal } from '../base/refusal.js';
import type { Session } from '../rsp/index.js';
import { enterBesideText, notApart } from './large-page-slots.js';
import { neverPages, type PagingFacts } from './ram-piece.js';
import { currentAddressSpace, physicalOf } from './region-access.js';
import { alignUp, type MapRefusal, PAGE, type Region, type Scratch } from './scratch.js';

const ENTRIES = 512;
const ENTRY = 8;
/** At both ends, and between code and data. */
const EMPTY = 3;
/** Tables that are used at most: 20 MiB. */
const mostTables = 10;
/** Pages that are enough for records. */
const recordPages = 256;

/** So many pages hold code of this size, records, and the tables that map both. */
export function pagesFor(codeSize: number): number {
  const tables = Math.ceil((alignUp(codeSize, PAGE) / PAGE + recordPages + EMPTY) / ENTRIES);
  return Math.min(tables, mostTables) * (ENTRIES + 1) - EMPTY;
}

/** Makes scratch memory of unused pages that the kernel has at `block`. The target is stopped in the kernel's code. */
export async function mapAgain(
  session: Session,
  arch: Architecture,
  block: Region,
  { text, codeSize = 0, ownFirmware }: PagingFacts,
): Promise<Scratch | MapRefusal> {
  const no = (refused: string, later = false): MapRefusal => ({ refused, later });
  const space = await currentAddressSpace(session, arch);
  const memory = await session.physicalMemory();
  if (isRefusal(space)) return { ...space, later: false };
  if (memory === undefined || space.scheme === 'off') return no('the kernel does not page');
  if (space.user) return no('the target stands in user mode', true);
  if (ownFirmware) return no(neverPages);
  const pages: Addr[] = [];
  for (let at = 0; at + PAGE <= block.size && pages.length < mostTables * (ENTRIES + 1) - EMPTY; at += PAGE) {
    const page = await physicalOf(space, addOffset(block.address, at));
    // Old kernels copy a new entry into a task's page table only when it is used first.
    if (page === undefined) return no(`${hex(addOffset(block.address, at))} is not mapped here`, true);
    pages.push(page);
  }
  const count = Math.ceil((pages.length + EMPTY) / (ENTRIES + 1));
  const [tables, rest] = [pages.slice(0, count), pages.slice(count)];
  if (rest.length < 2 || block.address % BigInt(PAGE) !== 0n) return no('it is no whole pages');
  const codePages = Math.min(
    alignUp(Math.max(codeSize, 1), PAGE) / PAGE,
    Math.max(rest.length >> 1, rest.length - recordPages),
  );
  const bytes = new Uint8Array(count * PAGE);
  const view = new DataView(bytes.buffer);
  for (const [index, page] of rest.entries()) {
    const isCode = index < codePages;
    const entry = space.pageEntry(page, isCode ? 'code' : 'data');
    if (entry === undefined) return no(notApart);
    view.setBigUint64((index + (isCode ? 1 : 2)) * ENTRY, entry, true);
  }
  for (const [index, table] of tables.entries()) {
    const entries = bytes.subarray(index * PAGE, (index + 1) * PAGE);
    await memory.write(table, entries);
    const kept = await memory.read(table, PAGE);
    if (kept === undefined || Buffer.compare(kept, entries) !== 0)
      return no(`memory at ${hex(table)} does not keep what is written`);
  }
  const links = tables.map((table) => space.tableEntry(table));
  const slot = await enterBesideText(session, arch, space, text, links);
  if (isRefusal(slot)) return { ...slot, later: false };
  const page = (index: number): Addr => addr(addOffset(slot.address, index * PAGE));
  return {
    source: `at ${hex(block.address)}, ${block.size} bytes, mapped at ${hex(slot.address)}`,
    owned: true,
    code: { address: page(1), size: codePages * PAGE },
    data: { address: page(codePages + 2), size: (rest.length - codePages) * PAGE },
    dataPages: rest.slice(codePages),
    shared: undefined,
    // The pages around them are not mapped.
    verifyGuards: async () => undefined,
    release: async () => void (await slot.unmap()),
  };
}
