import type { ProcessCode } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { messageOf } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import { registerOf, registersOf, type Session, setRegister } from '../rsp/index.js';
import { PAGE, type Scratch, unavailable } from '../scratch/index.js';
import type { LetRun } from '../target/index.js';
import { interruptedInside } from './interrupted.js';
import { runForMoment } from './leave-patches.js';
import { allocates, DefiningFiles, defined, functionIn, loaderStop, throws } from './loaded-library.js';

/** What walks a stack for a program: glibc's `backtrace`, panics of Rust, `std::stacktrace`. */
const walks = '_Unwind_Backtrace';
/** What a frame's address is asked of. */
const address = '_Unwind_GetIP';
/** So many unwinders of a process have room. */
const mostUnwinders = 8;
/** Bytes of the word that counts walks, at the end of our own pages. */
const WORD = 8;

/** Waits for the next stop at this place, once. `moved`: the thread goes on at another place. */
type WaitAt = (place: Addr, then: (thread: string | undefined) => Promise<unknown>) => Promise<void>;

interface WalkNeeds {
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
class StackWalks {
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
function walkRoom(code: ProcessCode): { readonly bytes: number; readonly returns: number } {
  return { bytes: mostUnwinders * slotBytes(code), returns: mostUnwinders };
}

/** What each walk of libgcc comes by first, in a library whose addresses are relocated then. */
const gate = '_Unwind_Find_FDE';
/**
 * libgcc's functions to register code that no file describes: (table, 48 bytes of its own), and to deregister it:
 * (table).
 */
const registers = '__register_frame_info';
const removes = '__deregister_frame_info';
const objectBytes = 64;
/**
 * What these call, or hold a lock in: libgcc frees what it has sorted, and from gcc 13 on it allocates at a
 * registration. A fork holds the allocator's locks.
 */
const locking = [
  ...['malloc', 'calloc', 'realloc', 'free', 'memalign', 'aligned_alloc', 'posix_memalign', 'malloc_trim'],
  ...[gate, registers, removes, 'fork', '_Fork'],
];
/** So far above the stack pointer lies the return address into one of them. */
const nearTop = 1024;
/** How many moments of a millisecond a thread gets to come out of them. */
const mostMoments = 50;

interface Functions {
  readonly register: Addr;
  readonly remove: Addr;
}

interface Needs extends WalkNeeds {
  readonly elf: ElfFile;
}

/**
 * Tells a process's unwinders which addresses the trampolines' return addresses stand for, so that exceptions and
 * panics find their way, and keeps trampolines out of the stacks that the process walks itself. It calls libgcc's
 * `__register_frame_info` in the process. A library that comes later brings an unwinder of its own: the dynamic loader
 * stops at each change, and that unwinder at its first walk.
 */
export class ProcessUnwinders {
  readonly #needs: Needs;
  readonly #files: DefiningFiles;
  readonly #allocators: DefiningFiles;
  /** Those that have the table, each with its functions. */
  readonly #registered = new Map<ElfFile, Functions>();
  readonly #awaited = new Set<ElfFile>();
  #objects = 0;
  #walks: StackWalks | undefined;
  /** Where the dynamic loader comes by. */
  #loader: Addr | undefined;
  #table: Addr | undefined;
  #room: Addr | undefined;

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#files = new DefiningFiles(needs.session, needs.scratch, throws);
    this.#allocators = new DefiningFiles(needs.session, needs.scratch, allocates);
  }

