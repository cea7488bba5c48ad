import {
  type Architecture,
  type CounterRegister,
  type GuestClock,
  PM_HZ,
  PM_WRAP,
  pmTicks,
  pmTimerPort,
  readPmTimer,
} from '../arch/index.js';
import { addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Batch, isProcess, type Session } from '../rsp/index.js';
import type { ClockInfo } from '../trace/index.js';
import type { ClockName } from './clock-names.js';

/**
 * The guest's clock, read with the other registers of a hit. If a clock stands still while the guest is stopped,
 * durations do not include the tracer's own cost. Under QEMU's `-icount` that holds fully; without it QEMU lets some
 * host time leak in at stops.
 *
 * - a register that counts time: its number follows from those of others that the target description lists. Not read
 *   for a process, because QEMU in user mode answers with the host's own ticks, of unknown frequency.
 * - HPET: main counter at 0xfed000f0, its period in femtoseconds at 0xfed00004 (IA-PC HPET 1.0a, 2.3). Used only if
 *   the guest has started it, because only the guest may start it.
 * - ACPI PM timer: an I/O port, read with `monitor i` of QEMU; see `arch/acpi-timer.ts`.
 * - running intervals: the host's time while the guest ran. Always available.
 *
 * The architecture says which of the first three can exist.
 */
export interface ClockReader {
  readonly info: ClockInfo;
  /** Requests the time in this batch; the returned function gives guest nanoseconds once the batch is answered. */
  request(batch: Batch): () => number;
}

/** How long the guest has run, by the host's clock, in nanoseconds. */
type RunningTime = () => number;

interface ClockOptions {
  /** Ticks a second of a register that counts time. */
  readonly timebaseHz?: number | undefined;
  /** Called once when the clock answers no more. Such a time is the last one and the host's since. */
  readonly unread?: (clock: string) => void;
}

/**
 * Finds the best clock that answers now. Call it at the first hit: at reset, firmware has not set timers up.
 * @throws RsptraceError `CLOCK_UNAVAILABLE` if `wanted` names one that does not answer
 */
export async function findClock(
  session: Session,
  arch: Architecture,
  running: RunningTime,
  wanted: ClockName = 'auto',
  { timebaseHz = 10_000_000, unread = () => {} }: ClockOptions = {},
): Promise<ClockReader> {
  // A process has the host's time: its stub would be asked for the devices of a machine.
  const clocks = isProcess(session.features) ? [] : (arch.clocks ?? []);
  const candidates: [ClockName, () => Promise<ClockReader | undefined>][] = clocks.map((clock) => [
    clock.kind,
    () => readerOf(clock, session, { running, unread, timebaseHz }),
  ]);
  candidates.push(['intervals', async () => intervals(running)]);
  for (const [name, find] of candidates) {
    if (wanted !== 'auto' && wanted !== name) continue;
    const clock = await find();
    if (clock) return clock;
  }
  throw new RsptraceError('CLOCK_UNAVAILABLE', `the clock '${wanted}' cannot be read on this ${arch.name} target`, {
    hint: `--clock auto takes the best that can be read; others here: ${candidates
      .map(([name]) => name)
      .filter((name) => name !== wanted)
      .join(', ')}`,
  });
}

interface Host {
  readonly running: RunningTime;
  readonly unread: (clock: string) => void;
  readonly timebaseHz: number;
}

/** The readings of a counter, in nanoseconds: one that fails is the last one and the host's time since. */
function readings(label: string, { running, unread }: Host): (nanos: number | undefined) => number {
  let last = 0;
  let ranAt = 0;
  let isSaid = false;
  return (nanos) => {
    const ran = running();
    if (nanos === undefined && !isSaid) {
      isSaid = true;
      unread(label);
    }
    last = Math.round(nanos ?? last + Math.max(0, ran - ranAt));
    ranAt = ran;
    return last;
  };
}

/** Whether the counter is closed to the kernel, and its mapping in physical memory shows the same. */
async function isMapped({ gate, mapped }: CounterRegister, place: number, session: Session): Promise<boolean> {
  if (!gate || mapped === undefined || !session.target.register(gate.register)) return false;
  const batch = session.batch();
  const state = batch.readRegisters([gate.register]);
  const register = batch.readNumberedRegister(place);
  const memory = batch.readPhysicalMemory(addr(mapped), 8);
  await batch.send();
  const [ticks, there] = [exact(register.value), littleEndian(memory.value)];
  const isOpen = ((state.value.register(gate.register) ?? gate.bit) & gate.bit) !== 0n;
  return !isOpen && ticks !== undefined && there !== undefined && Math.abs(there - ticks) < sameTicks;
}

/** Two readings of one counter in one batch, while the guest stands, are not further apart. */
const sameTicks = 1000;

