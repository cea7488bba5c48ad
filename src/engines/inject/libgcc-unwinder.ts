import type { ProcessCode } from '../../arch/index.js';
import { type Addr, addOffset } from '../../base/addr.js';
import type { ElfFile } from '../../elf/index.js';
import type { Session } from '../../rsp/index.js';
import { stackBelow } from '../memory/saved-thread.js';
import type { Scratch } from '../memory/scratch.js';
import { unavailable } from '../memory/system-calls.js';
import { defined, loadedLibrary } from './loaded-library.js';

/** The function that throws: a program without it never unwinds. */
const throws = '_Unwind_RaiseException';
/**
 * libgcc's functions to register code that no file describes: (table, 48 bytes of its own), and to deregister it:
 * (table).
 */
const registers = '__register_frame_info';
const removes = '__deregister_frame_info';
const objectBytes = 64;

interface Functions {
  readonly register: Addr;
  readonly remove: Addr;
}

/**
 * Tells a process's unwinder which addresses the trampolines' return addresses stand for, so that exceptions and
 * panics find their way. It calls libgcc's `__register_frame_info` in the process.
 */
export class ProcessUnwinder {
  readonly #session: Session;
  readonly #functions: Functions;
  readonly #scratch: Scratch;
  readonly #code: ProcessCode;
  #table: Addr | undefined;

  private constructor(session: Session, functions: Functions, scratch: Scratch, code: ProcessCode) {
    this.#session = session;
    this.#functions = functions;
    this.#scratch = scratch;
    this.#code = code;
  }

  /**
   * Undefined if nothing in the process unwinds.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE` if the process has an unwinder that takes no such table
   */
  static async find(
    session: Session,
    elf: ElfFile,
    scratch: Scratch,
    code: ProcessCode,
  ): Promise<ProcessUnwinder | undefined> {
    const own = defined(elf, throws) === undefined ? undefined : elf;
    const unwinder = own ?? (await loadedLibrary(session, scratch, /\/libgcc_s[^/]*\.so/));
    if (!unwinder) return undefined;
    const [register, remove] = [defined(unwinder, registers), defined(unwinder, removes)];
    if (register === undefined || remove === undefined) {
      throw unavailable('exceptions may pass the probed functions, and the unwinder cannot be told of trampolines');
    }
    return new ProcessUnwinder(session, { register, remove }, scratch, code);
  }

  /** Writes the table and registers it. The code that does so may be written at `at`; the table follows it. */
  async register(room: Addr, exits: ReadonlyMap<bigint, { readonly offset: number }>): Promise<void> {
    const { own } = this.#scratch;
    if (!own || exits.size === 0) return;
    const table = addOffset(room, callRoom);
    if (!(await this.#session.memory().write(table, this.#code.unwindTable(exits))))
      throw unavailable('the stub does not write memory');
    await this.#call(room, this.#functions.register, [table, own.address]);
    this.#table = table;
  }

  /** Deregisters the table, before its memory is freed. */
  async remove(): Promise<void> {
    const table = this.#table;
    this.#table = undefined;
    // Then its memory stays too.
    if ((await this.#scratch.calls?.refusal()) !== undefined) return;
    if (table !== undefined) await this.#call(addOffset(table, -callRoom), this.#functions.remove, [table]);
  }

  async #call(at: Addr, address: Addr, parameters: readonly Addr[]): Promise<void> {
    const { calls, own } = this.#scratch;
    const { call } = this.#code;
    if (!calls || !own) throw unavailable('it is no memory of a process');
    const { bytes, breakpoint } = call.code(at, addOffset(own.address, objectBytes));
    if (!(await this.#session.memory().write(at, bytes))) throw unavailable('the stub does not write memory');
    const set: Record<string, bigint> = { [call.function]: address };
    for (const [i, value] of parameters.entries()) set[call.parameters[i] ?? ''] = value;
    await calls.with(() => calls.run(at, breakpoint, set, stackBelow));
  }
}

/** Bytes for the code that calls. */
const callRoom = 64;

/** Bytes that {@link ProcessUnwinder.register} needs. */
export function unwinderRoom(code: ProcessCode, exits: number): number {
  return callRoom + code.unwindTableBytes(exits);
}
