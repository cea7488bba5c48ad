import { type Addr, addr } from '../base/addr.js';
import type { Hit } from '../calls/index.js';
import type { ClockReader } from '../clock/index.js';
import { accessOf, type Watchpoint } from '../probes/index.js';
import { codeBytes } from './breakpoints.js';
import type { Look } from './first-reads.js';
import type { Next } from './resuming.js';
import type { Stepped } from './stepping.js';
import type { StopParts } from './stop-engine-options.js';

/** Accesses of watched memory: finds the one that a stop is about, runs the instruction, and emits the event. */
export class Accesses {
  readonly #parts: StopParts;

  constructor(parts: StopParts) {
    this.#parts = parts;
  }

  /** What the instruction at a stop without a reason will access: some stubs stop before it, and do not say why. */
  async next({ pc, registers }: Look, hart: string | undefined): Promise<Watchpoint | undefined> {
    const { options, points } = this.#parts;
    const { watches } = options;
    if (pc === undefined || !watches?.all.length || points.isWatched(pc)) return undefined;
    return watches.next(await this.#codeAt(pc, hart), registers);
  }

  /** The target stopped before or behind a watched access: emits the event once the access has happened. */
  async at(point: Watchpoint, hart: string | undefined, clock: ClockReader): Promise<Next> {
    const { options, stepper, unexpected, resuming } = this.#parts;
    const { session, arch, watches } = options;
    const old = point.known;
    const batch = session.batch(hart);
    const registers = batch.readRegisters();
    const time = clock.request(batch);
    const learn = watches?.request(batch);
    await batch.send();
    learn?.();
    unexpected.expected();
    const pc = addr(registers.value.register(arch.pc) ?? 0n);
    const stackPointer = registers.value.register(arch.sp) ?? 0n;
    const at = { hart: options.hartNumber(hart), time: time() };
    const bytes = await this.#codeAt(pc, hart);
    if (!watches?.isBefore(point, pc, bytes, registers.value)) {
      watches?.emit({ point, old, value: point.known, pc, exact: false, ...at });
      return resuming.from(pc, hart);
    }
    const stepped = await stepper.over({ pc, stackPointer }, hart, this.#parts.inserted(pc), point);
    if (stepped.stop.kind !== 'signal') return stepped.stop;
    this.report(stepped, at);
    return resuming.from(stepped.pc, hart);
  }

  /** Emits what a step has accessed. */
  report({ accessed }: Stepped, { hart, time }: Pick<Hit, 'hart' | 'time'>): void {
    for (const { point, old, pc, exact } of accessed) {
      // If an instruction reads and writes, a watch of reads gets the value that was read.
      const value = exact && accessOf(point.breakpoint) === 'r' ? old : point.known;
      this.#parts.options.watches?.emit({ point, old, value, pc, exact, hart, time });
    }
  }

  async #codeAt(pc: Addr, hart: string | undefined): Promise<Uint8Array | undefined> {
    const { code, session } = this.#parts.options;
    return code(pc, codeBytes) ?? (await session.memory(hart).read(pc, 4));
  }
}
