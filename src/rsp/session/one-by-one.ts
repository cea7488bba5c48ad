import type { RsptraceError } from '../../base/errors.js';
import type { Link } from '../wire/link.js';
import { type Request, SelectRequest } from './request.js';

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
export class OneByOne {
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
