import type { Architecture, ResumeOver } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import {
  ANY_HART,
  type Batch,
  type Breakpoint,
  type Reply,
  type Session,
  type SignalStop,
  type StopReply,
} from '../rsp/index.js';
import { BreakpointTypes, breakpointsRefused } from './breakpoint-types.js';
import type { ClockReader } from './clock.js';
import { type GuessedReads, ReadGuesses } from './read-guesses.js';
import type { Hit, MemoryRequest, Tracer } from './tracer.js';

export type { Hit, MemoryRequest, Reaction, Tracer } from './tracer.js';

export interface StopEngineOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly tracer: Tracer;
  /** Called once, at the first hit. */
  readonly findClock: () => Promise<ClockReader>;
  /** Called at hits, before they are handled, until it gives true: what has to wait until the program runs. It may disarm. */
  readonly onFirstHit?: () => Promise<boolean>;
  /** Called at every stop, before it is looked at. */
  readonly onStop?: () => Promise<void>;
  /** The program's code at an address, where the ELF tells; else the target's memory is read. */
  readonly code: (address: Addr, length: number) => Uint8Array | undefined;
  /** Hardware breakpoints everywhere, not only where software ones cannot be. */
  readonly hardware?: boolean;
  readonly logger?: Logger;
  /** Asked after an exec: whether the process runs the probed program again, at the same addresses. */
  readonly isSameProgram: () => Promise<boolean>;
  /** Called when a hart is seen for the first time; returns its number. */
  readonly hartNumber: (id: string | undefined) => number;
}

/** Why the engine stopped running the guest. */
export type EngineEnd =
  | { readonly kind: 'guest-ended'; readonly stop: StopReply }
  /** The guest is stopped and every breakpoint is still known to the session: detach or resume it. */
  | { readonly kind: 'asked' };

interface Point {
  breakpoint: Breakpoint;
  readonly over: ResumeOver | undefined;
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
interface Planted {
  readonly point: Point;
  readonly reply: Reply<boolean>;
}

/** Longest instruction of the two architectures. */
const codeBytes = 16;
/** A step that does not move the pc is tried again this often: on x86 QEMU a pending interrupt makes a step a no-op. */
const stepTries = 16;
/** Stops in a row that no probe asked for, after which the target is taken to be stuck. */
const strangerLimit = 1000;

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
  readonly #logger: Logger;
  readonly #points = new Map<bigint, Point>();
  readonly #guesses = new ReadGuesses();
  readonly #types: BreakpointTypes;
  #clock: ClockReader | undefined;
  #arrived = false;
  #askedToStop = false;
  #strangers = 0;
  #stops = 0;
  #runningSince: number | undefined;
  #ran = 0;

  constructor(options: StopEngineOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#arch = options.arch;
    this.#logger = options.logger ?? silent;
    this.#types = new BreakpointTypes(options.session, options.hardware === true);
  }

  get clock(): ClockReader | undefined {
    return this.#clock;
  }

  /** Stops so far. */
  get stops(): number {
    return this.#stops;
  }

