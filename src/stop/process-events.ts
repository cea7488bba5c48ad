import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { Logger } from '../base/logger.js';
import type { Tracer } from '../calls/index.js';
import type { Breakpoint, Resume, Session, SignalStop } from '../rsp/index.js';
import { ownSignal, sharesMemory } from '../target/index.js';
import type { Breakpoints } from './breakpoints.js';
import { finish, nothing } from './read-guesses.js';
import type { StopParts } from './stop-engine-options.js';
import type { Watchpoints } from './watchpoints.js';

interface ProcessEventsOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly points: Breakpoints;
  readonly tracer: Tracer;
  readonly watches?: Watchpoints;
  readonly logger: Logger;
  /** Further places for probes in the new program. */
  readonly onExec: () => Promise<readonly Addr[]>;
  /** Whether the process runs the probed program again, at the same addresses. */
  readonly isSameProgram: () => Promise<boolean>;
}

const SIGTRAP = 5;
/** STOP, TSTP, TTIN, TTOU (signal(7)): ptrace lets a thread go on from the stop that they make. */
const jobStops: ReadonlySet<number> = new Set([19, 20, 21, 22]);

/** Stops of a process other than breakpoints: children, exec, system calls that load code, signals. */
export class ProcessEvents {
  readonly #options: ProcessEventsOptions;
  /**
   * Breakpoints that are removed while the child of a vfork uses the memory. Its traps would be reported to nobody,
   * and it would die of them.
   */
  #lifted: readonly Breakpoint[] = [];
  readonly #said = new Set<string>();

  constructor(options: ProcessEventsOptions) {
    this.#options = options;
  }

  /** Does what a stop requires, and returns how the process goes on; undefined if the stop is none of these. */
  async handle(stop: SignalStop): Promise<Resume | undefined> {
    const { session, arch, points } = this.#options;
    const { hart, child } = stop;
    if (child !== undefined)
      this.#warnOnce('the process has forked: its children are not traced; rsptrace attach PID traces one that runs');
    // Its traps would be reported to nobody, and its trampolines would outlive us: there is one memory for both.
    if (stop.reason === 'fork' && (await sharesMemory(session, arch, hart)))
      this.#options.logger.warn(
        {},
        'the process has made a child that uses its memory (clone with CLONE_VM): from here on nothing more is recorded, because nothing of ours may stay in the memory of a child; rsptrace attach PID records again, once the child has ended',
      );
    if (stop.reason === 'fork' || stop.reason === 'vfork') this.#lifted = await session.children.letGoAt(stop);
    else if (stop.reason === 'vforkdone') await this.#putBack();
    else if (stop.reason === 'exec') await this.#exec(stop);
    else if (stop.reason === 'syscall_return') await points.plantLate();
    else if (stop.reason !== 'syscall_entry') {
      // INT, TRAP and those that stop jobs: a stub that can passes on the others without a stop (`passSignals`).
      const signal = stop.signal === SIGTRAP ? undefined : await ownSignal(session, arch, stop);
      if (signal !== undefined && jobStops.has(signal))
        this.#warnOnce('somebody has sent the process a signal that stops it: while it is traced it runs on', {
          signal,
        });
      return signal === undefined ? undefined : { ...this.#goOn(hart), signal };
    }
    return this.#goOn(hart);
  }

  #warnOnce(message: string, facts: object = {}): void {
    if (!this.#said.has(message)) this.#options.logger.warn(facts, message);
    this.#said.add(message);
  }

  /** How the process goes on from a trap where no breakpoint is, if that is its own. */
  async trap(stop: SignalStop): Promise<Resume | undefined> {
    const signal = await ownSignal(this.#options.session, this.#options.arch, stop);
    return signal === undefined ? undefined : { ...this.#goOn(stop.hart), signal };
  }

  /** The same from a trap instruction under a breakpoint of ours. */
  trapOf(hart: string | undefined): Resume {
    return { ...this.#goOn(hart), signal: SIGTRAP };
  }

  /** While breakpoints are removed, the other threads of the process wait. */
  #goOn(hart: string | undefined): Extract<Resume, { kind: 'continue' }> {
    return this.#lifted.length > 0 && hart !== undefined ? { kind: 'continue', hart } : { kind: 'continue' };
  }

  async #putBack(): Promise<void> {
    const batch = this.#options.session.batch();
    for (const breakpoint of this.#lifted) batch.insertBreakpoint(breakpoint);
    this.#lifted = [];
    await batch.send();
  }

  /** The process runs another program. If it is the same program, its probes are inserted again; else none are. */
  async #exec(stop: SignalStop): Promise<void> {
    const { session, points, tracer, watches, logger } = this.#options;
    this.#lifted = [];
    session.forgetBreakpoints();
    const disarmed = await this.#options.onExec();
    tracer.abandon();
    const { probes, pauses } = points.forget();
    if (await this.#options.isSameProgram()) {
      await points.arm([...probes, ...disarmed]);
      for (const [address, pause] of pauses) await points.arm([address], pause);
      await watches?.arm();
      await points.late.prepare();
    } else logger.warn({ program: stop.path }, 'the process runs another program now, which is not traced');
  }
}

const calls = { syscall_entry: 'entry', syscall_return: 'return' } as const;

/** Gives a stop at a system call to the tracer, if it is one. How the process goes on from it, others say. */
export async function visitSystemCall(
  { options, firstReads, resuming, unexpected }: StopParts,
  { hart, reason }: SignalStop,
): Promise<void> {
  if (reason !== 'syscall_entry' && reason !== 'syscall_return') return;
  const { registers, time, pc, stackPointer } = await firstReads.at(hart);
  if (pc === undefined || stackPointer === undefined || !time) return;
  await options.observer?.stopped(true);
  unexpected.expected();
  options.onStop?.(time());
  resuming.hit(time());
  const { tracer } = options;
  const systemCall = calls[reason];
  const visit = tracer.visit({ hart: options.hartNumber(hart), pc, stackPointer, registers, time: time(), systemCall });
  await finish(visit, () => options.session.batch(hart), nothing);
  tracer.digest();
}
