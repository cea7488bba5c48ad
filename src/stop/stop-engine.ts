import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { partOf, silent } from '../base/logger.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { Hit, MemoryRequest, Reaction, Visit } from '../calls/index.js';
import type { ClockReader } from '../clock/index.js';
import { accessOf, type Watchpoint } from '../probes/index.js';
import type { Batch, Reply, Resume, Session, SignalStop, StopReply } from '../rsp/index.js';
import { Breakpoints, codeBytes, type Planted, type Point } from './breakpoints.js';
import { FirstReads, type Look } from './first-reads.js';
import { type Found, HitChecks } from './hit-checks.js';
import { ProcessEvents } from './process-events.js';
import type { GuessedReads } from './read-guesses.js';
import { RunningTimes } from './running-times.js';
import { type Stepped, Stepper } from './stepping.js';
import type { EngineEnd, ResetWatch, StopEngineOptions } from './stop-engine-options.js';
import { UnexpectedStops } from './unexpected-stops.js';

/** What a hit leads to, in the write that goes on from it. */
interface Passing {
  readonly batch: Batch;
  readonly inserts: readonly Planted[];
  /** The hit was handled before. */
  readonly repeated: boolean;
  /** What the instruction reads, and what was read there. */
  readonly load: MemoryRequest | undefined;
  readonly loaded: Uint8Array | undefined;
  /** The code is another than when the breakpoint was inserted. */
  readonly changed: boolean;
}

/**
 * The engine that stops the guest at each event. One stop costs 350-2000 us on QEMU whatever is read, so each event
 * has one stop only. The instruction under a permanent breakpoint is emulated by writing registers, if the
 * architecture knows how; else it is stepped, and the step is checked. The first write has registers, clock and the
 * memory that this stop will probably read; a second one has the reads that were guessed wrong. The last one has
 * changes and the resume.
 */
export class StopEngine {
  readonly #options: StopEngineOptions;
  readonly #session: Session;
  readonly #arch: Architecture;
  /** Where it stops. */
  readonly points: Breakpoints;
  readonly #stepper: Stepper;
  readonly #events: ProcessEvents;
  readonly #strangers: UnexpectedStops;
  readonly #looks: FirstReads;
  /** Undefined for a process, which has one address space. */
  readonly #checks: HitChecks | undefined;
  #arrived = false;
  #askedToStop = false;
  readonly #times = new RunningTimes();
  /** At the last hit: the clock, and how many steps there had been. */
  #last = { time: 0, steps: 0 };

  constructor(options: StopEngineOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#arch = options.arch;
    const logger = partOf(options.logger ?? silent, 'stop');
    this.#strangers = new UnexpectedStops(logger);
    this.points = new Breakpoints(options);
    this.#stepper = new Stepper(options.session, options.arch, options.watches);
    this.#checks = HitChecks.for(options);
    this.#looks = new FirstReads(options, this.points, this.#checks);
    const onExec = async (): Promise<readonly Addr[]> => {
      this.#arrived = false;
      options.sampler?.forget();
      return (await options.onExec?.()) ?? [];
    };
    this.#events = new ProcessEvents({ ...options, points: this.points, onExec, logger });
  }

  get clock(): ClockReader | undefined {
    return this.#looks.clock;
  }

  /** Chooses the clock now, at the latest at the first hit. */
  async findClock(): Promise<void> {
    await this.#looks.findClock();
  }

  /** Stops so far. */
  get stops(): number {
    return this.#times.runs + this.#stepper.steps;
  }

  /** Foreign hits: a probe's address came up in another address space, or in another program in the same one. */
  get foreignHits(): number {
    return this.#checks?.foreign ?? 0;
  }

  /** How long the guest has run under this engine, in nanoseconds of the host. */
  runningTime(): number {
    return this.#times.upTo(performance.now());
  }

  /**
   * {@link runningTime} at a moment of this run of the guest or of one before. `hostMs`: milliseconds as
   * `performance.now` counts.
   */
  runningTimeAt(hostMs: number): number {
    return this.#times.upTo(hostMs);
  }

  /** Deferred probes: they are inserted when their code is loaded. */
  get waiting(): readonly Addr[] {
    return this.points.late.addresses;
  }

