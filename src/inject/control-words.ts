import { controlBlock } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { unattended, type Write, wordWrite } from './ring.js';
import type { ControlWord } from './ring-segments.js';
import type { WaitLease } from './wait-lease.js';

/** The first words of the ring's control block, as last read, and what the client answers there. */
export class ControlWords {
  /** Where the control block is. */
  readonly address: Addr;
  /** To read the words into. */
  readonly bytes = new Uint8Array(controlBlock.segments);
  readonly #lease: WaitLease;
  #waits: readonly Write[] = [];

  constructor(address: Addr, lease: WaitLease) {
    this.address = address;
    this.#lease = lease;
  }

  /** HEAD: the bytes ever claimed. */
  get head(): number {
    return this.#word(controlBlock.head);
  }

  /** Ticks that writers have waited for room. */
  get waited(): number {
    return this.#word(controlBlock.waited);
  }

  #word(offset: number): number {
    const view = new DataView(this.bytes.buffer);
    return view.getUint32(offset, true) + view.getUint32(offset + 4, true) * 2 ** 32;
  }

  /**
   * How often a writer polls a full ring before its breakpoint stops the target, and how often it comes to that
   * breakpoint before it gives up. From the next answer on.
   */
  set waits({ looks, spins }: { readonly looks: number; readonly spins: number }) {
    const words = [[controlBlock.looks, looks] as const, [controlBlock.spins, spins] as const];
    this.#waits = words.map(([offset, value]) => this.#write(offset, BigInt(value)));
  }

  /**
   * The writes that go out with those of the ring. They also say to a writer that has given us up that the client is
   * here.
   */
  answer(): readonly Write[] {
    const writes: Write[] = [];
    if (this.bytes[controlBlock.unattended] !== 0) writes.push(unattended(this.address, false));
    writes.push(...this.#waits);
    this.#waits = [];
    return writes;
  }

  /** The words of the lease before the first trampoline runs. */
  get first(): readonly ControlWord[] {
    return [...this.#lease.words, ...this.#lease.renewed(0, true)];
  }

  /** The words that say that the client lives; none if it has just said so, unless `now` is wanted. */
  renewed(now = false): readonly Write[] {
    return this.#lease.renewed(this.waited, now).map(({ offset, value }) => this.#write(offset, value));
  }

  #write(offset: number, value: bigint): Write {
    return wordWrite(addOffset(this.address, offset), value);
  }
}
