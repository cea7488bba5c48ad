import type { Effects } from '../arch/index.js';
import type { Session } from '../rsp/index.js';

/**
 * Whether a stub writes memory, and the target keeps it. This is tried once, with the bytes that the emulated
 * instruction would write. If they are not kept, a step does the same.
 */
export class MemoryWrites {
  readonly #session: Session;
  #kept: boolean | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** True if all of this can be written without a check. */
  async areKept([first]: Effects['memory'], hart: string | undefined): Promise<boolean> {
    if (first === undefined) return true;
    this.#kept ??= await this.#try(first, hart);
    return this.#kept;
  }

  async #try({ address, bytes }: Effects['memory'][number], hart: string | undefined): Promise<boolean> {
    const memory = this.#session.memory(hart);
    if (!(await memory.write(address, bytes))) return false;
    const now = await memory.read(address, bytes.length);
    return now !== undefined && Buffer.compare(now, bytes) === 0;
  }
}
