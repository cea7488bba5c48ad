import type { HartSource } from '../arch/index.js';
import type { ElfFile } from '../elf/index.js';
import { type Hart, registerOf, type Session } from '../rsp/index.js';
import { hartName } from '../target/index.js';
import type { HartInfo } from '../trace/index.js';

/** Numbers harts in the order in which the stub lists them; later harts as they come. */
export class HartNumbers {
  readonly #numbers = new Map<string, number>();
  readonly #infos: HartInfo[] = [];
  readonly #isProcess: boolean;
  onNew: (hart: HartInfo, id: string) => void = () => {};

  /** `isProcess`: they are its threads. */
  constructor(known: readonly { readonly id: string; readonly name: string }[], isProcess: boolean) {
    this.#isProcess = isProcess;
    for (const { id, name } of known) this.#add(id, name);
  }

  all(): readonly HartInfo[] {
    return [...this.#infos];
  }

  get count(): number {
    return this.#infos.length;
  }

  known(): readonly { readonly id: string; readonly name: string }[] {
    return [...this.#numbers].map(([id, number]) => ({ id, name: this.#infos[number]?.name ?? '' }));
  }

  number(id: string | undefined): number {
    if (id === undefined) return 0;
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    const added = this.#add(id, hartName({ id }, this.#isProcess));
    this.onNew(added, id);
    return added.number;
  }

  #add(id: string, name: string): HartInfo {
    const hart = { number: this.#infos.length, name };
    this.#numbers.set(id, hart.number);
    this.#infos.push(hart);
    return hart;
  }
}

/** The most processors that are asked for by the numbers of their APICs. */
const mostApics = 256;

/**
 * Numbers the words by which trampolines tell harts apart. If the target says which word belongs to which hart, the
 * stub's list gives the order; else the words are numbered as they come. A surplus word belongs to no hart.
 */
export class HartWords {
  readonly #harts: number;
  readonly #known = new Map<bigint, number>();
  #hints = new Map<bigint, number>();

  constructor(harts: number) {
    this.#harts = harts;
  }

  /**
   * Learns which word belongs to which hart, while all harts are stopped. A hart that is not up yet may get another
   * word later.
   */
  async learn(
    session: Session,
    elf: ElfFile,
    outside: HartSource['outside'],
    number: (id: string) => number,
  ): Promise<void> {
    const harts = await session.harts();
    const numbers = harts.map(({ id }) => number(id));
    const words = await wordsOf(session, elf, outside, harts);
    this.#hints = new Map();
    for (const [index, word] of words.entries()) {
      const hart = numbers[index];
      if (word === undefined || hart === undefined || words.indexOf(word) !== words.lastIndexOf(word)) continue;
      this.#hints.set(word, hart);
    }
  }

  /** What {@link learn} has learnt. */
  get hints(): ReadonlyMap<bigint, number> {
    return this.#hints;
  }

  /** The same, learnt in another process. */
  set hints(hints: ReadonlyMap<bigint, number>) {
    this.#hints = new Map(hints);
  }

  /** The target begins anew: words may belong to other harts. */
  forget(): void {
    this.#known.clear();
    this.#hints.clear();
  }

  number(word: bigint): number {
    if (this.#harts === 1) return 0;
    const known = this.#known.get(word);
    if (known !== undefined) return known;
    if (this.#known.size === this.#harts) return 0;
    const taken = new Set(this.#known.values());
    const hinted = this.#hints.get(word);
    const number = hinted === undefined || taken.has(hinted) ? this.#unknown(taken) : hinted;
    this.#known.set(word, number);
    return number;
  }

  /** A hart whose word has not come; preferably one of which nothing is known. */
  #unknown(taken: ReadonlySet<number>): number {
    const hinted = new Set(this.#hints.values());
    const free = Array.from({ length: this.#harts }, (_, hart) => hart).filter((hart) => !taken.has(hart));
    return free.find((hart) => !hinted.has(hart)) ?? free[0] ?? 0;
  }
}

/** QEMU's machines have clusters of eight, or of sixteen with another interrupt controller (hw/arm/virt.c). */
const mostInCluster = 8;
/** Bit 31 of MPIDR_EL1 is always set; the number within the cluster is in its lowest bits. */
const MPIDR = 0x8000_0000n;

/** The word of each of these harts. */
async function wordsOf(
  session: Session,
  elf: ElfFile,
  outside: HartSource['outside'],
  harts: readonly Hart[],
): Promise<(bigint | undefined)[]> {
  switch (outside?.kind) {
    case 'register':
      return registerOfEach(session, harts, outside.name);
    case 'linux-cpu':
      return linuxCpus(session, elf, await registerOfEach(session, harts, outside.hartRegister));
    case 'apic':
      return apicsOf(session, harts.length);
    case 'affinity':
      return harts.length > mostInCluster ? [] : harts.map((_, index) => MPIDR | BigInt(index));
    case undefined:
      return [];
  }
}

async function registerOfEach(session: Session, harts: readonly Hart[], name: string): Promise<(bigint | undefined)[]> {
  if (session.target.register(name) === undefined) return [];
  const words: (bigint | undefined)[] = [];
  for (const { id } of harts) {
    const word = await registerOf(session, name, id);
    words.push(word);
  }
  return words;
}

/**
 * QEMU numbers processors in the order of their APICs' numbers. These have gaps if a socket's cores are not a power
 * of two.
 */
async function apicsOf(session: Session, count: number): Promise<bigint[]> {
  const found: bigint[] = [];
  for (let apic = 0; apic < mostApics && found.length < count; apic++) {
    const text = await session.monitor(`info lapic ${apic}`);
    // A stub that does not know this, or a machine without gaps.
    if (text === undefined || !/No CPU available/i.test(text)) found.push(BigInt(apic));
  }
  return found;
}

/** riscv's Linux numbers CPUs in the order in which it brings them up (arch/riscv/kernel/smp.c). */
async function linuxCpus(
  session: Session,
  elf: ElfFile,
  hartIds: readonly (bigint | undefined)[],
): Promise<(bigint | undefined)[]> {
  const [map] = elf.symbols.named('__cpuid_to_hartid_map');
  const bytes = map && (await session.memory().read(map.address, 8 * hartIds.length));
  if (!bytes) return [];
  const cpus = [...new BigUint64Array(Uint8Array.from(bytes).buffer)];
  return hartIds.map((id) => {
    const cpu = id === undefined ? -1 : cpus.indexOf(id);
    return cpu < 0 ? undefined : BigInt(cpu);
  });
}
