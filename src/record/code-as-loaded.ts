import { type Addr, addOffset } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import type { Connection } from './connection.js';

const PT_LOAD = 1;
/** So many bytes of a function's begin tell it from other code. */
const compared = 16;

/**
 * A kernel that is linked elsewhere than it is loaded runs its first code where it was loaded. No probe sees that code.
 * One stop at the first of its functions that is called there says that something is missing.
 */
export class CodeAsLoaded {
  readonly #elf: ElfFile;
  readonly #connection: Connection;
  /** Where probes' functions are loaded, and where they are linked. */
  readonly #linked: ReadonlyMap<Addr, Addr>;
  #hasRun = false;

  /** `probes`: every probe. */
  constructor(elf: ElfFile, probes: readonly Addr[], connection: Connection) {
    this.#elf = elf;
    this.#connection = connection;
    const moved = elf.segments.filter(({ type, address, physical }) => type === PT_LOAD && address !== physical);
    this.#linked = new Map(
      probes.flatMap((probe) => {
        const segment = moved.find(({ address, fileSize }) => probe >= address && probe < addOffset(address, fileSize));
        return segment ? [[addOffset(segment.physical, probe - segment.address), probe]] : [];
      }),
    );
  }

  /** The machine begins. Returns whether there is anything to wait for. */
  async begin(): Promise<boolean> {
    this.#hasRun = false;
    if (this.#linked.size === 0) return false;
    await this.#connection.engine.points.intercept([...this.#linked.keys()], (_, at) => this.#reached(at));
    return true;
  }

  /** The code runs where it is linked now. Returns true if some of it has run before. */
  async end(): Promise<boolean> {
    const { session, engine } = this.#connection;
    if (session.state.kind === 'idle') await engine.points.release([...this.#linked.keys()]);
    const hasRun = this.#hasRun;
    this.#hasRun = false;
    return hasRun;
  }

  /** Firmware may have other code there. */
  async #reached(at: Addr): Promise<void> {
    const linked = this.#linked.get(at);
    const expected = linked && this.#elf.bytesAt(linked, compared);
    const found = await this.#connection.session.memory().read(at, compared);
    this.#hasRun = expected !== undefined && found !== undefined && Buffer.compare(expected, found) === 0;
  }
}
