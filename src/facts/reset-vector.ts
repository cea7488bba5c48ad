// Where a machine begins, and begins again when it is reset (QEMU 7.2):
//
//   riscv64  in its mask ROM at 0x1000 (hw/riscv/virt.c; others 0x1004), in M-mode, all harts
//   x86_64   at ffff:fff0, cs's base being ffff0000 (Intel SDM volume 3, 10.1.4), the first processor; the others wait
import type { Architecture } from '../arch/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { ANY_HART, type Breakpoint, type Session } from '../rsp/index.js';

const maskRom = 0x1000n;
const x86 = { breakpoint: addr(0xffff_fff0), ip: 0xfff0n, cs: 0xf000n } as const;
const machineMode = 3n;
/** Steps of a hart that may come back without having executed anything. */
const stepTries = 100;

/** Where a machine that is reset stops, since a breakpoint stays there. */
export class ResetVector {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly breakpoint: Breakpoint;

  private constructor(session: Session, arch: Architecture, breakpoint: Breakpoint) {
    this.#session = session;
    this.#arch = arch;
    this.breakpoint = breakpoint;
  }

  /** Of a machine that has not executed an instruction; undefined where it does not stand at a known reset vector. */
  static async find(session: Session, arch: Architecture): Promise<ResetVector | undefined> {
    const batch = session.batch();
    const pc = batch.readRegister(arch.pc);
    await batch.send();
    if (pc.value === undefined) return undefined;
    if (arch.name === 'riscv64') {
      if (pc.value >> 12n !== maskRom >> 12n) return undefined;
      return new ResetVector(session, arch, { type: 0, address: addr(pc.value), kind: 4 });
    }
    const vector = new ResetVector(session, arch, { type: 1, address: x86.breakpoint, kind: 1 });
    return (await vector.stopped(pc.value, undefined)) === 'reset' ? vector : undefined;
  }

  /**
   * Whether a hart that stands at `pc` stands there because the machine was reset. Programs may have code of their own at that (virtual)
   * address: over that the hart has been stepped then.
   */
  async stopped(pc: bigint, hart: string | undefined): Promise<'reset' | 'passed' | 'elsewhere'> {
    const { address } = this.breakpoint;
    if (pc !== this.#pc && pc !== address) return 'elsewhere';
    const [name, wanted] = this.#arch.name === 'riscv64' ? ['priv', machineMode] : ['cs', x86.cs];
    const batch = this.#session.batch(hart);
    const mode = batch.readRegister(name);
    await batch.send();
    const isMode = mode.value === undefined || mode.value === wanted;
    if (isMode && (await this.#isWhole())) return 'reset';
    if (pc !== address) return 'elsewhere';
    await this.#session.stepOver(hart ?? ANY_HART, [this.breakpoint]);
    return 'passed';
  }

  /**
   * Plants {@link breakpoint}; harts that stand there make their first step.
   * @returns false where the stub does not take it
   * @throws RsptraceError `TARGET_STUCK` when no step moves a hart
   */
  async watch(): Promise<boolean> {
    const harts = await this.#session.harts();
    // x86's other processors stand there too, and do not run until the first one starts them.
    for (const { id } of this.#arch.name === 'riscv64' ? harts : harts.slice(0, 1)) await this.#leave(id);
    return this.#session.insertBreakpoint(this.breakpoint);
  }

  /** QEMU ends a step that something kicks the processor out of before its instruction, and says that it was made. */
  async #leave(hart: string): Promise<void> {
    for (let tries = 0; (await this.#pcOf(hart)) === this.#pc; tries++) {
      if (tries === stepTries) {
        throw new RsptraceError(
          'TARGET_STUCK',
          `a single step at the reset vector ${hex(this.#pc)} does not move the target`,
          {
            hint: 'start the machine by itself, with -S -gdb, and trace it with --remote',
          },
        );
      }
      await this.#session.resume({ kind: 'step', hart });
    }
  }

  /** A reset puts all harts of riscv64 back; one alone that stands there has not begun yet. */
  async #isWhole(): Promise<boolean> {
    if (this.#arch.name !== 'riscv64') return true;
    for (const { id } of await this.#session.harts()) if ((await this.#pcOf(id)) !== this.#pc) return false;
    return true;
  }

  async #pcOf(hart: string): Promise<bigint | undefined> {
    const batch = this.#session.batch(hart);
    const reply = batch.readRegister(this.#arch.pc);
    await batch.send();
    return reply.value;
  }

  /** SeaBIOS does, where it finds what it wrote to its own memory when it ran before (src/resume.c). */
  get firmwareResets(): boolean {
    return this.#arch.name === 'x86_64';
  }

  /** As the stub tells it of a hart that stands there. */
  get #pc(): Addr {
    return this.#arch.name === 'riscv64' ? this.breakpoint.address : addr(x86.ip);
  }
}
