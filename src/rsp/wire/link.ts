import { RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { ascii, type Request } from '../session/request.js';
import { isStopReply } from '../session/stop-reply.js';
import type { Acks } from './acks.js';
import { ForeignPeer } from './foreign-peer.js';
import { PacketReader, type PacketSink, protocolError, toProtocolError } from './framing.js';
import { hexToBytes } from './hex.js';
import type { LinkEvents } from './link-events.js';
import { type Again, Outgoing, onlyPacket } from './outgoing.js';
import { ReplyTimeout } from './reply-timeout.js';
import { type Probe, Resync } from './resync.js';
import type { Transport } from './transport.js';

/*
 * From packets to requests that are answered in order: acknowledgements, retransmission, timeouts.
 *
 *   one write:   + $Hgp01.02# + $g# + $m80200000,40# + $vCont;c:p1.-1#
 *
 * One answer looks like another. A packet that was sent twice, a timeout, or an impossible answer breaks the
 * sequence. Then nothing is trusted until a question with an unmistakable answer (qSupported) was answered:
 *
 *   asking --lost, target stands--> probing --its answer--> asking
 *      '-----lost, target runs----> adrift --a stop--> probing          no probe is answered --> dead
 */

type Done = (error: RsptraceError | undefined) => void;

interface Group {
  readonly requests: readonly Request<unknown>[];
  readonly done: Done;
  next: number;
  /** An earlier request of the group failed in a way that makes the others' answers meaningless. */
  void: boolean;
}

/** How often one packet is sent again, or requested again. */
const MOST_TRIES = 3;
const MINUS = 0x2d;
const FIRST_STOP = 0x53;
const LAST_STOP = 0x58;
const CONSOLE = 0x4f;

export class Link implements PacketSink {
  /** The address, for messages. */
  readonly name: string;
  /** Timeout for one answer. */
  readonly timeoutMs: number;
  readonly #events: LinkEvents;
  readonly #logger: Logger;
  readonly #reader = new PacketReader(this);
  readonly #out: Outgoing;
  readonly #acks: Acks;
  readonly #patience: ReplyTimeout;
  readonly #stranger: ForeignPeer;
  readonly #groups: Group[] = [];
  /**
   * Answered. The answers are trusted once everything that came with them is read, because a surplus answer makes all
   * of them doubtful.
   */
  #answered: Group[] = [];
  #dead = false;
  /** The last packet sent has resumed the target. */
  #resumed: string | undefined;
  #adrift = false;
  /** While it searches, everything else is discarded, and new packets are held back. */
  readonly #way = new Resync((packet) => {
    this.#out.packet(packet);
    this.#patience.asked();
  });
  #held: (() => void)[] = [];
  /** The one packet of the last write, as long as it may be sent again. */
  #again: Again | undefined;
  #tries = 0;
  #sentTwice = false;
  /** In the bytes that are being read, the stub rejected a packet. */
  #rejected = false;

  constructor(name: string, events: LinkEvents, logger: Logger, timeoutMs: number) {
    this.name = name;
    this.#events = events;
    this.#logger = logger;
    this.timeoutMs = timeoutMs;
    this.#stranger = new ForeignPeer(name);
    this.#out = new Outgoing(logger);
    this.#acks = this.#out.acks;
    this.#patience = new ReplyTimeout(
      timeoutMs,
      () => !this.#dead && (!this.quiet || (this.#resumed !== undefined && !this.#adrift && this.#acks.unheard)),
      () => this.#part(),
      () => this.#elapsed(),
    );
  }

  /** True when no answer is outstanding. */
  get quiet(): boolean {
    return this.#groups.length === 0 && this.#way.search === undefined;
  }

  /** How to find the place in the sequence again; known once the stub has answered qSupported. */
  set probes(probes: readonly Probe[]) {
    this.#way.probes = probes;
  }

  open(transport: Transport): void {
    this.#out.open(transport);
  }

  /** The stub has agreed to do without acknowledgements. */
  stopAcks(): void {
    this.#acks.stop();
  }

  /** The target is stopped again. */
  stopped(): void {
    this.#resumed = undefined;
    if (!this.#adrift) return;
    this.#adrift = false;
    this.#findBack(undefined, () => {});
  }

  /**
   * Sends requests in one write, and `resume` as the last packet, which has no answer here. `done` is called when all
   * requests are answered, or with the reason why they never will be.
   */
  send(requests: readonly Request<unknown>[], done: Done, resume?: string): void {
    if (this.#dead) {
      done(this.#closedError());
      return;
    }
    if (this.#way.search !== undefined || this.#adrift) {
      this.#held.push(() => this.send(requests, done, resume));
      return;
    }
    const quiet = this.#groups.length === 0;
    if (quiet) this.#acks.quiet();
    this.#again = quiet && this.#acks.needed ? onlyPacket(requests, resume) : undefined;
    this.#tries = 0;
    this.#resumed = resume ?? this.#resumed;
    if (requests.length > 0) this.#groups.push({ requests, done, next: 0, void: false });
    this.#out.batch(requests, resume, !quiet);
    if (quiet) this.#patience.asked();
    if (requests.length === 0) done(undefined);
  }

  /** Sends one byte outside any packet: the interrupt. */
  sendByte(byte: number): void {
    this.#out.bytes([byte]);
  }

  /**
   * All outstanding requests fail with `error`. The target is probably stopped: if it answers nothing, the link ends.
   */
  recover(error: RsptraceError): void {
    if (this.#dead) return;
    this.#resumed = undefined;
    this.#adrift = false;
    this.#findBack(error, this.#takeOutstanding(error));
  }

  /** The same, but the target may run: then the receiver of `adrift` must stop it. */
  lose(error: RsptraceError): void {
    if (this.#dead || this.#way.search !== undefined || this.#adrift) return;
    if (this.#resumed === undefined || this.#way.probes.length === 0) {
      this.recover(error);
      return;
    }
    this.#logger.debug({ error: error.message }, 'answers are lost while the target runs');
    this.#adrift = true;
    this.#takeOutstanding(error)();
    this.#events.adrift(error);
  }

  /** Ends the link. Outstanding requests fail with `error`, or `RSP_CLOSED`. */
  close(error?: RsptraceError): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#patience.end();
    this.#out.close();
    const why = error ?? this.#closedError();
    const answered = this.#answered.splice(0);
    const owed = this.#groups.length > 0;
    this.#way.end(why);
    for (const group of answered) group.done(error);
    for (const group of this.#groups.splice(0)) group.done(why);
    this.#sendHeld();
    this.#events.closed(error, owed ? why : undefined);
  }

  /** For the transport: bytes have come. */
  data(chunk: Uint8Array, length: number): void {
    if (this.#dead) return;
    // While it searches, incoming bytes do not mean that the answer is coming.
    if (this.#way.search === undefined) this.#patience.heard();
    this.#rejected = false;
    try {
      this.#reader.feed(chunk, length);
    } catch (error) {
      this.close(toProtocolError(error));
    }
    if (this.#answered.length > 0) for (const group of this.#answered.splice(0)) group.done(undefined);
  }

  /** For the transport: the connection is gone. */
  disconnected(error: Error | undefined): void {
    if (error !== undefined) this.#logger.debug({ error: error.message }, 'the connection broke');
    this.close(error instanceof RsptraceError ? error : this.#stranger.closed());
  }

  ack(): void {
    this.#stranger.speaksRsp();
    this.#acks.received();
    this.#again = undefined;
  }

  nak(): void {
    if (this.#dead || !this.#acks.needed) return;
    this.#logger.debug({}, 'the stub asks again');
    // Bytes that came together with a handled rejection were sent before it. A packet that was acknowledged is not
    // rejected any more.
    if (this.#way.search !== undefined || this.#rejected || !this.#acks.unheard) return;
    this.#rejected = true;
    if (this.#again?.whenRejected === true) {
      // The rejection may have been for another packet, or for none.
      this.#sentTwice = this.#groups.length > 0;
      this.#sendAgain();
    } else if (this.#again === undefined && this.#groups.length > 0)
      this.lose(protocolError('it rejects a packet in the middle of a batch'));
  }

  badChecksum(sum: string): void {
    if (this.#dead || this.#way.search !== undefined) return;
    if (!this.#acks.needed || this.#acks.ahead || ++this.#tries > MOST_TRIES) {
      this.lose(protocolError(`a packet has the wrong checksum ("${sum}")`));
      return;
    }
    this.#acks.forgo();
    this.#out.bytes([MINUS]);
  }

  junk(bytes: Uint8Array, start: number, end: number): void {
    if (this.#dead) return;
    this.#logger.debug({ bytes: end - start }, 'bytes outside packets');
    const error = this.#stranger.hear(ascii(bytes, start, Math.min(end, start + 80)), end - start);
    if (error !== undefined) this.close(error);
  }

  notification(bytes: Uint8Array, start: number, end: number): void {
    if (this.#logger.isLevelEnabled('trace')) this.#trace(`%${ascii(bytes, start, end)}`);
  }

  packet(bytes: Uint8Array, start: number, end: number): void {
    if (this.#dead) return;
    this.#stranger.speaksRsp();
    if (this.#logger.isLevelEnabled('trace')) this.#trace(ascii(bytes, start, end));
    if (this.#way.search !== undefined) {
      this.#acks.owe();
      const text = ascii(bytes, start, end);
      if (this.#way.isAnswer(text)) this.#found();
      else this.#logger.debug({ packet: text.slice(0, 80) }, 'a late answer is thrown away');
      return;
    }
    const group = this.#groups[0];
    const request = group?.requests[group.next];
    const first = bytes[start] ?? 0;
    if (first === CONSOLE && this.#console(bytes, start, end, request)) return;
    if (group === undefined || request === undefined) {
      this.#acks.owe();
      const text = ascii(bytes, start, end);
      if (!this.#adrift || isStopReply(text)) this.#event(text);
      return;
    }
    // An unrequested stop (S, T, W, X) looks like no answer but that to "?".
    if (first >= FIRST_STOP && first <= LAST_STOP && !request.takesStop) {
      const text = ascii(bytes, start, end);
      if (isStopReply(text)) {
        if (!this.#acks.ahead) this.#acks.owe();
        this.#event(text);
        return;
      }
    }
    if (!this.#acks.answered()) {
      this.lose(protocolError('it answers a request that it has not acknowledged'));
      return;
    }
    this.#again = undefined;
    this.#tries = 0;
    this.#patience.answered();
    try {
      if (group.void) request.refuse('the hart could not be selected');
      else if (!request.accept(bytes, start, end)) group.void = true;
    } catch (error) {
      this.lose(toProtocolError(error));
      return;
    }
    if (++group.next === group.requests.length) this.#finish(group);
  }

  #event(text: string): void {
    try {
      this.#events.event(text);
    } catch (error) {
      this.lose(toProtocolError(error));
    }
  }

  /** O packets: output of the target, or of the waiting request. OpenOCD sends empty ones as a sign of life. */
  #console(bytes: Uint8Array, start: number, end: number, request: Request<unknown> | undefined): boolean {
    const text = hexToBytes(ascii(bytes, start + 1, end));
    if (text === undefined) return false;
    if (!this.#acks.ahead) this.#acks.owe();
    try {
      if (request?.console(text) !== true) this.#events.console(text);
    } catch (error) {
      this.lose(toProtocolError(error));
    }
    return true;
  }

  #finish(group: Group): void {
    this.#groups.shift();
    if (this.#sentTwice) {
      // The second copy may have an answer as well.
      this.#findBack(undefined, group.done);
      return;
    }
    this.#answered.push(group);
    // The resume in the same write is still under way: if the stub rejects it, the stub did not receive it.
    const resume = this.#groups.length === 0 ? this.#resumed : undefined;
    if (resume !== undefined && this.#acks.unheard)
      this.#again = { packet: resume, afterSilence: false, whenRejected: true };
  }

  #sendAgain(): void {
    const again = this.#again;
    if (again === undefined) return;
    if (++this.#tries > MOST_TRIES) {
      this.lose(protocolError(`it does not take "${again.packet.slice(0, 40)}"`));
      return;
    }
    this.#out.packet(again.packet);
    if (this.#tries === MOST_TRIES) this.#out.bytes(this.#stranger.knock());
  }

  /**
   * The part of the timeout during which silence is ignored: until the next retransmission, the next probe, or the
   * end.
   */
  #part(): number {
    if (this.#way.search !== undefined) return 1 / this.#way.probes.length;
    const tries = this.#again?.afterSilence === true ? this.#tries : MOST_TRIES;
    return (tries + 1) / (MOST_TRIES + 1);
  }

  #elapsed(): void {
    const { search } = this.#way;
    if (search !== undefined) {
      if (!this.#way.next()) this.close(search.error ?? this.#timeout(this.#way.probes[0]?.packet));
    } else if (this.#again?.afterSilence === true && this.#tries < MOST_TRIES) {
      this.#logger.debug({}, 'no acknowledgement: sent again');
      this.#sentTwice = true;
      this.#sendAgain();
    } else {
      const silent = this.#stranger.silent();
      const group = this.#groups[0];
      if (silent !== undefined) this.close(silent);
      else this.lose(this.#timeout(group === undefined ? this.#resumed : group.requests[group.next]?.packet));
    }
  }

  #timeout(packet = ''): RsptraceError {
    const what = `The stub has not answered "${packet.slice(0, 40)}" within ${this.timeoutMs} ms`;
    return new RsptraceError('RSP_TIMEOUT', what, { hint: 'A slow probe or a slow link needs a longer --timeout' });
  }

  #takeOutstanding(error: RsptraceError): () => void {
    const lost = [...this.#answered.splice(0), ...this.#groups.splice(0)];
    return () => {
      for (const group of lost) group.done(error);
    };
  }

  #findBack(error: RsptraceError | undefined, then: Done): void {
    this.#again = undefined;
    this.#sentTwice = false;
    this.#tries = 0;
    this.#acks.reset();
    if (this.#way.begin(error, then)) return;
    then(error);
    if (error === undefined) this.#sendHeld();
    else this.close(error);
  }

  #found(): void {
    this.#way.end(undefined);
    this.#sendHeld();
  }

  #sendHeld(): void {
    for (const retry of this.#held.splice(0)) retry();
  }

  #trace(packet: string): void {
    this.#logger.trace({ packet }, `<- ${packet}`);
  }

  #closedError(): RsptraceError {
    return new RsptraceError('RSP_CLOSED', `The connection to ${this.name} is closed`);
  }
}
