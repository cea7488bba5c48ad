import { RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { ascii, type Request } from '../session/request.js';
import { isStopReply } from '../session/stop-reply.js';
import type { Acks } from './acks.js';
import { ForeignPeer } from './foreign-peer.js';
import { PacketReader, type PacketSink, protocolError, toProtocolError } from './framing.js';
import { hexToBytes } from './hex.js';
import type { LinkEvents } from './link-events.js';
import { Outgoing, onlyPacket } from './outgoing.js';
import { type Done, type Group, Outstanding } from './outstanding.js';
import { ReplyTimeout } from './reply-timeout.js';
import { type Probe, Resync } from './resync.js';
import { Retransmission } from './retransmission.js';
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

const MINUS = 0x2d;
const FIRST_STOP = 0x53;
const LAST_STOP = 0x58;
const CONSOLE = 0x4f;

export class Link implements PacketSink {
  readonly #events: LinkEvents;
  readonly #logger: Logger;
  readonly #reader = new PacketReader(this);
  readonly #out: Outgoing;
  readonly #peer: ForeignPeer;
  readonly #timeout: ReplyTimeout;
  readonly #outstanding = new Outstanding();
  readonly #retransmission = new Retransmission();
  /** While it searches, everything else is discarded, and new packets are held back. */
  readonly #resync = new Resync((packet) => {
    this.#out.packet(packet);
    this.#timeout.asked();
  });
  #state: 'trusted' | 'adrift' | 'dead' = 'trusted';

  constructor(name: string, events: LinkEvents, logger: Logger, timeoutMs: number) {
    this.#events = events;
    this.#logger = logger;
    this.#peer = new ForeignPeer(name);
    this.#out = new Outgoing(logger);
    this.#timeout = new ReplyTimeout(
      timeoutMs,
      () =>
        this.#state !== 'dead' &&
        (!this.quiet || (this.#outstanding.resumed !== undefined && this.#state !== 'adrift' && this.#acks.unheard)),
      () => this.#part(),
      () => this.#elapsed(),
    );
  }

  /** Timeout for one answer. */
  get timeoutMs(): number {
    return this.#timeout.timeoutMs;
  }

  /** True when no answer is outstanding. */
  get quiet(): boolean {
    return this.#outstanding.isEmpty && this.#resync.search === undefined;
  }

  /** A resume was sent, and no stop has come. */
  get isResumed(): boolean {
    return this.#outstanding.resumed !== undefined;
  }

  get #acks(): Acks {
    return this.#out.acks;
  }

  /** How to find the place in the sequence again; known once the stub has answered qSupported. */
  set probes(probes: readonly Probe[]) {
    this.#resync.probes = probes;
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
    this.#outstanding.resumed = undefined;
    if (this.#state !== 'adrift') return;
    this.#state = 'trusted';
    this.#findBack(undefined, () => {});
  }

  /**
   * Sends requests in one write, and `resume` as the last packet, which has no answer here. `done` is called when all
   * requests are answered, or with the reason why they never will be.
   */
  send(requests: readonly Request<unknown>[], done: Done, resume?: string): void {
    if (this.#state === 'dead') {
      done(this.#peer.ended());
      return;
    }
    if (this.#resync.search !== undefined || this.#state === 'adrift') {
      this.#resync.hold(() => this.send(requests, done, resume));
      return;
    }
    const quiet = this.#outstanding.isEmpty;
    if (quiet) this.#acks.quiet();
    this.#retransmission.begin(quiet && this.#acks.needed ? onlyPacket(requests, resume) : undefined);
    if (resume !== undefined) this.#outstanding.resumed = resume;
    if (requests.length > 0) this.#outstanding.add(requests, done);
    this.#out.batch(requests, resume, !quiet);
    if (quiet) this.#timeout.asked();
    if (requests.length === 0) done(undefined);
  }

  /** Sends one byte outside any packet: the interrupt. */
  sendByte(byte: number): void {
    this.#out.bytes([byte]);
  }

  /** All outstanding requests fail with `error`. If the target answers nothing, although it stands, the link ends. */
  recover(error: RsptraceError): void {
    if (this.#state === 'dead') return;
    this.#outstanding.resumed = undefined;
    this.#state = 'trusted';
    this.#findBack(error, this.#outstanding.takeAll(error));
  }

  /** The same, but the target may run: then the receiver of `adrift` must stop it. */
  lose(error: RsptraceError): void {
    if (this.#state !== 'trusted' || this.#resync.search !== undefined) return;
    if (this.#outstanding.resumed === undefined || this.#resync.probes.length === 0) {
      this.recover(error);
      return;
    }
    this.#logger.debug({ error: error.message }, 'answers are lost while the target runs');
    this.#state = 'adrift';
    this.#outstanding.takeAll(error)();
    this.#events.adrift(error);
  }

  /** Ends the link. Outstanding requests fail with `error`, or `RSP_CLOSED`. */
  close(error?: RsptraceError): void {
    if (this.#state === 'dead') return;
    this.#state = 'dead';
    this.#timeout.end();
    this.#out.close();
    const why = error ?? this.#peer.ended();
    const owed = !this.#outstanding.isEmpty;
    this.#resync.end(why);
    this.#outstanding.settle(error);
    this.#outstanding.takeAll(why)();
    this.#resync.release();
    this.#events.closed(error, owed ? why : undefined);
  }

  /** For the transport: bytes have come. */
  data(chunk: Uint8Array, length: number): void {
    if (this.#state === 'dead') return;
    // While it searches, incoming bytes do not mean that the answer is coming.
    if (this.#resync.search === undefined) this.#timeout.heard();
    this.#retransmission.rejected = false;
    try {
      this.#reader.feed(chunk, length);
    } catch (error) {
      this.close(toProtocolError(error));
    }
    this.#outstanding.settle(undefined);
  }

  /** For the transport: the connection is gone. */
  disconnected(error: Error | undefined): void {
    if (error !== undefined) this.#logger.debug({ error: error.message }, 'the connection broke');
    this.close(error instanceof RsptraceError ? error : this.#peer.closed());
  }

  ack(): void {
    this.#peer.speaksRsp();
    this.#acks.received();
    this.#retransmission.again = undefined;
  }

  nak(): void {
    if (this.#state === 'dead' || !this.#acks.needed) return;
    this.#logger.debug({}, 'the stub asks again');
    if (this.#resync.search !== undefined || !this.#acks.unheard) return;
    const next = this.#retransmission.reject(!this.#outstanding.isEmpty);
    if (next === 'again') this.#sendAgain();
    else if (next === 'lost') this.lose(protocolError('it rejects a packet in the middle of a batch'));
  }

  badChecksum(sum: string): void {
    if (this.#state === 'dead' || this.#resync.search !== undefined) return;
    if (!this.#acks.needed || this.#acks.ahead || !this.#retransmission.tryAgain()) {
      this.lose(protocolError(`a packet has the wrong checksum ("${sum}")`));
      return;
    }
    this.#acks.forgo();
    this.#out.bytes([MINUS]);
  }

  junk(bytes: Uint8Array, start: number, end: number): void {
    if (this.#state === 'dead') return;
    this.#logger.debug({ bytes: end - start }, 'bytes outside packets');
    const error = this.#peer.hear(ascii(bytes, start, Math.min(end, start + 80)), end - start);
    if (error !== undefined) this.close(error);
  }

  notification(bytes: Uint8Array, start: number, end: number): void {
    if (this.#logger.isLevelEnabled('trace')) this.#trace(`%${ascii(bytes, start, end)}`);
  }

  packet(bytes: Uint8Array, start: number, end: number): void {
    if (this.#state === 'dead') return;
    this.#peer.speaksRsp();
    if (this.#logger.isLevelEnabled('trace')) this.#trace(ascii(bytes, start, end));
    if (this.#resync.search !== undefined) {
      this.#acks.owe();
      const text = ascii(bytes, start, end);
      if (!this.#resync.take(text)) this.#logger.debug({ packet: text.slice(0, 80) }, 'a late answer is thrown away');
      return;
    }
    const group = this.#outstanding.first;
    const request = group?.requests[group.next];
    const first = bytes[start] ?? 0;
    if (first === CONSOLE && this.#console(bytes, start, end, request)) return;
    if (group === undefined || request === undefined) {
      this.#acks.owe();
      const text = ascii(bytes, start, end);
      if (this.#state !== 'adrift' || isStopReply(text)) this.#trusting(() => this.#events.event(text));
      return;
    }
    // An unrequested stop (S, T, W, X) looks like no answer but that to "?".
    if (first >= FIRST_STOP && first <= LAST_STOP && !request.takesStop) {
      const text = ascii(bytes, start, end);
      if (isStopReply(text)) {
        if (!this.#acks.ahead) this.#acks.owe();
        this.#trusting(() => this.#events.event(text));
        return;
      }
    }
    if (!this.#acks.answered()) {
      this.lose(protocolError('it answers a request that it has not acknowledged'));
      return;
    }
    this.#retransmission.answered();
    this.#timeout.answered();
    const isTaken = this.#trusting(() => {
      if (group.void) request.refuse('the hart could not be selected');
      else if (!request.accept(bytes, start, end)) group.void = true;
    });
    if (isTaken && ++group.next === group.requests.length) this.#finish(group);
  }

  /** What throws here shows that an answer belongs to something else. */
  #trusting(take: () => void): boolean {
    try {
      take();
      return true;
    } catch (error) {
      this.lose(toProtocolError(error));
      return false;
    }
  }

  /** O packets: output of the target, or of the waiting request. OpenOCD sends empty ones as a sign of life. */
  #console(bytes: Uint8Array, start: number, end: number, request: Request<unknown> | undefined): boolean {
    const text = hexToBytes(ascii(bytes, start + 1, end));
    if (text === undefined) return false;
    if (!this.#acks.ahead) this.#acks.owe();
    this.#trusting(() => {
      if (request?.console(text) !== true) this.#events.console(text);
    });
    return true;
  }

  #finish(group: Group): void {
    this.#outstanding.shift();
    if (this.#retransmission.sentTwice) {
      // The second copy may have an answer as well.
      this.#findBack(undefined, group.done);
      return;
    }
    this.#outstanding.answered(group);
    // The resume in the same write is still under way: if the stub rejects it, the stub did not receive it.
    const resume = this.#outstanding.isEmpty ? this.#outstanding.resumed : undefined;
    if (resume !== undefined && this.#acks.unheard)
      this.#retransmission.again = { packet: resume, afterSilence: false, whenRejected: true };
  }

  #sendAgain(): void {
    const { again } = this.#retransmission;
    if (again === undefined) return;
    if (!this.#retransmission.tryAgain()) {
      this.lose(protocolError(`it does not take "${again.packet.slice(0, 40)}"`));
      return;
    }
    this.#out.packet(again.packet);
    if (this.#retransmission.isLast) this.#out.bytes(this.#peer.knock());
  }

  /**
   * The part of the timeout during which silence is ignored: until the next retransmission, the next probe, or the
   * end.
   */
  #part(): number {
    return this.#resync.search !== undefined ? 1 / this.#resync.probes.length : this.#retransmission.part;
  }

  #elapsed(): void {
    const { search } = this.#resync;
    if (search !== undefined) {
      if (!this.#resync.next()) this.close(search.error ?? this.#timeout.error(this.#resync.probes[0]?.packet));
    } else if (this.#retransmission.wanted) {
      this.#logger.debug({}, 'no acknowledgement: sent again');
      this.#retransmission.sentTwice = true;
      this.#sendAgain();
    } else {
      const silent = this.#peer.silent();
      if (silent !== undefined) this.close(silent);
      else this.lose(this.#timeout.error(this.#outstanding.packet));
    }
  }

  #findBack(error: RsptraceError | undefined, then: Done): void {
    this.#retransmission.reset();
    this.#acks.reset();
    if (this.#resync.begin(error, then)) return;
    then(error);
    if (error === undefined) this.#resync.release();
    else this.close(error);
  }

  #trace(packet: string): void {
    this.#logger.trace({ packet }, `<- ${packet}`);
  }
}
