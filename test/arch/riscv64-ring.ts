import type { Displaced, PatchKind } from '../../src/arch/inject/displaced.js';
import { controlBlock, type RingGeometry } from '../../src/arch/inject/ring-contract.js';
import type { EntryTrampoline, ExitTrampoline } from '../../src/arch/inject/trampolines.js';
import { probeCode } from '../../src/arch/riscv64/trampoline.js';
import { type Addr, addr } from '../../src/base/addr.js';
import type { Machine } from './riscv64-machine.js';

/** Where things lie in the machine's RAM. The far code is 32 MiB from the function: out of a jal's reach. */
export const place = {
  code: addr(0x8010_0000),
  helper: addr(0x8010_8000),
  hop: addr(0x8011_0000),
  near: addr(0x8012_0000),
  /** Functions return to here. */
  done: addr(0x8018_0000),
  far: addr(0x8210_0000),
  exit: addr(0x8211_0000),
  wait: addr(0x8220_0000),
  control: addr(0x8230_0000),
  plan: addr(0x8231_0000),
  counter: addr(0x8232_0000),
  segments: addr(0x8240_0000),
  data: addr(0x8300_0000),
  stack: addr(0x8310_0000),
} as const;

/** Eight slots in two segments. */
export const smallRing: RingGeometry = {
  control: place.control,
  wait: place.wait,
  slotShift: 7,
  segmentShift: 9,
  countShift: 1,
};

/** A way from a function's start to its trampoline. */
export interface Way {
  readonly name: string;
  readonly kind: PatchKind;
  readonly at: Addr;
  readonly hop: Addr | undefined;
}

export const ways: readonly Way[] = [
  { name: 'near', kind: 'near', at: place.near, hop: undefined },
  { name: 'near, by a hop', kind: 'near', at: place.far, hop: place.hop },
  { name: 'far', kind: 'far', at: place.far, hop: undefined },
];

type Entry = Omit<EntryTrampoline, 'at' | 'ring' | 'displaced' | 'via'>;

/** An entry's trampoline that does nothing but record. */
export const plainEntry: Entry = {
  fields: [],
  when: [],
  hook: undefined,
  nesting: undefined,
  outerCopy: undefined,
  counters: [],
};

/** What a client does, from the contract alone; but it never uses a segment twice, so that all records can be looked at in the end. */
export class Ring {
  readonly #machine: Machine;
  readonly geometry: RingGeometry;
  readonly slot: bigint;
  readonly segment: bigint;
  readonly count: bigint;
  readonly capacity: bigint;
  #limit = 0n;

  constructor(machine: Machine, geometry = smallRing) {
    this.#machine = machine;
    this.geometry = geometry;
    this.slot = 1n << BigInt(geometry.slotShift);
    this.segment = 1n << BigInt(geometry.segmentShift);
    this.count = 1n << BigInt(geometry.countShift);
    this.capacity = this.segment * this.count;
  }

  /** Clears it, plants the wait routine, and opens all segments. */
  async reset(spins = 3n): Promise<void> {
    await this.#machine.write(place.control, new Uint8Array(controlBlock.size));
    await this.set(controlBlock.head, this.capacity);
    await this.set(controlBlock.spins, spins);
    await this.#machine.write(place.wait, probeCode.wait(place.wait, this.geometry, 'time').code);
    this.#limit = this.capacity;
    for (let index = 0n; index < this.count; index++) await this.open();
  }

  /** Lets a segment's worth of events in: first the place for them, then the limit. */
  async open(): Promise<void> {
    const index = this.#limit / this.segment;
    const address = this.#addressOf(index);
    await this.#machine.write(address, new Uint8Array(Number(this.segment)));
    await this.set(controlBlock.segments + 8 * Number(index % this.count), address);
    this.#limit += this.segment;
    await this.set(controlBlock.limit, this.#limit);
  }

  /** Sets the limit again, after a test has set another. */
  reopen(): Promise<void> {
    return this.set(controlBlock.limit, this.#limit);
  }

  /** Opens segments until there is room for as many events. */
  async openFor(events: number): Promise<void> {
    while ((await this.claimed()) + events > Number((this.#limit - this.capacity) / this.slot)) await this.open();
  }

  set(offset: number, value: bigint): Promise<void> {
    return this.#machine.writeWord(place.control + BigInt(offset), value);
  }

  control(offset: number): Promise<bigint> {
    return this.#machine.word(place.control + BigInt(offset));
  }

  /** The slot of the event with this number since the reset, committed or not. */
  async record(number: number): Promise<DataView> {
    const claim = this.claimOf(number);
    const bytes = await this.#machine.read(
      this.#addressOf(claim / this.segment) + (claim % this.segment),
      Number(this.slot),
    );
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  async records(): Promise<DataView[]> {
    const all: DataView[] = [];
    const claimed = await this.claimed();
    for (let number = 0; number < claimed; number++) all.push(await this.record(number));
    return all;
  }

  /** How many events were claimed since the reset. */
  async claimed(): Promise<number> {
    return Number(((await this.control(controlBlock.head)) - this.capacity) / this.slot);
  }

  claimOf(number: number): bigint {
    return this.capacity + this.slot * BigInt(number);
  }

  /** Plants the code for a function's entry, and gives the function's own code with the jump in it. */
  async plantEntry(
    code: Uint8Array,
    displaced: Displaced,
    way: Way,
    entry: Entry,
  ): Promise<{ readonly patched: Uint8Array; readonly trampoline: Uint8Array }> {
    const via = way.hop === undefined ? 'patch' : { hop: way.hop };
    const trampoline = probeCode.entry({ ...entry, at: way.at, ring: this.geometry, displaced, via });
    await this.#machine.write(way.at, trampoline);
    if (way.hop !== undefined && probeCode.hop !== undefined)
      await this.#machine.write(way.hop, probeCode.hop.encode(displaced, way.hop, way.at));
    const patched = code.slice();
    patched.set(probeCode.patch(displaced, way.hop ?? way.at));
    return { patched, trampoline };
  }

  async plantExit(exit: Omit<ExitTrampoline, 'at' | 'ring'>): Promise<Uint8Array> {
    const trampoline = probeCode.exit({ ...exit, at: place.exit, ring: this.geometry });
    await this.#machine.write(place.exit, trampoline);
    return trampoline;
  }

  #addressOf(segment: bigint): bigint {
    return place.segments + segment * this.segment;
  }
}

/** An unsigned field of a record. */
export function unsigned(record: DataView, at: number, size: 1 | 2 | 4 | 8 = 8): bigint {
  if (size === 8) return record.getBigUint64(at, true);
  return BigInt(
    size === 1 ? record.getUint8(at) : size === 2 ? record.getUint16(at, true) : record.getUint32(at, true),
  );
}
