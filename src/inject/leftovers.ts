import type { Architecture, ProbeCode } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import { registerOf, type Session } from '../rsp/index.js';
import { SystemCalls } from '../scratch/index.js';
import { bytesKnown } from '../target/index.js';
import { isMark, markBytes, readMark } from './code-allocator.js';
import { forgottenTraps } from './forgotten-traps.js';
import { leavePatches } from './leave-patches.js';
import { type Piece, unattended } from './ring.js';
import { readCode, same } from './transfers.js';

/** What a killed rsptrace had left in a target, and what became of it. */
export interface Leftovers {
  /** Functions of the ELF whose first bytes were compared. */
  readonly compared: number;
  /** Functions that jumped to a trampoline and have the ELF's bytes again. */
  readonly restored: readonly Addr[];
  /** Functions where the stub itself had kept a breakpoint, which is removed now. */
  readonly breakpoints: readonly Addr[];
  /** Functions that differ from the ELF for another reason. They were left alone. */
  readonly different: readonly Addr[];
  /** Functions whose code is not loaded or not mapped: all bytes are zero or unreadable. */
  readonly absent: number;
  /**
   * Threads that got their own registers back: rsptrace was killed in the middle of a system call that it had
   * injected there.
   */
  readonly threads: readonly string[];
  /** Where a server had kept breakpoints that it does not show. */
  readonly traps: readonly Addr[];
}

/** The start of a function: the ELF's bytes there. */
interface Start {
  readonly address: Addr;
  readonly expected: Uint8Array;
  /** Bytes of the function; 0 if its size is not known. */
  readonly size: number;
}

/** A function that jumps to a trampoline of ours. */
interface Patched extends Start {
  readonly length: number;
  /** Of the ring that the trampoline writes to. */
  readonly control: Addr | undefined;
}

/** Bytes that are compared at a function's start: a patch, and enough behind it to recognise the ELF. */
const compared = 16;
/** A symbol of more bytes is no function of a compiler. */
const longestFunction = 1 << 20;
/** Reads that are sent in one write. */
const atOnce = 512;

/**
 * Removes what a killed rsptrace has left. A function that jumps to a trampoline with our mark and this function's
 * address gets the ELF's bytes back. Every other difference was made by the program itself. The trampolines stay,
 * because open calls return through them. The target is stopped. Known breakpoints that its stub has kept are removed
 * too.
 * @throws RsptraceError `ELF_MISMATCH` for other code, `PATCH_REFUSED` if bytes cannot be restored
 */
export async function removeLeftovers(session: Session, arch: Architecture, elf: ElfFile): Promise<Leftovers> {
  const starts = functionStarts(elf);
  const threads = await takeBackThreads(session, arch);
  const traps = await forgottenTraps(session, arch, elf);
  // The packet that removes a breakpoint carries the trap's length.
  const places = traps?.places.map((address) => ({ address, expected: traps.code, size: 0 }));
  await removeBreakpoints(session, arch, places ?? []);
  await removeBreakpoints(session, arch, await hartPlaces(session, arch));
  const found = await readCode(session, starts.map(pieceOf));
  const suspects: { readonly start: Start; readonly found: Uint8Array }[] = [];
  let absent = 0;
  for (const [i, start] of starts.entries()) {
    const bytes = found[i];
    if (!bytes || bytes.every((byte) => byte === 0)) absent++;
    else if (!same(bytes, start.expected)) suspects.push({ start, found: bytes });
  }
  const patched = arch.probeCode ? await findPatched(session, arch.probeCode, suspects) : [];
  const ours = new Set<Addr>(patched.map(({ address }) => address));
  const others = suspects.map(({ start }) => start).filter(({ address }) => !ours.has(address));
  // A kernel may have changed many functions itself, but hardly all of them.
  if (patched.length === 0 && 10 * others.length > 9 * (starts.length - absent))
    throw mismatch(others, starts.length - absent);
  const inside = arch.probeCode ? await findInside(session, arch.probeCode, elf, { starts, patched }) : [];
  await restore(session, arch, [...patched, ...inside.map(({ patch }) => patch)]);
  await removeBreakpoints(session, arch, others);
  const now = await readCode(session, others.map(pieceOf));
  const back = others.map(({ expected }, i) => same(now[i], expected));
  return {
    compared: starts.length - absent,
    restored: [...new Set([...patched, ...inside.map(({ host }) => host)].map(({ address }) => address))],
    breakpoints: others.filter((_, i) => back[i]).map(({ address }) => address),
    different: others.filter((_, i) => !back[i]).map(({ address }) => address),
    absent,
    threads,
    traps: traps?.seen ? traps.places : [],
  };
}

