import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { type Bytes, placesIn } from '../base/address-map.js';
import type { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { Batch, Breakpoint, Session } from '../rsp/index.js';
import { BreakpointTypes, breakpointsRefused } from './breakpoint-types.js';
import { DeferredBreakpoints, type DeferredBreakpointsOptions } from './deferred-breakpoints.js';
import { borrow, giveBack, type Interception, newPoint, type Planted, type Point, toStep } from './point.js';

/** If the ELF does not have the code, the target's memory is read. */
export interface StopPointsOptions extends DeferredBreakpointsOptions {
  /** Hardware breakpoints everywhere, not only where software ones cannot work. */
  readonly hardware?: boolean;
  /** Called with probes without breakpoints, because the stub takes none there; without it, that is an error. */
  readonly refused?: ((probes: readonly Addr[], why: string) => void) | undefined;
  readonly logger?: Logger;
}

/** Begins the reason of a probe that is left out because the stub takes no breakpoint for it. */
const refusedByStub = 'the stub refused a breakpoint';

/** Longest instruction of all architectures. */
export const codeBytes = 16;

/**
 * Every place that has or had a breakpoint. Probes stay; return addresses stay while a call is open that returns
 * there.
 */
export class Breakpoints {
  readonly #options: StopPointsOptions;
  readonly #session: Session;
  readonly #types: BreakpointTypes;
  readonly #logger: Logger;
  readonly #points = new Map<bigint, Point>();
  /** Where instructions are not emulated but single-stepped. */
  #isStepped = placesIn([]);
  readonly #pauses = new Map<Addr, () => void>();
  /** Probes whose code is not loaded yet. */
  readonly late: DeferredBreakpoints;

  constructor(options: StopPointsOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#logger = options.logger ?? silent;
    this.#types = new BreakpointTypes(options.session, options.hardware === true);
    this.late = new DeferredBreakpoints(options);
  }

  at(pc: bigint): Point | undefined {
    return this.#points.get(pc);
  }

  /** True if a stop here has a meaning. */
  isWatched(pc: bigint): boolean {
    const point = this.#points.get(pc);
    return point !== undefined && (point.permanent || point.awaited);
  }

  /** What is inserted at a place. */
  insertedAt(pc: bigint): readonly Breakpoint[] {
    return this.isWatched(pc) ? [(this.#points.get(pc) as Point).breakpoint] : [];
  }

  /**
   * Inserts permanent breakpoints at these addresses, all in one write. An insertion is deferred if memory does not
   * yet hold the program's code, because a trap instruction would damage what is there. `pause`: they are no probes.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  async arm(addresses: readonly Addr[], pause?: () => void): Promise<void> {
    // Some stubs show their trap instructions when memory is read.
    const fresh = addresses.filter((address) => !this.#points.get(address)?.permanent);
    await this.armNow(this.#options.hardware ? fresh : await this.late.hold(fresh, pause));
    for (const address of pause ? addresses : []) this.#at(address, pause, this.#pauses);
  }

  /** Inserts the deferred breakpoints whose code is loaded now. */
  async plantLate(): Promise<void> {
    const arrived = await this.late.take();
    if (arrived.length === 0) return;
    await this.armNow(arrived.map(({ address }) => address));
    for (const { address, pause } of arrived) if (pause) this.#at(address, pause);
    this.#logger.info({ probes: arrived.length, waiting: this.late.addresses.length }, 'code has been loaded: planted');
    await this.late.prepare();
  }

  /** A permanent breakpoint that belongs to no probe. {@link StopObserver.stopped} is called before `pause`. */
  async pause(address: Addr, pause: () => void = () => {}): Promise<void> {
    await this.armNow([address]);
    this.#at(address, pause);
  }

  /**
   * Inserts breakpoints. They are removed again at the first stop at any of them, unless they were there before. If
   * {@link Interception.then} asks for the same place once more, that means the next time.
   */
  async intercept(places: readonly Addr[], then: Interception['then']): Promise<void> {
    const interception: Interception = { places, then };
    const borrowed: Point[] = [];
    for (const place of places) {
      const point = await this.of(place);
      if (point.borrowed || !point.permanent) borrowed.push(point);
      point.intercept = interception;
    }
    await this.armNow(places);
    for (const point of borrowed) borrow(point);
  }

  /** No longer waits at these places. */
  async release(places: readonly Addr[]): Promise<void> {
    const borrowed = places.filter((place) => this.#give(place));
    if (borrowed.length > 0) await this.disarm(borrowed);
  }

  /** True if the breakpoint here was inserted for an interception alone, and may be removed. */
  #give(place: Addr): boolean {
    const point = this.#points.get(place);
    if (!point?.intercept) return false;
    point.intercept = undefined;
    return giveBack(point);
  }

  /**
   * Whether a caller has waited for a stop here. If so, the hart may be at another place afterwards. False also if the
   * caller wants to wait here again: then the stop is over.
   */
  async intercepted(point: Point | undefined, hart: string | undefined): Promise<boolean> {
    if (!point?.intercept) return false;
    const { intercept, breakpoint } = point;
    const same = intercept.places.filter((place) => this.#points.get(place)?.intercept === intercept);
    await this.release(same);
    const became = await intercept.then(hart, breakpoint.address);
    return became === 'moved' || this.#points.get(breakpoint.address)?.intercept === undefined;
  }

  #at(address: Addr, pause?: () => void, known?: Map<Addr, () => void>): void {
    if (pause) known?.set(address, pause);
    const point = this.#points.get(address);
    if (!point) return;
    point.borrowed = false;
    point.pause = pause;
  }

  /** Like {@link arm}, but never deferred. */
  async armNow(addresses: readonly Addr[]): Promise<void> {
    const points: Point[] = [];
    for (const address of addresses) {
      const point = await this.of(address);
      giveBack(point);
      if (point.permanent) continue;
      point.permanent = true;
      points.push(point);
    }
    let refused = await this.#insert(points);
    if (this.#types.fallBack(refused)) refused = await this.#insert(refused);
    const hardware = points.filter(({ breakpoint }) => breakpoint.type === 1).length;
    if (hardware > 0)
      this.#logger.info({ hardware, software: points.length - hardware }, 'hardware breakpoints are used');
    if (refused.length === 0) return;
    const rest = points.length > refused.length && refused.every(({ breakpoint }) => breakpoint.type === 0);
    if (!rest || !this.#options.refused) throw this.#refusal(refused, 'a probe');
    for (const point of refused) point.permanent = false;
    this.#options.refused(
      refused.map(({ breakpoint }) => breakpoint.address),
      `${refusedByStub} on it`,
    );
  }

  /** Removes probes' breakpoints, all in one write. */
  async disarm(addresses: readonly Addr[]): Promise<void> {
    await this.late.drop(addresses);
    const unused: Point[] = [];
    for (const address of addresses) {
      const point = this.#points.get(address);
      if (!point?.permanent || point.pause) continue;
      if (point.intercept) {
        borrow(point);
        continue;
      }
      point.permanent = false;
      if (!point.awaited) unused.push(point);
    }
    await this.#remove(unused);
  }

  /** Open calls that return here do so unseen, until a later one is to return here, too. */
  async awaitNoMore(returnAddresses: readonly Addr[] = [...this.#points.keys()].map(addr)): Promise<void> {
    const batch = this.#session.batch();
    this.plant(batch, [], returnAddresses);
    await batch.send();
  }

  /** Whether the stop itself is what a place is for, and it is inserted. */
  isPause(address: Addr): boolean {
    const point = this.#points.get(address);
    return point?.permanent === true && point.pause !== undefined && !point.borrowed && !point.intercept;
  }

  /** Stops at other places from now on, which run the same instructions: by the places so far. */
  async movePauses(moves: ReadonlyMap<Addr, Addr>): Promise<void> {
    await this.armNow([...moves.values()]);
    for (const [from, to] of moves) {
      const point = this.#points.get(from);
      if (!point?.pause) continue;
      this.#at(to, point.pause);
      point.pause = undefined;
    }
    await this.disarm([...moves.keys()]);
  }

  /**
   * Writes much into the target, which stands, while the stub has no breakpoints: gdbserver goes over all at each
   * write, and finds the last one first. Those that are in use afterwards are inserted again.
   */
  async without<T>(work: () => Promise<T>): Promise<T> {
    const lifted = this.#session.breakpoints.flatMap(({ address }) => this.#points.get(address) ?? []).reverse();
    await this.#remove(lifted);
    try {
      return await work();
    } finally {
      const used = lifted.filter(({ permanent, awaited }) => permanent || awaited);
      if (this.#session.state.kind === 'idle') await this.#insert(used);
    }
  }

  /** Whether a place that is in use lies in these bytes. */
  areIn(piece: Bytes): boolean {
    // There may be tens of thousands of places and of pieces.
    for (let i = 0; i < piece.length; i++) if (this.isWatched(addOffset(piece.address, i))) return true;
    return false;
  }

  /** These bytes differ from the ELF's, so instructions in them are stepped, not emulated. */
  leaveToSteps(pieces: readonly Bytes[]): void {
    this.#isStepped = placesIn(pieces);
    for (const [at, point] of this.#points) if (this.#isStepped(at)) toStep(point);
  }

  /** The target has lost all breakpoints. Returns the places of its program: probes, deferred or not, and pauses. */
  forget(): { readonly probes: readonly Addr[]; readonly pauses: ReadonlyMap<Addr, () => void> } {
    const stayed = [...this.#points].filter(([, { permanent, pause }]) => permanent && pause === undefined);
    const pauses = new Map(this.#pauses);
    const all = [...stayed.map(([address]) => addr(address)), ...this.late.forget()];
    for (const known of [this.#points, this.#pauses]) known.clear();
    this.#isStepped = placesIn([]);
    return { probes: all.filter((address) => !pauses.has(address)), pauses };
  }

  /**
   * Puts packets into a batch: returns are awaited at the `watched` places from now on, and no longer at the
   * `unwatched` ones.
   */
  plant(batch: Batch, watched: readonly Point[], unwatched: readonly Addr[]): Planted[] {
    const inserts: Planted[] = [];
    if (watched.some(({ breakpoint }) => breakpoint.type === 1)) this.late.giveWay(batch);
    for (const point of watched) {
      if (!point.awaited && !point.permanent) inserts.push({ point, reply: batch.insertBreakpoint(point.breakpoint) });
      point.awaited = true;
    }
    for (const address of unwatched) {
      const point = this.#points.get(address);
      if (!point?.awaited) continue;
      point.awaited = false;
      if (point.permanent) continue;
      batch.removeBreakpoint(point.breakpoint);
      // A hart that comes back from a handler now is not stopped any more. A later call that returns here is another
      // call.
      point.rearrivals.clear();
    }
    return inserts;
  }

  /**
   * Takes a probe out whose call returns to where the stub takes no breakpoint: its return would never be seen.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED` if the target has too few
   */
  async check(inserts: readonly Planted[], probe: Addr): Promise<void> {
    const refused = inserts.filter(({ reply }) => !reply.value).map(({ point }) => point);
    const [first] = refused;
    if (!first) return;
    if (first.breakpoint.type !== 0 || !this.#options.refused) throw this.#refusal(refused, 'a return address');
    for (const point of refused) point.awaited = false;
    await this.disarm([probe]);
    this.#options.refused([probe], `${refusedByStub} where its call returns, ${hex(first.breakpoint.address)}`);
  }

  /** Whether the code at a point must be read at this stop. */
  wantsCode({ seen }: Point): boolean {
    return !seen || this.#options.codeChanges === true;
  }

  /**
   * True if the program has changed the code at a point, or if that is unknown. From then on its present code is
   * emulated.
   */
  changed(point: Point, address: Addr, code: Uint8Array | undefined): boolean {
    const { arch, codeChanges } = this.#options;
    point.seen = true;
    if (code !== undefined && point.code !== undefined && Buffer.compare(code, point.code) === 0) return false;
    if (!codeChanges) {
      // A step runs whatever is there. Some stubs show their own breakpoints, here or in the following bytes.
      const length = point.over?.length ?? 0;
      if (code === undefined || length === 0 || arch.isBreakpoint(code)) return false;
      if (Buffer.compare(code.subarray(0, length), point.code?.subarray(0, length) ?? code) === 0) return false;
      this.#logger.info({ address: hex(address) }, 'the program has changed its code here');
    }
    point.code = code;
    point.over = code && arch.emulate(code, address);
    return true;
  }

  /** The point at an address; created if there is none. */
  async of(address: Addr): Promise<Point> {
    let point = this.#points.get(address);
    if (!point) {
      const { arch } = this.#options;
      let code = this.#options.code(address, codeBytes);
      code ??= await this.#session.memory().read(address, 4);
      const bytes = code ?? new Uint8Array(4);
      const breakpoint = await this.#types.choose(address, arch.breakpointKind(bytes));
      point = newPoint(breakpoint, code, code && arch.emulate(code, address));
      if (this.#isStepped(address)) toStep(point);
      this.#points.set(address, point);
    }
    return point;
  }

  /** Inserts the breakpoints of points in one write; returns those that were refused. */
  async #insert(points: readonly Point[]): Promise<Point[]> {
    const batch = this.#session.batch();
    if (points.some(({ breakpoint }) => breakpoint.type === 1)) this.late.giveWay(batch);
    const inserted = points.map((point) => ({ point, reply: batch.insertBreakpoint(point.breakpoint) }));
    await batch.send();
    return inserted.filter(({ reply }) => !reply.value).map(({ point }) => point);
  }

  async #remove(points: readonly Point[]): Promise<void> {
    const batch = this.#session.batch();
    for (const { breakpoint } of points) batch.removeBreakpoint(breakpoint);
    await batch.send();
  }

  #refusal(points: readonly Point[], place: 'a probe' | 'a return address'): RsptraceError {
    const refused = points.map(({ breakpoint }) => breakpoint);
    return breakpointsRefused(refused, this.#session.breakpoints, place);
  }
}
