import type { Addr } from '../base/addr.js';
import { partOf, silent } from '../base/logger.js';
import type { Hit } from '../calls/index.js';
import type { ClockReader } from '../clock/index.js';
import type { Watchpoint } from '../probes/index.js';
import type { SignalStop, StopReply } from '../rsp/index.js';
import { Accesses } from './accesses.js';
import { Breakpoints } from './breakpoints.js';
import { FirstReads, type Look } from './first-reads.js';
import { HitChecks } from './hit-checks.js';
import { Hits } from './hits.js';
import { type OtherCounts, OtherHits } from './other-programs.js';
import { Passing } from './passing.js';
import type { Point } from './point.js';
import { ProcessEvents, visitSystemCall } from './process-events.js';
import { type Next, Resuming } from './resuming.js';
import { Stepper } from './stepping.js';
import {
  type EngineEnd,
  type LeftStop,
  type ResetWatch,
  type StopEngineOptions,
  type StopParts,
  UnexpectedStops,
} from './stop-engine-options.js';

/** A stop, which is visited again whenever handling it has moved the hart on or changed what is here. */
interface Visited {
  readonly stop: SignalStop;
  /** The callback for the first hit was called, or there is none. */
  asked: boolean;
  /** What the stop has accessed, or is about to. */
  watched: Watchpoint | undefined;
  /** Where it stopped. Its hit may remove the breakpoint, and move the hart on. */
  first: Point | undefined;
}

/**
 * The engine that stops the guest at each event. One stop costs 350-2000 us on QEMU whatever is read, so each event
 * has one stop only. The instruction under a permanent breakpoint is emulated by writing registers, if the
 * architecture knows how; else it is stepped, and the step is checked. The first write has registers, clock and the
 * memory that this stop will probably read; a second one has the reads that were guessed wrong. The last one has
 * changes and the resume.
 */
export class StopEngine {
  readonly #parts: StopParts;
  readonly points: Breakpoints;
  readonly #accesses: Accesses;
  readonly #passing: Passing;
  readonly #hits: Hits;
  /** Of further programs. */
  readonly #others: OtherHits | undefined;
  #arrived = false;