/** Threads of a process that carried out system calls for an rsptrace. They get their own registers back. */
export async function takeBackThreads(session: Session, arch: Architecture): Promise<readonly string[]> {
  const threads: string[] = [];
  const model = arch.linux?.systemCalls;
  if (!model || session.target.register(model.restart)?.offsetInG === undefined) return threads;
  for (const { id } of await session.harts()) if (await SystemCalls.takeBack(session, arch, id)) threads.push(id);
  return threads;
}

/** Every function symbol's first bytes; each address once. */
function functionStarts(elf: ElfFile): readonly Start[] {
  const starts = new Map<Addr, Start>();
  for (const { type, address, size } of elf.symbols) {
    if (type !== 'function' || starts.has(address)) continue;
    // A function of no size (assembler) is compared in full length.
    const expected = bytesKnown((at, length) => elf.bytesAt(at, length), address, Math.min(size || compared, compared));
    if (expected) starts.set(address, { address, expected, size });
  }
  return [...starts.values()];
}

/**
 * Functions that jump, perhaps by a hop, to a trampoline with our mark and their address, and that equal the ELF
 * behind the jump.
 */
export async function findPatched(
  session: Session,
  code: ProbeCode,
  suspects: readonly { readonly start: Start; readonly found: Uint8Array }[],
): Promise<readonly Patched[]> {
  const jumps: { readonly start: Start; readonly length: number; readonly to: Addr }[] = [];
  const lengths = code.patches.map(({ bytes }) => bytes).sort((a, b) => a - b);
  for (const { start, found } of suspects) {
    for (const length of lengths) {
      const to = length > found.length ? undefined : code.patchTarget(found.subarray(0, length), start.address);
      if (to === undefined) continue;
      if (same(found.subarray(length), start.expected.subarray(length))) jumps.push({ start, length, to });
      break;
    }
  }
  const { hop } = code;
  const heads = hop
    ? await readCode(
        session,
        jumps.map(({ to }) => ({ address: to, length: hop.headBytes })),
      )
    : [];
  const ends = jumps.map(({ to }, i) => {
    const head = heads[i];
    return (hop && head && hop.target(head, to)) ?? to;
  });
  const marks = await readCode(
    session,
    ends.map((end) => ({ address: addOffset(end, -markBytes), length: markBytes })),
  );
  return jumps.flatMap(({ start, length }, i) => {
    const [bytes, end] = [marks[i], ends[i]];
    if (bytes === undefined || end === undefined || !isMark(bytes)) return [];
    const { patch, control } = readMark(bytes, addOffset(end, -markBytes));
    return patch === start.address ? [{ ...start, length, control }] : [];
  });
}

/**
 * Jumps of ours behind the starts of functions, found by their marks: at exits, and where a function is inlined. Any
 * function may have some, whether it also jumps at its start or not.
 */
async function findInside(
  session: Session,
  code: ProbeCode,
  elf: ElfFile,
  { starts, patched }: { readonly starts: readonly Start[]; readonly patched: readonly Patched[] },
): Promise<readonly { readonly host: Start; readonly patch: Patched }[]> {
  const taken = new Map(patched.map(({ address, length }) => [address, length]));
  const suspects: { readonly start: Start; readonly found: Uint8Array }[] = [];
  const hosts = new Map<Addr, Start>();
  for (let from = 0; from < starts.length; from += atOnce) {
    const some = starts.slice(from, from + atOnce).filter(({ size }) => size > 0 && size <= longestFunction);
    const found = await readCode(
      session,
      some.map(({ address, size }) => ({ address, length: size })),
    );
    for (const [i, host] of some.entries()) {
      const whole = { ...host, expected: elf.bytesAt(host.address, host.size) };
      for (const suspect of differences(code, whole, { now: found[i], from: taken.get(host.address) ?? 1 })) {
        suspects.push(suspect);
        hosts.set(suspect.start.address, host);
      }
    }
  }
  const inside = await findPatched(session, code, suspects);
  return inside.flatMap((patch) => {
    const host = hosts.get(patch.address);
    return host ? [{ host, patch }] : [];
  });
}

