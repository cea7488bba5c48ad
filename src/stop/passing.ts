import type { Effects } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import type { Hit, MemoryRequest } from '../calls/index.js';
import type { Breakpoint } from '../rsp/index.js';
import type { Accesses } from './accesses.js';
import { codeBytes } from './breakpoints.js';
import { newPoint, type Point } from './point.js';
import type { GuessedReads } from './read-guesses.js';
import type { LastWrite, Next } from './resuming.js';
import type { StopParts } from './stop-engine-options.js';

/** What a hit leads to, in the write that goes on from it. */
interface Understood extends LastWrite {
  /** What the instruction reads, and what was read there. */
  readonly load: MemoryRequest | undefined;
  readonly loaded: Uint8Array | undefined;
  /** The code is another than when the breakpoint was inserted. */
  readonly changed: boolean;
}

/**
 * Runs the instruction under a breakpoint that stays. It is emulated by writing registers, if the architecture knows
 * how; else it is stepped, and the step is checked.
 */
export class Passing {
  readonly #parts: StopParts;
  readonly #accesses: Accesses;
  /** The stub writes memory, and the target keeps it; undefined before that was tried. */
  #keepsWrites: boolean | undefined;
  /** How often foreign code has come to which place. */
  readonly foreignHits = new Map<bigint, number>();

  constructor(parts: StopParts, accesses: Accesses) {
    this.#parts = parts;
    this.#accesses = accesses;
  }

  /** The hit was handled before, and a step over it ran into a handler, which has come back. Asked once for a hit. */
  isRepeated(point: Point, hit: Hit): boolean {
    const isBack = point.rearrivals.get(resumedAs(hit)) === this.standing(hit);
    point.rearrivals.delete(resumedAs(hit));
    return isBack;
  }

