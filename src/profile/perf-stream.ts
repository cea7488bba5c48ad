/*
 * What `perf record -o -` writes: tools/perf/Documentation/perf.data-file-format.txt of Linux, "Pipe-mode data". Of its
 * records (perf_event_open(2), "MMAP layout") these are read: the attributes of the event, samples, how many were lost,
 * and the end of a round. All others are skipped. Samples of another form than was asked for are refused.
 */

import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';

/** What a thread was doing when its time was up. */
export interface PerfSample {
  readonly pid: number;
  readonly tid: number;
  /** Nanoseconds since the machine's start, rounded after 104 days. */
  readonly time: number;
  readonly inKernel: boolean;
  /** Where in the kernel, with marks among the addresses. */
  readonly chain: readonly bigint[];
  /** Of the program, also while the kernel runs for it, by their numbers in perf; none of a thread that ends. */
  readonly registers: ReadonlyMap<number, bigint>;
  /** From the stack pointer on. */
  readonly stack: Uint8Array;
}

/** PERF_RECORD_*; from 64 on what perf itself adds. */
const RECORD = { lost: 2, sample: 9, lostSamples: 13, attributes: 64, round: 68 } as const;
const headerBytes = 8;
/** `PERFILE2` and the size of this header, which in a file is larger. */
const begin = Buffer.from('PERFILE2\x10\0\0\0\0\0\0\0');
/** PERF_SAMPLE_* */
const ID = 0x10000;
/** IP, TID, TIME, CALLCHAIN, REGS_USER, STACK_USER. */
const NEEDED = 0x3027;
/** READ, RAW, BRANCH_STACK: before the stack, and of a length of their own. */
const FOREIGN = 0xc10;
/** ADDR, ID, STREAM_ID, CPU, PERIOD: eight bytes each, behind the time. */
const skipped = [0x8, 0x40, 0x200, 0x80, 0x100];
/** perf_event_attr: PERF_TYPE_SOFTWARE and PERF_COUNT_SW_CPU_CLOCK; a flag. */
const [SOFTWARE, CPU_CLOCK, EXCLUDE_KERNEL] = [1, 0, 1 << 5];
/** PERF_RECORD_MISC_CPUMODE_MASK, and its value in programs. */
const [MODE, USER] = [7, 2];

interface Attributes {
  readonly samples: number;
  readonly registers: bigint;
}

export class PerfStream {
  /** The process is sampled: perf has described its event, which it does when it was let. */
  isSampling = false;
  /** perf may not sample the kernel. */
  kernelLeftOut = false;
  #attributes: Attributes | undefined;
  #rest: Uint8Array = new Uint8Array();
  #hasBegun = false;
  /** Each processor has an order of its own: those of a round come before those of the round after the next. */
  #held: PerfSample[] = [];
  #latest = 0;
  /** By records on the way, and by those at the end, where newer kernels say it again. */
  #lost = 0;
  #lostInAll = 0;

  /** Samples that there was no room for. */
  get lost(): number {
    return Math.max(this.#lost, this.#lostInAll);
  }

  /** Gives the samples, in their order. Throws `INPUT_DAMAGED`. */
  *push(bytes: Uint8Array): Generator<PerfSample> {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const all = new ByteReader(this.#rest, "perf's output");
    if (!this.#hasBegun) {
      if (all.remaining < begin.length) return;
      if (!begin.equals(all.take(begin.length))) throw damaged('it does not begin as one');
      this.#hasBegun = true;
    }
    while (all.remaining >= headerBytes) {
      const start = all.offset;
      const [type, misc, size] = [all.u32(), all.u16(), all.u16()];
      if (size < headerBytes) throw damaged(`a record has ${size} bytes`);
      all.offset = start;
      if (all.remaining < size) break;
      all.offset = start + size;
      yield* this.#record(type, misc, all.at(start + headerBytes, start + size));
    }
    this.#rest = this.#rest.subarray(all.offset);
  }

  /** The samples that are left at its end. */
  rest(): PerfSample[] {
    return this.#held.splice(0).sort(byTime);
  }

  #record(type: number, misc: number, reader: ByteReader): readonly PerfSample[] {
    if (type === RECORD.attributes) this.#read(reader);
    else if (type === RECORD.lost) {
      reader.skip(8);
      this.#lost += reader.u64n();
    } else if (type === RECORD.lostSamples) this.#lostInAll += reader.u64n();
    else if (type === RECORD.sample) this.#held.push(sampleOf(reader, misc, this.#attributes));
    else if (type === RECORD.round) return this.#settled();
    return [];
  }

  #settled(): readonly PerfSample[] {
    const all = this.rest();
    const before = this.#latest;
    this.#latest = Math.max(before, all.at(-1)?.time ?? 0);
    this.#held = all.filter(({ time }) => time > before);
    return all.slice(0, all.length - this.#held.length);
  }

  #read(reader: ByteReader): void {
    const [type, size, config] = [reader.u32(), reader.u32(), reader.u64n()];
    if (type !== SOFTWARE || config !== CPU_CLOCK) return;
    this.isSampling = true;
    const inside = reader.at(reader.offset, reader.offset - 16 + size);
    inside.skip(8);
    const samples = inside.u64n();
    inside.skip(8);
    this.kernelLeftOut = (inside.u32() & EXCLUDE_KERNEL) !== 0;
    inside.skip(36);
    this.#attributes = { samples, registers: inside.u64() };
    if ((samples & (NEEDED | FOREIGN)) !== NEEDED) throw damaged('its samples have another form');
  }
}

function sampleOf(reader: ByteReader, misc: number, attributes: Attributes | undefined): PerfSample {
  if (attributes === undefined) throw damaged('a sample comes before what describes it');
  if (attributes.samples & ID) reader.skip(8);
  reader.skip(8);
  const [pid, tid, time] = [reader.u32(), reader.u32(), Number(reader.u64())];
  reader.skip(8 * skipped.filter((bit) => attributes.samples & bit).length);
  const chain: bigint[] = [];
  for (let left = reader.u64n(); left > 0; left--) chain.push(reader.u64());
  const registers = new Map<number, bigint>();
  const hasRegisters = reader.u64n() !== 0;
  for (let number = 0, mask = attributes.registers; hasRegisters && mask !== 0n; number++, mask >>= 1n)
    if (mask & 1n) registers.set(number, reader.u64());
  const copied = reader.take(reader.u64n());
  const stack = copied.length === 0 ? copied : copied.subarray(0, reader.u64n());
  return { pid, tid, time, inKernel: (misc & MODE) !== USER, chain, registers, stack };
}

function byTime(one: PerfSample, other: PerfSample): number {
  return one.time - other.time;
}

function damaged(why: string): RsptraceError {
  return new RsptraceError('INPUT_DAMAGED', `what perf writes cannot be read: ${why}`);
}
