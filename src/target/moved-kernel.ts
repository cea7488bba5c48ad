/*
 * Where a loader has put a position-independent kernel (the `bootloader` crate, U-Boot, a Linux-like Image). No stub
 * says so. A hart that runs the kernel does: the page of code around its pc is in the ELF, and in one place only. A
 * page keeps its place within a page, because loaders move programs by whole pages.
 */
import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { type ElfFile, ET } from '../elf/index.js';
import { registerOf, type Session } from '../rsp/index.js';
import { GuestRam } from './guest-ram.js';
import { KernelInRam } from './kernel-in-ram.js';

const PAGE = 4096;
/** Bytes of a page, zeros not counted, that the ELF must have, to know it again. */
const leastBytes = 64;
/** The share of equal bytes that makes it the page; code that has changed itself differs a little. */
const same = 0.75;
/** No other page may have as many. */
const different = 0.5;

/** Whether a program for a machine is linked at address 0, where no machine runs it: its loader moves it. */
export function isMovedAtBoot(elf: ElfFile): boolean {
  const { loads, loadBias } = elf;
  const isLow = loads.some(({ address, memorySize }) => memorySize > 0 && address - loadBias < BigInt(PAGE));
  return elf.type === ET.DYN && !elf.hasInterpreter && isLow;
}

/** A hart that runs the kernel. */
interface InKernel {
  /** How far the kernel was moved from its linked addresses. */
  readonly bias: bigint;
  /** It is at the first instruction. */
  readonly isAtEntry: boolean;
}

/** Undefined if no hart runs this ELF's code. Reads each hart's pc and the page around it. */
async function hartInKernel(session: Session, arch: Architecture, elf: ElfFile): Promise<InKernel | undefined> {
  for (const id of await session.hartIds()) {
    const pc = await registerOf(session, arch.pc, id);
    if (pc === undefined) continue;
    const start = addr(pc & ~BigInt(PAGE - 1));
    const page = await session.memory(id).read(start, PAGE);
    const inElf = page && pageInElf(elf, page, Number(pc - start));
    if (inElf === undefined) continue;
    const bias = start - inElf + elf.loadBias;
    return { bias, isAtEntry: pc === elf.entry - elf.loadBias + bias };
  }
  return undefined;
}

