import type { ProcessCode } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import { registersOf, type Session, setRegister } from '../rsp/index.js';
import { type Scratch, unavailable } from '../scratch/index.js';
import { defined } from './loaded-library.js';

/** What walks a stack for a program: glibc's `backtrace`, panics of Rust, `std::stacktrace`. */
const walks = '_Unwind_Backtrace';
/** What a frame's address is asked of. */
const address = '_Unwind_GetIP';
/** So many unwinders of a process have room. */
const mostUnwinders = 8;
/** Bytes of the word that counts walks, at the end of our own page. */
const WORD = 8;

/** Waits for the next stop at this place, once. `moved`: the thread goes on at another place. */
export type WaitAt = (place: Addr, then: (thread: string | undefined) => Promise<unknown>) => Promise<void>;

export interface WalkNeeds {
  readonly session: Session;
  readonly scratch: Scratch;
  readonly code: ProcessCode;
  /** The name of the program counter. */
  readonly pc: string;
}

/**
 * Keeps trampolines out of the stacks that a process walks itself, so that a panic prints what it prints untraced.
 * Each walk stops twice: a wrapper runs in its place, and calls it with a callback that passes over our frames.
 */
export class StackWalks {
  readonly #needs: WalkNeeds;
  readonly #room: Addr;
  readonly #wrapped = new Set<ElfFile>();

  /** `room`: memory of {@link walkRoom} for code. */
  constructor(needs: WalkNeeds, room: Addr) {
    this.#needs = needs;
    this.#room = room;
  }

  /** Return addresses of wrappers, as an unwinder must know them. */
  get returns(): ReadonlyMap<bigint, { readonly offset: number }> {
    const { at, offset } = this.#needs.code.stackWalk.returns;
    const slots = Array.from({ length: mostUnwinders }, (_, slot) => slot);
    return new Map(slots.map((slot) => [addOffset(this.#slot(slot), at), { offset }] as const));
  }

  /**
   * From now on, walks of this unwinder pass over trampolines.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE`
   */
  async wrap(unwinder: ElfFile, waitAt: WaitAt): Promise<void> {
    const { session, scratch, code } = this.#needs;
    const [walk, addressOf] = [defined(unwinder, walks), defined(unwinder, address)];
    if (this.#wrapped.has(unwinder) || walk === undefined || addressOf === undefined || !scratch.own) return;
    if (this.#wrapped.size === mostUnwinders) throw unavailable('more unwinders came than there is room for');
    const at = this.#slot(this.#wrapped.size);
    this.#wrapped.add(unwinder);
    const hidden = { address: scratch.code.address, length: scratch.code.size };
    const { bytes, callback } = code.stackWalk.code(at, { walk, addressOf, hidden, open: this.#open(scratch.own) });
    if (!(await session.memory().write(at, bytes))) throw unavailable('the stub does not write memory');
    const arrived = async (thread: string | undefined): Promise<unknown> => {
      await waitAt(walk, arrived);
      return this.#leadThrough(thread, at, callback);
    };
    await waitAt(walk, arrived);
  }

  /** The wrapper itself comes by here too, with its own callback. */
  async #leadThrough(thread: string | undefined, wrapper: Addr, own: Addr): Promise<'moved' | undefined> {
    const { session, code, pc } = this.#needs;
    const callback = (await registersOf(session, thread)).register(code.stackWalk.callback);
    if (callback === undefined || callback === own) return undefined;
    return (await setRegister(session, pc, wrapper, thread)) ? 'moved' : undefined;
  }

  /** Whether a walk has not ended, so that its wrapper must stay. */
  async isWalking(): Promise<boolean> {
    const { session, scratch } = this.#needs;
    if (this.#wrapped.size === 0 || !scratch.own) return false;
    const word = await session.memory().read(this.#open(scratch.own), WORD);
    return word?.some((byte) => byte !== 0) ?? true;
  }

  #open({ address, size }: NonNullable<Scratch['own']>): Addr {
    return addOffset(address, size - WORD);
  }

  #slot(slot: number): Addr {
    return addOffset(this.#room, slot * slotBytes(this.#needs.code));
  }
}

function slotBytes({ stackWalk }: ProcessCode): number {
  return (stackWalk.bytes + 15) & -16;
}

/** Bytes of code for all wrappers, and how many return addresses they have. */
export function walkRoom(code: ProcessCode): { readonly bytes: number; readonly returns: number } {
  return { bytes: mostUnwinders * slotBytes(code), returns: mostUnwinders };
}
