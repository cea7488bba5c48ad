/*
 * When gdbserver's client disconnects, gdbserver keeps its breakpoints, but shows the program's own bytes in their
 * place. When it detaches, it leaves them in: the program then dies of a SIGTRAP at the next one. How they are found:
 *
 *   on this machine   /proc/PID/mem has a trap instruction, and the stub shows another byte
 *   elsewhere         the stub is asked to remove one wherever there may be one: at functions, and behind calls
 */

import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import type { Architecture, LinuxModel } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { type ElfFile, SHF } from '../elf/index.js';
import { pidOf, type Session } from '../rsp/index.js';
import { PAGE } from '../scratch/index.js';
import { type Mapping, parseMaps } from '../target/index.js';

type TrapModel = NonNullable<LinuxModel['forgottenTraps']>;

/** Places of breakpoints. `seen`: a breakpoint was found at each of them; otherwise there may be one. */
interface ForgottenTraps {
  /** The trap instruction. */
  readonly code: Uint8Array;
  readonly places: readonly Addr[];
  readonly seen: boolean;
}

/** Where breakpoints of an earlier client are, or may be, in a process; undefined if that is not known. */
export async function forgottenTraps(
  session: Session,
  arch: Architecture,
  elf: ElfFile,
): Promise<ForgottenTraps | undefined> {
  const [first] = await session.harts();
  const pid = Number.parseInt(pidOf(first?.id) ?? '', 16);
  const model = arch.linux?.forgottenTraps;
  if (!model || Number.isNaN(pid)) return undefined;
  const code = Uint8Array.of(model.trap);
  const maps = await session.remoteFile(`/proc/${pid}/maps`);
  const there = maps && new TextDecoder('latin1').decode(maps);
  const places = there && (await trapsHere(session, pid, there, model));
  return places ? { code, places, seen: true } : { code, places: placesBehindCalls(elf, model), seen: false };
}

/** Undefined if the process is not on this machine, or if this user may not read it. */
async function trapsHere(
  session: Session,
  pid: number,
  maps: string,
  { trap }: TrapModel,
): Promise<readonly Addr[] | undefined> {
  try {
    // No two processes are laid out alike.
    if (readFileSync(`/proc/${pid}/maps`, 'latin1') !== maps) return undefined;
  } catch {
    return undefined;
  }
  const changed = changedPages(pid);
  const found: Addr[] = [];
  for (const pages of changed ?? []) {
    const shown = await session.memory().read(pages.address, pages.now.length);
    if (shown) found.push(...hiddenTraps(pages, shown, trap));
  }
  return changed && found;
}

/** Traps in pages of the process that the stub, which shows these bytes there, does not show. */
export function hiddenTraps({ address, now }: ChangedPages, shown: Uint8Array, trap: number | undefined): Addr[] {
  const found: Addr[] = [];
  for (let at = now.indexOf(trap ?? -1); at >= 0; at = now.indexOf(trap ?? -1, at + 1))
    if (shown[at] !== trap) found.push(addOffset(address, at));
  return found;
}

/** A trap with another changed byte so near is left: it stands in a patch, which goes as a whole. */
const ALONE = 8;

/**
 * Gives a process of this machine the file's bytes back where a stub that is gone has left its breakpoints, while the
 * process runs. Returns where.
 */
export function takeOutTraps(pid: number, places: readonly Addr[], trap: number): readonly Addr[] {
  const taken: Addr[] = [];
  if (places.length === 0) return taken;
  let memory: number;
  try {
    memory = openSync(`/proc/${pid}/mem`, 'r+');
  } catch {
    return taken;
  }
  try {
    for (const pages of changedPages(pid) ?? []) taken.push(...takeOutIn(memory, pages, { places, trap }));
  } catch {
    // It has ended.
  } finally {
    closeSync(memory);
  }
  return taken;
}

function takeOutIn(
  memory: number,
  { address, file, now }: ChangedPages,
  { places, trap }: { readonly places: readonly Addr[]; readonly trap: number },
): readonly Addr[] {
  const own = new Set(places.map((place) => Number(place - address)));
  const isFiles = (at: number): boolean => now[at] === file[at] || (now[at] === trap && own.has(at));
  const taken = [...own].filter((at) => {
    if (now[at] !== trap || file[at] === trap) return false;
    for (let near = Math.max(0, at - ALONE); near <= Math.min(now.length - 1, at + ALONE); near++)
      if (!isFiles(near)) return false;
    return true;
  });
  for (const at of taken) writeSync(memory, file, at, 1, Number(address) + at);
  return taken.map((at) => addOffset(address, at));
}

