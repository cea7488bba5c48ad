import type { TrampolineOverhead } from '../inject/index.js';
import type { OwnTime } from '../trace/index.js';
import type { Installed } from './installed.js';

/** What trampolines came to, in one program that the target ran or in all of them. */
interface Result {
  readonly records: number;
  /**
   * How long records were digested while the target stood, because stops wait for the records before them, in
   * milliseconds.
   */
  readonly heldMs: number;
  /** How often the ring was found full: the target waited for room. */
  readonly ringFull: number;
  /** How long its harts waited then, all together, in nanoseconds of its own clock. */
  readonly ringWaitedNs: number;
  /** Records were read out of memory shared with the target, not through the stub. */
  readonly pastWire: boolean;
  /** Where the ring and the trampolines are, or were last. */
  readonly source: string | undefined;
  readonly time: TrampolineOverhead | undefined;
}

const nothing: Result = {
  records: 0,
  heldMs: 0,
  ringFull: 0,
  ringWaitedNs: 0,
  pastWire: false,
  source: undefined,
  time: undefined,
};

/** What a recording without stops comes to: of the programs whose trampolines are gone, and of the present one. */
export class Results {
  /** The trampolines that are in the target now. */
  readonly #present: () => Installed | undefined;
  #past = nothing;
  /** Records that were not drained in time, or that their writers never committed. */
  missing = 0;
  /** How long the records of programs that are gone were digested, in milliseconds. */
  digestedMs = 0;
  /** One program has ended with records in a ring that only a stop could read. */
  tailLost = false;
  /** Open calls return through trampolines, so that these stay in the target. */
  trampolinesStay = false;
  /** These calls need them: they could not be made to return past them. */
  trampolinesNeeded = false;

  constructor(present: () => Installed | undefined) {
    this.#present = present;
  }

  /** Of all programs so far. */
  get all(): Result {
    const installed = this.#present();
    return installed ? sum(this.#past, installed) : this.#past;
  }

  /** The overhead that was subtracted from durations; undefined if it is not known. */
  get ownTime(): OwnTime | undefined {
    return this.all.time?.facts;
  }

  /** These trampolines are gone, and so many of their records are missing. */
  add(installed: Installed, missing: number): void {
    this.#past = sum(this.#past, installed);
    this.missing += missing;
    this.tailLost ||= installed.leaving.tailLost;
    this.trampolinesStay = installed.leaving.trampolinesStay;
    this.trampolinesNeeded = installed.leaving.trampolinesNeeded;
  }
}

function sum(past: Result, { target, ringWaitedNs, scratch, time }: Installed): Result {
  return {
    records: past.records + target.records,
    heldMs: past.heldMs + target.drained.heldMs,
    ringFull: past.ringFull + target.ringFull,
    ringWaitedNs: past.ringWaitedNs + ringWaitedNs,
    pastWire: past.pastWire || scratch.shared !== undefined,
    source: scratch.source,
    time: time ?? past.time,
  };
}
