import type { Addr } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { Hit, MemoryRequest, Reaction, Tracer } from '../calls/index.js';
import type { ElfFile } from '../elf/index.js';
import type { Breakpoint } from '../rsp/index.js';
import { bytesKnown } from '../target/index.js';
import { Programs } from '../target/stacks/index.js';
import { breakpointsRefused } from './breakpoint-types.js';
import { codeBytes } from './breakpoints.js';
import type { Look } from './first-reads.js';
import type { Passing } from './passing.js';
import { newPoint, type Point } from './point.js';
import { finish } from './read-guesses.js';
import type { Next } from './resuming.js';
import type { StopParts } from './stop-engine-options.js';

/** A program that a kernel runs in user mode, with what makes events of its hits. */
export interface OtherProgram {
  readonly elf: ElfFile;
  /** Where its probes are. */
  readonly addresses: readonly Addr[];
  readonly tracer: Tracer;
}

/** How often what came to the places of further programs. */
export interface OtherCounts {
  /** Stops in each program, in its code, whether it has a probe there or not. */
  readonly stops: ReadonlyMap<ElfFile, number>;
  /** Stops in code that several of them have alike, which are not recorded. */
  readonly untold: number;
}

/** A stop in one of these programs. */
interface OtherHit {
  readonly program: OtherProgram;
  readonly point: Point;
}

/** A breakpoint of any number of programs at one address. */
interface Shared {
  readonly breakpoint: Breakpoint;
  /** Of the programs that have or had one here. */
  readonly points: Map<OtherProgram, Point>;
}

/**
 * Hits of further programs in a machine: the user programs of the kernel. Their addresses may be the kernel's, and those
 * of each other. So they have breakpoints of their own, and at each stop in user mode the code decides whose it is: see
 * {@link Programs}. They are inserted as hardware breakpoints (Z1), of which QEMU has as many as are asked for. No
 * breakpoint of the kernel at the same address takes them away.
 */
export class OtherHits {
  readonly #parts: StopParts;
  readonly #passing: Passing;
  readonly #programs: ReadonlyMap<ElfFile, OtherProgram>;
  readonly #known: Programs;
  readonly #shared = new Map<bigint, Shared>();
  readonly #counts = { stops: new Map<ElfFile, number>(), untold: 0 };

  /** `main`: the program whose hits are not ours. */
  constructor(parts: StopParts, passing: Passing, programs: readonly OtherProgram[], main: ElfFile | undefined) {
    this.#parts = parts;
    this.#passing = passing;
    this.#programs = new Map(programs.map((program) => [program.elf, program]));
    this.#known = new Programs([...(main ? [main] : []), ...this.#programs.keys()]);
  }

  get counts(): OtherCounts {
    return this.#counts;
  }

  /** A call is open in one of them whose return is a stop. */
  get awaitsReturns(): boolean {
    return [...this.#programs.values()].some(({ tracer }) => tracer.awaitsReturns !== false);
  }

  /** The breakpoint that is inserted at an address. */
  insertedAt(pc: bigint): readonly Breakpoint[] {
    const shared = this.#shared.get(pc);
    return shared && isUsed(shared) ? [shared.breakpoint] : [];
  }

  /**
   * Inserts the breakpoints of all probes.
   * @throws RsptraceError `RSP_BREAKPOINT_REFUSED`
   */
  async arm(): Promise<void> {
    this.#shared.clear();
    const batch = this.#parts.options.session.batch();
    const inserts = [...this.#programs.values()].flatMap((program) =>
      program.addresses.flatMap((address) => {
        const shared = this.#of(address, program);
        const isNew = !isUsed(shared);
        const point = shared.points.get(program);
        if (point) point.permanent = true;
        return isNew ? [{ shared, reply: batch.insertBreakpoint(shared.breakpoint) }] : [];
      }),
    );
    await batch.send();
    this.#check(inserts.flatMap(({ shared, reply }) => (reply.value ? [] : [shared.breakpoint])));
  }

  /**
   * Whose code is at a stop. `foreign`: nobody's who has a place here; `untold`: nothing says whose; `own`: the
   * program's own, if it has one here (`isOwn`).
   */
  async find(look: Look, hart: string | undefined, isOwn: boolean): Promise<OtherHit | 'foreign' | 'untold' | 'own'> {
    const found = await this.#whose(look, hart);
    return found ?? (isOwn ? 'own' : 'foreign');
  }

  /** Undefined: in no code of theirs that is known. */
  async #whose(
    { pc, registers, guessed }: Look,
    hart: string | undefined,
  ): Promise<OtherHit | 'foreign' | 'untold' | undefined> {
    const shared = pc === undefined ? undefined : this.#shared.get(pc);
    const { options, checks } = this.#parts;
    if (pc === undefined || shared === undefined || checks?.standing(registers).privilege !== 'user') return undefined;
    const direct = options.session.memory(hart);
    const memory: MemoryReader = {
      read: async (address, length) => guessed.find({ address, length })?.value ?? direct.read(address, length),
    };
    const found = await this.#known.at(pc, memory);
    const [elf] = found;
    if (elf === undefined) return 'foreign';
    if (found.length > 1) {
      this.#counts.untold++;
      return 'untold';
    }
    const program = this.#programs.get(elf);
    if (program === undefined) return undefined;
    this.#counts.stops.set(elf, (this.#counts.stops.get(elf) ?? 0) + 1);
    const point = shared.points.get(program);
    return point && (point.permanent || point.awaited) ? { program, point } : 'foreign';
  }

