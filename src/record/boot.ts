import { hex } from '../base/addr.js';
import { silent } from '../base/logger.js';
import { isRefusal } from '../base/refusal.js';
import type { GuestNanos } from '../trace/index.js';
import { CodeAsLoaded } from './code-as-loaded.js';
import { EarlyStops } from './early-stops.js';
import { type Parts, reportLeftOut } from './parts.js';
import { addressesOf } from './program.js';
import { Resets } from './resets.js';
import { TableChanges } from './table-changes.js';

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
    const { options, target, engines, connection } = parts;
    this.#parts = parts;
    this.#early = this.#makeEarlyStops();
    this.tables = new TableChanges({
      places: options.engine === 'stop' ? [] : target.pagingAt,
      engines,
      connection,
      early: this.#early,
      interrupts: options.nanosPerInstruction === undefined,
      pc: target.program.arch.pc,
      logger: options.logger ?? silent,
    });
    this.resets = this.#makeResets();
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
    if (settlesAt !== undefined) await points.pause(settlesAt, () => engines.settle());
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
      log?.tell({ type: 'words', words: [...words.hints].map(([word, hart]) => [hex(word), hart]) });
    }
    // Stops alone leave no records that are not yet events.
    if (engines.refusal !== undefined && !options.log?.keeps) log?.end(false);
    if (!done && engines.isWaiting) await this.#early.tooEarly();
    if (engines.isInstalled) await this.tables.watch();
    if (done) {
      const { choices, refusal } = engines;
      reportLeftOut(this.#parts, choices);
      options.onEngines?.({ engines: choices, refusal, ram });
    }
    return done;
  }

  /** The recording ends: what was not recorded because it was too early is reported. */
  end(): Promise<void> {
    return this.#early.end();
  }

  /** The machine boots again: the last records of the old boot are written to the trace. */
  async #ended(time: number | undefined): Promise<void> {
    const { target, connection, tracers, clock, engines, log } = this.#parts;
    await engines.restart(true);
    log?.tell({ type: 'left' });
    tracers.calls.abandon();
    connection.engine.points.forget();
    target.words.forget();
    if (time === undefined) return;
    clock.goOnFrom(tracers.output.time, time);
    tracers.output.moveTo(time);
  }

  /** What happened from `from` until now is not in the trace. */
  async #unrecorded(from: GuestNanos, why: string): Promise<void> {
    const { connection, tracers } = this.#parts;
    const { calls, counting, output } = tracers;
    const to = (await connection.time()) ?? output.time;
    calls.missed();
    if (!connection.engine.clock) counting.gaps.push({ from_ns: from, to_ns: to, why });
    else counting.event({ type: 'gap', from, to, why });
    output.moveTo(to);
  }

  #makeEarlyStops(): EarlyStops {
    const { options, target, connection, tracers, engines } = this.#parts;
    const { engine: wanted = 'auto', fromReset = false } = options;
    const { foundLate: late, pagingAt: places, settlesAt, program } = target;
    const addresses = addressesOf(program);
    return new EarlyStops({
      ...{ wanted, fromReset, late, places, addresses, connection, engines },
      isSure: settlesAt !== undefined,
      watch: () => this.tables.watch(),
      arrive: () => this.firstHit(false),
      time: () => tracers.output.time,
      loaded: new CodeAsLoaded(program.elf, addresses, connection),
      unrecorded: (from = 0 as GuestNanos, why) => this.#unrecorded(from, why),
    });
  }

  #makeResets(): Resets | undefined {
    const { options, tracers, clock } = this.#parts;
    const { session, resetVector: vector, scratch, logger = silent } = options;
    const { counting, output } = tracers;
    if (!vector) return undefined;
    return new Resets({
      ...{ session, vector, logger },
      hidden: scratch?.hidden,
      ended: (time) => this.#ended(time),
      emit: () => {
        if (clock.info) output.emit({ type: 'reset', time: output.time });
      },
      events: () => counting.count,
      insert: () => this.insert(),
    });
  }
}