  /** Reads the files that may have an unwinder, so that {@link register} need not. It may run on between two pieces. */
  async readFiles(letRun: LetRun | undefined): Promise<void> {
    if (letRun && this.#needs.scratch.own) await this.#files.now(letRun);
  }

  /**
   * Writes the table and registers it. The code that does so may be written at `at`; the table follows it.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE` if the process has an unwinder that takes no such table, or may get one
   * that nobody sees come
   */
  async register(room: Addr, exits: ReadonlyMap<bigint, { readonly offset: number }>): Promise<void> {
    const { session, scratch, code } = this.#needs;
    if (!scratch.own || exits.size === 0) return;
    await this.#settle();
    this.#loader = await loaderStop(session, this.#needs.elf);
    const unwinders = await this.#unwinders();
    for (const each of unwinders) functionsOf(each);
    const walks = new StackWalks(this.#needs, addOffset(room, callRoom));
    const table = addOffset(room, callRoom + walkRoom(code).bytes);
    if (!(await session.memory().write(table, code.unwindTable(new Map([...exits, ...walks.returns])))))
      throw unavailable('the stub does not write memory');
    this.#table = table;
    this.#room = room;
    this.#walks = walks;
    for (const each of unwinders) await this.#register(each);
  }

  /** Watches what is loaded from now on, and who walks stacks. */
  async watch(waitAt: WaitAt, onError: (thrown: unknown) => void): Promise<void> {
    const place = this.#loader;
    if (this.#table === undefined) return;
    for (const each of this.#registered.keys()) await this.#walks?.wrap(each, waitAt);
    if (place === undefined) return;
    const changed = async (): Promise<void> => {
      try {
        await this.#follow(waitAt, onError);
      } catch (thrown) {
        onError(unavailable(`a library came while calls were traced: ${messageOf(thrown)}`));
      }
      await waitAt(place, changed);
    };
    await waitAt(place, changed);
  }

  /** A library has come or gone, and is not relocated yet. */
  async #follow(waitAt: WaitAt, onError: (thrown: unknown) => void): Promise<void> {
    const unwinders = await this.#unwinders();
    const isThere = new Set(unwinders);
    for (const known of this.#registered.keys()) if (!isThere.has(known)) this.#registered.delete(known);
    for (const known of this.#awaited) if (!isThere.has(known)) this.#awaited.delete(known);
    for (const each of unwinders) {
      if (this.#registered.has(each) || this.#awaited.has(each)) continue;
      functionsOf(each);
      const place = defined(each, gate);
      if (place === undefined) throw unavailable(`${each.path} does not say where it walks stacks`);
      this.#awaited.add(each);
      await this.#walks?.wrap(each, waitAt);
      await waitAt(place, () => this.#register(each).catch(onError));
    }
  }

  /** Whether code of ours waits for the end of a walk. */
  async isWalking(): Promise<boolean> {
    return (await this.#walks?.isWalking()) ?? false;
  }

  /** Deregisters the table, before its memory is freed. */
  async remove(): Promise<void> {
    const table = this.#table;
    this.#table = undefined;
    // Then its memory stays too.
    if (table === undefined || (await this.#needs.scratch.calls?.refusal()) !== undefined) return;
    await this.#settle();
    if (this.#needs.session.state.kind !== 'idle') return;
    const isThere = new Set(await this.#unwinders());
    for (const [each, { remove }] of this.#registered) if (isThere.has(each)) await this.#call(remove, [table]);
  }

  /**
   * Lets the thread that is to call libgcc come out of what that calls, or would find half done, where no breakpoint of
   * ours would stop it. Files are read past the wire only.
   */
  async #settle(): Promise<void> {
    const { session, scratch, pc } = this.#needs;
    for (let moments = 0; moments < mostMoments; moments++) {
      const { state, processHere } = session;
      if (!scratch.calls || processHere === undefined || session.breakpoints.length > 0) return;
      if (state.kind !== 'idle' || state.stop.kind !== 'signal') return;
      const places = [...(await this.#allocators.now()), ...(await this.#files.now())].flatMap((each) =>
        locking.flatMap((name) => functionIn(each, name) ?? []),
      );
      const { hart } = state.stop;
      const at = (await registerOf(session, pc, hart)) ?? 0n;
      const isAt = places.some(({ address, length }) => at > address && at < addOffset(address, length));
      if (!isAt && (await interruptedInside(session, scratch.calls.arch, places, { most: nearTop, hart })).size === 0)
        return;
      await runForMoment(session, 1);
    }
  }

  async #unwinders(): Promise<ElfFile[]> {
    const { elf } = this.#needs;
    const own = defined(elf, throws) === undefined ? [] : [elf];
    const start = defined(elf, throws);
    return [...own, ...(await this.#files.now()).filter((each) => defined(each, throws) !== start)];
  }

  async #register(unwinder: ElfFile): Promise<void> {
    const { scratch } = this.#needs;
    const table = this.#table;
    if (!scratch.own || table === undefined || this.#registered.has(unwinder)) return;
    const functions = functionsOf(unwinder);
    // The first one lies below what the call saves, the others grow down from the end to where the call's stack begins.
    const at = this.#objects === 0 ? 0 : scratch.own.size - objectBytes * this.#objects;
    if (at !== 0 && at < scratch.own.size - PAGE) throw unavailable('more unwinders came than there is room for');
    this.#objects++;
    await this.#call(functions.register, [table, addOffset(scratch.own.address, at)]);
    this.#registered.set(unwinder, functions);
    this.#awaited.delete(unwinder);
  }

  async #call(address: Addr, parameters: readonly Addr[]): Promise<void> {
    const { session, scratch, code } = this.#needs;
    const { calls, own } = scratch;
    const { call } = code;
    const at = this.#room;
    if (!calls || !own || at === undefined) throw unavailable('it is no memory of a process');
    const { bytes, breakpoint } = call.code(at, addOffset(own.address, objectBytes));
    if (!(await session.memory().write(at, bytes))) throw unavailable('the stub does not write memory');
    const set: Record<string, bigint> = { [call.function]: address };
    for (const [i, value] of parameters.entries()) set[call.parameters[i] ?? ''] = value;
    await calls.with(() => calls.run(at, breakpoint, set, addOffset(own.address, own.size - PAGE)));
  }
}

function functionsOf(unwinder: ElfFile): Functions {
  const [register, remove] = [defined(unwinder, registers), defined(unwinder, removes)];
  if (register !== undefined && remove !== undefined) return { register, remove };
  throw unavailable(
    `exceptions may pass the probed functions, and the unwinder of ${unwinder.path} cannot be told of trampolines`,
  );
}

/** Bytes for the code that calls. */
const callRoom = 64;

/** Bytes that {@link ProcessUnwinders.register} needs. */
export function unwinderRoom(code: ProcessCode, exits: number): number {
  const walks = walkRoom(code);
  return callRoom + walks.bytes + code.unwindTableBytes(exits + walks.returns);
}
