import { hex } from '../base/addr.js';
import { isRefusal } from '../base/errors.js';
import type { ResetWatch } from '../stop/index.js';
import type { ResetVector } from '../target/index.js';
import type { GuestNanos } from '../trace/index.js';
import { EarlyStops } from './early-stops.js';
import { type Parts, reportLeftOut } from './parts.js';
import { TableChanges } from './table-changes.js';
import { allCalls } from './tracers.js';

/**
 * A target's boot: what is inserted before its first instruction, what its first hits lead to, and what a reset ends.
 * A target that runs already is in the middle of one.
 */
export class Boot {
  readonly #parts: Parts;
  readonly resets: Resets | undefined;
  readonly #early: EarlyStops;
  readonly tables: TableChanges;

  constructor(parts: Parts) {
    const { resetVector } = parts.options;
    this.#parts = parts;
    this.#early = new EarlyStops(parts, this);
    this.tables = new TableChanges(parts, this.#early);
    this.resets = resetVector && new Resets(resetVector, parts, this);
  }

  /** Inserts everything that a target gets before its first instruction. */
  async insert(): Promise<void> {
    const { target, connection, stopping, engines } = this.#parts;
    const { until, panics, settlesAt } = target;
    const { points } = connection.engine;
    this.tables.begin();
    if (target.runs) await this.firstHit(false);
    await points.arm(await this.#early.begin());
    await connection.watches.arm();
    if (until !== undefined) await points.arm([until], () => stopping.stop('until'));
    if (panics.length > 0) await points.arm(panics, () => stopping.stop('panicked'));
    await this.#armCurrent();
    if (settlesAt !== undefined && !engines.isSettled) await points.pause(settlesAt, () => engines.settle());
    await connection.engine.armOthers();
  }

  /** Places that the registers of harts name, where the target runs already. */
  async #armCurrent(): Promise<void> {
    const { target, connection, tracers } = this.#parts;
    if (!target.hasBegun || tracers.kinds.every(({ current }) => !current)) return;
    const { session, engine } = connection;
    for (const { id } of await session.harts()) {
      const batch = session.batch(id);
      const registers = batch.readRegisters();
      await batch.send();
      await engine.points.armNow(tracers.kinds.flatMap(({ current }) => current?.(registers.value) ?? []));
    }
  }

  /** At the first hits: false as long as it is too early for trampolines. */
  async firstHit(inUserMode: boolean): Promise<boolean> {
    const { options, target, connection, engines, stopping, log } = this.#parts;
    const { words, plan, program, harts, isElsewhere, ram } = target;
    const onError = (thrown: unknown): void => stopping.fail(thrown);
    await this.#early.hit();
    const done = await engines.arrive(connection.engine, onError, inUserMode || isElsewhere);
    // Before the first record is digested: the target is stopped.
    if (engines.results.all.source !== undefined && plan.hart && !isRefusal(plan.hart)) {
      await words.learn(connection.session, program.elf, plan.hart.outside, (id) => harts.number(id));
      log?.append({ type: 'words', words: [...words.hints].map(([word, hart]) => [hex(word), hart]) });
    }
    // Stops alone leave no records that are not yet events.
    if (engines.refusal !== undefined && !options.log?.keeps) log?.end(false);
    if (!done && engines.isWaiting) await this.#early.tooEarly();
    if (engines.isInstalled) await this.tables.watch();
    if (done) {
      const { choices, refusal } = engines;
      reportLeftOut(this.#parts, choices);
      options.onEngines?.({ engines: [...choices, ...target.choicesOfOthers], refusal, ram });
    }
    return done;
  }

  /** The recording ends: what was not recorded because it was too early is reported. */
  end(): Promise<void> {
    return this.#early.end();
  }

  /** The machine boots again: the last records of the old boot are written to the trace. */
  async restarts(time: number | undefined): Promise<void> {
    const { target, connection, tracers, clock, engines, log } = this.#parts;
    await engines.restart(true);
    log?.append({ type: 'left', time });
    for (const calls of allCalls(tracers)) calls.abandon();
    connection.engine.points.forget();
    target.words.forget();
    if (time === undefined) return;
    clock.goOnFrom(tracers.output.time, time);
    tracers.output.moveTo(time);
  }

  /** What happened from `from` until now is not in the trace; undefined: from the machine's start. */
  async unrecorded(from = 0 as GuestNanos, why: string): Promise<void> {
    const { connection, tracers, log } = this.#parts;
    const { counting, output } = tracers;
    const to = (await connection.time()) ?? output.time;
    for (const calls of allCalls(tracers)) calls.missed();
    if (!connection.engine.clock) counting.gaps.push({ from_ns: from, to_ns: to, why });
    else {
      log?.append({ type: 'gap', from, to, why });
      counting.event({ type: 'gap', from, to, why });
    }
    output.moveTo(to);
  }
}

/**
 * The machine that rsptrace started may be reset. Then QEMU keeps RAM and breakpoints, and loads its program anew:
 * nothing of ours is left in the program.
 */
class Resets implements ResetWatch {
  readonly #vector: ResetVector;
  readonly #parts: Parts;
  readonly #boot: Boot;
  count = 0;
  /** Events in the trace at the last reset of the machine. */
  #eventsBefore = -1;

  constructor(vector: ResetVector, parts: Parts, boot: Boot) {
    this.#vector = vector;
    this.#parts = parts;
    this.#boot = boot;
  }

  /** From now on resets are noticed, if the stub takes a breakpoint at the reset vector. */
  async watch(): Promise<void> {
    if (await this.#vector.watch()) return;
    this.#parts.options.logger?.warn({}, 'the stub takes no breakpoint at the reset vector: a reset goes unseen');
  }

  at(pc: bigint, hart: string | undefined): ReturnType<ResetWatch['at']> {
    return this.#vector.stopped(pc, hart);
  }

  async again(time: number | undefined): Promise<void> {
    const { options, tracers, clock, log } = this.#parts;
    const { session, scratch, logger } = options;
    const hidden = scratch?.hidden && !isRefusal(scratch.hidden) ? scratch.hidden : undefined;
    await this.#boot.restarts(time);
    // A firmware that finds that it ran before resets the machine once more. If RAM is hidden, the firmware runs
    // without the breakpoint.
    const isSame = this.#vector.firmwareResets && !hidden && tracers.counting.count === this.#eventsBefore;
    if (!isSame) {
      this.count++;
      if (clock.info) {
        log?.append({ type: 'reset' });
        tracers.output.emit({ type: 'reset', time: tracers.output.time });
      }
    }
    this.#eventsBefore = tracers.counting.count;
    const batch = session.batch();
    for (const breakpoint of session.breakpoints) batch.removeBreakpoint(breakpoint);
    await batch.send();
    // x86's firmware runs meanwhile.
    const refused = await hidden?.hideAgain();
    if (session.state.kind !== 'idle') return;
    if (refused) logger?.warn({ why: refused.refused }, 'the kernel is told of all RAM after this reset');
    await this.watch();
    await this.#boot.insert();
    logger?.info({ resets: this.count }, 'the machine was reset');
  }
}