  /** Of the program itself. */
  async own(point: Point, hit: Hit, hart: string | undefined, understood: Understood): Promise<Next> {
    const { options, points, events, checks, resuming } = this.#parts;
    const { tracer, watches, arch } = options;
    const { batch, inserts, repeated, load, loaded, changed } = understood;
    const { linux } = arch;
    if (linux && point.code && !checks && linux.isTrap(point.code)) {
      const behind = batch.writeRegister(arch.pc, addOffset(hit.pc, linux.behindTrap));
      return resuming.goOn(hit.pc, understood, [behind], events.trapOf(hart));
    }
    // The memory that the new instruction reads was not read.
    const effects = changed ? undefined : point.over?.effects(hit.registers, loaded);
    const touched = [...(load && load.length > 0 ? [load] : []), ...(effects?.memory ?? [])];
    const isAccess = touched.some((each) =>
      watches?.covers(each.address, 'bytes' in each ? each.bytes.length : each.length),
    );
    const isKnown = !isAccess && !(load && loaded === undefined);
    // A stub writes past the rights of a page, which processes may share until one of them writes to it.
    const isShared = effects && effects.memory.length > 0 && checks?.standing(hit.registers).privilege === 'user';
    if (!effects || !isKnown || isShared || !(await this.#areKept(effects.memory, hart)))
      return this.#step(point, hit, hart, understood);
    const newPc = effects.registers.find(({ name }) => name === arch.pc)?.value;
    const stores = effects.memory.map(({ address, bytes }) => batch.writeMemory(address, bytes));
    const writes = [...stores, ...effects.registers.map(({ name, value }) => batch.writeRegister(name, value))];
    if (newPc === undefined || !points.isWatched(newPc)) return resuming.goOn(hit.pc, understood, writes);
    // The next instruction has a breakpoint too. Some stubs would run past it, so it is handled before the resume.
    await batch.send();
    await points.check(inserts, hit.pc);
    if (!repeated) tracer.digest();
    return resuming.from(addr(newPc), hart);
  }

  /**
   * True if all of this can be written without a check. Tried once, with the bytes that the emulated instruction would
   * write. If they are not kept, a step does the same.
   */
  async #areKept([first]: Effects['memory'], hart: string | undefined): Promise<boolean> {
    if (first === undefined) return true;
    if (this.#keepsWrites !== undefined) return this.#keepsWrites;
    const memory = this.#parts.options.session.memory(hart);
    const isWritten = await memory.write(first.address, first.bytes);
    const now = isWritten ? await memory.read(first.address, first.bytes.length) : undefined;
    this.#keepsWrites = now !== undefined && Buffer.compare(now, first.bytes) === 0;
    return this.#keepsWrites;
  }

  async #step(
    point: Point,
    hit: Hit,
    hart: string | undefined,
    { batch, inserts, repeated }: LastWrite,
  ): Promise<Next> {
    const { options, points, stepper, resuming } = this.#parts;
    const { tracer, watches } = options;
    const watched = watches?.next(point.code, hit.registers);
    const learn = watched && watches?.request(batch);
    await batch.send();
    learn?.();
    const stepped = await stepper.over(hit, hart, this.#lifted(point, hit.pc), watched);
    // What returns from a trap goes on somewhere else by itself.
    const isExit = point.code !== undefined && options.arch.traps?.isExit(point.code) === true;
    if (stepped.interrupted && !isExit) point.rearrivals.set(resumedAs(hit), this.standing(hit));
    if (stepped.stop.kind !== 'signal') return stepped.stop;
    await points.check(inserts, hit.pc);
    if (!repeated) tracer.digest();
    this.#accesses.report(stepped, hit);
    return resuming.from(stepped.pc, hart);
  }

  /** Foreign code reached a probe's address. */
  foreign(...stop: Parameters<Passing['past']>): Promise<Next> {
    const [{ pc }] = stop;
    this.foreignHits.set(pc, (this.foreignHits.get(pc) ?? 0) + 1);
    return this.past(...stop);
  }

  /**
   * Nobody's stop: the instruction that is there is run, and no event is emitted. It is emulated if it touches
   * registers alone. Memory of any code may be a device, which must be accessed once, by the hart.
   */
  async past(
    hit: Hit,
    { breakpoint }: Pick<Point, 'breakpoint'>,
    guessed: GuessedReads,
    hart: string | undefined,
  ): Promise<Next> {
    const { options, unexpected, firstReads } = this.#parts;
    const { pc, registers } = hit;
    unexpected.expected();
    const here = { address: pc, length: codeBytes };
    const code = guessed.find(here)?.value ?? (await options.session.memory(hart).read(pc, codeBytes));
    firstReads.learn(pc, [here]);
    const over = code && options.arch.emulate(code, pc);
    const isPure = over?.load?.(registers) === undefined && over?.effects(registers, undefined)?.memory.length === 0;
    const point = newPoint(breakpoint, code, isPure ? over : undefined);
    const last = { batch: options.session.batch(hart), inserts: [], repeated: true, changed: false };
    return this.own(point, hit, hart, { ...last, load: undefined, loaded: undefined });
  }

  /** Other code runs where a probe's code will be loaded. */
  async guard(guard: Breakpoint, stackPointer: bigint, hart: string | undefined): Promise<Next> {
    const { options, stepper, resuming } = this.#parts;
    const stepped = await stepper.over({ pc: guard.address, stackPointer }, hart, [guard]);
    return stepped.stop.kind === 'signal' ? resuming.resume(options.session.batch(hart)) : stepped.stop;
  }

  /** What a step over a place must not run into: further programs may have a breakpoint there too. */
  #lifted({ breakpoint }: Pick<Point, 'breakpoint'>, pc: Addr): readonly Breakpoint[] {
    return [...new Set([breakpoint, ...this.#parts.inserted(pc)])];
  }

  /** A handler that comes back changes none of these: else it has gone elsewhere, and this is another call. */
  standing({ registers, stackPointer }: Hit): string {
    const { arguments: passed, results } = this.#parts.options.arch;
    return [stackPointer, ...[...passed, ...results].map((name) => registers.register(name))].join();
  }
}

/** What resumes at a point where a handler came first: a hart, or a program that may resume on another hart. */
function resumedAs({ hart, space = 0 }: Hit): number {
  return space > 0 ? -space : hart;
}
