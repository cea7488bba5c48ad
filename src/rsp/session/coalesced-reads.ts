import { type Addr, addOffset } from '../../base/addr.js';
import type { Reply } from './request.js';
import type { Session } from './session.js';
import { standingMemory } from './standing-memory.js';

/**
 * Two pieces are read as one if at most this many bytes lie between them, because a packet costs more than these
 * bytes.
 */
const mostBetween = 128;
/** The most bytes that are coalesced into one read: a packet of most stubs. */
const mostJoined = 2000;

class Wanted implements Reply<Uint8Array | undefined> {
  readonly address: Addr;
  readonly length: number;
  value: Uint8Array | undefined;
  errorText: string | undefined;

  constructor(address: Addr, length: number) {
    this.address = address;
    this.length = length;
  }
}

/**
 * Coalesces reads of thousands of small pieces of code into few packets. Reads of a plain batch are sent as
 * requested.
 */
export class CoalescedReads {
  readonly #session: Session;
  readonly #wanted: Wanted[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  /** As a batch's; the answer is there once {@link send} has resolved. */
  readMemory(address: Addr, length: number): Reply<Uint8Array | undefined> {
    const wanted = new Wanted(address, length);
    this.#wanted.push(wanted);
    return wanted;
  }

  /** Rejects as a batch's does. */
  async send(): Promise<void> {
    const [first] = this.#wanted;
    using here = first && (await standingMemory(this.#session, first.address));
    if (here) {
      for (const wanted of this.#wanted) wanted.value = here.read(wanted.address, wanted.length);
      return;
    }
    const groups = grouped(this.#wanted);
    const failed = await this.#read(groups);
    // The bytes between them may not be readable.
    if (failed.length > 0) await this.#read(failed.flatMap((group) => group.map((wanted) => [wanted])));
  }

  async #read(groups: readonly (readonly Wanted[])[]): Promise<(readonly Wanted[])[]> {
    const batch = this.#session.batch();
    const replies = groups.map((group) => {
      const [first, last] = [group[0] as Wanted, group.at(-1) as Wanted];
      return batch.readMemory(first.address, Number(last.address - first.address) + last.length);
    });
    await batch.send();
    return groups.filter((group, i) => {
      const { value, errorText } = replies[i] as Reply<Uint8Array | undefined>;
      const start = (group[0] as Wanted).address;
      for (const wanted of group) {
        const at = Number(wanted.address - start);
        wanted.value = value?.subarray(at, at + wanted.length);
        wanted.errorText = errorText;
      }
      return value === undefined && group.length > 1;
    });
  }
}

/** In order of address. No piece of a group overlaps the next, so the last one ends it. */
function grouped(all: readonly Wanted[]): Wanted[][] {
  const sorted = [...all].sort((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
  const groups: Wanted[][] = [];
  let group: Wanted[] = [];
  let start = 0n;
  let end = 0n;
  for (const wanted of sorted) {
    const { address, length } = wanted;
    const joins =
      address >= end && address <= end + BigInt(mostBetween) && Number(address - start) + length <= mostJoined;
    if (group.length > 0 && joins) group.push(wanted);
    else {
      group = [wanted];
      groups.push(group);
      start = address;
    }
    end = addOffset(address, length);
  }
  return groups;
}