  constructor(options: StopEngineOptions) {
    const logger = partOf(options.logger ?? silent, 'stop');
    const points = new Breakpoints(options);
    const stepper = new Stepper(options.session, options.arch, options.watches);
    const checks = HitChecks.for(options);
    const onExec = async (): Promise<readonly Addr[]> => {
      this.#arrived = false;
      options.sampler?.forget();
      return (await options.onExec?.()) ?? [];
    };
    this.points = points;
    this.#parts = {
      ...{ options, points, stepper, checks },
      inserted: (pc) => [...points.insertedAt(pc), ...(this.#others?.insertedAt(pc) ?? [])],
      resuming: new Resuming(options, points, stepper),
      events: new ProcessEvents({ ...options, points, onExec, logger }),
      unexpected: new UnexpectedStops(logger),
      firstReads: new FirstReads(options, points, checks),
    };
    this.#accesses = new Accesses(this.#parts);
    this.#passing = new Passing(this.#parts, this.#accesses);
    this.#hits = new Hits(this.#parts, this.#passing);
    const { others = [], elf } = options;
    this.#others = others.length > 0 ? new OtherHits(this.#parts, this.#passing, others, elf) : undefined;
  }

  get clock(): ClockReader | undefined {
    return this.#parts.firstReads.clock;
  }

  /** Chooses the clock now, at the latest at the first hit. */
  async findClock(): Promise<void> {
    await this.#parts.firstReads.findClock();
  }

  get stops(): number {
    return this.#parts.resuming.times.runs + this.#parts.stepper.steps;
  }

  /** Foreign hits, by place: it came up in another address space, or in another program in the same one. */
  get foreignHits(): ReadonlyMap<bigint, number> {
    return this.#passing.foreignHits;
  }

  /** A probe's place was reached, whether or not an event came of it. */
  get wasHit(): boolean {
    return this.#hits.wasSeen;
  }

  /** Where a hart stands that has not run what its last hit was at. */
  get leftAt(): LeftStop | undefined {
    return this.#hits.leftAt;
  }

  get others(): OtherCounts | undefined {
    return this.#others?.counts;
  }

  /** Inserts the breakpoints of further programs. */
  async armOthers(): Promise<void> {
    await this.#others?.arm();
  }

  /**
   * How long the guest has run under this engine, in nanoseconds of the host, at a moment of this run or of one before.
   */
  runningTime(hostMs = performance.now()): number {
    return this.#parts.resuming.times.upTo(hostMs);
  }

  /** Deferred probes: they are inserted when their code is loaded. */
  get waiting(): readonly Addr[] {
    return this.points.late.addresses;
  }

  /**
   * At a stop: runs the instructions of one hart one by one, `each` before each of them. That ends at a breakpoint, or
   * where the recording is to end.
   * @returns whether the target has ended meanwhile
   */
  async walk(hart: string | undefined, most: number, each: () => Promise<void>): Promise<boolean> {
    const { options, stepper, resuming } = this.#parts;
    await stepper.walk(hart, most, async (pc) => {
      const isInserted = options.session.breakpoints.some(({ address }) => address === pc);
      if (resuming.askedToStop || pc === undefined || isInserted) return false;
      await each();
      return true;
    });
    return stepper.ended !== undefined;
  }

  /** Makes `run` return at the next stop. Interrupts a running guest. */
  stop(): Promise<void> {
    return this.#parts.resuming.stop();
  }

  /** The recording ends: removes everything that would still stop the target after rsptrace has left. */
  async settle(): Promise<void> {
    await this.points.late.quiet();
    await this.#parts.options.watches?.disarm();
    await this.#parts.stepper.settle();
  }

  /**
   * Lets the guest run, hit by hit, until it ends or `stop` is called. A broken wire throws its own error.
   * @throws RsptraceError `TARGET_STUCK` if the target keeps stopping where no breakpoint is
   */
  async run(): Promise<EngineEnd> {
    const { options, resuming } = this.#parts;
    if (resuming.askedToStop) return { kind: 'asked' };
    await this.points.late.prepare();
    let stop: StopReply | undefined = await resuming.resume(options.session.batch());
    while (stop) {
      if (stop.kind !== 'signal') return { kind: 'guest-ended', stop };
      stop = await this.#visit(stop);
    }
    return { kind: 'asked' };
  }

  /** Handles one stop, resumes, and returns the next stop; undefined if the engine was asked to stop. */
  async #visit(stop: SignalStop): Promise<StopReply | undefined> {
    const { options, events, resuming } = this.#parts;
    const { session, watches, observer } = options;
    const { hart } = stop;
    const watched = watches?.all.length ? watches.reported(stop) : undefined;
    const visited: Visited = { stop, asked: options.onFirstHit === undefined, watched, first: undefined };
    for (;;) {
      if (resuming.askedToStop) return undefined;
      if (options.systemCalls !== undefined) await visitSystemCall(this.#parts, stop);
      const event = await events.handle(stop);
      if (event) return resuming.resume(session.batch(hart), event);
      const onward = session.batch(hart);
      if (await observer?.handles(stop, onward)) return resuming.resume(onward);
      const next = await (visited.watched ? this.#access(visited, visited.watched) : this.#look(visited));
      if (next !== 'again') return next;
    }
  }

  async #access(visited: Visited, watched: Watchpoint): Promise<Next> {
    const { options, firstReads } = this.#parts;
    const clock = await firstReads.findClock();
    await options.observer?.stopped(true);
    visited.watched = undefined;
    return this.#accesses.at(watched, visited.stop.hart, clock);
  }

  /** What is here, and when. */
  async #look(visited: Visited): Promise<Next> {
    const { options, firstReads } = this.#parts;
    const { resets } = options;
    const { hart, reason } = visited.stop;
    const look = await firstReads.at(hart);
    const { pc, time } = look;
    const reset = pc === undefined ? undefined : await resets?.at(pc, hart);
    if (resets && reset === 'reset') return this.#reset(resets, time?.());
    if (reset !== 'passed') await firstReads.findClock();
    if (reset === 'passed' || !time) return 'again';
    const point = pc === undefined ? undefined : this.points.at(pc);
    if (visited.first === undefined && point !== undefined) options.onStop?.(time());
    visited.first ??= point;
    await this.#sample(time(), inUse(point));
    visited.watched = reason === undefined ? await this.#accesses.next(look, hart) : undefined;
    return visited.watched ? 'again' : this.#at(visited, { ...look, time }, point);
  }

