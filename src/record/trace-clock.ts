import type { Addr } from '../base/addr.js';
import { isRefusal, type Refusal, RsptraceError } from '../base/errors.js';
import {
  type ClockLeak,
  type ClockReader,
  type ClosedCounter,
  CounterGate,
  findClock,
  JUMPS,
  RepeatedLeak,
  SteadyClock,
  SteppedLeak,
  type StopLeak,
  type UnknownRest,
} from '../clock/index.js';
import { counterScale, type RecordCounter } from '../inject/index.js';
import type { Session } from '../rsp/index.js';
import type { ClockInfo, GuestNanos } from '../trace/index.js';
import type { Connection } from './connection.js';
import { samplesOf, watchesOf } from './program.js';
import type { RecordOptions } from './recording.js';
import type { Verified } from './verify.js';

/** Ticks a second of the time counter of QEMU's `virt` machine. */
const defaultTimebaseHz = 10_000_000;

/** Why durations are not known where nothing is measured. */
const UNMEASURED: UnknownRest = {
  perStopNs: undefined,
  why: 'what a stop adds to the clock is not measured here',
  wayOut: 'use probes that need no stops',
};

/** Where a trap stops the target in the midst of whatever runs without stops. */
export const leakOfTraps: StopLeak = {
  ...{ totalNs: 0, perStopNs: 0, measured: 0, stops: 0 },
  rest: {
    perStopNs: undefined,
    why: 'a stop at a trap may be in any of them, and what it adds is not measured beside probes without stops',
    wayOut: 'leave traps and system calls out, or take the functions that handle them (fn:)',
  },
};

/** The same of a process, whose waits in the kernel go on while it stands. */
export function leakOfProcess({ rest, ...leak }: StopLeak): StopLeak {
  if (rest === 'tick') return { ...leak, rest };
  const why = `${rest.why}; but a call that waits in the kernel waits on while the process stands, and may have taken longer`;
  return { ...leak, rest: { ...rest, why } };
}

/** What the recording has to do with the counter that trampolines read. */
interface CounterWishes {
  /** Whether there may be trampolines that read it. */
  readonly isWanted: () => boolean;
  readonly now: () => number;
  /** Called when the kernel was let read it. */
  readonly opened: (closed: ClosedCounter) => void;
}

/** The clock of a trace, found at the first stop, and the counter of the records. */
export class TraceClock {
  readonly #options: RecordOptions;
  readonly #target: Verified;
  readonly #connection: Pick<Connection, 'ranNs'>;
  #steady: SteadyClock | undefined;
  #leak: ClockLeak | undefined;
  readonly #gate: CounterGate;
  readonly #counter: CounterWishes;
  #ofRecords: string | undefined;

  constructor(options: RecordOptions, target: Verified, connection: Pick<Connection, 'ranNs'>, counter: CounterWishes) {
    this.#options = options;
    this.#target = target;
    this.#connection = connection;
    this.#gate = new CounterGate(options.session, target.program.arch);
    this.#counter = counter;
  }

  /** The trace's description of it; undefined before the first stop. */
  get info(): ClockInfo | undefined {
    return this.#steady?.info;
  }

  /** The guest's counter that records have their times from, where stops have another clock. */
  get ofRecords(): string | undefined {
    return this.#ofRecords;
  }

  /** The clock of the first connection, once it was found. */
  get steady(): SteadyClock | undefined {
    return this.#steady;
  }

  /** What stops add to the clock; undefined before the first stop, and where it cannot be taken out. */
  get leak(): ClockLeak | undefined {
    return this.#leak;
  }

  /** What stops have added, and what remains of that. */
  get leaked(): StopLeak {
    const rest = this.#options.counts?.sleeps === false ? JUMPS : UNMEASURED;
    return this.#leak?.facts ?? { totalNs: 0, perStopNs: 0, measured: 0, stops: 0, rest };
  }

