import type { Logger } from '../base/logger.js';
import { Acks } from './acks.js';
import { PacketWriter } from './framing.js';
import type { Transport } from './transport.js';

/** What goes out: packets of one write, with the acknowledgements that ride along. */
export class Outgoing {
  readonly acks = new Acks(() => this.#write(() => {}));
  readonly #logger: Logger;
  readonly #writer = new PacketWriter();
  #transport: Transport | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  open(transport: Transport): void {
    this.#transport = transport;
    // For what a debugger before this one may not have acknowledged.
    this.acks.owe();
  }

  close(): void {
    this.#transport?.close();
    this.#transport = undefined;
  }

  /** Sends packets in one write. `answersBefore`: an answer is still to come when the first is read. */
  packets(packets: readonly string[], answersBefore: boolean): void {
    this.#write(() => {
      packets.forEach((packet, index) => {
        if (answersBefore || index > 0) this.acks.payAhead(this.#writer);
        this.acks.sent();
        this.#writer.packet(packet);
        if (this.#logger.isLevelEnabled('trace')) this.#logger.trace({ packet }, `-> ${packet}`);
      });
    });
  }

  /** Sends bytes outside any packet. */
  bytes(bytes: readonly number[]): void {
    if (bytes.length === 0) return;
    if (this.#logger.isLevelEnabled('trace')) {
      this.#logger.trace({}, `-> ${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`);
    }
    this.#write(() => {
      for (const byte of bytes) this.#writer.byte(byte);
    });
  }

  #write(fill: () => void): void {
    if (this.#transport === undefined) return;
    this.#writer.clear();
    this.acks.pay(this.#writer);
    fill();
    if (!this.#transport.write(this.#writer.bytes)) this.#writer.release();
  }
}
