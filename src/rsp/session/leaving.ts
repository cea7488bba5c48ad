import { hex } from '../../base/addr.js';
import { messageOf, RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { raw } from './batch.js';
import { ANY_HART } from './hart-requests.js';
import { packets } from './packets.js';
import type { ProcessSignals } from './process-signals.js';
import { retry } from './request.js';
import type { RunControl } from './run-control.js';
import type { Session } from './session.js';
import { pidOf } from './stop-reply.js';

/** The end of a session: what it has done to the target is undone, and it is let go; or it is ended. */
export class Leaving {
  readonly #session: Session;
  readonly #control: RunControl;
  readonly #signals: ProcessSignals;
  readonly #logger: Logger;
  /** Processes seen, for D and vKill. */
  readonly #pids = new Set<string>();
  #ended: Promise<void> | undefined;

  constructor(session: Session, control: RunControl, signals: ProcessSignals, logger: Logger) {
    this.#session = session;
    this.#control = control;
    this.#signals = signals;
    this.#logger = logger;
  }

  /** There is a process that this hart belongs to. */
  see(hart: string | undefined): void {
    const pid = pidOf(hart);
    if (pid !== undefined) this.#pids.add(pid);
  }

  /** See {@link Session.detach}. */
  detach(): Promise<void> {
    this.#ended ??= this.#end(async () => {
      const session = this.#session;
      const { state } = session;
      if (state.kind === 'idle' && state.stop.kind === 'signal') {
        await session.children.letGoAt(state.stop);
        if (state.stop.reason === 'exec') session.forgetBreakpoints();
      }
      await this.clearBreakpoints();
      await this.#signals.takeInterruptBack();
      await this.#signals.takeStopsBack();
      if (session.state.kind !== 'idle') return;
      // After a detach OpenOCD leaves the target halted.
      if ((await session.stub()).name === 'openocd') await session.monitor('resume');
      await retry(session, async () => {
        const last = session.batch(ANY_HART);
        const said = this.#processes().map((pid) => last[raw](packets.detach(pid)));
        await last.send();
        for (const reply of said)
          if (reply.value !== 'OK') this.#logger.warn({ answer: reply.value }, 'detaching failed');
      });
    });
    return this.#ended;
  }

  async leaveAsFound(): Promise<void> {
    const session = this.#session;
    try {
      if (session.state.kind === 'idle' && (await (await session.stub()).neverRan())) await this.clearBreakpoints();
      else await this.detach();
    } finally {
      session.close();
    }
  }

  async anyhow(leave: () => Promise<void>): Promise<void> {
    try {
      await leave();
    } catch (error) {
      this.#logger.warn({ error: messageOf(error) }, 'the target could not be left in order');
    } finally {
      this.#session.close();
    }
  }

  /** Takes every breakpoint out. Stubs refuse to remove again what an earlier try has removed. */
  clearBreakpoints(): Promise<void> {
    return retry(this.#session, async (again) => {
      const batch = this.#session.batch(ANY_HART);
      const removed = this.#session.breakpoints.map((one) => ({ ...one, reply: batch.removeBreakpoint(one) }));
      await batch.send();
      for (const { address, reply } of removed)
        if (!reply.value && !again)
          this.#logger.warn({ address: hex(address), error: reply.errorText }, 'a breakpoint was not taken out');
    });
  }

  /** See {@link Session.kill}. */
  kill(): Promise<void> {
    this.#ended ??= this.#end(async () => {
      const batch = this.#session.batch(ANY_HART);
      for (const pid of this.#processes()) batch[raw](packets.kill(pid));
      // The answer may be no more than the end of the connection.
      await batch.send().catch((error: unknown) => {
        if (!(error instanceof RsptraceError) || error.code !== 'RSP_CLOSED') throw error;
      });
    });
    return this.#ended;
  }

  async #end(say: () => Promise<void>): Promise<void> {
    const session = this.#session;
    try {
      this.#control.leaving();
      if (session.state.kind === 'running' || session.state.kind === 'interrupting') {
        await session.interrupt().catch((error: unknown) => {
          // If the target may still be stopped, it is left in order, as far as it answers.
          if (session.state.kind !== 'idle') throw error;
        });
      }
      if (session.state.kind === 'idle') await say();
    } finally {
      session.close();
    }
  }

  #processes(): (string | undefined)[] {
    return this.#session.features.multiprocess && this.#pids.size > 0 ? [...this.#pids] : [undefined];
  }
}