  /** Gives a hit to its program's tracer, and goes on from it. */
  async handle({ program, point }: OtherHit, hit: Hit, { guessed }: Look, hart: string | undefined): Promise<Next> {
    const { options, resuming } = this.#parts;
    const { session } = options;
    const repeated = this.#passing.isRepeated(point, hit);
    const visit = repeated ? undefined : program.tracer.visit(hit);
    const found = visit && (await finish(visit, () => session.batch(hart), guessed));
    if (!repeated) program.tracer.digest();
    const batch = session.batch(hart);
    const refused = found ? this.#follow(program, found.reaction, batch) : () => [];
    if (resuming.askedToStop) {
      await batch.send();
      return undefined;
    }
    const load = point.over?.load?.(hit.registers);
    const read = async ({ address, length }: MemoryRequest): Promise<Uint8Array | undefined> =>
      guessed.find({ address, length })?.value ?? (await session.memory(hart).read(address, length));
    const loaded = load && load.length > 0 ? await read(load) : undefined;
    const next = await this.#passing.own(point, hit, hart, {
      ...{ batch, inserts: [], repeated: true, load, loaded, changed: false },
    });
    this.#check(refused());
    return next;
  }

  /** Returns are awaited, or no longer. The result says what was refused, when the batch is sent. */
  #follow(
    program: OtherProgram,
    { watch, unwatch }: Reaction,
    batch: ReturnType<StopParts['options']['session']['batch']>,
  ): () => readonly Breakpoint[] {
    const inserts = watch.flatMap((address) => {
      const shared = this.#of(address, program);
      const isNew = !isUsed(shared);
      const point = shared.points.get(program);
      if (point) point.awaited = true;
      return isNew ? [{ shared, reply: batch.insertBreakpoint(shared.breakpoint) }] : [];
    });
    for (const address of unwatch) {
      const shared = this.#shared.get(address);
      const point = shared?.points.get(program);
      if (!shared || !point?.awaited) continue;
      point.awaited = false;
      point.rearrivals.clear();
      if (!isUsed(shared)) batch.removeBreakpoint(shared.breakpoint);
    }
    return () => inserts.flatMap(({ shared, reply }) => (reply.value ? [] : [shared.breakpoint]));
  }

  #of(address: Addr, program: OtherProgram): Shared {
    const { arch } = this.#parts.options;
    const code = bytesKnown((at, length) => program.elf.bytesAt(at, length), address, codeBytes);
    let shared = this.#shared.get(address);
    if (shared === undefined) {
      const kind = arch.breakpointKind(code ?? new Uint8Array(4));
      shared = { breakpoint: { type: 1, address, kind }, points: new Map() };
      this.#shared.set(address, shared);
    }
    if (!shared.points.has(program))
      shared.points.set(program, newPoint(shared.breakpoint, code, code && arch.emulate(code, address)));
    return shared;
  }

  #check(refused: readonly Breakpoint[]): void {
    if (refused.length === 0) return;
    throw breakpointsRefused(refused, this.#parts.options.session.breakpoints, 'a probe');
  }
}

function isUsed({ points }: Shared): boolean {
  for (const { permanent, awaited } of points.values()) if (permanent || awaited) return true;
  return false;
}
