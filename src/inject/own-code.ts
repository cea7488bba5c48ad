/*
 * What a killed rsptrace has left in the code of a process of this machine, found without a program's symbols:
 *
 *   /proc/PID/pagemap   which pages of a mapped file are the process's own, because somebody has written to them
 *   the file            what was there before: only such pages are compared
 *   the stub            hides the breakpoints that it has kept; /proc/PID/mem shows them
 */

import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { Session } from '../rsp/index.js';
import { changedPages, hiddenTraps } from './forgotten-traps.js';
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

/** Takes jumps to trampolines and kept breakpoints out of a process of this machine, which stands. */
export async function takeOutOwnCode(session: Session, arch: Architecture, pid: number): Promise<TakenOut> {
  const threads = await takeBackThreads(session, arch);
  const { probeCode: code, linux } = arch;
  const suspects: Parameters<typeof findPatched>[2][number][] = [];
  const traps: Addr[] = [];
  const trap = linux?.forgottenTraps?.trap;
  for (const pages of changedPages(pid) ?? []) {
    const { address, file } = pages;
    const shown = await session.memory().read(address, file.length);
    if (!shown) continue;
    traps.push(...hiddenTraps(pages, shown, trap));
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
