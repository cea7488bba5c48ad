import type { Architecture } from '../arch/index.js';
import { type Addr, hex } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import type { CallTracer, Moment } from '../calls/index.js';
import { recordOffset } from './record-layout.js';
import { OuterReadings, type Outers, RecordReader } from './record-reader.js';
import type { Site } from './sites.js';
import { WordCache } from './word-cache.js';

/** From a record's ticks to guest nanoseconds. */
export type TimeScale = (ticks: number) => number;
/** What the ticks of the records' counter mean. */
export interface RecordCounter {
  readonly time: TimeScale;
  /** While the target runs. */
  readonly nanosPerTick: number;
  /** A moment from which that holds: for a clock that stands while the target does, one of the present run. */
  readonly origin: () => { readonly ticks: number; readonly nanos: number };
  /** The origin changes whenever the target has stood. */
  readonly stands?: boolean;
  /** It is set after the last stop whenever it is behind. */
  readonly behindStops?: boolean;
}
/** The same for the record of a probe's entry or exit. */
export type RecordTime = (ticks: number, id: number, record: RecordReader) => number;

interface RecordDispatcherOptions {
  readonly arch: Architecture;
  readonly tracer: CallTracer;
  readonly time: RecordTime;
  /** The number of the hart that a record names. */
  readonly hartNumber: (word: bigint) => number;
}

/** A record as a log shows it. */
export interface RecordText {
  readonly probe: string;
  readonly at: 'entry' | 'return' | 'inside';
  readonly hart: number;
  /** Ticks of the target's counter. */
  readonly ticks: number;
  readonly sp: string;
  readonly return_address: string;
  readonly words: Readonly<Record<string, string>>;
}

/** Reads the records of one site. */
interface Carrier {
  readonly name: string;
  readonly address: Addr;
  /** It is no function's entry. */
  readonly isInside: boolean;
  /** Something observes its returns. */
  readonly seesReturn: boolean;
  /** Its calls return through a trampoline. */
  readonly hooks: boolean;
  readonly entry: RecordReader;
  readonly exit: RecordReader;
  readonly outer: { readonly pointer: string; readonly readings: OuterReadings } | undefined;
}

function carrierOf({ plan, ends, entry, exit }: Site, words: WordCache, outers: Outers): Carrier {
  const { name, address, inside, outer, seesReturn } = plan;
  return {
    name,
    address,
    isInside: inside !== undefined,
    seesReturn,
    // Among patched exits only the tail jumps are hooked.
    hooks: seesReturn && (ends?.some((way) => way.some(({ tail }) => tail !== undefined)) ?? true),
    entry: new RecordReader(entry, words, outers),
    exit: new RecordReader(exit, words, outers),
    outer: outer && { pointer: outer.pointer, readings: new OuterReadings(outer.loads) },
  };
}

const noAddress = 0n as Addr;

/** Gives each record's content to a tracer, as if the target had stopped there. */
export class RecordDispatcher {
  readonly #options: RecordDispatcherOptions;
  /** By their index; a hole where a probe has no trampolines. */
  readonly #sites: readonly (Site | undefined)[];
  /** Those that have come, by the index of their sites: a kernel has tens of thousands, and most never come. */
  readonly #carriers: (Carrier | undefined)[];
  readonly #words = new WordCache();
  /** The Futures whose polls are open, and which records may copy from. */
  readonly #outers = new AddressMap<OuterReadings>();
  /** How far a return raises the stack pointer. */
  readonly #stackedBytes: number;
  /** Calls whose entry was counted and whose exit was not. */
  open = 0;

  /** `sites`: those that have trampolines. */
  constructor(options: RecordDispatcherOptions, sites: readonly Site[]) {
    this.#options = options;
    const last = sites.reduce((most, { index }) => Math.max(most, index), -1);
    const byIndex: (Site | undefined)[] = new Array(last + 1).fill(undefined);
    for (const site of sites) byIndex[site.index] = site;
    this.#sites = byIndex;
    this.#carriers = new Array(last + 1).fill(undefined);
    this.#stackedBytes = Number(options.arch.stackPointerAfterReturn(0n));
  }

  #carrier(index: number): Carrier | undefined {
    const known = this.#carriers[index];
    if (known) return known;
    const site = this.#sites[index];
    if (!site) return undefined;
    const carrier = carrierOf(site, this.#words, this.#outers);
    this.#carriers[index] = carrier;
    return carrier;
  }

  /** Counts that a call began or ended. */
  count(view: DataView, offset: number): void {
    const id = view.getUint32(offset + recordOffset.id, true);
    if (this.#carrier(id >>> 1)?.hooks) this.open += (id & 1) === 1 ? -1 : 1;
  }

  /** The content of the record at an offset, for a log: words by register, as hex. */
  describe(view: DataView, offset: number): RecordText | undefined {
    const id = view.getUint32(offset + recordOffset.id, true);
    const isExit = (id & 1) === 1;
    const carrier = this.#carrier(id >>> 1);
    if (!carrier) return undefined;
    const record = (isExit ? carrier.exit : carrier.entry).turn(view, offset);
    return {
      probe: carrier.name,
      at: isExit ? 'return' : carrier.isInside ? 'inside' : 'entry',
      hart: this.#options.hartNumber(record.hart),
      ticks: record.count(recordOffset.time),
      sp: hex(record.word(recordOffset.stackPointer)),
      return_address: hex(record.returnAddress),
      words: record.texts(),
    };
  }

  /** The record at an offset. */
  dispatch(view: DataView, offset: number): void {
    const id = view.getUint32(offset + recordOffset.id, true);
    const isExit = (id & 1) === 1;
    const carrier = this.#carrier(id >>> 1);
    if (!carrier) return;
    const record = (isExit ? carrier.exit : carrier.entry).turn(view, offset);
    const { tracer, time, hartNumber } = this.#options;
    const returnAddress = carrier.isInside ? noAddress : record.returnAddress;
    const moment: Moment = {
      hart: hartNumber(record.hart),
      pc: isExit ? returnAddress : carrier.address,
      registers: record,
      time: time(record.count(recordOffset.time), id, record),
    };
    if (carrier.isInside) {
      tracer.reached(moment, record);
      return;
    }
    if (isExit) {
      tracer.returned(moment, record.stackPointer, record);
      return;
    }
    if (carrier.outer) {
      const self = record.register(carrier.outer.pointer);
      if (self !== undefined && this.#outers.get(self) !== carrier.outer.readings) {
        this.#outers.set(self, carrier.outer.readings);
      }
    }
    const stackPointer = record.stackPointer + this.#stackedBytes;
    const { seesReturn } = carrier;
    tracer.entered(moment, { returnAddress, stackPointer, seesReturn, isCall: true }, record);
  }
}
