import type { PacketWriter } from './framing.js';

const PLUS = 0x2b;

/**
 * The acknowledgements of both sides.
 *
 * Acknowledgements that this side owes go in front of the next packet; within a write, between the packets. So a stub
 * that insists on them finds each in its place. No byte is left to be sent once the target runs, because QEMU would
 * stop at it.
 *
 * The stub's acknowledgements are counted. It acknowledges a packet before it answers it, so an answer without an
 * acknowledgement belongs to no request.
 */
export class Acks {
  readonly #flush: () => void;
  #needed = true;
  #owed = false;
  #scheduled = false;
  #paidAhead = 0;
  /** Packets that the stub has not acknowledged, and acknowledged ones that it has not answered. */
  #unheard = 0;
  #heard = 0;

  /** `flush` sends owed acknowledgements, if no packet takes them along in this turn of the event loop. */
  constructor(flush: () => void) {
    this.#flush = flush;
  }

  get needed(): boolean {
    return this.#needed;
  }

  /** The next answer is acknowledged already. */
  get ahead(): boolean {
    return this.#paidAhead > 0;
  }

  /** The stub has not confirmed yet that it has received everything. */
  get unheard(): boolean {
    return this.#needed && this.#unheard > 0;
  }

  /** QStartNoAckMode was accepted: acknowledgements owed so far are still sent. */
  stop(): void {
    this.#needed = false;
  }

  /** Nothing is outstanding: later words of the stub about earlier packets are ignored. */
  quiet(): void {
    this.#unheard = 0;
    this.#heard = 0;
  }

  /** A packet goes out. */
  sent(): void {
    this.#unheard++;
  }

  /** The stub acknowledges the next packet. */
  received(): void {
    if (this.#unheard === 0) return;
    this.#unheard--;
    this.#heard++;
  }

  /** An answer has come; false if its request was never acknowledged. */
  answered(): boolean {
    if (this.#paidAhead > 0) this.#paidAhead--;
    else this.owe();
    if (!this.#needed) return true;
    return this.#heard > 0 && this.#heard-- > 0;
  }

  /** A packet has come that is not acknowledged yet. */
  owe(): void {
    if (!this.#needed) return;
    this.#owed = true;
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#owed) this.#flush();
    });
  }

  /** A damaged packet has come: it is requested again, not acknowledged. */
  forgo(): void {
    this.#owed = false;
  }

  /** Acknowledgements sent ahead are void: no answer to earlier requests will be trusted. */
  reset(): void {
    this.#paidAhead = 0;
    this.quiet();
  }

  pay(writer: PacketWriter): void {
    if (!this.#owed) return;
    this.#owed = false;
    writer.byte(PLUS);
  }

  payAhead(writer: PacketWriter): void {
    if (!this.#needed) return;
    this.#paidAhead++;
    writer.byte(PLUS);
  }
}
