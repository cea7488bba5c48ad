import type { Displaced, PatchKind } from '../../src/arch/inject/displaced.js';
import type { ProbeCode } from '../../src/arch/inject/probe-code.js';
import { controlBlock, type RingGeometry } from '../../src/arch/inject/ring-contract.js';
import type { EntryTrampoline, ExitTrampoline } from '../../src/arch/inject/trampolines.js';
import { type Addr, addr } from '../../src/base/addr.js';
import type { BareMachine } from './machine.js';

/** Where things lie in RAM that begins at `base`; how far away `far` is, out of a near jump's reach. */
export function placesAt(base: number, far: number) {
  return {
    code: addr(base + 0x10_0000),
    helper: addr(base + 0x10_8000),
    hop: addr(base + 0x11_0000),
    near: addr(base + 0x12_0000),
    /** Functions return to here. */
    done: addr(base + 0x18_0000),
    far: addr(base + far),
    exit: addr(base + far + 0x1_0000),
    wait: addr(base + far + 0x10_0000),
    control: addr(base + far + 0x20_0000),
    plan: addr(base + far + 0x21_0000),
    counter: addr(base + far + 0x22_0000),
    segments: addr(base + far + 0x30_0000),
    data: addr(base + far + 0xf0_0000),
    stack: addr(base + far + 0x100_0000),
  } as const;
}

export type Places = ReturnType<typeof placesAt>;

/** Eight slots in two segments. */
export const smallRingAt = ({ control, wait }: Places): RingGeometry => {
  return { control, wait, slotShift: 7, segmentShift: 9, countShift: 1 };
};

/** A way from a function's start to its trampoline. */
export interface Way {
  readonly name: string;
  readonly kind: PatchKind;
  readonly at: Addr;
  readonly hop: Addr | undefined;
}

export const waysTo = ({ near, far, hop }: Places): readonly Way[] => [
  { name: 'near', kind: 'near', at: near, hop: undefined },
  { name: 'near, by a hop', kind: 'near', at: far, hop },
  { name: 'far', kind: 'far', at: far, hop: undefined },
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

/** What a ring belongs to. */
export interface RingTarget {
  readonly place: Places;
  readonly code: ProbeCode;
}

/** What a client does, from the contract alone. It never uses a segment twice: all records are there at the end. */
export class TestRing {
  readonly #machine: BareMachine;
  readonly #target: RingTarget;
  readonly geometry: RingGeometry;
  readonly slot: bigint;
  readonly segment: bigint;
  readonly count: bigint;
  readonly capacity: bigint;
  #limit = 0n;

  constructor(machine: BareMachine, target: RingTarget, geometry = smallRingAt(target.place)) {
    this.#machine = machine;
    this.#target = target;
    this.geometry = geometry;
    this.slot = 1n << BigInt(geometry.slotShift);
    this.segment = 1n << BigInt(geometry.segmentShift);
    this.count = 1n << BigInt(geometry.countShift);
    this.capacity = this.segment * this.count;
  }

  /** Clears it, plants the wait routine, and opens all segments. */
  async reset(spins = 3n): Promise<void> {
    const { place, code } = this.#target;
    await this.#machine.write(place.control, new Uint8Array(controlBlock.size));
    await this.set(controlBlock.head, this.capacity);
    await this.set(controlBlock.spins, spins);
    await this.#machine.write(place.wait, code.wait(place.wait, this.geometry, true).code);
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
    return this.#machine.writeWord(this.#target.place.control + BigInt(offset), value);
  }

  control(offset: number): Promise<bigint> {
    return this.#machine.word(this.#target.place.control + BigInt(offset));
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
    const { code: probeCode } = this.#target;
    const via = way.hop === undefined ? 'patch' : { hop: way.hop };
    const trampoline = probeCode.entry({ ...entry, at: way.at, ring: this.geometry, displaced, via });
    await this.#machine.write(way.at, trampoline);
    if (way.hop !== undefined && probeCode.hop !== undefined)
      await this.#machine.write(way.hop, probeCode.hop.encode(displaced, way.hop, way.at));
    const patched = code.slice();
    const from = Number(displaced.start - this.#target.place.code);
    patched.set(probeCode.patch(displaced, way.hop ?? way.at), from);
    return { patched, trampoline };
  }

  async plantExit(exit: Omit<ExitTrampoline, 'at' | 'ring'>): Promise<Uint8Array> {
    const { place, code } = this.#target;
    const trampoline = code.exit({ ...exit, at: place.exit, ring: this.geometry });
    await this.#machine.write(place.exit, trampoline);
    return trampoline;
  }

  #addressOf(segment: bigint): bigint {
    return this.#target.place.segments + segment * this.segment;
  }
}

/** An unsigned field of a record. */
export function unsigned(record: DataView, at: number, size: 1 | 2 | 4 | 8 = 8): bigint {
  if (size === 8) return record.getBigUint64(at, true);
  return BigInt(
    size === 1 ? record.getUint8(at) : size === 2 ? record.getUint16(at, true) : record.getUint32(at, true),
  );
}