/** The ELF's address of this page; `at`: a byte in it that must be the ELF's. May be below the first segment. */
function pageInElf(elf: ElfFile, page: Uint8Array, at: number): bigint | undefined {
  const scores: { readonly start: bigint; readonly score: number }[] = [];
  for (const { address, fileSize, bytes: code } of elf.codeParts()) {
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

/** A machine runs so many times as long as the last look at its harts took, but not longer than `LONG_MS`. */
const SHARE = 30;
const LONG_MS = 500;
/** Time between two looks into all of RAM before a kernel is loaded, in milliseconds. */
const RARE_MS = 100;
/** And between two looks whether it is loaded. */
const OFTEN_MS = 2;
/** A kernel that is loaded is soon mapped and started: the machine stands for so long, while RAM is looked into. */
const MOST_STANDING_MS = 300;
/** It runs so long in between. */
const SHORT_MS = 5;
/** No processor has fewer breakpoints. */
const MOST_BREAKPOINTS = 4;

export interface KernelWait {
  /** How far it was moved, where that is known. */
  readonly known?: bigint | undefined;
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for which the machine may run. */
  readonly mostMs: number;
  /** Milliseconds that it runs between two looks, if these cost little. */
  readonly everyMs: number;
  /** Called when it was found, with the milliseconds of the kernel's run that were missed at most. */
  readonly onFound?: ((missedMs: number) => void) | undefined;
}

/**
 * The same, of a machine that runs until a hart is in the kernel. Undefined if none was, or the machine has ended.
 * Where its RAM can be read past the wire, the machine stops at the kernel's first instruction. Else, and if it does
 * not come there, harts are looked at again and again, as rarely as looks are slow.
 */
export async function biasWhenItRuns(
  session: Session,
  arch: Architecture,
  elf: ElfFile,
  wait: KernelWait,
): Promise<bigint | undefined> {
  const { known, signal, mostMs, onFound } = wait;
  if (known !== undefined) return known;
  const runs = await hartInKernel(session, arch, elf);
  if (runs !== undefined) return runs.bias;
  const ram = await GuestRam.find(session);
  using open = ram instanceof GuestRam ? ram : undefined;
  const kernel = open && KernelInRam.of(elf, open, arch.addressSpaces?.search);
  const turns = new Turns(session, kernel, wait.everyMs);
  const deadline = performance.now() + mostMs;
  for (;;) {
    await turns.run();
    if (session.state.kind !== 'idle') return undefined;
    const found = await hartInKernel(session, arch, elf);
    if (found !== undefined) onFound?.(found.isAtEntry ? 0 : turns.everyMs);
    if (found !== undefined || signal?.aborted || performance.now() > deadline) {
      await turns.end();
      return found?.bias;
    }
  }
}

/** A machine that runs from look to look. */
class Turns {
  readonly #session: Session;
  readonly #kernel: KernelInRam | undefined;
  readonly #leastMs: number;
  #everyMs: number;
  /** When the present look began, see `performance.now`. */
  #lookBegan: number | undefined;
  /** RAM shows more of the kernel than at the last look. */
  #hasChanged = false;
  /** Milliseconds for which the machine may yet stand because its kernel will begin soon. */
  #standingMs = MOST_STANDING_MS;
  #wasLoaded = false;
  /** When all of RAM is to be looked into, see `performance.now`. */
  #nextWatch = 0;
  readonly #stops: EntryStops;

  constructor(session: Session, kernel: KernelInRam | undefined, leastMs: number) {
    this.#session = session;
    this.#stops = new EntryStops(session);
    this.#kernel = kernel;
    this.#leastMs = leastMs;
    this.#everyMs = leastMs;
  }

  /** How long the machine last ran, at most. */
  get everyMs(): number {
    return this.#everyMs;
  }

  /** Runs it on, until the kernel may have begun, or until it is time for a look. */
  async run(): Promise<void> {
    await this.#prepare();
    const ended = new AbortController();
    const interrupt = (): void => {
      ended.abort();
      this.#lookBegan ??= performance.now();
      void this.#session.interrupt().catch(() => {});
    };
    const timer = setTimeout(interrupt, this.#everyMs);
    if (this.#kernel !== undefined) this.#watch(this.#kernel, ended.signal, interrupt);
    await this.#session.resume();
    clearTimeout(timer);
    ended.abort();
    if (this.#lookBegan !== undefined) return;
    this.#lookBegan = performance.now();
    this.#stops.wereWrong();
  }

  async end(): Promise<void> {
    await this.#stops.place([]);
  }

  /** Before a turn: where the machine is to stop, and how long it runs. */
  async #prepare(): Promise<void> {
    const isSoon = this.#kernel?.isLoaded === true && this.#standingMs > 0;
    if (isSoon) this.#hasChanged = this.#kernel?.hasChanged() || this.#hasChanged;
    const guesses = this.#hasChanged ? (this.#kernel?.entries() ?? []) : this.#stops.inserted;
    this.#hasChanged = false;
    await this.#stops.place(guesses);
    const cost = this.#lookBegan === undefined ? 0 : performance.now() - this.#lookBegan;
    this.#lookBegan = undefined;
    if (isSoon) this.#standingMs -= cost;
    const longMs = Math.ceil(Math.min(Math.max(this.#leastMs, cost * SHARE), LONG_MS));
    this.#everyMs = isSoon ? Math.max(this.#leastMs, SHORT_MS) : longMs;
  }

  /** Looks into RAM while the machine runs. `interrupt` is called when that shows more of the kernel. */
  #watch(kernel: KernelInRam, ended: AbortSignal, interrupt: () => void): void {
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      const begin = performance.now();
      const wasLoaded = this.#wasLoaded;
      this.#wasLoaded = kernel.isLoaded;
      if (begin >= this.#nextWatch) {
        this.#hasChanged = kernel.hasChanged();
        const end = performance.now();
        this.#nextWatch = end + (this.#wasLoaded ? end - begin : RARE_MS);
      }
      if (this.#hasChanged || this.#wasLoaded !== wasLoaded) interrupt();
      else timer = setTimeout(look, OFTEN_MS);
    };
    timer = setTimeout(look, OFTEN_MS);
    ended.addEventListener('abort', () => clearTimeout(timer));
  }
}

/** Breakpoints where the kernel may begin. */
class EntryStops {
  inserted: readonly Addr[] = [];
  readonly #session: Session;
  /** Where something else came, or where no breakpoint can be. */
  readonly #wrong = new Set<Addr>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Something else has come to one of them. */
  wereWrong(): void {
    for (const entry of this.inserted) this.#wrong.add(entry);
  }

  /** Has breakpoints at these addresses alone, as far as they may be right. */
  async place(guesses: readonly Addr[]): Promise<void> {
    const wanted = guesses.filter((entry) => !this.#wrong.has(entry)).slice(0, MOST_BREAKPOINTS);
    for (const address of this.inserted.filter((entry) => !wanted.includes(entry)))
      await this.#session.removeBreakpoint({ type: 1, address, kind: 1 });
    const added: Addr[] = [];
    for (const address of wanted.filter((entry) => !this.inserted.includes(entry)))
      if (await this.#session.insertBreakpoint({ type: 1, address, kind: 1 })) added.push(address);
      else this.#wrong.add(address);
    this.inserted = [...this.inserted.filter((entry) => wanted.includes(entry)), ...added];
  }
}
