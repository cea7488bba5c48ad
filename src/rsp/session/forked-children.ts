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
  /** The last one that was let go: its stop may be the present one still. */
  #gone: string | undefined;

  constructor(session: Session, logger: Logger) {
    this.#session = session;
    this.#logger = logger;
  }

  /**
   * Lets the child of a process that has just forked (`child` of a stop) run on by itself. The breakpoints that it
   * has inherited are removed. The parent stays as it is.
   */
  async letGo(child: string): Promise<void> {
    if (child === this.#gone) return;
    await this.beforeGoing?.(child);
    await this.#detach(child);
  }

  /**
   * Like {@link letGo}, for a vfork. The child runs in its parent's memory until `vforkdone`, so the parent's trap
   * instructions must be removed, too.
   * @returns the removed breakpoints
   */
  async letVforkGo(child: string): Promise<readonly Breakpoint[]> {
    if (child === this.#gone) return [];
    const written = this.#session.breakpoints.filter(({ type }) => type === 0);
    const batch = this.#session.batch();
    for (const breakpoint of written) batch.removeBreakpoint(breakpoint);
    await batch.send();
    await this.#detach(child);
    return written;
  }

  /** The same for the child of a stop, if it is the stop of a fork. */
  async letGoAt({ reason, child }: SignalStop): Promise<readonly Breakpoint[]> {
    if (child !== undefined && reason === 'vfork') return this.letVforkGo(child);
    if (child !== undefined && reason === 'fork') await this.letGo(child);
    return [];
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
    this.#gone = child;
    if (answer.value !== 'OK')
      this.#logger.warn({ child, answer: answer.value }, 'the child of a fork could not be let go');
  }
}
