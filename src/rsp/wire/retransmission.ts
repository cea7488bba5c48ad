import type { Again } from './outgoing.js';

/** How often one packet is sent again, or requested again. */
const MOST_TRIES = 3;

/** Which packet may be sent again, and how often that has happened since the last answer. */
export class Retransmission {
  /** The one packet of the last write, as long as it may be sent again. */
  again: Again | undefined;
  /** A packet has gone out twice, so it may get two answers. */
  sentTwice = false;
  /** In the bytes that are being read, the stub rejected a packet. */
  rejected = false;
  #tries = 0;

  /** A new write begins. */
  begin(again: Again | undefined): void {
    this.again = again;
    this.#tries = 0;
  }

  /** An answer has come. */
  answered(): void {
    this.again = undefined;
    this.#tries = 0;
  }

  /** All that was sent so far is void. */
  reset(): void {
    this.answered();
    this.sentTwice = false;
  }

  /**
   * The stub asks for a packet again, while it has not acknowledged all: that is to be sent again, or the sequence is
   * lost. `isOwed`: answers are due. Bytes that came together with a handled rejection were sent before it. A packet
   * that was acknowledged is not rejected any more.
   */
  reject(isOwed: boolean): 'again' | 'lost' | undefined {
    if (this.rejected) return undefined;
    this.rejected = true;
    if (this.again?.whenRejected !== true) return this.again === undefined && isOwed ? 'lost' : undefined;
    // The rejection may have been for another packet, or for none.
    this.sentTwice = isOwed;
    return 'again';
  }

  /** Counts a try; false if there were too many. */
  tryAgain(): boolean {
    return ++this.#tries <= MOST_TRIES;
  }

  /** The present try is the last one. */
  get isLast(): boolean {
    return this.#tries === MOST_TRIES;
  }

  /** Silence is a reason to send the packet again now. */
  get wanted(): boolean {
    return this.again?.afterSilence === true && this.#tries < MOST_TRIES;
  }

  /** The part of the timeout that may pass in silence before the next try, or before the end. */
  get part(): number {
    const tries = this.again?.afterSilence === true ? this.#tries : MOST_TRIES;
    return (tries + 1) / (MOST_TRIES + 1);
  }
}
