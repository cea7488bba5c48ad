/*
 * When gdbserver's client disconnects, gdbserver keeps its breakpoints, but shows the program's own bytes in their
 * place. When it detaches, it leaves them in: the program then dies of a SIGTRAP at the next one. How they are found:
 *
 *   on this machine   /proc/PID/mem has a trap instruction, and the stub shows another byte
 *   elsewhere         the stub is asked to remove one wherever there may be one: at functions, and behind calls
 */

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import type { Architecture, LinuxModel } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { type ElfFile, SHF } from '../elf/index.js';
import { pidOf, type Session } from '../rsp/index.js';
import { parseMaps } from '../target/index.js';

const page = 4096;
/** Bytes of a mapping that are read at once. */
const chunk = 1 << 20;

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
  let memory: number;
  try {
    // No two processes are laid out alike.
    if (readFileSync(`/proc/${pid}/maps`, 'latin1') !== maps) return undefined;
    memory = openSync(`/proc/${pid}/mem`, 'r');
  } catch {
    return undefined;
  }
  const found: Addr[] = [];
  try {
    for (const { start, end, permissions } of parseMaps(maps)) {
      if (!permissions.includes('x')) continue;
      for (let at = start; at < end; at = addOffset(at, chunk)) {
        const bytes = readHere(memory, at, Math.min(chunk, Number(end - at)));
        if (bytes) found.push(...(await hiddenTraps(session, at, bytes, trap)));
      }
    }
  } finally {
    closeSync(memory);
  }
  return found;
}

function readHere(memory: number, at: Addr, length: number): Uint8Array | undefined {
  const bytes = new Uint8Array(length);
  try {
    return readSync(memory, bytes, 0, length, at) === length ? bytes : undefined;
  } catch {
    // The pages that the kernel gives to every program (vdso, vvar) cannot be read this way.
    return undefined;
  }
}

/** Traps in these bytes of the process that the stub does not show. */
async function hiddenTraps(session: Session, start: Addr, bytes: Uint8Array, trap: number): Promise<readonly Addr[]> {
  const found: Addr[] = [];
  for (let from = 0; from < bytes.length; from += page) {
    const here = bytes.subarray(from, from + page);
    if (!here.includes(trap)) continue;
    const shown = await session.memory().read(addOffset(start, from), here.length);
    for (const [i, byte] of here.entries())
      if (byte === trap && shown && shown[i] !== trap) found.push(addOffset(start, from + i));
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
