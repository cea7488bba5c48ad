import type { Addr } from '../../base/addr.js';
import type { Logger } from '../../base/logger.js';
import type { Tracer } from '../../probes/index.js';
import { type Breakpoint, programSignal, type Resume, type Session, type SignalStop } from '../../rsp/index.js';
import type { Breakpoints } from './breakpoints.js';
import type { Watchpoints } from './watchpoints.js';

export interface ProcessEventsOptions {
  readonly session: Session;
  readonly points: Breakpoints;
  readonly tracer: Tracer;
  readonly watches?: Watchpoints;
  readonly logger: Logger;
  /** Where else probes are to be planted in the new program. */
  readonly onExec: () => Promise<readonly Addr[]>;
  /** Whether the process runs the probed program again, at the same addresses. */
  readonly isSameProgram: () => Promise<boolean>;
}

/** SIGSTOP, as gdb numbers it and as Linux does: how lldb-server interrupts. */
const interrupts: ReadonlySet<number> = new Set([17, 19]);

/** What processes stop for besides what is planted: children, other programs, system calls that bring code, signals. */
export class ProcessEvents {
  readonly #options: ProcessEventsOptions;
  /** Out while the child of a vfork has the memory: it has nobody to tell of its traps, and would die of one. */
  #lifted: readonly Breakpoint[] = [];

  constructor(options: ProcessEventsOptions) {
    this.#options = options;
  }

  /** Does what a stop wants done, and gives how the process goes on; undefined when the stop is none of these. */
  async handle(stop: SignalStop): Promise<Resume | undefined> {
    const { session, points } = this.#options;
    const { hart, child } = stop;
    if (stop.reason === 'fork' && child !== undefined) await session.letChildGo(child);
    else if (stop.reason === 'vfork' && child !== undefined) this.#lifted = await session.letVforkChildGo(child);
    else if (stop.reason === 'vforkdone') await this.#putBack();
    else if (stop.reason === 'exec') await this.#exec(stop);
    else if (stop.reason === 'syscall_return') await points.plantLate();
    else if (stop.reason !== 'syscall_entry') {
      const signal = programSignal(stop);
      const isOurs = points.late.hasInterrupted && interrupts.has(stop.signal);
      return signal === undefined || isOurs ? undefined : { ...this.#goOn(hart), signal };
    }
    return this.#goOn(hart);
  }

  /** While breakpoints are out, the others of the process wait. */
  #goOn(hart: string | undefined): Extract<Resume, { kind: 'continue' }> {
    return this.#lifted.length > 0 && hart !== undefined ? { kind: 'continue', hart } : { kind: 'continue' };
  }

  async #putBack(): Promise<void> {
    const batch = this.#options.session.batch();
    for (const breakpoint of this.#lifted) batch.insertBreakpoint(breakpoint);
    this.#lifted = [];
    await batch.send();
  }

  /** Another program runs in the process: its probes are planted where it is the same one, and none where it is not. */
  async #exec(stop: SignalStop): Promise<void> {
    const { session, points, tracer, watches, logger } = this.#options;
    this.#lifted = [];
    session.forgetBreakpoints();
    const disarmed = await this.#options.onExec();
    tracer.abandon();
    const probes = points.forget();
    if (await this.#options.isSameProgram()) {
      await points.arm([...probes, ...disarmed]);
      await watches?.arm();
      await points.late.prepare();
    } else logger.warn({ program: stop.path }, 'the process runs another program now, which is not traced');
  }
}
