import type { Addr } from '../base/addr.js';
import type { Engines, StopEngine } from '../engines/index.js';
import type { TablePlace } from '../facts/index.js';
import type { StopObserver } from '../probes/index.js';
import type { Batch, Session, SignalStop } from '../rsp/index.js';
import type { EarlyStops } from './early-stops.js';

/** A place that has changed the table so often, with nothing for us to do, is left alone. */
const mostIdle = 4;
/** So often a place is waited for while there are no trampolines. */
const mostEarly = 50;
/**
 * How long the target runs without a stop before the other places are left alone, in milliseconds: a breakpoint slows
 * the code beside it.
 */
const patience = 500;
const SIGINT = 2;

export interface TableChangesOptions {
  readonly places: readonly TablePlace[];
  readonly engines: Engines;
  readonly engine: () => StopEngine;
  readonly session: () => Session;
  /** What is done while there are no trampolines. */
  readonly early: () => Pick<EarlyStops, 'changed' | 'patience' | 'takeOut'>;
  /** The target may be interrupted: two runs need not be alike. */
  readonly interrupts: boolean;
}

/**
 * Stands behind each place where a kernel turns to another page table, from when that matters. Trampolines that are
 * there already are mapped in the new table too, before a function is called that leads to them.
 */
export class TableChanges implements StopObserver {
  readonly #options: TableChangesOptions;
  /** By place: how often it was passed to no purpose. */
  readonly #waiting = new Map<TablePlace, number>();
  /** How long it has run without trampolines, in milliseconds. */
  #ran = 0;
  /** The same since they were there and a probe last stopped it. */
  #quiet = 0;
  #interrupted = false;

  constructor(options: TableChangesOptions) {
    this.#options = options;
  }

  /** The machine begins. */
  begin(): void {
    this.#ran = 0;
    this.#quiet = 0;
    this.#waiting.clear();
  }

  /** From now on a change of the table matters. */
  async watch(): Promise<void> {
    for (const place of this.#options.places) if (!this.#waiting.has(place)) await this.#wait(place, 0);
  }

  runs(): () => void {
    const stop = this.#options.engines.runs();
    const left = this.#left;
    if (left === undefined) return stop;
    const began = performance.now();
    const timer = setTimeout(() => this.#interrupt(), left);
    return () => {
      clearTimeout(timer);
      const ms = performance.now() - began;
      if (this.#options.engines.isInstalled) this.#quiet += ms;
      else this.#ran += ms;
      stop();
    };
  }

  /** How long the target may run until something is to be done, in milliseconds; undefined: for ever. */
  get #left(): number | undefined {
    const { engines, early, interrupts } = this.#options;
    if (!interrupts) return undefined;
    if (engines.isInstalled) return this.#waiting.size > 0 ? patience - this.#quiet : undefined;
    const most = early().patience;
    return most === undefined ? undefined : most - this.#ran;
  }

  async handles(stop: SignalStop, resume: Batch): Promise<boolean> {
    const isOurs = this.#interrupted && stop.signal === SIGINT && stop.reason === undefined;
    if (isOurs) await this.#tooLong();
    return (await this.#options.engines.handles(stop, resume)) || isOurs;
  }

  stopped(tells: boolean, at?: Addr): Promise<void> {
    if (tells) this.#quiet = 0;
    return this.#options.engines.stopped(tells, at);
  }

  async #wait(place: TablePlace, idle: number): Promise<void> {
    this.#waiting.set(place, idle);
    await this.#options.engine().points.intercept(place.addresses, () => this.#changed(place, idle));
  }

  async #changed(place: TablePlace, idle: number): Promise<void> {
    const { engines, early } = this.#options;
    this.#waiting.delete(place);
    const isEarly = !engines.isInstalled;
    if (isEarly) await early().changed();
    const isIdle = isEarly || (await engines.followTable());
    const now = isIdle ? idle + 1 : 0;
    if (now < (isEarly ? mostEarly : mostIdle)) await this.#wait(place, isEarly && engines.isInstalled ? 0 : now);
  }

  async #tooLong(): Promise<void> {
    this.#interrupted = false;
    if (this.#options.engines.isInstalled) await this.#leave();
    else await this.#options.early().takeOut();
  }

  async #leave(): Promise<void> {
    const places = [...this.#waiting.keys()].flatMap(({ addresses }) => addresses);
    this.#waiting.clear();
    await this.#options.engine().points.release(places);
  }

  #interrupt(): void {
    const session = this.#options.session();
    if (session.state.kind !== 'running') return;
    this.#interrupted = true;
    // An error here also ends the run, which reports it.
    session.interrupt().catch(() => {});
  }
}