  /**
   * Finds out whether what stops add can be taken out: of a machine of QEMU whose clock is the guest's. What is watched
   * would be accessed in a step.
   */
  async findLeak(): Promise<void> {
    const { session, counts, reconnect } = this.#options;
    const { program, isProcess } = this.#target;
    const { arch, elf } = program;
    const steady = this.#steady;
    if (!steady?.info.guest || isProcess || reconnect || watchesOf(program).length > 0 || samplesOf(program)) return;
    if (counts?.sleeps === false || (counts && !arch.waits) || (await session.stub()).name !== 'qemu-system') return;
    const code = (address: Addr, length: number) => elf.bytesAt(address, length);
    this.#leak = counts ? new SteppedLeak({ session, arch, clock: steady, counts, code }) : new RepeatedLeak(steady);
  }

  async first(session: Session): Promise<ClockReader> {
    if (this.#counter.isWanted()) await this.#openCounter();
    this.#steady = new SteadyClock(await this.find(session));
    return this.#steady;
  }

  /** The counter that is open for the kernel, because trampolines read it. */
  get openCounter(): ClosedCounter | undefined {
    return this.#gate.opened;
  }

  /** What was opened for the kernel is closed again: no code of ours runs any more. */
  async closeCounter(): Promise<void> {
    await this.#gate.close();
  }

  /** Lets the kernel read the counter, where firmware keeps it; or why that cannot be. */
  async #openCounter(): Promise<Refusal | undefined> {
    const opened = await this.#gate.open();
    if (!opened || isRefusal(opened)) return opened;
    this.#counter.opened(opened);
    return undefined;
  }

  find(session: Session): Promise<ClockReader> {
    const { clock, timebaseHz, logger } = this.#options;
    const unread = (name: string): void =>
      logger?.warn(
        { clock: name },
        "the guest's clock cannot be read at some stops: their times are the last one and how long the guest ran since, by the host",
      );
    return findClock(session, this.#target.program.arch, () => this.#connection.ranNs, clock, { timebaseHz, unread });
  }

  /** The machine was reset, and its clock now says `time`: the trace's time continues from `last`. */
  goOnFrom(last: GuestNanos, time: number): void {
    this.#steady?.goOnFrom(last, time);
  }

  /**
   * What the ticks in records mean. `at`: memory of ours in the target.
   * @throws RsptraceError `COUNTER_UNKNOWN` if trampolines would trap when they read it
   */
  async counter(session: Session, at: Addr): Promise<RecordCounter> {
    const { arch } = this.#target.program;
    const refused = await this.#openCounter();
    if (refused)
      throw new RsptraceError('COUNTER_UNKNOWN', `the kernel may not read the time counter, and ${refused.refused}`, {
        hint: '--engine stop takes the time from the host, and count: probes need none',
      });
    const calibration = arch.probeCode?.calibration;
    const steady = this.#steady;
    if (calibration && steady) {
      if (!steady.info.guest) this.#ofRecords = calibration.name;
      return counterScale({ session, arch, calibration, clock: steady, lastTime: this.#counter.now }, at);
    }
    const { clock = 'auto', nanosPerInstruction, timebaseHz = defaultTimebaseHz } = this.#options;
    // Trampolines read the time CSR, which would trap on a hart that has none.
    if (!this.#target.isProcess && steady?.info.guest === false && clock === 'auto') {
      throw new RsptraceError('COUNTER_UNKNOWN', 'the target has no time counter that can be read', {
        hint:
          nanosPerInstruction === undefined
            ? '--engine stop takes the time from the host'
            : 'under -icount sleep=off a stop before the first timer moves the clock to the end of time: leave sleep=off out',
      });
    }
    const nanosPerTick = 1e9 / timebaseHz;
    const ahead = steady?.ahead ?? 0;
    const origin = { ticks: 0, nanos: ahead };
    return { time: (ticks) => Math.round(ticks * nanosPerTick) + ahead, nanosPerTick, origin: () => origin };
  }
}
