import { type Addr, addOffset, fromHalves } from '../../base/addr.js';
import type { MemoryNeed } from '../object-place.js';
import { readAhead } from '../reader.js';
import type { ValueLimits } from '../value.js';
import type { TextPlan } from './text-plan.js';

/** Memory as far as it is known. `unread`: nobody has asked for it yet, and it can be asked for. */
export interface KnownMemory {
  bytes(address: Addr, length: number): Uint8Array | 'unreadable' | 'unread';
}

/** Where an object lies: in memory from `base` on, or nowhere but in `bytes`. An object in memory may be read ahead. */
export interface Spot {
  readonly base: Addr | undefined;
  /** Without `base`: all of the object. With it: what was read ahead, from `start` on. */
  readonly bytes: Uint8Array | undefined;
  readonly start: number;
}

/** How bytes were looked for. */
export const found = 0;
/** They were not read, or a limit is reached. */
const left = 1;
/** They lie neither in memory nor in a register. */
export const nowhere = 2;

const nothing = new Uint8Array(0);

/** One reading of one text: counts what it has read against its limits, exactly as {@link ValueReading} does. */
export class TextReading {
  readonly limits: ValueLimits;
  /** The first bytes that were asked for and that nobody has read yet. */
  need: MemoryNeed | undefined;
  /** What {@link locate} has found last. */
  data: Uint8Array = nothing;
  at = 0;
  #memory: KnownMemory = { bytes: () => 'unreadable' };
  #values = 0;
  #bytes = 0;
  #depth = 0;
  /** Addresses and types of the pointers that are being followed. */
  readonly #following: (Addr | string)[] = [];

  constructor(limits: ValueLimits) {
    this.limits = limits;
  }

  begin(memory: KnownMemory): void {
    this.#memory = memory;
    this.#values = this.limits.values;
    this.#bytes = this.limits.bytes;
    this.#depth = 0;
    this.#following.length = 0;
    this.need = undefined;
  }

  get isOut(): boolean {
    return this.#values <= 0;
  }

  /** Counts one more value. False if it is one too many. */
  take(): boolean {
    return this.#values-- > 0;
  }

  /** The text of the value at an offset of a spot; undefined if nothing of it was read. */
  read(plan: TextPlan, spot: Spot, offset: number): string | undefined {
    if (this.#depth >= this.limits.depth || --this.#values < 0) return undefined;
    const { size } = plan;
    if (size !== undefined && size > this.limits.object && spot.base !== undefined) return undefined;
    this.#depth++;
    const near = size !== undefined && size > 0 && size <= readAhead ? this.ahead(spot, offset, size) : spot;
    const text = plan.text(this, near, offset);
    this.#depth--;
    return text;
  }

  /** The spot with `size` bytes read ahead, as far as the limit on bytes allows. */
  ahead(spot: Spot, offset: number, size: number): Spot {
    if (isAhead(spot, offset, size) || size > this.#bytes) return spot;
    this.#bytes -= size;
    const { base } = spot;
    const bytes = base === undefined || size === 0 ? undefined : this.#fetch(addOffset(base, offset), size);
    return bytes === undefined ? spot : { base, bytes, start: offset };
  }

  /** Finds `size` bytes, which are then at `at` of `data`. */
  locate(spot: Spot, offset: number, size: number): typeof found | typeof left | typeof nowhere {
    const { base, bytes } = spot;
    const ahead = isAhead(spot, offset, size);
    if (!ahead) {
      if (size > this.#bytes) return left;
      this.#bytes -= size;
    }
    if (ahead || (base === undefined && bytes !== undefined && offset + size <= bytes.length)) {
      this.data = bytes ?? nothing;
      this.at = offset - spot.start;
      return found;
    }
    if (size > 0 && base === undefined) return nowhere;
    const read = base === undefined || size === 0 ? nothing : this.#fetch(addOffset(base, offset), size);
    if (read === undefined) return left;
    this.data = read;
    this.at = 0;
    return found;
  }

  /** What was located, as an unsigned number of four bytes, `from` bytes into it. */
  half(from: number): number {
    const { data } = this;
    const at = this.at + from;
    return (
      ((data[at] as number) |
        ((data[at + 1] as number) << 8) |
        ((data[at + 2] as number) << 16) |
        ((data[at + 3] as number) << 24)) >>>
      0
    );
  }

  /** What was located, as a word. */
  word(): bigint {
    return fromHalves(this.half(0), this.half(4));
  }

  /** What was located, as an address. */
  address(): Addr {
    return this.word() as Addr;
  }

  /** What was located, as a word that is exact below 2^53. */
  count(): number {
    return this.half(4) * 0x1_0000_0000 + this.half(0);
  }

  /** Reads what lies at an address, unless that is being read already. */
  follow(name: string, address: Addr, read: () => string | undefined): string | undefined {
    const following = this.#following;
    for (let i = 0; i < following.length; i += 2)
      if (following[i] === address && following[i + 1] === name) return '<itself>';
    following.push(address, name);
    const text = read();
    following.length -= 2;
    return text;
  }

  #fetch(address: Addr, length: number): Uint8Array | undefined {
    const bytes = this.#memory.bytes(address, length);
    if (bytes === 'unread') this.need ??= { address, length };
    return typeof bytes === 'string' ? undefined : bytes;
  }
}

/** What lies at an address. */
export function spotAt(base: Addr): Spot {
  return { base, bytes: undefined, start: 0 };
}

function isAhead({ base, bytes, start }: Spot, offset: number, size: number): boolean {
  return base !== undefined && bytes !== undefined && offset >= start && offset - start + size <= bytes.length;
}