  async #at(visited: Visited, look: Look & { readonly time: () => number }, point: Point | undefined): Promise<Next> {
    const { options, stepper, resuming, unexpected } = this.#parts;
    const { hart } = visited.stop;
    const { registers, time, guessed, pc } = look;
    this.#catchUp();
    const other = await this.#inOther(look, point, hart);
    if (other !== 'own') return other;
    // Only for a plain hit the code may be read later, together with all its other reads.
    const isPlain = point && !point.intercept && !point.pause && (this.#arrived || visited.asked);
    const found = pc === undefined || !inUse(point) ? undefined : this.#hits.found(pc, registers, guessed);
    const hit = this.#hitAt(look, hart);
    const next = found && hit && point && !isPlain ? await this.#hits.whose(found, point, hit, guessed, hart) : 'own';
    if (next !== 'own') return next;
    if (await this.points.intercepted(point, hart)) return stepper.ended ?? 'again';
    const emits = point !== undefined && point.pause === undefined && (point.permanent || point.awaited);
    await options.observer?.stopped(emits, emits ? pc : undefined);
    if (point?.permanent && !point.intercept && !this.#arrived && !visited.asked) {
      visited.asked = true;
      this.#arrived = await this.#firstHit();
      // The callback may have read other harts, written registers, or disarmed this very place.
      return 'again';
    }
    if (pc === undefined || !hit || !point || !(point.permanent || point.awaited))
      return this.#elsewhere(visited, look);
    unexpected.expected();
    if (this.#measuresLeak(point, pc, hart, time)) return resuming.resume(options.session.batch(hart));
    resuming.hit(time());
    return this.#hits.handle(point, hit, hart, guessed, found);
  }

  /** A stop at a place of a further program. `own`: it is none, or is the program's own. */
  async #inOther(
    look: Look & { readonly time: () => number },
    point: Point | undefined,
    hart: string | undefined,
  ): Promise<Next | 'own'> {
    const { options, resuming, unexpected } = this.#parts;
    const { pc, time } = look;
    const [breakpoint] = pc === undefined ? [] : (this.#others?.insertedAt(pc) ?? []);
    const hit = this.#hitAt(look, hart);
    if (!this.#others || !breakpoint || !hit || pc === undefined) return 'own';
    const found = await this.#others.find(look, hart, inUse(point));
    if (found === 'own') return 'own';
    if (found === 'foreign') return this.#passing.foreign(hit, { breakpoint }, look.guessed, hart);
    if (found === 'untold') return this.#passing.past(hit, { breakpoint }, look.guessed, hart);
    await options.observer?.stopped(true);
    if (point === undefined) options.onStop?.(time());
    unexpected.expected();
    if (this.#measuresLeak(found.point, pc, hart, time)) return resuming.resume(options.session.batch(hart));
    resuming.hit(time());
    return this.#others.handle(found, hit, look, hart);
  }

  /** What a hit here would be; undefined where registers could not be read. */
  #hitAt(
    { pc, stackPointer, registers, time }: Look & { readonly time: () => number },
    hart: string | undefined,
  ): Hit | undefined {
    const { options, checks } = this.#parts;
    if (pc === undefined || stackPointer === undefined) return undefined;
    const space = checks?.space(checks.standing(registers));
    return { hart: options.hartNumber(hart), pc, stackPointer, space, registers, time: time() };
  }

  async #sample(time: number, atProbe: boolean): Promise<void> {
    const { sampler } = this.#parts.options;
    if (!sampler?.isDue) return;
    await sampler.take(time, atProbe);
    this.#parts.unexpected.expected();
  }

  /** Before the time of a hit is known: what begins there must not be measured by another clock than what follows. */
  #catchUp(): void {
    const { leak, tracer } = this.#parts.options;
    if (tracer.awaitsReturns === false && !this.#others?.awaitsReturns) leak?.()?.nothingIsOpen();
  }

  /** The hit is not handled: the same stop is wanted again, with nothing to do. */
  #measuresLeak(point: Point, pc: bigint, hart: string | undefined, time: () => number): boolean {
    const leak = this.#parts.options.leak?.();
    if (!leak) return false;
    leak.arrived(pc, hart, time());
    return point.permanent && leak.wantsAgain(pc, hart);
  }

  /** Does what must wait until the program runs; true when that is done. */
  #firstHit(): Promise<boolean> {
    const { onFirstHit } = this.#parts.options;
    return this.points.late.undisturbed(
      async () => (await onFirstHit?.(this.#parts.checks?.inUserMode ?? false)) ?? true,
    );
  }

  /** Goes on from a stop that is no hit, or was one before its hit led to its own disarming. */
  async #elsewhere({ stop, first: point }: Visited, { pc, stackPointer }: Look): Promise<Next> {
    const { options, stepper, events, unexpected, resuming } = this.#parts;
    const { hart } = stop;
    const guard = pc === undefined ? undefined : this.points.late.guardAt(pc);
    if (guard && stackPointer !== undefined) return this.#passing.guard(guard, stackPointer, hart);
    const isTrap = point?.code && options.arch.linux?.isTrap(point.code);
    const own = point && !isTrap ? undefined : await events.trap(stop);
    if (own) return resuming.resume(options.session.batch(hart), own);
    if (!point) {
      stepper.stopped(hart);
      if (!this.points.late.hasInterrupted && !options.sampler?.hasInterrupted) unexpected.seen(stop, pc);
    }
    return resuming.resume(options.session.batch(hart));
  }

  /** The machine boots once more. */
  async #reset(resets: ResetWatch, time: number | undefined): Promise<StopReply | undefined> {
    const { session } = this.#parts.options;
    this.#arrived = false;
    await resets.again(time);
    return session.state.kind === 'idle' ? this.#parts.resuming.resume(session.batch()) : { kind: 'gone' };
  }
}

function inUse(point: Point | undefined): boolean {
  return (
    point !== undefined &&
    (point.permanent || point.awaited || point.pause !== undefined || point.intercept !== undefined)
  );
}
