import type { Architecture } from '../../arch/index.js';
import { type Addr, addr } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import { silent } from '../../base/logger.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { ClockReader } from '../../facts/index.js';
import type { Hit, MemoryRequest } from '../../probes/index.js';
import { accessOf, type Watchpoint } from '../../probes/index.js';
import type { Batch, Reply, Resume, Session, SignalStop, StopReply } from '../../rsp/index.js';
import { Breakpoints, codeBytes, type Planted, type Point } from './breakpoints.js';
import { type Found, HitChecks } from './hit-checks.js';
import { ProcessEvents } from './process-events.js';
import { type GuessedReads, ReadGuesses } from './read-guesses.js';
import { type Stepped, Stepper } from './stepping.js';
import type { EngineEnd, ResetWatch, StopEngineOptions } from './stop-engine-options.js';
import { UnexpectedStops } from './unexpected-stops.js';

export type { EngineEnd } from './stop-engine-options.js';

/**
 * The engine that stops the guest at each event. One stop costs 350-2000 us on QEMU whatever is read, so there is one stop an
 * event: the instruction under a breakpoint that stays inserted is carried out by writing registers where the architecture
 * knows how, else by a step that is checked. Registers, clock and the memory that this stop will probably want go out in one
 * write, what was guessed wrong in a second, changes and the resume in the last.
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
  readonly #guesses = new ReadGuesses();
  /** Undefined for a process, which has one address space. */
  readonly #checks: HitChecks | undefined;
  #clock: ClockReader | undefined;
  #arrived = false;
  #askedToStop = false;
  #stops = 0;
  #runningSince: number | undefined;
  #ran = 0;
  /** When the guest last stopped, by the host's clock, in milliseconds. */
  #stoppedAt = 0;

  constructor(options: StopEngineOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#arch = options.arch;
    const { logger = silent } = options;
    this.#strangers = new UnexpectedStops(logger);
    this.points = new Breakpoints(options);
    this.#stepper = new Stepper(options.session, options.arch, options.watches);
    this.#checks = HitChecks.for(options);
    const onExec = async (): Promise<readonly Addr[]> => {
      this.#arrived = false;
      return (await options.onExec?.()) ?? [];
    };
    this.#events = new ProcessEvents({ ...options, points: this.points, onExec, logger });
  }

  get clock(): ClockReader | undefined {
    return this.#clock;
  }

  /** Stops so far. */
  get stops(): number {
    return this.#stops + this.#stepper.steps;
  }

  /** Stops where a probe's address came up in other code: another address space, or another program in the same one. */
  get foreignHits(): number {
    return this.#checks?.foreign ?? 0;
  }

  /** How long the guest has run under this engine, in nanoseconds of the host. */
  runningTime(): number {
    const now = this.#runningSince === undefined ? 0 : performance.now() - this.#runningSince;
    return (this.#ran + now) * 1e6;
  }

  /** {@link runningTime} as it was at a moment of this run of the guest or of the one before it, in milliseconds as `performance.now` counts them. */
  runningTimeAt(hostMs: number): number {
    const since = this.#runningSince;
    const ran = since !== undefined && hostMs >= since ? hostMs - since : Math.min(0, hostMs - this.#stoppedAt);
    return (this.#ran + ran) * 1e6;
  }

  /** Probes whose code is not in the target yet: they are planted when it comes. */
  get waiting(): readonly Addr[] {
    return this.points.late.addresses;
  }

  /**
   * Plants breakpoints at these addresses, all in one write.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  arm(addresses: readonly Addr[]): Promise<void> {
    return this.points.arm(addresses);
  }

  /** A breakpoint without a probe: {@link StopObserver.stopped} has been called when `then` is. */
  pause(address: Addr, then: () => void = () => {}): Promise<void> {
    return this.points.pause(address, then);
  }

  /** The same in the program's own code, planted when that is there. */
  pauseInProgram(address: Addr, then: () => void): Promise<void> {
    return this.points.arm([address], then);
  }

  /** Takes breakpoints out again, all in one write. */
  disarm(addresses: readonly Addr[]): Promise<void> {
    return this.points.disarm(addresses);
  }

  /** Makes `run` return at the next stop. Interrupts a running guest. */
  async stop(): Promise<void> {
    if (this.#askedToStop) return;
    this.#askedToStop = true;
    if (this.#session.state.kind === 'running') await this.#session.interrupt();
  }

  /** The recording ends: takes everything off the target that would stop it when nobody is there any more. */
  async settle(): Promise<void> {
    await this.points.late.quiet();
    await this.#options.watches?.disarm();
    await this.#stepper.settle();
  }

  /**
   * Lets the guest run, hit by hit, until it ends or `stop` was called. A wire that breaks throws its own error.
   * @throws RsptraceError `TARGET_STUCK` when the target keeps stopping where nothing is planted
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

  /** Handles one stop, resumes, and gives the next stop; undefined when asked not to resume. */
  async #visit(stop: SignalStop): Promise<StopReply | undefined> {
    const hart = stop.hart;
    let asked = this.#options.onFirstHit === undefined;
    const watches = this.#options.watches?.all.length ? this.#options.watches : undefined;
    let watched = watches?.reported(stop);
    for (;;) {
      if (this.#askedToStop) return undefined;
      const event = await this.#events.handle(stop);
      if (event) return this.#resume(this.#session.batch(hart), event);
      const onward = this.#session.batch(hart);
      if (await this.#options.beside?.handles(stop, onward)) return this.#resume(onward);
      if (watched !== undefined) {
        this.#clock ??= await this.#options.findClock();
        await this.#options.beside?.stopped(true);
        const next = await this.#access(watched, hart, this.#clock);
        watched = undefined;
        if (next !== 'again') return next;
        continue;
      }
      const first = this.#session.batch(hart);
      const registers = first.readRegisters(this.#checks?.ask());
      // A machine at its reset vector has no clock that is worth choosing.
      if (!this.#options.resets) this.#clock ??= await this.#options.findClock();
      const time = this.#clock?.request(first);
      const guessed = this.#guesses.ask(first);
      const hasCome = this.points.late.ask(first);
      await first.send();
      if (hasCome()) await this.points.plantLate();
      const pc = registers.value.register(this.#arch.pc);
      const stackPointer = registers.value.register(this.#arch.sp);
      const { resets } = this.#options;
      const reset = pc === undefined ? undefined : await resets?.at(pc, hart);
      if (resets && reset === 'reset') return this.#reset(resets, time?.());
      if (reset !== 'passed') this.#clock ??= await this.#options.findClock();
      if (reset === 'passed' || !time) continue;
      const point = pc === undefined ? undefined : this.points.at(pc);
      if (stop.reason === undefined && pc !== undefined && watches && !this.points.isWatched(pc)) {
        watched = watches.next(await this.#codeAt(addr(pc), hart), registers.value);
        if (watched) continue;
      }
      // Only a plain hit can wait for its code until all else that it wants is read.
      const isPlain = point && !point.intercept && !point.pause && (this.#arrived || asked);
      const found = pc === undefined || !inUse(point) ? undefined : this.#found(addr(pc), registers.value, guessed);
      if (found && point && !isPlain) {
        found.code ??= await this.#checks?.read(found.pc, hart);
        const whose = await this.#checks?.whose(found, hart);
        const next = whose === 'foreign' ? await this.#passForeign(found, point, registers.value, hart) : whose;
        if (next === 'again') continue;
        if (next !== 'own') return next;
      }
      if (await this.points.intercepted(point, hart)) continue;
      const tells = point !== undefined && point.pause === undefined && (point.permanent || point.awaited);
      await this.#options.beside?.stopped(tells);
      if (point?.permanent && !this.#arrived && !asked) {
        asked = true;
        this.#arrived = await this.points.late.undisturbed(
          async () => (await this.#options.onFirstHit?.(this.#checks?.inUserMode ?? false)) ?? true,
        );
        // It may have read other harts, written registers, or disarmed this very place.
        continue;
      }
      if (pc === undefined || stackPointer === undefined || !point || !(point.permanent || point.awaited)) {
        // The hit that led to its own disarming goes on from where it stands.
        const guard = pc === undefined ? undefined : this.points.late.guardAt(addr(pc));
        if (guard && stackPointer !== undefined) {
          // Something else runs where the code will be.
          const stepped = await this.#stepper.over({ pc: guard.address, stackPointer }, hart, [guard]);
          return stepped.stop.kind === 'signal' ? this.#resume(this.#session.batch(hart)) : stepped.stop;
        }
        if (!point) {
          this.#stepper.stopped(hart);
          if (!this.points.late.hasInterrupted) this.#strangers.seen(stop, pc);
        }
        return this.#resume(this.#session.batch(hart));
      }
      this.#strangers.expected();
      const hit: Hit = {
        hart: this.#options.hartNumber(hart),
        pc: addr(pc),
        stackPointer,
        space: found && this.#checks?.space(found.standing),
        registers: registers.value,
        time: time(),
      };
      const next = await this.#handle(point, hit, hart, guessed, found);
      if (next !== 'again') return next;
    }
  }

  /** The machine boots once more. */
  async #reset(resets: ResetWatch, time: number | undefined): Promise<StopReply | undefined> {
    this.#arrived = false;
    await resets.again(time);
    if (this.#session.state.kind !== 'idle') return { kind: 'gone' };
    return this.#askedToStop ? undefined : this.#resume(this.#session.batch());
  }

  /** What stands at a hit's pc, as far as it was guessed; undefined for a process. */
  #found(pc: Addr, registers: RegisterReader, guessed: GuessedReads): Found | undefined {
    if (!this.#checks) return undefined;
    const code = guessed.find({ address: pc, length: codeBytes })?.value;
    return { pc, code, standing: this.#checks.standing(registers) };
  }

  /** Other code than the program's came to a probe's address: what stands there is carried out by itself, and nothing is told. */
  async #passForeign(
    { pc, code }: Found,
    { breakpoint }: Point,
    registers: RegisterReader,
    hart: string | undefined,
  ): Promise<StopReply | undefined | 'again'> {
    this.#strangers.expected();
    this.#guesses.learn(pc, [{ address: pc, length: codeBytes }]);
    const stackPointer = registers.register(this.#arch.sp) ?? 0n;
    const watched = this.#options.watches?.next(code, registers);
    const stepped = await this.#stepper.over({ pc, stackPointer }, hart, [breakpoint], watched);
    if (stepped.stop.kind !== 'signal') return stepped.stop;
    return this.#from(stepped.pc, hart);
  }

  async #handle(
    point: Point,
    hit: Hit,
    hart: string | undefined,
    guessed: GuessedReads,
    found: Found | undefined,
  ): Promise<StopReply | undefined | 'again'> {
    const { tracer, watches } = this.#options;
    point.pause?.();
    const repeated = point.pause !== undefined || point.rearrivals.get(onward(hit)) === hit.stackPointer;
    point.rearrivals.delete(onward(hit));
    const second = this.#session.batch(hart);
    const requests = repeated ? [] : tracer.wants(hit);
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
    const changed = code !== undefined && this.points.changed(point, hit.pc, code.value);
    const again = [...(loads ? [load] : []), ...(wantsCode ? [here] : [])];
    this.#guesses.learn(hit.pc, [...requests, ...again]);
    const reaction = repeated
      ? { watch: [], unwatch: [] }
      : tracer.react(
          hit,
          replies.map((reply) => reply.value),
        );

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
    if (!(point.permanent || point.awaited)) return this.#goOn(third, inserts, repeated);

    let { pc } = hit as { pc: Addr | undefined };
    // What the new instruction reads has not been read.
    const effects = changed ? undefined : point.over?.effects(hit.registers, loaded?.value);
    const touched = [...(loads ? [load] : []), ...(effects?.memory ?? [])];
    const isAccess = touched.some((each) =>
      watches?.covers(each.address, 'bytes' in each ? each.bytes.length : each.length),
    );
    const isKnown = !isAccess && !(load && loaded?.value === undefined);
    if (effects && isKnown && (await this.points.writes.areKept(effects.memory, hart))) {
      const newPc = effects.registers.find(({ name }) => name === this.#arch.pc)?.value;
      for (const { address, bytes } of effects.memory) third.writeMemory(address, bytes);
      const writes = effects.registers.map(({ name, value }) => third.writeRegister(name, value));
      if (newPc === undefined || !this.points.isWatched(newPc)) return this.#goOn(third, inserts, repeated, writes);
      // The next instruction has a breakpoint too: some stubs would run past it, so it is looked at before resuming.
      await third.send();
      pc = addr(newPc);
      this.points.check(inserts);
      if (!repeated) tracer.digest();
    } else {
      const watched = watches?.next(point.code, hit.registers);
      const learn = watched && watches?.request(third);
      await third.send();
      learn?.();
      const stepped = await this.#stepper.over(hit, hart, [point.breakpoint], watched);
      if (stepped.interrupted) point.rearrivals.set(onward(hit), hit.stackPointer);
      if (stepped.stop.kind !== 'signal') return stepped.stop;
      ({ pc } = stepped);
      this.points.check(inserts);
      if (!repeated) tracer.digest();
      this.#tellAccesses(stepped, hit);
    }
    return this.#from(pc, hart);
  }

  async #codeAt(pc: Addr, hart: string | undefined): Promise<Uint8Array | undefined> {
    return this.#options.code(pc, codeBytes) ?? (await this.#session.memory(hart).read(pc, 4));
  }

  /** Goes on from where a hart stands, unless there is something to see. */
  async #from(pc: Addr | undefined, hart: string | undefined): Promise<StopReply | undefined | 'again'> {
    return pc !== undefined && this.points.isWatched(pc) ? 'again' : this.#resume(this.#session.batch(hart));
  }

  /** The target stands before or behind an access that is watched: tells of it, once it has happened. */
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
    this.#tellAccesses(stepped, at);
    return this.#from(stepped.pc, hart);
  }

  #tellAccesses({ accessed }: Stepped, { hart, time }: Pick<Hit, 'hart' | 'time'>): void {
    for (const { point, old, pc, exact } of accessed) {
      // Of an instruction that reads and writes, a watch of reads is told what was read.
      const value = exact && accessOf(point.breakpoint) === 'r' ? old : point.known;
      this.#options.watches?.tell({ point, old, value, pc, exact, hart, time });
    }
  }

  /** Resumes with what the batch holds and digests the hit while the guest runs. */
  async #goOn(
    batch: Batch,
    inserts: readonly Planted[],
    repeated: boolean,
    writes: readonly Reply<boolean>[] = [],
  ): Promise<StopReply | undefined> {
    const next = this.#resume(batch);
    // Should digesting throw (a full disk), nobody awaits this any more, and a wire that breaks then must not end the process.
    next.catch(() => {});
    if (!repeated) this.#options.tracer.digest();
    const stop = await next;
    // The connection may have ended before all was answered.
    if (stop === undefined || stop.kind === 'gone') return stop;
    this.points.check(inserts);
    if (writes.some((reply) => !reply.value)) {
      throw new RsptraceError('RSP_WRITE_REFUSED', 'the stub refused to write a register, and the guest has gone on', {
        hint: 'the instruction under a breakpoint could not be carried out: the guest may have gone wrong',
      });
    }
    return stop;
  }

  /** Undefined where it was asked to stop meanwhile: then only what the batch holds is done. */
  async #resume(batch: Batch, how: Resume = { kind: 'continue' }): Promise<StopReply | undefined> {
    if (this.#askedToStop) {
      await batch.send();
      return undefined;
    }
    this.#runningSince = performance.now();
    const looked = this.points.late.runs();
    const paused = this.#options.beside?.runs();
    const stop = await batch.resume(how).finally(looked).finally(paused);
    this.#stoppedAt = performance.now();
    this.#ran += this.#stoppedAt - this.#runningSince;
    this.#runningSince = undefined;
    this.#stops++;
    return stop;
  }
}

/** What goes on at a point where a handler came first: a hart, or a program that may go on on another. */
function onward({ hart, space = 0 }: Hit): number {
  return space > 0 ? -space : hart;
}

function inUse(point: Point | undefined): boolean {
  return (
    point !== undefined &&
    (point.permanent || point.awaited || point.pause !== undefined || point.intercept !== undefined)
  );
}
