import type { Architecture, ResumeOver } from '../arch/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import type { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { Batch, Breakpoint, Reply, Session } from '../rsp/index.js';
import { BreakpointTypes, breakpointsRefused } from './breakpoint-types.js';
import { MemoryWrites } from './memory-writes.js';

/** A place where the guest stops. */
export interface Point {
  breakpoint: Breakpoint;
  over: ResumeOver | undefined;
  /** What `over` was made from. */
  code: Uint8Array | undefined;
  /** The target has been asked what stands there. */
  seen: boolean;
  /** True for a probe's own address: it stays inserted. */
  permanent: boolean;
  /** True while some open call returns here. */
  awaited: boolean;
  /** True where no probe is: the stop itself is what was wanted. */
  pause: (() => void) | undefined;
  /** By hart, its stack pointer: a step over this place ran into an interrupt or signal handler, and the same hit will be reported once more. */
  readonly rearrivals: Map<number, bigint>;
}

/** A breakpoint whose insertion is on its way. */
export interface Planted {
  readonly point: Point;
  readonly reply: Reply<boolean>;
}

export interface StopPointsOptions {
  readonly session: Session;
  readonly arch: Architecture;
  /** The program's code at an address, where the ELF tells; else the target's memory is read. */
  readonly code: (address: Addr, length: number) => Uint8Array | undefined;
  /** The code changes as the program runs (see `changesItsCode`): it is read at each stop, else at the first one of each place. */
  readonly codeChanges?: boolean;
  /** Hardware breakpoints everywhere, not only where software ones cannot be. */
  readonly hardware?: boolean;
  readonly logger?: Logger;
}

/** Longest instruction of the two architectures. */
export const codeBytes = 16;

/** Every place that has a breakpoint or had one: probes, which stay, and return addresses while a call is open that returns there. */
export class StopPoints {
  readonly #options: StopPointsOptions;
  readonly #session: Session;
  readonly #types: BreakpointTypes;
  readonly #logger: Logger;
  readonly #points = new Map<bigint, Point>();
  readonly writes: MemoryWrites;

  constructor(options: StopPointsOptions) {
    this.#options = options;
    this.#session = options.session;
    this.writes = new MemoryWrites(options.session);
    this.#logger = options.logger ?? silent;
    this.#types = new BreakpointTypes(options.session, options.hardware === true);
  }

  at(pc: bigint): Point | undefined {
    return this.#points.get(pc);
  }

  /** True where a stop means something. */
  isWatched(pc: bigint): boolean {
    const point = this.#points.get(pc);
    return point !== undefined && (point.permanent || point.awaited);
  }

  /**
   * Plants breakpoints that stay at these addresses, all in one write.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  async arm(addresses: readonly Addr[]): Promise<void> {
    const points: Point[] = [];
    for (const address of addresses) {
      const point = await this.of(address);
      if (point.permanent) continue;
      point.permanent = true;
      points.push(point);
    }
    let refused = await this.#insert(points);
    if (this.#types.fallBack(refused)) refused = await this.#insert(refused);
    const hardware = points.filter(({ breakpoint }) => breakpoint.type === 1).length;
    if (hardware > 0)
      this.#logger.info({ hardware, software: points.length - hardware }, 'hardware breakpoints are used');
    if (refused.length > 0) throw this.#refusal(refused, 'a probe');
  }

  /** Takes breakpoints out again, all in one write. */
  async disarm(addresses: readonly Addr[]): Promise<void> {
    const batch = this.#session.batch();
    for (const address of addresses) {
      const point = this.#points.get(address);
      if (!point?.permanent) continue;
      point.permanent = false;
      if (!point.awaited) batch.removeBreakpoint(point.breakpoint);
    }
    await batch.send();
  }

  /** All are gone from the target; the addresses of those that were to stay. */
  forget(): Addr[] {
    const stayed = [...this.#points].filter(([, { permanent }]) => permanent).map(([address]) => addr(address));
    this.#points.clear();
    return stayed;
  }

  /** Puts into a batch what makes these places, and no longer those, ones where a return is awaited. */
  plant(batch: Batch, watched: readonly Point[], unwatched: readonly Addr[]): Planted[] {
    const inserts: Planted[] = [];
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
      // Who comes back from a handler now is not stopped any more, and a later call that returns here is another one.
      point.rearrivals.clear();
    }
    return inserts;
  }

  /** @throws RsptraceError `RSP_BREAKPOINT_REFUSED` when any of them was */
  check(inserts: readonly Planted[]): void {
    const refused = inserts.filter(({ reply }) => !reply.value).map(({ point }) => point);
    if (refused.length > 0) throw this.#refusal(refused, 'a return address');
  }

  /** Whether the code at a point must be read at this stop. */
  wantsCode({ seen }: Point): boolean {
    return !seen || this.#options.codeChanges === true;
  }

  /** True when the program has changed the code at a point, or that cannot be told; it is carried out as it is now from then on. */
  changed(point: Point, address: Addr, code: Uint8Array | undefined): boolean {
    const { arch, codeChanges } = this.#options;
    point.seen = true;
    if (code !== undefined && point.code !== undefined && Buffer.compare(code, point.code) === 0) return false;
    if (!codeChanges) {
      // A step carries out whatever is there. Some stubs show their own breakpoints, here or behind.
      const length = point.over?.length ?? 0;
      if (code === undefined || length === 0 || arch.isBreakpoint(code)) return false;
      if (Buffer.compare(code.subarray(0, length), point.code?.subarray(0, length) ?? code) === 0) return false;
      this.#logger.info({ address: hex(address) }, 'the program has changed its code here');
    }
    point.code = code;
    point.over = code && arch.resumeOver(code, address);
    return true;
  }

  /** The point at an address, made where there is none. */
  async of(address: Addr): Promise<Point> {
    let point = this.#points.get(address);
    if (!point) {
      const { arch } = this.#options;
      let code = this.#options.code(address, codeBytes);
      code ??= await this.#session.memory().read(address, 4);
      const bytes = code ?? new Uint8Array(4);
      point = {
        breakpoint: await this.#types.choose(address, arch.breakpointKind(bytes)),
        over: code && arch.resumeOver(code, address),
        code,
        seen: false,
        permanent: false,
        awaited: false,
        pause: undefined,
        rearrivals: new Map(),
      };
      this.#points.set(address, point);
    }
    return point;
  }

  /** Inserts the breakpoints of points, in one write; those that are refused. */
  async #insert(points: readonly Point[]): Promise<Point[]> {
    const batch = this.#session.batch();
    const inserted = points.map((point) => ({ point, reply: batch.insertBreakpoint(point.breakpoint) }));
    await batch.send();
    return inserted.filter(({ reply }) => !reply.value).map(({ point }) => point);
  }

  #refusal(points: readonly Point[], place: 'a probe' | 'a return address'): RsptraceError {
    const refused = points.map(({ breakpoint }) => breakpoint);
    return breakpointsRefused(refused, this.#session.breakpoints, place);
  }
}
