import type { PacketWriter } from './framing.js';

const PLUS = 0x2b;

/**
 * The acknowledgements of both sides.
 *
 * What this side owes goes in front of the next packet; within a write, between the packets. So a stub that insists
 * finds each in its place. No byte is left to be sent once the target runs: it would stop QEMU.
 *
 * What the stub acknowledges is counted. It acknowledges a packet before it answers it, so an answer without an
 * acknowledgement belongs to nothing that was asked.
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

  /** `flush` sends what is owed, when no packet takes it along in this turn of the event loop. */
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

  /** The stub has not said yet that it has heard everything. */
  get unheard(): boolean {
    return this.#needed && this.#unheard > 0;
  }

  /** QStartNoAckMode was taken: what is owed so far is still paid. */
  stop(): void {
    this.#needed = false;
  }

  /** Nothing is outstanding: what the stub still says of earlier packets means nothing. */
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

  /** A packet that is an answer has come; false when what it answers was never acknowledged. */
  answered(): boolean {
    if (this.#paidAhead > 0) this.#paidAhead--;
    else this.owe();
    if (!this.#needed) return true;
    return this.#heard > 0 && this.#heard-- > 0;
  }

  /** A packet has come that nobody has paid for. */
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

  /** A packet has come damaged: it is asked for again, not acknowledged. */
  forgo(): void {
    this.#owed = false;
  }

  /** What was paid ahead is void: nothing that was asked will be believed. */
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
