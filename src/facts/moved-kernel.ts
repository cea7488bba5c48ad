/*
 * Where a loader has put a position-independent kernel (the `bootloader` crate, U-Boot, a Linux-like Image). No stub
 * says so. A hart that runs the kernel does: the page of code around its pc is in the ELF, and in one place only. A
 * page keeps its place within a page, because loaders move programs by whole pages.
 */
import type { Architecture } from '../arch/index.js';
import { addr } from '../base/addr.js';
import { type ElfFile, ET } from '../elf/index.js';
import type { Session } from '../rsp/index.js';

const PT_LOAD = 1;
const PT_INTERP = 3;
const PF_X = 1;
const PAGE = 4096;
/** Bytes of a page, zeros not counted, that the ELF must have, to know it again. */
const leastBytes = 64;
/** The share of equal bytes that makes it the page; code that has changed itself differs a little. */
const same = 0.75;
/** No other page may have as many. */
const different = 0.5;

/** Whether a program for a machine is linked at address 0, where no machine runs it: its loader moves it. */
export function isMovedAtBoot(elf: ElfFile): boolean {
  const { segments, loadBias } = elf;
  const loads = segments.filter(({ type, memorySize }) => type === PT_LOAD && memorySize > 0);
  const isProgram = segments.some(({ type }) => type === PT_INTERP);
  return elf.type === ET.DYN && !isProgram && loads.some(({ address }) => address - loadBias < BigInt(PAGE));
}

/**
 * How far the kernel of this ELF was moved from its linked addresses. Undefined if no hart runs its code. Reads each
 * hart's pc and the page around it.
 */
export async function biasFromCode(session: Session, arch: Architecture, elf: ElfFile): Promise<bigint | undefined> {
  for (const id of await session.hartIds()) {
    const batch = session.batch(id);
    const pc = batch.readRegister(arch.pc);
    await batch.send();
    if (pc.value === undefined) continue;
    const start = addr(pc.value & ~BigInt(PAGE - 1));
    const page = await session.memory(id).read(start, PAGE);
    const inElf = page && pageInElf(elf, page, Number(pc.value - start));
    if (inElf !== undefined) return start - inElf + elf.loadBias;
  }
  return undefined;
}

/** The ELF's address of this page; `at`: a byte in it that must be the ELF's. May be below the first segment. */
function pageInElf(elf: ElfFile, page: Uint8Array, at: number): bigint | undefined {
  const scores: { readonly start: bigint; readonly score: number }[] = [];
  for (const { type, flags, address, fileSize } of elf.segments) {
    if (type !== PT_LOAD || (flags & PF_X) === 0) continue;
    const code = elf.bytesAt(address, fileSize);
    if (!code) continue;
    const first = address & ~BigInt(PAGE - 1);
    for (let start = first; start < address + BigInt(fileSize); start += BigInt(PAGE)) {
      // Where the page begins in the segment's bytes: below 0 in the first page.
      const offset = Number(start - address);
      const [from, to] = [Math.max(0, -offset), Math.min(PAGE, code.length - offset)];
      if (at < from || at >= to) continue;
      scores.push({ start, score: equalShare(page, code, offset, from, to) });
    }
  }
  const [best, next] = scores.sort((a, b) => b.score - a.score);
  return best && best.score >= same && (next?.score ?? 0) < different ? best.start : undefined;
}

/** Of the bytes that are no zeros in both: pages of little code have mostly such. */
function equalShare(page: Uint8Array, code: Uint8Array, offset: number, from: number, to: number): number {
  let equal = 0;
  let counted = 0;
  for (let i = from; i < to; i++) {
    const [there, own] = [page[i], code[offset + i]];
    if (there === 0 && own === 0) continue;
    counted++;
    if (there === own) equal++;
  }
  return counted < leastBytes ? 0 : equal / counted;
}

export interface KernelWait {
  /** How far it was moved, where that is known. */
  readonly known?: bigint | undefined;
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for which the machine may run. */
  readonly mostMs: number;
  /** Milliseconds that it runs between two looks: as much of the kernel's run may be missed. */
  readonly everyMs: number;
}

/** The same, of a machine that runs until a hart is in the kernel. Undefined if none was, or the machine has ended. */
export async function biasWhenItRuns(
  session: Session,
  arch: Architecture,
  elf: ElfFile,
  { known, signal, mostMs, everyMs }: KernelWait,
): Promise<bigint | undefined> {
  if (known !== undefined) return known;
  const deadline = performance.now() + mostMs;
  for (;;) {
    const bias = await biasFromCode(session, arch, elf);
    if (bias !== undefined || signal?.aborted || performance.now() > deadline) return bias;
    const timer = setTimeout(() => void session.interrupt().catch(() => {}), everyMs);
    await session.resume();
    clearTimeout(timer);
    if (session.state.kind !== 'idle') return undefined;
  }
}
