import type { Architecture, ResetModel, ResetVectorAt } from '../arch/index.js';
import { hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { ANY_HART, type Breakpoint, registerOf, type Session } from '../rsp/index.js';

/** Steps of a hart that may return without having run an instruction. */
const stepTries = 100;

/** Where a machine stops when it is reset, because a breakpoint stays inserted there. */
export class ResetVector {
  readonly #session: Session;
  readonly #pcRegister: string;
  readonly #model: ResetModel;
  readonly #at: ResetVectorAt;

  private constructor(session: Session, pcRegister: string, model: ResetModel, at: ResetVectorAt) {
    this.#session = session;
    this.#pcRegister = pcRegister;
    this.#model = model;
    this.#at = at;
  }

  get breakpoint(): Breakpoint {
    return this.#at.breakpoint;
  }

  /** For a machine that has not run an instruction; undefined if it is not at a known reset vector. */
  static async find(session: Session, arch: Architecture, logger: Logger = silent): Promise<ResetVector | undefined> {
    const { reset } = arch;
    if (!reset) {
      logger.warn({ arch: arch.name }, 'a reset of the machine would not be noticed: its reset vector is not known');
      return undefined;
    }
    const pc = await registerOf(session, arch.pc);
    const at = pc === undefined ? undefined : reset.vectorAt(pc);
    if (pc === undefined || at === undefined) return undefined;
    const vector = new ResetVector(session, arch.pc, reset, at);
    return at.isCertain || (await vector.stopped(pc, undefined)) === 'reset' ? vector : undefined;
  }

  /**
   * Whether a hart is at `pc` because the machine was reset. Programs may have code of their own at that (virtual)
   * address; then the hart was stepped over it.
   */
  async stopped(pc: bigint, hart: string | undefined): Promise<'reset' | 'passed' | 'elsewhere'> {
    const { address } = this.breakpoint;
    if (pc !== this.#at.pc && pc !== address) return 'elsewhere';
    const mode = await registerOf(this.#session, this.#model.mode.register, hart);
    const isMode = mode === undefined || mode === this.#model.mode.value;
    if (isMode && (await this.#isWhole())) return 'reset';
    if (pc !== address) return 'elsewhere';
    await this.#session.stepOver(hart ?? ANY_HART, [this.breakpoint]);
    return 'passed';
  }

  /**
   * Inserts {@link breakpoint}; harts there make their first step.
   * @returns false if the stub refuses it
   * @throws RsptraceError `TARGET_STUCK` if no step moves a hart
   */
  async watch(): Promise<boolean> {
    const harts = await this.#session.harts();
    // Waiting harts are there too.
    for (const { id } of this.#model.begins === 'all' ? harts : harts.slice(0, 1)) await this.#leave(id);
    return this.#session.insertBreakpoint(this.breakpoint);
  }

  /**
   * If something interrupts the processor before the stepped instruction, QEMU ends the step and says that it was
   * made.
   */
  async #leave(hart: string): Promise<void> {
    for (let tries = 0; (await this.#pcOf(hart)) === this.#at.pc; tries++) {
      if (tries === stepTries) {
        throw new RsptraceError(
          'TARGET_STUCK',
          `a single step at the reset vector ${hex(this.#at.pc)} does not move the target`,
          {
            hint: 'start the machine by itself, with -S -gdb, and trace it with --remote',
          },
        );
      }
      await this.#session.resume({ kind: 'step', hart });
    }
  }

  /**
   * A reset puts back all harts that begin. If all do, a single one there has not begun yet. If the first one does, it
   * may start the others at the same address, and has left it then; QEMU may report the stop of another one.
   */
  async #isWhole(): Promise<boolean> {
    const harts = await this.#session.harts();
    const beginning = this.#model.begins === 'all' ? harts : harts.slice(0, 1);
    for (const { id } of beginning) {
      const pc = await this.#pcOf(id);
      if (pc !== this.#at.pc && pc !== this.breakpoint.address) return false;
    }
    return true;
  }

  async #pcOf(hart: string): Promise<bigint | undefined> {
    return registerOf(this.#session, this.#pcRegister, hart);
  }

  /** See {@link ResetModel.firmwareResets}. */
  get firmwareResets(): boolean {
    return this.#model.firmwareResets;
  }
}
