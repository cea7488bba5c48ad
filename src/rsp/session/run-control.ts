import { RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { protocolError } from '../wire/framing.js';
import { Link } from '../wire/link.js';
import type { LinkEvents } from '../wire/link-events.js';
import { isProcess } from './features.js';
import { answerFileIo } from './file-io.js';
import type { Greeting } from './handshake.js';
import { HartRequests, type Resume } from './hart-requests.js';
import { Interrupts } from './interrupts.js';
import type { Request } from './request.js';
import type { SignalNumbers } from './signals.js';
import { isStopReply, parseStopReply, type StopReply } from './stop-reply.js';

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
  /** `reason` is undefined after the target's own end and after `close`. `end`: how the target ended, if it said so. */
  | { readonly kind: 'gone'; readonly reason: RsptraceError | undefined; readonly end?: StopReply };

/** The target is stopped; the stub could not say why and where. */
const unknownStop: StopReply = { kind: 'signal', signal: 0, hart: undefined, reason: undefined };

/** How long a target has stood since the connection, in milliseconds of the host. */
export interface Standing {
  readonly allMs: number;
  /** At most at once. */
  readonly longestMs: number;
  /** In the stop that it is in; 0 if it runs. */
  readonly nowMs: number;
}

interface Waiting {
  readonly promise: Promise<StopReply>;
  readonly resolve: (stop: StopReply) => void;
  readonly reject: (error: RsptraceError) => void;
}

/** The one place that knows whether the target runs, and which hart the stub has selected. */
export class RunControl implements LinkEvents {
  #state: SessionState = { kind: 'gone', reason: undefined };
  /** In earlier stops, and since when the target stands now, as `performance.now` counts. */
  #stood: Standing & { readonly since?: number | undefined } = { allMs: 0, longestMs: 0, nowMs: 0 };
  readonly link: Link;
  readonly interrupts: Interrupts;
  readonly requests: HartRequests;
  readonly #logger: Logger;
  readonly #onConsole: ((text: Uint8Array) => void) | undefined;
  /** How the stub's numbers of signals become the system's, once that is known. */
  #signals: SignalNumbers | undefined;
  /** The run that has begun. */
  #waiting: Waiting | undefined;
  /** Something has arrived that makes earlier answers doubtful. */
  #doubt: RsptraceError | undefined;

  constructor(name: string, logger: Logger, timeoutMs: number, onConsole: ((text: Uint8Array) => void) | undefined) {
    this.link = new Link(name, this, logger, timeoutMs);
    this.interrupts = new Interrupts(timeoutMs);
    this.requests = new HartRequests(this.link);
    this.#logger = logger;
    this.#onConsole = onConsole;
  }

  /** Nothing may be sent from here before {@link begin}. */
  get state(): SessionState {
    return this.#state;
  }

  set state(state: SessionState) {
    if (state.kind === 'idle') this.#stood = { ...this.#stood, since: this.#stood.since ?? performance.now() };
    if (state.kind === 'gone') this.#runsOn();
    this.#state = state;
  }

  /** It stands no more. While one hart alone runs, the others stand. */
  #runsOn(): void {
    if (this.#stood.since === undefined) return;
    const { standing } = this;
    this.#stood = { ...standing, nowMs: 0 };
    if (this.#logger.isLevelEnabled('debug'))
      this.#logger.debug({ stood_ms: Math.round(10 * standing.nowMs) / 10 }, 'runs on');
  }

  get standing(): Standing {
    const { allMs, longestMs, since } = this.#stood;
    const nowMs = since === undefined ? 0 : performance.now() - since;
    return { allMs: allMs + nowMs, longestMs: Math.max(longestMs, nowMs), nowMs };
  }

  /** The hart of the last stop, while the target is stopped. */
  get stoppedHart(): string | undefined {
    return this.state.kind === 'idle' && this.state.stop.kind === 'signal' ? this.state.stop.hart : undefined;
  }

  /** Before the handshake: since when the target stands, as `performance.now` counts. */
  set standsSince(since: number | undefined) {
    this.#stood = { ...this.#stood, since };
  }

  /** The handshake has learnt where the target is stopped. */
  begin({ features, stop, attached }: Pick<Greeting, 'features' | 'stop' | 'attached'>): void {
    this.requests.begin(features);
    this.#signals = features.signals;
    this.interrupts.begin(isProcess(features), features.signals.stop, attached === true ? stop : undefined);
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
    const stopped = this.stoppedHart;
    if (resume === undefined) {
      this.requests.send(hart ?? stopped, requests, done);
      return undefined;
    }
    const waiting = this.#wait();
    const before = this.state;
    this.state = { kind: 'running' };
    if (resume.hart === undefined) this.#runsOn();
    const ended = (error: RsptraceError | undefined): void => {
      if (error !== undefined && this.#waiting === waiting && !this.link.isResumed) this.#staysAt(before, error);
      done(error);
    };
    this.requests.send(hart ?? stopped, requests, ended, this.requests.packetsFor(resume, stopped));
    return waiting.promise;
  }

  /** An answer before the resume was lost, and the resume was not sent. */
  #staysAt(before: SessionState, error: RsptraceError): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.interrupts.runEnded();
    this.state = before;
    waiting?.reject(error);
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
      const waiting = this.#waiting;
      this.interrupts.send(
        () => this.requests.interrupt(),
        () => this.#interruptLost(waiting),
      );
    }
    return this.#waiting.promise;
  }

  /**
   * Either the target does not stop, or its stop reply was lost. In the second case the stub answers questions, and
   * can be left in order.
   */
  #interruptLost(waiting: Waiting): void {
    if (this.#waiting === waiting) this.#stoodStill(waiting, this.interrupts.timeout());
  }

  /** A request now comes from a caller that wants to leave: doubtful answers do not prevent that. */
  leaving(): void {
    this.#doubt = undefined;
  }

  // Reports of the link

  event(text: string): void {
    const stop = parseStopReply(text);
    if (stop !== undefined) {
      this.#stopped(this.#signals?.inSystem(stop) ?? stop);
    } else if (isStopReply(text)) {
      throw protocolError(`it stops with "${text.slice(0, 60)}"`);
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
    this.interrupts.runEnded();
    this.#stoppedAt(unknownStop);
    this.link.recover(error);
    waiting.reject(error);
  }

  console(text: Uint8Array): void {
    if (text.length > 0) this.#onConsole?.(text);
  }

  closed(error: RsptraceError | undefined, owed: RsptraceError | undefined): void {
    if (this.state.kind === 'gone') return;
    this.interrupts.runEnded();
    // After a detach nothing is under way.
    if (this.#waiting || owed || error) this.interrupts.lost(this.state.kind === 'idle');
    const stop = this.state.kind === 'idle' ? this.state.stop : undefined;
    const hasEnded = stop?.kind === 'exited' || stop?.kind === 'terminated';
    this.state = { kind: 'gone', reason: error, ...(hasEnded ? { end: stop } : {}) };
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
      this.interrupts.runEnded();
      link.stopped();
      const seen = this.interrupts.cameBy(stop);
      this.#stoppedAt(seen);
      waiting.resolve(seen);
    }
    if (stop.kind === 'exited' || stop.kind === 'terminated') link.close();
  }

  #stoppedAt(stop: StopReply): void {
    this.state = { kind: 'idle', stop };
    // As gdb does: a stop selects the hart that it names.
    this.requests.selected = stop.kind === 'signal' ? stop.hart : undefined;
    this.requests.lastBlock = undefined;
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
}
