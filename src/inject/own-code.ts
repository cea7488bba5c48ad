/*
 * What a killed rsptrace has left in the code of a process of this machine, found without a program's symbols:
 *
 *   /proc/PID/pagemap   which pages of a mapped file are the process's own, because somebody has written to them
 *   the file            what was there before: only such pages are compared
 *   the stub            hides the breakpoints that it has kept; /proc/PID/mem shows them
 */

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { Session } from '../rsp/index.js';
import { PAGE } from '../scratch/index.js';
import { type Mapping, parseMaps } from '../target/index.js';
import { differences, findPatched, removeBreakpoints, restore, takeBackThreads } from './leftovers.js';

/** What was taken out of a process. */
export interface TakenOut {
  /** Where code jumped to a trampoline. */
  readonly patches: readonly Addr[];
  /** Where the stub had kept a breakpoint. */
  readonly traps: readonly Addr[];
  /** Threads that got their own registers back. */
  readonly threads: readonly string[];
}

/** proc(5), /proc/PID/pagemap: a page that is there, or on disk, and is no page of the file. */
const isThere = 3n << 62n;
const isOfFile = 1n << 61n;

/** Pages of code that lie together. */
interface ChangedPages {
  readonly address: Addr;
  /** As the file has them. */
  readonly file: Uint8Array;
  /** As they are, with the stub's breakpoints. */
  readonly now: Uint8Array;
}

/** Takes jumps to trampolines and kept breakpoints out of a process of this machine, which stands. */
export async function takeOutOwnCode(session: Session, arch: Architecture, pid: number): Promise<TakenOut> {
  const threads = await takeBackThreads(session, arch);
  const { probeCode: code, linux } = arch;
  const suspects: Parameters<typeof findPatched>[2][number][] = [];
  const traps: Addr[] = [];
  const trap = linux?.forgottenTraps?.trap;
  for (const { address, file, now } of changedPages(pid)) {
    const shown = await session.memory().read(address, now.length);
    if (!shown) continue;
    for (let at = 0; at < now.length; at++)
      if (now[at] === trap && shown[at] !== trap) traps.push(addOffset(address, at));
    if (code) suspects.push(...differences(code, { address, expected: file, size: file.length }, { now: shown }));
  }
  const patched = code ? await findPatched(session, code, suspects) : [];
  const expected = Uint8Array.of(trap ?? 0);
  await removeBreakpoints(
    session,
    arch,
    traps.map((address) => ({ address, expected, size: 0 })),
  );
  await restore(session, arch, patched);
  return { patches: patched.map(({ address }) => address), traps, threads };
}

/** Empty if the process has ended, or if this user may not read it. */
function changedPages(pid: number): readonly ChangedPages[] {
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
      .filter(({ permissions, inode }) => /^r.xp$/.test(permissions) && inode !== 0)
      .flatMap((mapping) => changedIn(mapping, { pages, memory, open: (path) => open(`/proc/${pid}/root${path}`) }));
  } catch {
    return [];
  } finally {
    for (const file of files) closeSync(file);
  }
}

interface ProcessFiles {
  readonly pages: number;
  readonly memory: number;
  readonly open: (path: string) => number;
}

function changedIn({ start, end, offset, path }: Mapping, { pages, memory, open }: ProcessFiles): ChangedPages[] {
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
      readSync(open(path), file, 0, file.length, offset + page * PAGE);
      readSync(memory, now, 0, now.length, address);
      found.push({ address, file, now });
    } catch {
      // The file is not there any more, so that nobody knows what was there.
    }
    page = behind;
  }
  return found;
}