/** Where a jump of ours may begin in code, whose bytes are `now`. */
export function* differences(
  code: ProbeCode,
  { address, size, expected }: Omit<Start, 'expected'> & { readonly expected: Uint8Array | undefined },
  { now, from = 0 }: { readonly now: Uint8Array | undefined; readonly from?: number },
): Generator<{ readonly start: Start; readonly found: Uint8Array }> {
  if (!now || !expected || now.length !== size || same(now, expected)) return;
  // A jump may begin with bytes of the one that it replaces.
  for (const { bytes: length } of code.patches) {
    for (let at = from; at + length <= size; at++) {
      const [is, was] = [now.subarray(at, at + length), expected.subarray(at, at + length)];
      if (!same(is, was)) yield { start: { address: addOffset(address, at), expected: was, size: 0 }, found: is };
    }
  }
}

/** Restores the ELF's bytes, and reads them back to be sure. Calls that are still open wait for no reader any more. */
export async function restore(session: Session, arch: Architecture, patched: readonly Patched[]): Promise<void> {
  if (patched.length === 0) return;
  await leavePatches(session, arch, patched);
  const drops = session.batch();
  for (const control of new Set(patched.map((one) => one.control))) {
    if (control === undefined) continue;
    const { address, bytes } = unattended(control, true);
    drops.writeMemory(address, bytes);
  }
  await drops.send();
  for (let from = 0; from < patched.length; from += atOnce) {
    const batch = session.batch();
    for (const { address, expected, length } of patched.slice(from, from + atOnce))
      batch.writeMemory(address, expected.subarray(0, length));
    await batch.send();
  }
  const now = await readCode(session, patched.map(pieceOf));
  const failed = patched.find(({ expected }, i) => !same(now[i], expected));
  if (!failed) return;
  throw new RsptraceError('PATCH_REFUSED', `the code at ${hex(failed.address)} cannot be put back`, {
    hint: 'is it writable to the stub? A restart of the target brings its own code back',
  });
}

function pieceOf({ address, expected }: Start): Piece {
  return { address, length: expected.length };
}

/** Where the harts are: one may have hit a breakpoint that no client waits for any more. */
async function hartPlaces(session: Session, arch: Architecture): Promise<readonly Start[]> {
  const places: Start[] = [];
  for (const { id } of await session.harts()) {
    const pc = await registerOf(session, arch.pc, id);
    const code = pc === undefined ? undefined : await session.memory(id).read(addr(pc), 4);
    if (pc !== undefined && code) places.push({ address: addr(pc), expected: code, size: 0 });
  }
  return places;
}

/** Asks the stub to remove breakpoints of both types. A stub that has none there says so, which does no harm. */
export async function removeBreakpoints(session: Session, arch: Architecture, places: readonly Start[]): Promise<void> {
  for (let from = 0; from < places.length; from += atOnce) {
    const batch = session.batch();
    for (const { address, expected } of places.slice(from, from + atOnce)) {
      const kind = arch.breakpointKind(expected);
      for (const type of [0, 1] as const) batch.removeBreakpoint({ type, address, kind });
    }
    await batch.send();
  }
}

function mismatch(others: readonly Start[], all: number): RsptraceError {
  const first = others[0]?.address ?? 0n;
  return new RsptraceError(
    'ELF_MISMATCH',
    `the target does not run this ELF: ${others.length} of ${all} functions differ, first the one at ${hex(first)}`,
    { hint: 'give the ELF that was traced' },
  );
}