  /** How long the guest has run under this engine, in nanoseconds of the host. */
  runningTime(): number {
    const now = this.#runningSince === undefined ? 0 : performance.now() - this.#runningSince;
    return (this.#ran + now) * 1e6;
  }

  /**
   * Plants breakpoints at these addresses, all in one write.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  async arm(addresses: readonly Addr[]): Promise<void> {
    const points: Point[] = [];
    for (const address of addresses) {
      const point = await this.#point(address);
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

  /** A breakpoint without a probe: `onStop` has been called when `then` is. */
  async pause(address: Addr, then: () => void = () => {}): Promise<void> {
    await this.arm([address]);
    const point = await this.#point(address);
    point.pause = then;
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

  /** Makes `run` return at the next stop. Interrupts a running guest. */
  async stop(): Promise<void> {
    if (this.#askedToStop) return;
    this.#askedToStop = true;
    if (this.#session.state.kind === 'running') await this.#session.interrupt();
  }

  /**
   * Lets the guest run, hit by hit, until it ends or `stop` was called. A wire that breaks throws its own error.
   * @throws RsptraceError `TARGET_STUCK` when the target keeps stopping where nothing is planted
   */
  async run(): Promise<EngineEnd> {
    if (this.#askedToStop) return { kind: 'asked' };
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
    for (;;) {
      if (this.#askedToStop) return undefined;
      if (stop.reason === 'fork' && stop.child !== undefined) {
        await this.#session.letChildGo(stop.child);
        return this.#resume(this.#session.batch(hart));
      }
      if (stop.reason === 'exec') return this.#afterExec(stop);
      const signal = programSignal(stop);
      if (signal !== undefined) return this.#resume(this.#session.batch(hart), signal);
      this.#clock ??= await this.#options.findClock();
      await this.#options.onStop?.();
      const first = this.#session.batch(hart);
      const registers = first.readRegisters();
      const time = this.#clock.request(first);
      const guessed = this.#guesses.ask(first);
      await first.send();
      const pc = registers.value.register(this.#arch.pc);
      const stackPointer = registers.value.register(this.#arch.sp);
      const point = pc === undefined ? undefined : this.#points.get(pc);
      if (point?.permanent && !this.#arrived && !asked) {
        asked = true;
        this.#arrived = (await this.#options.onFirstHit?.()) ?? true;
        // It may have read other harts, written registers, or disarmed this very place.
        continue;
      }
      if (pc === undefined || stackPointer === undefined || !point || !(point.permanent || point.awaited)) {
        // The hit that led to its own disarming goes on from where it stands.
        if (!point) this.#stranger(stop, pc);
        return this.#resume(this.#session.batch(hart));
      }
      this.#strangers = 0;
      const hit: Hit = {
        hart: this.#options.hartNumber(hart),
        pc: addr(pc),
        stackPointer,
        registers: registers.value,
        time: time(),
      };
      const next = await this.#handle(point, hit, hart, guessed);
      if (next !== 'again') return next;
    }
  }

  async #handle(
    point: Point,
    hit: Hit,
    hart: string | undefined,
    guessed: GuessedReads,
  ): Promise<StopReply | undefined | 'again'> {
    const { tracer } = this.#options;
    point.pause?.();
    const repeated = point.pause !== undefined || point.rearrivals.get(hit.hart) === hit.stackPointer;
    point.rearrivals.delete(hit.hart);

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
    if (missing.count > 0) await second.send();
    this.#guesses.learn(hit.pc, loads ? [...requests, load] : requests);
    const reaction = repeated
      ? { watch: [], unwatch: [] }
      : tracer.react(
          hit,
          replies.map((reply) => reply.value),
        );

    const points: Point[] = [];
    for (const address of reaction.watch) points.push(this.#points.get(address) ?? (await this.#point(address)));
    const third = this.#session.batch(hart);
    const inserts = this.#plant(third, points, reaction.unwatch);
    if (this.#askedToStop) {
      await third.send();
      if (!repeated) tracer.digest();
      return undefined;
    }
    if (!(point.permanent || point.awaited)) return this.#goOn(third, inserts, repeated);

    const effects = point.over?.effects(hit.registers, loaded?.value);
    if (effects && !(load && loaded?.value === undefined)) {
      const newPc = effects.registers.find(({ name }) => name === this.#arch.pc)?.value;
      for (const { address, bytes } of effects.memory) third.writeMemory(address, bytes);
      const writes = effects.registers.map(({ name, value }) => third.writeRegister(name, value));
      if (newPc === undefined || !this.#isWatched(newPc)) return this.#goOn(third, inserts, repeated, writes);
      // The next instruction has a breakpoint too: some stubs would run past it, so it is looked at before resuming.
      await third.send();
    } else {
      await third.send();
      await this.#step(point, hit, hart);
    }
    this.#checkInserted(inserts);
    if (!repeated) tracer.digest();
    const registers = this.#session.batch(hart);
    const now = registers.readRegisters();
    await registers.send();
    const pc = now.value.register(this.#arch.pc);
    return pc !== undefined && this.#isWatched(pc) ? 'again' : this.#resume(this.#session.batch(hart));
  }

  /** Resumes with what the batch holds and digests the hit while the guest runs. */
  async #goOn(
    batch: Batch,
    inserts: readonly Planted[],
    repeated: boolean,
    writes: readonly Reply<boolean>[] = [],
  ): Promise<StopReply> {
    const next = this.#resume(batch);
    // Should digesting throw (a full disk), nobody awaits this any more, and a wire that breaks then must not end the process.
    next.catch(() => {});
    if (!repeated) this.#options.tracer.digest();
    const stop = await next;
    // The connection may have ended before all was answered.
    if (stop.kind === 'gone') return stop;
    this.#checkInserted(inserts);
    if (writes.some((reply) => !reply.value)) {
      throw new RsptraceError('RSP_WRITE_REFUSED', 'the stub refused to write a register, and the guest has gone on', {
        hint: 'the instruction under a breakpoint could not be carried out: the guest may have gone wrong',
      });
    }
    return stop;
  }

  async #resume(batch: Batch, signal?: number): Promise<StopReply> {
    this.#runningSince = performance.now();
    const stop = await batch.resume(signal === undefined ? { kind: 'continue' } : { kind: 'continue', signal });
    this.#ran += performance.now() - this.#runningSince;
    this.#runningSince = undefined;
    this.#stops++;
    return stop;
  }

  #isWatched(pc: bigint): boolean {
    const point = this.#points.get(pc);
    return point !== undefined && (point.permanent || point.awaited);
  }

  #plant(batch: Batch, watched: readonly Point[], unwatched: readonly Addr[]): Planted[] {
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

  #checkInserted(inserts: readonly Planted[]): void {
    const refused = inserts.filter(({ reply }) => !reply.value).map(({ point }) => point);
    if (refused.length > 0) throw this.#refusal(refused, 'a return address');
  }

  async #step(point: Point, hit: Hit, hart: string | undefined): Promise<void> {
    let signal: number | undefined;
    for (let tries = 0; tries < stepTries; tries++) {
      const stop = await this.#session.stepOver(hart ?? ANY_HART, point.breakpoint, signal);
      this.#stops++;
      if (stop.kind !== 'signal') return;
      const handed = signal;
      signal = programSignal(stop);
      const batch = this.#session.batch(hart);
      const registers = batch.readRegisters();
      await batch.send();
      const pc = registers.value.register(this.#arch.pc);
      if (pc === undefined || pc === hit.pc) continue;
      const stackPointer = registers.value.register(this.#arch.sp) ?? 0n;
      const wentFar = pc < hit.pc || pc > addOffset(hit.pc, codeBytes);
      // Far away with a deeper stack, or a stack of its own: a handler came first, and will return to this same instruction.
      if (wentFar && (handed !== undefined || stackPointer < hit.stackPointer - 16n)) {
        point.rearrivals.set(hit.hart, hit.stackPointer);
      }
      return;
    }
    throw new RsptraceError('TARGET_STUCK', `a single step at ${hex(hit.pc)} does not move the target`, {
      hint: 'leave this function out of --probe',
    });
  }

  /** Another program runs in the process: its probes are planted where it is the same one, and none where it is not. */
  async #afterExec(stop: SignalStop): Promise<StopReply> {
    this.#session.forgetBreakpoints();
    this.#options.tracer.abandon();
    const watched = [...this.#points].filter(([, { permanent }]) => permanent).map(([address]) => addr(address));
    this.#points.clear();
    if (await this.#options.isSameProgram()) await this.arm(watched);
    else this.#logger.warn({ program: stop.path }, 'the process runs another program now, which is not traced');
    return this.#resume(this.#session.batch(stop.hart));
  }

  /** A stop that no probe asked for. */
  #stranger(stop: SignalStop, pc: bigint | undefined): void {
    this.#logger.debug({ stop: stop.signal, pc: pc === undefined ? undefined : hex(pc) }, 'a stop without a probe');
    if (++this.#strangers > strangerLimit) {
      throw new RsptraceError(
        'TARGET_STUCK',
        `the target keeps stopping at ${pc === undefined ? '?' : hex(pc)}, where no probe is`,
        {
          hint: 'is another debugger using this stub, or does the program trap on its own?',
        },
      );
    }
  }

  async #point(address: Addr): Promise<Point> {
    let point = this.#points.get(address);
    if (!point) {
      let code = this.#options.code(address, codeBytes);
      code ??= await this.#session.memory().read(address, 4);
      const bytes = code ?? new Uint8Array(4);
      point = {
        breakpoint: await this.#types.choose(address, this.#arch.breakpointKind(bytes)),
        over: code && this.#arch.resumeOver(code, address),
        permanent: false,
        awaited: false,
        pause: undefined,
        rearrivals: new Map(),
      };
      this.#points.set(address, point);
    }
    return point;
  }
}

/** The signal that a stop is about, when it is the program's: traps and interrupts are the debugger's own, and so are illegal instructions at breakpoints. */
function programSignal({ signal }: SignalStop): number | undefined {
  return [0, 2, 4, 5].includes(signal) ? undefined : signal;
}