/** proc(5), /proc/PID/pagemap: a page that is there, or on disk, and is no page of the file. */
const isThere = 3n << 62n;
const isOfFile = 1n << 61n;

/** Pages of code that are the process's own, because somebody has written to them. */
interface ChangedPages {
  readonly address: Addr;
  /** As the file has them; of memory without a file as they are. */
  readonly file: Uint8Array;
  /** As they are, with the stub's breakpoints. */
  readonly now: Uint8Array;
}

/** Of a process of this machine; undefined if it has ended, or if this user may not read it. */
export function changedPages(pid: number): readonly ChangedPages[] | undefined {
  const files: number[] = [];
  const open = (path: string): number => {
    const file = openSync(path, 'r');
    files.push(file);
    return file;
  };
  try {
    const maps = parseMaps(readFileSync(`/proc/${pid}/maps`, 'latin1'));
    const [pages, memory] = [open(`/proc/${pid}/pagemap`), open(`/proc/${pid}/mem`)];
    return maps
      .filter(({ permissions }) => /^r.xp$/.test(permissions))
      .flatMap((mapping) => changedIn(mapping, { pages, memory, open: (path) => open(`/proc/${pid}/root${path}`) }));
  } catch {
    return undefined;
  } finally {
    for (const file of files) closeSync(file);
  }
}

interface ProcessFiles {
  readonly pages: number;
  readonly memory: number;
  readonly open: (path: string) => number;
}

function changedIn(
  { start, end, offset, path, inode }: Mapping,
  { pages, memory, open }: ProcessFiles,
): ChangedPages[] {
  const count = Number(end - start) / PAGE;
  const words = new BigUint64Array(count);
  readSync(pages, words, 0, 8 * count, 8n * (start / BigInt(PAGE)));
  const found: ChangedPages[] = [];
  const isOwn = (page: number): boolean => {
    const word = words[page] ?? 0n;
    return (word & isThere) !== 0n && (word & isOfFile) === 0n;
  };
  for (let page = 0; page < count; page++) {
    if (!isOwn(page)) continue;
    let behind = page + 1;
    while (behind < count && isOwn(behind)) behind++;
    const [file, now] = [new Uint8Array((behind - page) * PAGE), new Uint8Array((behind - page) * PAGE)];
    const address = addOffset(start, page * PAGE);
    try {
      readSync(memory, now, 0, now.length, address);
      if (inode === 0) found.push({ address, file: now, now });
      else {
        readSync(open(path), file, 0, file.length, offset + page * PAGE);
        found.push(...differing({ address, file, now }));
      }
    } catch {
      // The file is not there any more; or the kernel gives the page to every program (vdso, vvar).
    }
    page = behind;
  }
  return found;
}

/** The pages among these that are not as in the file. What was put back is the process's own, too. */
function differing({ address, file, now }: ChangedPages): ChangedPages[] {
  const found: ChangedPages[] = [];
  for (let at = 0; at < now.length; at += PAGE) {
    const page = {
      address: addOffset(address, at),
      file: file.subarray(at, at + PAGE),
      now: now.subarray(at, at + PAGE),
    };
    if (Buffer.compare(page.file, page.now) !== 0) found.push(page);
  }
  return found;
}

/**
 * Functions' starts, and every place that a call may return to, judged by the bytes before it. Too many places do no
 * harm.
 */
function placesBehindCalls(elf: ElfFile, { isBehindCall }: TrapModel): readonly Addr[] {
  const places: Addr[] = [];
  for (const { type, address } of elf.symbols) if (type === 'function') places.push(address);
  for (const { address, size, flags } of elf.sections) {
    const code = (flags & SHF.EXECINSTR) !== 0 ? elf.bytesAt(address, size) : undefined;
    if (code) for (let at = 2; at < code.length; at++) if (isBehindCall(code, at)) places.push(addOffset(address, at));
  }
  return places;
}
