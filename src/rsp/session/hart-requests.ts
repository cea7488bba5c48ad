import type { RsptraceError } from '../../base/errors.js';
import type { Link } from '../wire/link.js';
import type { StubFeatures } from './features.js';
import { packets } from './packets.js';
import type { RegisterBlock } from './registers.js';
import { type Request, SelectRequest } from './request.js';
import { pidOf } from './stop-reply.js';

interface Job {
  readonly requests: readonly Request<unknown>[];
  readonly done: (error: RsptraceError | undefined) => void;
  readonly resume: string | undefined;
  /** Bytes for the target once it runs. */
  readonly bytes: number[];
}

/**
 * Sends the packets of a batch singly, each when the one before it is answered, for two stubs that cannot take them at
 * once:
 *
 * - QEMU in user mode reads all that has come and answers the first packet. Then it waits on the socket for an
 *   acknowledgement that it has already read: for ever.
 * - vgdb forwards answers through a socket with Nagle's algorithm. The second of two waits up to 40 ms for the delayed
 *   ACK of the first, far longer than the round trips that a batch saves.
 */
class OneByOne {
  readonly #link: Link;
  /** The first batch is being sent. Batches do not mix, because each selects its hart. */
  readonly #jobs: Job[] = [];

  constructor(link: Link) {
    this.#link = link;
  }

  /** As {@link Link.send}. */
  send(requests: Job['requests'], done: Job['done'], resume?: string): void {
    this.#jobs.push({ requests, done, resume, bytes: [] });
    if (this.#jobs.length === 1) this.#begin();
  }

  /** As {@link Link.sendByte}. An interrupt before the resume was sent follows the resume. */
  sendByte(byte: number): void {
    const resuming = this.#jobs.find((job) => job.resume !== undefined);
    if (resuming === undefined) this.#link.sendByte(byte);
    else resuming.bytes.push(byte);
  }

  #begin(): void {
    const job = this.#jobs[0];
    if (job !== undefined) this.#send(job, 0);
  }

  #send(job: Job, index: number): void {
    const request = job.requests[index];
    if (request === undefined) {
      this.#end(job, undefined);
      return;
    }
    this.#link.send([request], (error) => {
      if (error !== undefined) {
        this.#end(job, error);
      } else if (request instanceof SelectRequest && !request.value) {
        for (const rest of job.requests.slice(index + 1)) rest.refuse('the hart could not be selected');
        this.#end(job, undefined);
      } else {
        this.#send(job, index + 1);
      }
    });
  }

  #end(job: Job, error: RsptraceError | undefined): void {
    this.#jobs.shift();
    if (error === undefined && job.resume !== undefined) {
      this.#link.send([], () => {}, job.resume);
      for (const byte of job.bytes) this.#link.sendByte(byte);
    }
    // What `done` sends begins by itself when nothing is before it.
    const more = this.#jobs.length > 0;
    job.done(error);
    if (more) this.#begin();
  }
}

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

/** The registers of a hart; undefined: of one that is not named. */
export interface HartBlock {
  readonly hart: string | undefined;
  readonly block: RegisterBlock;
}

/** A resume as packets. A plain Hc is answered before it; vCont needs none. */
interface ResumePackets {
  readonly before: readonly Request<unknown>[];
  readonly resume: string;
}

/** The requests of harts on their way to the stub: the hart is selected before them, and resumed behind them. */
export class HartRequests {
  /** What Hg has selected; undefined when not known. */
  selected: string | undefined;
  /** Its answer is to come: until then nobody relies on it. */
  #selecting: SelectRequest | undefined;
  /** The last answer to `g`, from which `G` can be built: only for this hart, only at this stop. */
  lastBlock: HartBlock | undefined;
  readonly #link: Link;
  /** Sends batches: the link, or a queue before it if the stub needs that. */
  #sender: Pick<Link, 'send' | 'sendByte'>;
  /** Undefined before the handshake has learnt them. */
  #features: StubFeatures | undefined;

  constructor(link: Link) {
    this.#link = link;
    this.#sender = link;
  }

  /** The handshake has learnt what the stub takes. */
  begin(features: StubFeatures): void {
    this.#features = features;
    if (!features.batches) this.#sender = new OneByOne(this.#link);
  }

  /** Sends requests for `hart` (undefined: whichever is selected) and perhaps the resume, in one write. */
  send(
    hart: string | undefined,
    requests: readonly Request<unknown>[],
    done: (error: RsptraceError | undefined) => void,
    resume?: ResumePackets,
  ): void {
    let all = requests;
    const isSelected = hart === this.selected && this.#selecting === undefined;
    if (hart !== undefined && hart !== ANY_HART && !isSelected && requests.length > 0) {
      const select = new SelectRequest(packets.selectHart(hart), (isDone) => {
        if (this.#selecting === select) this.#selecting = undefined;
        if (!isDone) this.selected = undefined;
      });
      this.selected = hart;
      this.#selecting = select;
      all = [select, ...requests];
    }
    const ended = (error: RsptraceError | undefined): void => {
      if (error !== undefined && all !== requests) {
        this.selected = undefined;
        this.#selecting = undefined;
      }
      done(error);
    };
    if (resume === undefined) this.#sender.send(all, ended);
    else this.#sender.send(resume.before.length === 0 ? all : [...all, ...resume.before], ended, resume.resume);
  }

  interrupt(): void {
    this.#sender.sendByte(packets.interrupt);
  }

  /** The packets of a resume. `stopped`: the hart of the last stop. */
  packetsFor(resume: Resume, stopped: string | undefined): ResumePackets {
    const { vCont, signals, isClustered } = this.#features ?? {};
    const action = resume.kind === 'continue' ? 'c' : 's';
    const signal = resume.signal && (signals?.protocol(resume.signal) ?? resume.signal);
    const verb = signal === undefined ? action : action.toUpperCase() + signal.toString(16).padStart(2, '0');
    const hart = resume.hart !== ANY_HART ? resume.hart : undefined;
    if (vCont?.has(verb[0] as string) === true && vCont.has('c')) {
      if (hart !== undefined) return { before: [], resume: packets.run([`${verb}:${hart}`]) };
      // Of a machine that is several processes all run together.
      const pid = isClustered ? undefined : pidOf(stopped);
      const all = pid === undefined ? 'c' : `c:p${pid}.-1`;
      if (resume.kind === 'step') return { before: [], resume: packets.run([verb]) };
      if (signal === undefined) return { before: [], resume: packets.run([all]) };
      return { before: [], resume: packets.run(stopped === undefined ? [verb] : [`${verb}:${stopped}`, all]) };
    }
    const before = hart === undefined ? [] : [new SelectRequest(packets.selectHartToRun(hart))];
    return { before, resume: packets.runPlain(verb) };
  }
}
