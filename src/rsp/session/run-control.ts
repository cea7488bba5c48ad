import { RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { protocolError } from '../wire/framing.js';
import { Link } from '../wire/link.js';
import type { LinkEvents } from '../wire/link-events.js';
import { isProcess, type StubFeatures } from './features.js';
import { answerFileIo } from './file-io.js';
import { OneByOne } from './one-by-one.js';
import { packets } from './packets.js';
import type { RegisterBlock } from './registers.js';
import { type Request, SelectRequest } from './request.js';
import { isStopReply, parseStopReply, pidOf, type StopReply } from './stop-reply.js';

/**
 * What a session can do depends on what the target does:
 *
 *     idle --resume--> running --interrupt--> interrupting
 *      ^                 |                        |
 *      '---- a stop -----+------------------------'          any --exit, EOF, broken protocol--> gone
 */
export type SessionState =
  | { readonly kind: 'idle'; readonly stop: StopReply }
  | { readonly kind: 'running' }
  | { readonly kind: 'interrupting' }
  /** `reason` is undefined after the target's own end and after `close`. */
  | { readonly kind: 'gone'; readonly reason: RsptraceError | undefined };

/**
 * How the target is resumed. `signal` (GDB's number) is delivered to the hart that stopped, or to the one that is
 * named.
 */
export type Resume =
  /** With a hart, only this one runs. */
  | { readonly kind: 'continue'; readonly hart?: string; readonly signal?: number }
  /** Only this hart runs, for one instruction. */
  | { readonly kind: 'step'; readonly hart: string; readonly signal?: number };

/** The hart id that means "any", for stubs without harts. */
export const ANY_HART = '0';

/** The target is stopped; the stub could not say why and where. */
const unknownStop: StopReply = { kind: 'signal', signal: 0, hart: undefined, reason: undefined, registers: new Map() };

interface ResumePackets {
  readonly before: readonly Request<unknown>[];
  readonly resume: string;
}

interface Waiting {
  readonly promise: Promise<StopReply>;
  readonly resolve: (stop: StopReply) => void;
  readonly reject: (error: RsptraceError) => void;
}

/** The one place that knows whether the target runs, and which hart the stub has selected. */
export class RunControl implements LinkEvents {
  /** Known after the handshake. */
  features: StubFeatures | undefined;
  /** Nothing may be sent from here before {@link begin}. */
  state: SessionState = { kind: 'gone', reason: undefined };
  /** The last answer to `g`, from which `G` can be built: only for this hart, only at this stop. */
  lastBlock: { readonly hart: string | undefined; readonly block: RegisterBlock } | undefined;
  /** Stops the target if the stub cannot; called beside the interrupt packet. */
  interruptToo: (() => void) | undefined;
  /** An interrupt was sent, and no stop by it has come yet: the stub may still have a SIGINT for the target. */
  interruptOwed = false;
  /** Interrupts were sent. Each may be a SIGINT that is still pending, even after a stop by another one. */
  wasInterrupted = false;
  readonly link: Link;
  readonly #logger: Logger;
  readonly #timeoutMs: number;
  /** Something has arrived that makes earlier answers doubtful. */
  #doubt: RsptraceError | undefined;
  readonly #onConsole: ((text: Uint8Array) => void) | undefined;
  /** What Hg has selected; undefined when not known. */
  #selected: string | undefined;
  /** Sends batches: the link, or a queue before it if the stub needs that. */
  #sender: Pick<Link, 'send' | 'sendByte'>;
  #waiting: Waiting | undefined;
  #lastText = '';
  /** The last plain continue, and its hart: it is the same at nearly every stop. */
  #continue: { readonly hart: string | undefined; readonly made: ResumePackets } | undefined;
  #lastStop: StopReply | undefined;
  #interruptTimer: NodeJS.Timeout | undefined;

  constructor(name: string, logger: Logger, timeoutMs: number, onConsole: ((text: Uint8Array) => void) | undefined) {
    this.link = new Link(name, this, logger, timeoutMs);
    this.#sender = this.link;
    this.#logger = logger;
    this.#timeoutMs = timeoutMs;
    this.#onConsole = onConsole;
  }

  /** The hart of the last stop, while the target is stopped. */
  get stoppedHart(): string | undefined {
    return this.state.kind === 'idle' && this.state.stop.kind === 'signal' ? this.state.stop.hart : undefined;
  }

  /** The handshake has learnt where the target is stopped. */
  begin(stop: StopReply): void {
    if (this.features?.batches === false) this.#sender = new OneByOne(this.link);
    this.#stoppedAt(stop);
  }

  /** Why nothing may be sent now, or undefined. */
  refusal(): RsptraceError | undefined {
    const state = this.state;
    switch (state.kind) {
      case 'idle':
        return this.#doubt;
      case 'running':
      case 'interrupting':
        return new RsptraceError('RSP_BAD_STATE', 'The target is running: it answers nothing until it stops', {
          hint: 'Interrupt it first',
        });
      case 'gone':
        return state.reason ?? new RsptraceError('RSP_CLOSED', 'The session has ended');
    }
  }

  /**
   * Sends requests for `hart` (undefined: the stopped one) and perhaps the resume, in one write. The state was checked.
   */
  send(
    hart: string | undefined,
    requests: readonly Request<unknown>[],
    done: (error: RsptraceError | undefined) => void,
    resume?: Resume,
  ): Promise<StopReply> | undefined {
    const wanted = hart ?? this.stoppedHart;
    let all = requests;
    if (wanted !== undefined && wanted !== ANY_HART && wanted !== this.#selected && requests.length > 0) {
      const select = new SelectRequest(packets.selectHart(wanted), () => {
        this.#selected = undefined;
      });
      this.#selected = wanted;
      all = [select, ...requests];
    }
    if (resume === undefined) {
      this.#sender.send(all, done);
      return undefined;
    }
    const text = this.#packetsFor(resume);
    const waiting = this.#wait();
    this.state = { kind: 'running' };
    // A plain Hc is answered before the resume; vCont needs none.
    this.#sender.send(text.before.length === 0 ? all : [...all, ...text.before], done, text.resume);
    return waiting.promise;
  }

  /** Asks the target to stop; the promise of the stop. */
  interrupt(): Promise<StopReply> {
    const state = this.state;
    if (state.kind === 'idle') return Promise.resolve(state.stop);
    if (state.kind === 'gone' || this.#waiting === undefined) {
      return Promise.reject(this.refusal() ?? new RsptraceError('RSP_CLOSED', 'The session has ended'));
    }
    if (state.kind === 'running') {
      this.state = { kind: 'interrupting' };
      this.#sender.sendByte(packets.interrupt);
      this.interruptToo?.();
      this.wasInterrupted = true;
      this.interruptOwed = true;
      const waiting = this.#waiting;
      this.#interruptTimer = setTimeout(() => {
        // Data that came while this thread was busy is read first.
        setImmediate(() => this.#interruptLost(waiting));
      }, this.#timeoutMs);
    }
    return this.#waiting.promise;
  }

  /**
   * Either the target does not stop, or its stop reply was lost. In the second case the stub answers questions, and
   * can be left in order.
   */
  #interruptLost(waiting: Waiting): void {
    if (this.#waiting !== waiting) return;
    const hint =
      this.features !== undefined && isProcess(this.features)
        ? 'Send a SIGINT to the traced process: QEMU in user mode does not listen while it runs, and gdbserver on another machine cannot stop one that leads no process group'
        : 'The stub may be stuck; its program is left as it is';
    const error = new RsptraceError(
      'RSP_TIMEOUT',
      `The target has not stopped within ${this.#timeoutMs} ms of the interrupt`,
      { hint },
    );
    this.#stoodStill(waiting, error);
  }

  /** A request now comes from a caller that wants to leave: doubtful answers do not prevent that. */
  leaving(): void {
    this.#doubt = undefined;
  }

  // Reports of the link

  event(text: string): void {
    if (text === this.#lastText && this.#lastStop !== undefined) {
      this.#stopped(this.#lastStop);
      return;
    }
    if (isStopReply(text)) {
      const stop = parseStopReply(text);
      if (stop === undefined) throw protocolError(`it stops with "${text.slice(0, 60)}"`);
      this.#lastText = text;
      this.#lastStop = stop;
      this.#stopped(stop);
    } else if (this.#waiting !== undefined && text.startsWith('F')) {
      answerFileIo(text, this.link, this.state.kind === 'interrupting', (output) => this.console(output));
    } else if (this.#waiting !== undefined) {
      const error = protocolError(
        text === '' ? 'it does not know how to resume' : `it resumes with "${text.slice(0, 60)}"`,
      );
      // A refusal leaves the target where it was. Any other answer belongs to another packet, and the target runs.
      if (!/^(?:E.*|OK|)$/s.test(text)) throw error;
      this.#stoodStill(this.#waiting, error);
    } else {
      // One answer too many: those before it may have been answers to something else.
      this.#doubt = protocolError(`it sends "${text.slice(0, 60)}", which nobody asked for`);
      this.link.lose(this.#doubt);
    }
  }

  adrift(error: RsptraceError): void {
    const waiting = this.#waiting;
    if (waiting === undefined || this.state.kind !== 'running') return;
    // A caller that waits for a stop gets this error now; the stop itself goes to the caller that interrupts.
    this.#wait();
    waiting.reject(error);
  }

  /** The target is stopped, although no stop reply can be trusted. */
  #stoodStill(waiting: Waiting, error: RsptraceError): void {
    this.#waiting = undefined;
    clearTimeout(this.#interruptTimer);
    this.#stoppedAt(unknownStop);
    this.link.recover(error);
    waiting.reject(error);
  }

  console(text: Uint8Array): void {
    if (text.length > 0) this.#onConsole?.(text);
  }

  closed(error: RsptraceError | undefined, owed: RsptraceError | undefined): void {
    if (this.state.kind === 'gone') return;
    clearTimeout(this.#interruptTimer);
    this.state = { kind: 'gone', reason: error };
    const waiting = this.#waiting;
    this.#waiting = undefined;
    const why = error ?? owed;
    if (why === undefined) waiting?.resolve({ kind: 'gone' });
    else waiting?.reject(why);
  }

  #stopped(stop: StopReply): void {
    const link = this.link;
    const waiting = this.#waiting;
    if (waiting === undefined) {
      // The stub has resumed the target and stopped it again by itself (its own monitor, a reset).
      this.#logger.debug({ kind: stop.kind }, 'the target has stopped, although it was not set going from here');
      if (this.state.kind === 'idle') this.#stoppedAt(stop);
    } else {
      if (!link.quiet) {
        this.#stoodStill(waiting, protocolError('the target has stopped before all requests were answered'));
        return;
      }
      this.#waiting = undefined;
      clearTimeout(this.#interruptTimer);
      link.stopped();
      if (stop.kind === 'signal' && stop.signal === 2) this.interruptOwed = false;
      this.#stoppedAt(stop);
      waiting.resolve(stop);
    }
    if (stop.kind === 'exited' || stop.kind === 'terminated') link.close();
  }

  #stoppedAt(stop: StopReply): void {
    this.state = { kind: 'idle', stop };
    // As gdb does: a stop selects the hart that it names.
    this.#selected = stop.kind === 'signal' ? stop.hart : undefined;
    this.lastBlock = undefined;
  }

  #wait(): Waiting {
    let resolve: Waiting['resolve'] = () => {};
    let reject: Waiting['reject'] = () => {};
    const promise = new Promise<StopReply>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    // A caller that does not wait for the stop finds its failure in the state.
    promise.catch(() => {});
    this.#waiting = { promise, resolve, reject };
    return this.#waiting;
  }

  #packetsFor(resume: Resume): ResumePackets {
    if (resume.kind !== 'continue' || resume.signal !== undefined || resume.hart !== undefined) {
      return this.#resumePackets(resume);
    }
    const hart = this.stoppedHart;
    if (this.#continue?.hart !== hart || this.#continue === undefined) {
      this.#continue = { hart, made: this.#resumePackets(resume) };
    }
    return this.#continue.made;
  }

  #resumePackets(resume: Resume): ResumePackets {
    const actions = this.features?.vCont;
    const action = resume.kind === 'continue' ? 'c' : 's';
    const signal = resume.signal;
    const verb = signal === undefined ? action : action.toUpperCase() + signal.toString(16).padStart(2, '0');
    const hart = resume.hart !== ANY_HART ? resume.hart : undefined;
    if (actions?.has(verb[0] as string) === true && actions.has('c')) {
      if (hart !== undefined) return { before: [], resume: packets.run([`${verb}:${hart}`]) };
      const pid = pidOf(this.stoppedHart);
      const all = pid === undefined ? 'c' : `c:p${pid}.-1`;
      if (resume.kind === 'step') return { before: [], resume: packets.run([verb]) };
      if (signal === undefined) return { before: [], resume: packets.run([all]) };
      const receiver = this.stoppedHart === undefined ? verb : `${verb}:${this.stoppedHart}`;
      return { before: [], resume: packets.run(this.stoppedHart === undefined ? [receiver] : [receiver, all]) };
    }
    const before = hart === undefined ? [] : [new SelectRequest(packets.selectHartToRun(hart), () => {})];
    return { before, resume: packets.runPlain(verb) };
  }
}
