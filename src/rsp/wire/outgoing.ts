import type { Logger } from '../../base/logger.js';
import { packets } from '../session/packets.js';
import type { Request } from '../session/request.js';
import { Acks } from './acks.js';
import { PacketWriter } from './framing.js';
import type { Transport } from './transport.js';

/** A packet that may be sent again. */
export interface Again {
  readonly packet: string;
  /** Silence is a reason to send it again. */
  readonly afterSilence: boolean;
  /**
   * A rejection is a reason to send it again at once. Not if the target may run by now, because QEMU stops it at any
   * byte.
   */
  readonly whenRejected: boolean;
}

/** The packet of a write that has no other, which may be sent again. */
export function onlyPacket(requests: readonly Request<unknown>[], resume: string | undefined): Again | undefined {
  if (resume !== undefined)
    return requests.length === 0 ? { packet: resume, afterSilence: false, whenRejected: true } : undefined;
  const packet = requests.length === 1 ? requests[0]?.packet : undefined;
  if (packet === undefined) return undefined;
  // A second qsThreadInfo goes on in the list: harts would be missing.
  return { packet, afterSilence: packet !== packets.moreThreads, whenRejected: !/^D(;|$)/.test(packet) };
}

/** Outgoing bytes: packets of one write, with the acknowledgements that go with them. */
export class Outgoing {
  readonly acks = new Acks(() => this.#pay());
  readonly #logger: Logger;
  readonly #writer = new PacketWriter();
  #transport: Transport | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  open(transport: Transport): void {
    this.#transport = transport;
    // For packets that an earlier debugger may not have acknowledged.
    this.acks.owe();
  }

  close(): void {
    this.#transport?.close();
    this.#transport = undefined;
  }

  /**
   * Sends requests in one write, and `resume` as the last packet. `answersBefore`: an answer is still due when the
   * first is read.
   */
  batch(requests: readonly Request<unknown>[], resume: string | undefined, answersBefore: boolean): void {
    if (this.#transport === undefined) return;
    this.#begin();
    let ahead = answersBefore;
    const traced = this.#logger.isLevelEnabled('trace');
    for (const request of requests) {
      if (ahead) this.acks.payAhead(this.#writer);
      this.acks.sent();
      request.write(this.#writer);
      if (traced) this.#trace(request.packet);
      ahead = true;
    }
    if (resume !== undefined) this.#packet(resume, ahead);
    this.#send(this.#transport);
  }

  /** Sends one packet, while no outstanding answer will be trusted. */
  packet(packet: string): void {
    if (this.#transport === undefined) return;
    this.#begin();
    this.#packet(packet, false);
    this.#send(this.#transport);
  }

  /** Sends bytes outside any packet. */
  bytes(bytes: readonly number[]): void {
    if (bytes.length === 0 || this.#transport === undefined) return;
    if (this.#logger.isLevelEnabled('trace')) {
      this.#logger.trace({}, `-> ${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`);
    }
    this.#begin();
    for (const byte of bytes) this.#writer.byte(byte);
    this.#send(this.#transport);
  }

  #packet(packet: string, ahead: boolean): void {
    if (ahead) this.acks.payAhead(this.#writer);
    this.acks.sent();
    this.#writer.packet(packet);
    if (this.#logger.isLevelEnabled('trace')) this.#trace(packet);
  }

  #trace(packet: string): void {
    this.#logger.trace({ packet }, `-> ${packet}`);
  }

  #begin(): void {
    this.#writer.clear();
    this.acks.pay(this.#writer);
  }

  #send(transport: Transport): void {
    if (!transport.write(this.#writer.bytes)) this.#writer.release();
  }

  /** What is owed, alone. */
  #pay(): void {
    if (this.#transport === undefined) return;
    this.#begin();
    this.#send(this.#transport);
  }
}
