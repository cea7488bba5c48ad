import type { Architecture, Privilege } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { type Hart, isProcess, type Session } from '../rsp/index.js';
import type { StackOptions } from '../unwind/index.js';
import { type HartStack, hartStack } from './hart-stack.js';
import type { LoadedCode } from './loaded-code.js';

/** What one hart was doing when the target was stopped. */
export interface HartLook extends Pick<HartStack, 'stack' | 'firmware' | 'other'> {
  readonly hart: Hart;
  readonly pc: bigint | undefined;
  /** Undefined where the architecture does not tell. */
  readonly privilege: Privilege | undefined;
  /** The physical address of its page tables' root; undefined without paging. */
  readonly root: bigint | undefined;
  /** It waits for an interrupt; a thread of a process waits in a system call. */
  readonly isIdle: boolean;
}

/** Looks at every hart of a target that stands. */
export class Looks {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly #code: LoadedCode;
  readonly #options: StackOptions;
  /** Whether a system call ends there: code does not change, and threads wait at the same few places. */
  readonly #behindCall = new Map<Addr, boolean>();

  constructor(session: Session, arch: Architecture, code: LoadedCode, options: StackOptions) {
    this.#session = session;
    this.#arch = arch;
    this.#code = code;
    this.#options = options;
  }

  async all(): Promise<HartLook[]> {
    const looks: HartLook[] = [];
    for (const hart of await this.#session.harts()) looks.push(await this.#look(hart));
    if (looks.some(({ stack }) => stack.end.reason === 'outside-code')) await this.#code.strayed();
    return looks;
  }

  async #look(hart: Hart): Promise<HartLook> {
    const isIdle = await this.#isHalted(hart);
    const found = await hartStack(this.#session, hart.id, this.#arch, this.#code.stacks, this.#options);
    const { stack, firmware, other, registers } = found;
    const pc = registers.register(this.#arch.pc);
    const standing = this.#arch.privilege?.standing(registers);
    const privilege = firmware === undefined ? standing?.privilege : 'firmware';
    return {
      hart,
      pc,
      stack,
      firmware,
      other,
      privilege: isProcess(this.#session.features) ? 'user' : privilege,
      root: standing?.root,
      isIdle: isIdle ?? (await this.#isInSystemCall(hart, pc)),
    };
  }

  /** QEMU says so of a hart; undefined for a thread of a process. */
  async #isHalted({ name }: Hart): Promise<boolean | undefined> {
    return isProcess(this.#session.features) ? undefined : /\[halted\b/.test(name ?? '');
  }

  /**
   * A stopped thread stands behind the instruction by which it went into the kernel, as long as it is there. So the few
   * that compute in the kernel count as waiting.
   */
  async #isInSystemCall({ id }: Hart, pc: bigint | undefined): Promise<boolean> {
    const instruction = this.#arch.linux?.systemCalls?.instruction;
    if (pc === undefined || instruction === undefined) return false;
    const at = addr(pc);
    let known = this.#behindCall.get(at);
    if (known === undefined) {
      const bytes = await this.#session.memory(id).read(addr(pc - BigInt(instruction.length)), instruction.length);
      known = bytes !== undefined && instruction.every((byte, index) => bytes[index] === byte);
      this.#behindCall.set(at, known);
    }
    return known;
  }
}