async function readerOf(clock: GuestClock, session: Session, host: Host): Promise<ClockReader | undefined> {
  switch (clock.kind) {
    case 'time':
      return counterRegister(clock, session, host);
    case 'hpet':
      return hpet(session, clock.label, host);
    case 'acpi-pm':
      return acpiPm(session, clock.label, host);
  }
}

async function counterRegister(
  counter: CounterRegister,
  session: Session,
  host: Host,
): Promise<ClockReader | undefined> {
  const { label, number, numbered, mapped = 0n } = counter;
  const bases = new Set<number>();
  for (const [name, own] of numbered) {
    const register = session.target.register(name);
    if (register) bases.add(register.number - own);
  }
  const [base] = bases;
  if (base === undefined || bases.size !== 1) return undefined;
  const place = base + number;
  const first = session.batch();
  const answer = first.readNumberedRegister(place);
  await first.send();
  const ticks = exact(answer.value);
  // OpenOCD answers with zeros for a register that the hart does not have; under QEMU's -icount time may truly be 0.
  if (ticks === undefined || (ticks === 0 && !(await session.stub()).isQemu)) return undefined;
  const nanosPerTick = 1e9 / host.timebaseHz;
  const hasSpare = await isMapped(counter, place, session);
  const reading = readings(label, host);
  return {
    info: { name: label, resolutionNs: nanosPerTick, guest: true },
    request(batch) {
      const reply = batch.readNumberedRegister(place);
      const spare = hasSpare ? batch.readPhysicalMemory(addr(mapped), 8) : undefined;
      return () => {
        const ticks = exact(reply.value) ?? littleEndian(spare?.value);
        return reading(ticks === undefined ? undefined : ticks * nanosPerTick);
      };
    },
  };
}

const hpetPeriod = addr(0xfed00004n);
const hpetConfig = addr(0xfed00010n);
const hpetCounter = addr(0xfed000f0n);

async function hpet(session: Session, label: string, host: Host): Promise<ClockReader | undefined> {
  const first = session.batch();
  const period = first.readPhysicalMemory(hpetPeriod, 4);
  const config = first.readPhysicalMemory(hpetConfig, 8);
  const counter = first.readPhysicalMemory(hpetCounter, 8);
  await first.send();
  const femtos = littleEndian(period.value);
  const enabled = littleEndian(config.value);
  // The specification's bounds for the period: more than 0, at most 100 ns.
  if (!femtos || femtos > 100_000_000 || !enabled || enabled % 2 === 0) return undefined;
  if (littleEndian(counter.value) === undefined) return undefined;
  const nanosPerTick = femtos / 1e6;
  const reading = readings(label, host);
  return {
    info: { name: label, resolutionNs: nanosPerTick, guest: true },
    request(batch) {
      const reply = batch.readPhysicalMemory(hpetCounter, 8);
      return () => {
        const ticks = littleEndian(reply.value);
        return reading(ticks === undefined ? undefined : ticks * nanosPerTick);
      };
    },
  };
}

async function acpiPm(session: Session, label: string, host: Host): Promise<ClockReader | undefined> {
  const port = await pmTimerPort((command) => session.monitor(command));
  const first = port === undefined ? undefined : pmTicks(await session.monitor(readPmTimer(port)));
  if (port === undefined || first === undefined) return undefined;
  const { running } = host;
  let ticks = first;
  let lastRaw = first;
  let lastRunning = running();
  const reading = readings(label, host);
  reading((first * 1e9) / PM_HZ);
  return {
    info: { name: label, resolutionNs: 1e9 / PM_HZ, guest: true },
    request(batch) {
      const reply = batch.monitor(readPmTimer(port));
      return () => {
        const raw = pmTicks(reply.value);
        if (raw === undefined) return reading(undefined);
        const step = (raw - lastRaw + PM_WRAP) % PM_WRAP;
        // The counter wraps each 4.7 s. Only the host's clock can say how often it did so since the last read.
        const ran = running();
        const wraps = Math.max(0, Math.round(((ran - lastRunning) * (PM_HZ / 1e9) - step) / PM_WRAP));
        ticks += step + wraps * PM_WRAP;
        lastRaw = raw;
        lastRunning = ran;
        return reading((ticks * 1e9) / PM_HZ);
      };
    },
  };
}

function intervals(running: RunningTime): ClockReader {
  return {
    info: { name: 'running-intervals', resolutionNs: 1, guest: false },
    request() {
      const now = Math.round(running());
      return () => now;
    },
  };
}

function littleEndian(bytes: Uint8Array | undefined): number | undefined {
  if (bytes === undefined) return undefined;
  let value = 0;
  for (let i = bytes.length - 1; i >= 0; i--) value = value * 256 + (bytes[i] ?? 0);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** The value; undefined if there is none or it exceeds 2^53. */
function exact(value: bigint | undefined): number | undefined {
  const number = Number(value ?? Number.NaN);
  return Number.isSafeInteger(number) ? number : undefined;
}
