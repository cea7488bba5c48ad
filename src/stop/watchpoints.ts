import type { Architecture } from '../arch/index.js';
import { type Addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { type Access, accessOf, overlaps, type WatchPlace, type Watchpoint } from '../probes/index.js';
import type { Batch, Breakpoint, Reply, Session, SignalStop } from '../rsp/index.js';
import type { WatchAccess } from '../trace/index.js';

const types: Readonly<Record<WatchAccess, Breakpoint['type']>> = { w: 2, r: 3, rw: 4 };

/**
 * The watchpoints of a recording. Inserts them into the target, knows which one a stop refers to, and the value under
 * it before.
 */
export class Watchpoints {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly #logger: Logger;
  readonly #emit: (access: Access) => void;
  readonly all: readonly Watchpoint[];
  #armed = false;

  constructor(options: {
    readonly session: Session;
    readonly arch: Architecture;
    readonly places: readonly WatchPlace[];
    /** Called at each access, in the order in which the target reports them. */
    readonly emit: (access: Access) => void;
    readonly logger?: Logger;
  }) {
    this.#session = options.session;
    this.#arch = options.arch;
    this.#emit = options.emit;
    this.#logger = options.logger ?? silent;
    this.all = options.places.map((place, index) => ({
      place,
      index,
      breakpoint: { type: types[place.spec.access], address: place.address, kind: place.size },
      known: undefined,
    }));
  }

  /**
   * Inserts all of them and reads their values. If the target cannot tell reads from writes, a watch of reads becomes
   * one of both.
   * @throws RsptraceError `WATCH_REFUSED`
   */
  async arm(): Promise<void> {
    if (this.all.length === 0) return;
    let refused = await this.#insert(this.all);
    const reads = refused.filter(({ breakpoint }) => breakpoint.type === 3);
    if (reads.length > 0) {
      for (const each of reads) each.breakpoint = { ...each.breakpoint, type: 4 };
      const still = await this.#insert(reads);
      refused = refused.filter((each) => !reads.includes(each) || still.includes(each));
      for (const { place } of reads.filter((each) => !still.includes(each))) {
        this.#logger.warn({ watch: place.spec.name }, 'the target does not watch reads alone: writes are recorded too');
      }
    }
    const [first] = refused;
    if (first) throw this.#refusal(first);
    this.#armed = true;
    const batch = this.#session.batch();
    const learn = this.request(batch);
    await batch.send();
    learn();
  }

  /** Removes all of them. The session keeps those that the stub does not remove. */
  async disarm(): Promise<void> {
    if (!this.#armed) return;
    this.#armed = false;
    const batch = this.#session.batch();
    for (const { breakpoint } of this.all) batch.removeBreakpoint(breakpoint);
    await batch.send();
  }

  /** The watchpoint that a stop reports. gdbserver says `watch` for all kinds, and some stubs give no address. */
  reported(stop: SignalStop): Watchpoint | undefined {
    if (stop.reason !== 'watch' && stop.reason !== 'rwatch' && stop.reason !== 'awatch') return undefined;
    const { address } = stop;
    if (address === undefined) return this.all.length === 1 ? this.all[0] : undefined;
    return this.all.find(({ place }) => overlaps(place.address, place.size, address, 1));
  }

  /** Whether an emulated instruction would be a watched access. */
  covers(address: bigint, length: number): boolean {
    return this.all.some(({ place }) => overlaps(place.address, place.size, address, length));
  }

  /** Requests the values under all of them. The returned function remembers the answers, once they are there. */
  request(batch: Batch): () => void {
    const replies = this.all.map(
      ({ place }): Reply<Uint8Array | undefined> => batch.readMemory(place.address, place.size),
    );
    return () => {
      for (const point of this.all) point.known = replies[point.index]?.value;
    };
  }

  /**
   * Whether the access that a stop reports is still to come. A stub may differ from its architecture. If the
   * instruction at the pc cannot be the one that accesses, the access has happened already.
   */
  isBefore(point: Watchpoint, pc: Addr, code: Uint8Array | undefined, registers: RegisterReader): boolean {
    if (this.#arch.watchStops === 'after') return false;
    const over = code && this.#arch.emulate(code, pc);
    if (!over) return true;
    const load = over.load?.(registers);
    if (load) return load.length === 0 || overlaps(load.address, load.length, point.place.address, point.place.size);
    const effects = over.effects(registers);
    if (!effects) return true;
    return effects.memory.some(({ address, bytes }) =>
      overlaps(address, bytes.length, point.place.address, point.place.size),
    );
  }

  /**
   * The watched place that an instruction is about to access, on an architecture that stops before accesses. Not
   * every stub reports such an access: OpenOCD 0.12 does not recognise compressed loads and stores, and switches
   * triggers off for a step.
   */
  next(code: Uint8Array | undefined, registers: RegisterReader): Watchpoint | undefined {
    const access = code && this.#arch.memoryAccess?.(code, registers);
    if (!access) return undefined;
    return this.all.find(({ place, breakpoint }) => {
      if (!overlaps(access.address, access.length, place.address, place.size)) return false;
      const watched = accessOf(breakpoint);
      return (watched !== 'w' && access.reads) || (watched !== 'r' && access.writes);
    });
  }

  emit(access: Access): void {
    this.#emit(access);
  }

  async #insert(points: readonly Watchpoint[]): Promise<Watchpoint[]> {
    const batch = this.#session.batch();
    const inserted = points.map((point) => ({ point, reply: batch.insertBreakpoint(point.breakpoint) }));
    await batch.send();
    return inserted.filter(({ reply }) => !reply.value).map(({ point }) => point);
  }

  #refusal({ place }: Watchpoint): RsptraceError {
    const taken = this.#session.breakpoints.filter(({ type }) => type >= 2).length;
    const had = taken === 0 ? 'it took none' : `${taken} that it took are in use`;
    return new RsptraceError(
      'WATCH_REFUSED',
      `the stub refused a watchpoint of ${place.size} bytes on ${place.spec.name} at ${hex(place.address)}: ${had}`,
      {
        hint:
          taken === 0
            ? 'not every stub or target has watchpoints'
            : 'watch fewer places: many processors have no more than four watchpoints',
      },
    );
  }
}