  /**
   * Inserts breakpoints at these addresses, all in one write.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  arm(addresses: readonly Addr[]): Promise<void> {
    return this.points.arm(addresses);
  }

  /** A breakpoint without a probe. {@link StopObserver.stopped} is called before `then`. */
  pause(address: Addr, then: () => void = () => {}): Promise<void> {
    return this.points.pause(address, then);
  }

  /** The same in the program's own code; deferred until the code is loaded. */
  pauseInProgram(addresses: readonly Addr[], then: () => void): Promise<void> {
    return this.points.arm(addresses, then);
  }

  /** Removes breakpoints, all in one write. */
  disarm(addresses: readonly Addr[]): Promise<void> {
    return this.points.disarm(addresses);
  }

  /**
   * At a stop: runs the instructions of one hart one by one, `each` before each of them. That ends at a breakpoint, or
   * where the recording is to end.
   * @returns whether the target has ended meanwhile
   */
  async walk(hart: string | undefined, most: number, each: () => Promise<void>): Promise<boolean> {
    await this.#stepper.walk(hart, most, async (pc) => {
      const isInserted = this.#session.breakpoints.some(({ address }) => address === pc);
      if (this.#askedToStop || pc === undefined || isInserted) return false;
      await each();
      return true;
    });
    return this.#stepper.ended !== undefined;
  }

  /** Makes `run` return at the next stop. Interrupts a running guest. */
  async stop(): Promise<void> {
    if (this.#askedToStop) return;
    this.#askedToStop = true;
    if (this.#session.state.kind === 'running') await this.#session.interrupt();
  }

  /** The recording ends: removes everything that would still stop the target after rsptrace has left. */
  async settle(): Promise<void> {
    await this.points.late.quiet();
    await this.#options.watches?.disarm();
    await this.#stepper.settle();
  }

  /**
   * Lets the guest run, hit by hit, until it ends or `stop` is called. A broken wire throws its own error.
   * @throws RsptraceError `TARGET_STUCK` if the target keeps stopping where no breakpoint is
   */
  async run(): Promise<EngineEnd> {
    if (this.#askedToStop) return { kind: 'asked' };
    await this.points.late.prepare();
    let stop: StopReply | undefined = await this.#resume(this.#session.batch());
    while (stop) {
      if (stop.kind === 'signal') stop = await this.#visit(stop);
      else if (stop.kind === 'exited' || stop.kind === 'terminated' || stop.kind === 'gone') {
        return { kind: 'guest-ended', stop };
      } else stop = await this.#resume(this.#session.batch());
    }
    return { kind: 'asked' };
  }

  /** Handles one stop, resumes, and returns the next stop; undefined if the engine was asked to stop. */
  async #visit(stop: SignalStop): Promise<StopReply | undefined> {
    const hart = stop.hart;
    let asked = this.#options.onFirstHit === undefined;
    const watches = this.#options.watches?.all.length ? this.#options.watches : undefined;
    let watched = watches?.reported(stop);
    /** Where it stopped. Its hit may remove the breakpoint, and move the hart on. */
    let first: Point | undefined;
    for (;;) {
      if (this.#askedToStop) return undefined;
      const event = await this.#events.handle(stop);
      if (event) return this.#resume(this.#session.batch(hart), event);
      const onward = this.#session.batch(hart);
      if (await this.#options.beside?.handles(stop, onward)) return this.#resume(onward);
      if (watched !== undefined) {
        const clock = await this.#looks.findClock();
        await this.#options.beside?.stopped(true);
        const next = await this.#access(watched, hart, clock);
        watched = undefined;
        if (next !== 'again') return next;
        continue;
      }
      const look = await this.#looks.at(hart);
      const { registers, time, guessed, pc, stackPointer } = look;
      const { resets } = this.#options;
      const reset = pc === undefined ? undefined : await resets?.at(pc, hart);
      if (resets && reset === 'reset') return this.#reset(resets, time?.());
      if (reset !== 'passed') await this.#looks.findClock();
      if (reset === 'passed' || !time) continue;
      const point = pc === undefined ? undefined : this.points.at(pc);
      first ??= point;
      await this.#sample(time(), inUse(point));
      watched = stop.reason === undefined ? await this.#nextAccess(look, hart) : undefined;
      if (watched) continue;
      // Only for a plain hit the code may be read later, together with all its other reads.
      const isPlain = point && !point.intercept && !point.pause && (this.#arrived || asked);
      const found = pc === undefined || !inUse(point) ? undefined : this.#found(pc, registers, guessed);
      const next = found && point && !isPlain ? await this.#whose(found, point, registers, hart) : 'own';
      if (next === 'again') continue;
      if (next !== 'own') return next;
      if (await this.points.intercepted(point, hart)) {
        if (this.#stepper.ended) return this.#stepper.ended;
        continue;
      }
      const tells = point !== undefined && point.pause === undefined && (point.permanent || point.awaited);
      await this.#options.beside?.stopped(tells, tells && pc !== undefined ? addr(pc) : undefined);
      if (point?.permanent && !point.intercept && !this.#arrived && !asked) {
        asked = true;
        this.#arrived = await this.#firstHit();
        // The callback may have read other harts, written registers, or disarmed this very place.
        continue;
      }
      if (pc === undefined || stackPointer === undefined || !point || !(point.permanent || point.awaited)) {
        return this.#elsewhere(stop, look, first);
      }
      this.#strangers.expected();
      if (this.#measuresLeak(point, pc, hart, time)) return this.#resume(this.#session.batch(hart));
      this.#last = { time: time(), steps: this.#stepper.steps };
      const space = found && this.#checks?.space(found.standing);
      const hit: Hit = { hart: this.#options.hartNumber(hart), pc, stackPointer, space, registers, time: time() };
      const after = await this.#handle(point, hit, hart, guessed, found);
      if (after !== 'again') return after;
    }
  }

  /** What the instruction at a stop without a reason will access: some stubs stop before it, and do not say why. */
  async #nextAccess({ pc, registers }: Look, hart: string | undefined): Promise<Watchpoint | undefined> {
    const { watches } = this.#options;
    if (pc === undefined || !watches?.all.length || this.points.isWatched(pc)) return undefined;
    return watches.next(await this.#codeAt(pc, hart), registers);
  }

  /** A hit whose code is read now: `own` if it is the program's, else how to go on. */
  async #whose(
    found: Found,
    point: Point,
    registers: RegisterReader,
    hart: string | undefined,
  ): Promise<StopReply | undefined | 'own' | 'again'> {
    found.code ??= await this.#checks?.read(found.pc, hart);
    const whose = await this.#checks?.whose(found, hart);
    return whose === 'foreign' ? this.#passForeign(found, point, registers, hart) : (whose ?? 'own');
  }

  async #sample(time: number, atProbe: boolean): Promise<void> {
    const { sampler } = this.#options;
    if (!sampler?.isDue) return;
    await sampler.take(time, atProbe);
    this.#strangers.expected();
  }

  /** The hit is not handled: the same stop is wanted again, with nothing to do. */
  #measuresLeak(point: Point, pc: bigint, hart: string | undefined, time: () => number): boolean {
    const leak = this.#options.leak?.();
    if (!leak) return false;
    if (this.#options.tracer.awaitsReturns === false) leak.nothingIsOpen();
    leak.arrived(pc, hart, time());
    return point.permanent && leak.wantsAgain(pc, hart);
  }

  /** Does what must wait until the program runs; true when that is done. */
  #firstHit(): Promise<boolean> {
    const { onFirstHit } = this.#options;
    return this.points.late.undisturbed(async () => (await onFirstHit?.(this.#checks?.inUserMode ?? false)) ?? true);
  }

  /** Goes on from a stop that is no hit, or was one; `point`: where it was, which may have led to its own disarming. */
  async #elsewhere(
    stop: SignalStop,
    { pc, stackPointer }: Look,
    point: Point | undefined,
  ): Promise<StopReply | undefined> {
    const { hart } = stop;
    const guard = pc === undefined ? undefined : this.points.late.guardAt(pc);
    if (guard && stackPointer !== undefined) {
      // Other code runs where the probe's code will be loaded.
      const stepped = await this.#stepper.over({ pc: guard.address, stackPointer }, hart, [guard]);
      return stepped.stop.kind === 'signal' ? this.#resume(this.#session.batch(hart)) : stepped.stop;
    }
    const isTrap = point?.code && this.#arch.linux?.isTrap(point.code);
    const own = point && !isTrap ? undefined : await this.#events.trap(stop);
    if (own) return this.#resume(this.#session.batch(hart), own);
    if (!point) {
      this.#stepper.stopped(hart);
      if (!this.points.late.hasInterrupted && !this.#options.sampler?.hasInterrupted) this.#strangers.seen(stop, pc);
    }
    return this.#resume(this.#session.batch(hart));
  }

  /** The machine boots once more. */
  async #reset(resets: ResetWatch, time: number | undefined): Promise<StopReply | undefined> {
    this.#arrived = false;
    await resets.again(time);
    if (this.#session.state.kind !== 'idle') return { kind: 'gone' };
    return this.#askedToStop ? undefined : this.#resume(this.#session.batch());
  }

  /** The code at a hit's pc, as far as it was guessed; undefined for a process. */
  #found(pc: Addr, registers: RegisterReader, guessed: GuessedReads): Found | undefined {
    if (!this.#checks) return undefined;
    const code = guessed.find({ address: pc, length: codeBytes })?.value;
    return { pc, code, standing: this.#checks.standing(registers) };
  }

  /** Foreign code reached a probe's address: its own instruction is run, and no event is emitted. */
  async #passForeign(
    { pc, code }: Found,
    { breakpoint }: Point,
    registers: RegisterReader,
    hart: string | undefined,
  ): Promise<StopReply | undefined | 'again'> {
    this.#strangers.expected();
    this.#looks.learn(pc, [{ address: pc, length: codeBytes }]);
    const stackPointer = registers.register(this.#arch.sp) ?? 0n;
    const watched = this.#options.watches?.next(code, registers);
    const stepped = await this.#stepper.over({ pc, stackPointer }, hart, [breakpoint], watched);
    if (stepped.stop.kind !== 'signal') return stepped.stop;
    return this.#from(stepped.pc, hart);
  }

  /** Reads what a tracer asks for until it says what follows. */
  async #finish(
    visit: Visit,
    first: readonly (Uint8Array | undefined)[],
    hart: string | undefined,
    guessed: GuessedReads,
  ): Promise<{ readonly more: readonly MemoryRequest[]; readonly reaction: Reaction }> {
    const more: MemoryRequest[] = [];
    let step = visit.next(first);
    while (!step.done) {
      const { value: wanted } = step;
      const batch = this.#session.batch(hart);
      const isKnown = wanted.every((request) => guessed.find(request));
      const replies = wanted.map((one) => guessed.find(one) ?? batch.readMemory(one.address, one.length));
      if (!isKnown) await batch.send();
      more.push(...wanted);
      step = visit.next(replies.map((reply) => reply.value));
    }
    return { more, reaction: step.value };
  }

  async #handle(
    point: Point,
    hit: Hit,
    hart: string | undefined,
    guessed: GuessedReads,
    found: Found | undefined,
  ): Promise<StopReply | undefined | 'again'> {
    const { tracer } = this.#options;
    point.pause?.();
    const repeated = point.pause !== undefined || point.rearrivals.get(onward(hit)) === this.#standing(hit);
    point.rearrivals.delete(onward(hit));
    const second = this.#session.batch(hart);
    const visit = repeated ? undefined : tracer.visit(hit);
    const asked = visit?.next();
    const requests = asked && !asked.done ? asked.value : [];
    const load = point.over?.load?.(hit.registers);
    const loads = load && load.length > 0;
    const missing = { count: 0 };
    const read = (request: MemoryRequest): Reply<Uint8Array | undefined> => {
      const known = guessed.find(request);
      if (known) return known;
      missing.count++;
      return second.readMemory(request.address, request.length);
    };
    const replies = requests.map(read);
    const loaded = loads ? read(load) : undefined;
    const here = { address: hit.pc, length: codeBytes };
    const wantsCode = found !== undefined || this.points.wantsCode(point);
    const code = wantsCode ? read(here) : undefined;
    if (missing.count > 0) await second.send();
    if (found) {
      found.code = code?.value ?? (await this.#checks?.read(hit.pc, hart));
      const whose = await this.#checks?.whose(found, hart);
      if (whose === 'foreign') return this.#passForeign(found, point, hit.registers, hart);
      if (whose === 'again') return whose;
    }
    const answers = replies.map((reply) => reply.value);
    const { more, reaction } = visit
      ? await this.#finish(visit, answers, hart, guessed)
      : { more: [], reaction: { watch: [], unwatch: [] } };
    const changed = code !== undefined && this.points.changed(point, hit.pc, code.value);
    const again = [...(loads ? [load] : []), ...(wantsCode ? [here] : [])];
    this.#looks.learn(hit.pc, [...requests, ...more, ...again]);
    if (!repeated) await tracer.standing?.(hit, this.#session.memory(hart));
    const points: Point[] = [];
    for (const address of reaction.watch) points.push(this.points.at(address) ?? (await this.points.of(address)));
    const third = this.#session.batch(hart);
    const inserts = this.points.plant(third, points, reaction.unwatch);
    if (this.#askedToStop) {
      await third.send();
      if (!repeated) tracer.digest();
      return undefined;
    }
    if (!(point.permanent || point.awaited)) return this.#goOn(hit.pc, third, inserts, repeated);
    return this.#pass(point, hit, hart, { batch: third, inserts, repeated, load, loaded: loaded?.value, changed });
  }

  /** Runs the instruction under a breakpoint that stays: emulates it by writes, or steps it. */
  async #pass(
    point: Point,
    hit: Hit,
    hart: string | undefined,
    { batch, inserts, repeated, load, loaded, changed }: Passing,
  ): Promise<StopReply | undefined | 'again'> {
    const { tracer, watches } = this.#options;
    let pc: Addr | undefined = hit.pc;
    const { linux } = this.#arch;
    if (linux && point.code && !this.#checks && linux.isTrap(point.code)) {
      const behind = batch.writeRegister(this.#arch.pc, addOffset(pc, linux.behindTrap));
      return this.#goOn(hit.pc, batch, inserts, repeated, [behind], this.#events.trapOf(hart));
    }
    // The memory that the new instruction reads was not read.
    const effects = changed ? undefined : point.over?.effects(hit.registers, loaded);
    const touched = [...(load && load.length > 0 ? [load] : []), ...(effects?.memory ?? [])];
    const isAccess = touched.some((each) =>
      watches?.covers(each.address, 'bytes' in each ? each.bytes.length : each.length),
    );
    const isKnown = !isAccess && !(load && loaded === undefined);
    if (effects && isKnown && (await this.points.writes.areKept(effects.memory, hart))) {
      const newPc = effects.registers.find(({ name }) => name === this.#arch.pc)?.value;
      for (const { address, bytes } of effects.memory) batch.writeMemory(address, bytes);
      const writes = effects.registers.map(({ name, value }) => batch.writeRegister(name, value));
      if (newPc === undefined || !this.points.isWatched(newPc))
        return this.#goOn(hit.pc, batch, inserts, repeated, writes);
      // The next instruction has a breakpoint too. Some stubs would run past it, so it is handled before the resume.
      await batch.send();
      pc = addr(newPc);
      await this.points.check(inserts, hit.pc);
      if (!repeated) tracer.digest();
    } else {
      const watched = watches?.next(point.code, hit.registers);
      const learn = watched && watches?.request(batch);
      await batch.send();
      learn?.();
      const stepped = await this.#stepper.over(hit, hart, [point.breakpoint], watched);
      if (stepped.interrupted) point.rearrivals.set(onward(hit), this.#standing(hit));
      if (stepped.stop.kind !== 'signal') return stepped.stop;
      ({ pc } = stepped);
      await this.points.check(inserts, hit.pc);
      if (!repeated) tracer.digest();
      this.#reportAccesses(stepped, hit);
    }
    return this.#from(pc, hart);
  }

  /** A handler that comes back changes none of these: else it has gone elsewhere, and this is another call. */
  #standing({ registers, stackPointer }: Hit): string {
    const { arguments: passed, results } = this.#arch;
    return [stackPointer, ...[...passed, ...results].map((name) => registers.register(name))].join();
  }

  async #codeAt(pc: Addr, hart: string | undefined): Promise<Uint8Array | undefined> {
    return this.#options.code(pc, codeBytes) ?? (await this.#session.memory(hart).read(pc, 4));
  }

  /** Goes on from a hart's pc, unless there is an event at it. */
  async #from(pc: Addr | undefined, hart: string | undefined): Promise<StopReply | undefined | 'again'> {
    return pc !== undefined && this.points.isWatched(pc) ? 'again' : this.#resume(this.#session.batch(hart));
  }

  /** The target stopped before or behind a watched access: emits the event once the access has happened. */
  async #access(
    point: Watchpoint,
    hart: string | undefined,
    clock: ClockReader,
  ): Promise<StopReply | undefined | 'again'> {
    const { watches } = this.#options;
    const old = point.known;
    const batch = this.#session.batch(hart);
    const registers = batch.readRegisters();
    const time = clock.request(batch);
    const learn = watches?.request(batch);
    await batch.send();
    learn?.();
    this.#strangers.expected();
    const pc = addr(registers.value.register(this.#arch.pc) ?? 0n);
    const stackPointer = registers.value.register(this.#arch.sp) ?? 0n;
    const at = { hart: this.#options.hartNumber(hart), time: time() };
    const bytes = await this.#codeAt(pc, hart);
    if (!watches?.isBefore(point, pc, bytes, registers.value)) {
      watches?.tell({ point, old, value: point.known, pc, exact: false, ...at });
      return this.#from(pc, hart);
    }
    const here = this.points.at(pc);
    const breakpoints = here && this.points.isWatched(pc) ? [here.breakpoint] : [];
    const stepped = await this.#stepper.over({ pc, stackPointer }, hart, breakpoints, point);
    if (stepped.stop.kind !== 'signal') return stepped.stop;
    this.#reportAccesses(stepped, at);
    return this.#from(stepped.pc, hart);
  }

  #reportAccesses({ accessed }: Stepped, { hart, time }: Pick<Hit, 'hart' | 'time'>): void {
    for (const { point, old, pc, exact } of accessed) {
      // If an instruction reads and writes, a watch of reads gets the value that was read.
      const value = exact && accessOf(point.breakpoint) === 'r' ? old : point.known;
      this.#options.watches?.tell({ point, old, value, pc, exact, hart, time });
    }
  }

  /** Resumes with what the batch holds and digests the hit while the guest runs. */
  async #goOn(
    at: Addr,
    batch: Batch,
    inserts: readonly Planted[],
    repeated: boolean,
    writes: readonly Reply<boolean>[] = [],
    how?: Resume,
  ): Promise<StopReply | undefined> {
    const next = this.#resume(batch, how);
    // If digesting throws (a full disk), nobody awaits this promise any more. A wire that breaks then must not end
    // the process.
    next.catch(() => {});
    if (!repeated) this.#options.tracer.digest();
    const stop = await next;
    // The connection may have ended before all was answered.
    if (stop === undefined || stop.kind === 'gone') return stop;
    await this.points.check(inserts, at);
    if (writes.some((reply) => !reply.value)) {
      throw new RsptraceError('RSP_WRITE_REFUSED', 'the stub refused to write a register, and the guest has gone on', {
        hint: 'the instruction under a breakpoint could not be carried out: the guest may have gone wrong',
      });
    }
    return stop;
  }

  #goesOn(batch: Batch, how: Resume): Promise<StopReply> {
    const leak = this.#options.leak?.();
    const { time, steps } = this.#last;
    return leak?.resume(batch, how, this.#stepper.steps > steps ? time : undefined) ?? batch.resume(how);
  }

  /** Undefined if the engine was asked to stop meanwhile: then only the batch is sent. */
  async #resume(batch: Batch, how: Resume = { kind: 'continue' }): Promise<StopReply | undefined> {
    if (this.#askedToStop) {
      await batch.send();
      return undefined;
    }
    this.#times.begin();
    const looked = this.points.late.runs();
    const paused = this.#options.beside?.runs();
    const sampled = this.#options.sampler?.runs();
    const stop = await this.#goesOn(batch, how).finally(looked).finally(paused).finally(sampled);
    this.#times.end();
    return stop;
  }
}

/** What resumes at a point where a handler came first: a hart, or a program that may resume on another hart. */
function onward({ hart, space = 0 }: Hit): number {
  return space > 0 ? -space : hart;
}

function inUse(point: Point | undefined): boolean {
  return (
    point !== undefined &&
    (point.permanent || point.awaited || point.pause !== undefined || point.intercept !== undefined)
  );
}
