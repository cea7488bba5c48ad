import type { RsptraceError } from '../../base/errors.js';
import type { Request } from '../session/request.js';

/** Called when all requests of a write are answered, or with the reason why they never will be. */
export type Done = (error: RsptraceError | undefined) => void;

/** The requests of one write. */
export interface Group {
  readonly requests: readonly Request<unknown>[];
  readonly done: Done;
  next: number;
  /** An earlier request of the group failed in a way that makes the others' answers meaningless. */
  void: boolean;
}

/** What the stub still owes: the answers to requests, in their order, and the stop that ends a resume. */
export class Outstanding {
  readonly #groups: Group[] = [];
  /**
   * Answered. The answers are trusted once everything that came with them is read, because a surplus answer makes all
   * of them doubtful.
   */
  readonly #answered: Group[] = [];
  /** The packet that has resumed the target. Its answer is a stop. */
  resumed: string | undefined;

  /** True when no request waits for its answer. */
  get isEmpty(): boolean {
    return this.#groups.length === 0;
  }

  /** The group whose answer comes next. */
  get first(): Group | undefined {
    return this.#groups[0];
  }

  /** The packet to which the next answer belongs: a request, or else the resume. */
  get packet(): string | undefined {
    const group = this.#groups[0];
    return group === undefined ? this.resumed : group.requests[group.next]?.packet;
  }

  add(requests: readonly Request<unknown>[], done: Done): void {
    this.#groups.push({ requests, done, next: 0, void: false });
  }

  /** The first group has all its answers, and waits no longer. */
  shift(): void {
    this.#groups.shift();
  }

  /** The answers of a group are complete and trusted: {@link settle} informs its caller. */
  answered(group: Group): void {
    this.#answered.push(group);
  }

  /** Tells the callers whose answers are complete. */
  settle(error: RsptraceError | undefined): void {
    if (this.#answered.length > 0) for (const group of this.#answered.splice(0)) group.done(error);
  }

  /** Forgets all requests. The function that is returned informs their callers. */
  takeAll(error: RsptraceError): () => void {
    const lost = [...this.#answered.splice(0), ...this.#groups.splice(0)];
    return () => {
      for (const group of lost) group.done(error);
    };
  }
}
