import type { Logger } from '../../base/logger.js';
import { raw } from './batch.js';
import type { Breakpoint } from './batch-requests.js';
import { packets } from './packets.js';
import type { Session } from './session.js';
import { pidOf, type SignalStop } from './stop-reply.js';

/** The children of a traced process. Each has inherited its parent's breakpoints, and runs on without them. */
export class ForkedChildren {
  /** Called before a child is let go, while it is stopped. Removes what it has inherited besides breakpoints. */
  beforeGoing: ((child: string) => Promise<void>) | undefined;
  readonly #session: Session;
  readonly #logger: Logger;
  /** The stop whose child was let go: it may be the present one still. Another child may have the same number. */
  #gone: SignalStop | undefined;

  constructor(session: Session, logger: Logger) {
    this.#session = session;
    this.#logger = logger;
  }

  /**
   * Lets the child of a process that has just forked run on by itself, if this is the stop of a fork. The breakpoints
   * that it has inherited are removed. The parent stays as it is. But the child of a vfork runs in its memory until
   * `vforkdone`. So its trap instructions must be removed, too.
   * @returns those that were removed in the parent
   */
  async letGoAt(stop: SignalStop): Promise<readonly Breakpoint[]> {
    const { reason, child } = stop;
    if (child === undefined || !(reason === 'fork' || reason === 'vfork') || stop === this.#gone) return [];
    const written = reason === 'vfork' ? this.#session.breakpoints.filter(({ type }) => type === 0) : [];
    const batch = this.#session.batch();
    for (const breakpoint of written) batch.removeBreakpoint(breakpoint);
    await batch.send();
    if (reason === 'fork') await this.beforeGoing?.(child);
    await this.#detach(child);
    this.#gone = stop;
    return written;
  }

  async #detach(child: string): Promise<void> {
    const batch = this.#session.batch(child);
    for (const { type, address, kind } of this.#session.breakpoints) {
      batch[raw](packets.removeBreakpoint(type, address, kind));
    }
    await batch.send();
    // The parent is selected first: gdbserver crashes at a later packet if the selected thread is gone.
    const last = this.#session.batch();
    const answer = last[raw](packets.detach(pidOf(child)));
    await last.send();
    if (answer.value !== 'OK')
      this.#logger.warn({ child, answer: answer.value }, 'the child of a fork could not be let go');
  }
}
