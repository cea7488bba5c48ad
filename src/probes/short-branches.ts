import type { Architecture } from '../arch/index.js';
import { madeOnce } from '../base/made-once.js';
import { CallFrames } from '../dwarf/index.js';
import { type CodeAddress, type ElfFile, Kept, lastNotAbove } from '../elf/index.js';
import { CodeMap } from '../target/unwind/index.js';

/** The name by which branches are kept: the code addresses of bytes, and where the instructions there lead. */
const SHORT = 'short';
/** Where no instruction that leads somewhere begins; `Infinity` where no function is known. */
const NOWHERE = Number.NaN;
const UNKNOWN = Number.POSITIVE_INFINITY;
/** Addresses in windows of a `CodeSpace` are not kept. */
const MOST = 2 ** 52;

interface Span {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
}

/** Where bytes that look like short branches lead: only their function's code says where instructions begin. */
export class ShortBranches {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  readonly #bias: number;
  readonly #to = new Map<CodeAddress, CodeAddress>();
  #isNew = false;
  #hosts: Hosts | undefined;
  /** By a function's start: its instructions that lead somewhere. */
  readonly #decoded = new Map<CodeAddress, ReadonlyMap<CodeAddress, CodeAddress>>();

  constructor(elf: ElfFile, arch: Architecture) {
    this.#elf = elf;
    this.#arch = arch;
    this.#bias = Number(elf.loadBias);
    const [at, to] = Kept.of(elf)?.read(SHORT) ?? [];
    for (let i = 0; at && to && i < at.length; i++)
      this.#to.set((at[i] as number) + this.#bias, (to[i] as number) + this.#bias);
  }

  /** Where the branch at a byte leads; undefined if none begins there, `unknown` if its function is not known. */
  from(at: CodeAddress): CodeAddress | 'unknown' | undefined {
    let to = this.#to.get(at);
    if (to === undefined) {
      const host = this.hostAt(at);
      to = host ? (madeOnce(this.#decoded, host.low, () => this.#leadsOf(host)).get(at) ?? NOWHERE) : UNKNOWN;
      this.#to.set(at, to);
      this.#isNew = true;
    }
    if (to === UNKNOWN) return 'unknown';
    return Number.isNaN(to) ? undefined : to;
  }

  /** The function around an address. */
  hostAt(at: CodeAddress): Span | undefined {
    this.#hosts ??= new Hosts(this.#elf);
    return this.#hosts.at(at);
  }

  /** Keeps what was found anew. */
  keep(): void {
    if (!this.#isNew) return;
    this.#isNew = false;
    const known = [...this.#to].filter(([at]) => at < MOST);
    Kept.of(this.#elf)?.write(SHORT, [
      Float64Array.from(known, ([at]) => at - this.#bias),
      Float64Array.from(known, ([, to]) => to - this.#bias),
    ]);
  }

  #leadsOf({ low, high }: Span): ReadonlyMap<CodeAddress, CodeAddress> {
    const { codes } = this.#elf;
    const leads = new Map<CodeAddress, CodeAddress>();
    const start = codes.fromCode(low);
    const bytes = this.#elf.bytesAt(start, high - low) ?? new Uint8Array(0);
    for (const { address, target } of this.#arch.codeFlow?.steps(bytes, start) ?? [])
      if (target !== undefined) leads.set(codes.toCode(address), codes.toCode(target));
    return leads;
  }
}

/** The function around an address: by symbols, else by call frame information, which stripped programs have. */
class Hosts {
  readonly #elf: ElfFile;
  readonly #code: CodeMap;
  readonly #lows: Float64Array;
  readonly #highs: Float64Array;

  constructor(elf: ElfFile) {
    this.#elf = elf;
    this.#code = CodeMap.of(elf, undefined);
    const ranges = [...CallFrames.load(elf).ranges()].sort((a, b) => a.low - b.low);
    this.#lows = Float64Array.from(ranges, ({ low }) => low);
    this.#highs = Float64Array.from(ranges, ({ high }) => high);
  }

  at(code: CodeAddress): Span | undefined {
    const index = lastNotAbove(this.#lows, this.#lows.length, code);
    const [low, high] = [this.#lows[index] ?? Number.NaN, this.#highs[index] ?? Number.NaN];
    if (code >= low && code < high) return { low, high };
    for (const { start, bytes } of this.#code.functionAt(code)?.ranges ?? []) {
      const from = this.#elf.codes.toCode(start);
      if (code >= from && code < from + bytes.length) return { low: from, high: from + bytes.length };
    }
    return undefined;
  }
}
