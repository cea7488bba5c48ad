// What the ticks of the counter that trampolines read mean, in nanoseconds: of a machine, and of a process.
import type { Architecture, ClockSamples, CounterCalibration } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { ClockReader } from '../clock/index.js';
import { type Breakpoint, registersOf, type Session } from '../rsp/index.js';
import { type Scratch, unavailable } from '../scratch/index.js';
import type { RecordCounter } from './record-dispatcher.js';

interface ScaleRequest {
  readonly session: Session;
  readonly arch: Architecture;
  readonly calibration: CounterCalibration;
  /** That of stops. */
  readonly clock: ClockReader;
  /** The time of the last event. */
  readonly lastTime: () => number;
}

/**
 * Measures how a counter's ticks become the nanoseconds of `clock`. It runs code at `at` in the target for a few
 * milliseconds, then restores everything. The target is stopped in its kernel's code.
 * @throws RsptraceError `COUNTER_UNKNOWN` if that cannot be done
 */
export async function counterScale(request: ScaleRequest, at: Addr): Promise<RecordCounter> {
  const { session, arch, calibration, clock, lastTime } = request;
  const reference = await calibration.reference((command) => session.monitor(command));
  if (reference === undefined) throw unknown('the machine has no timer that it can be counted against');
  const { bytes, breakpoint } = calibration.code(at, reference);
  if (!(await session.memory().write(at, bytes))) throw unknown('the scratch memory cannot be written');
  const before = await registersOf(session, undefined, calibration.changes);
  const saved = calibration.changes.map((name) => {
    const value = before.register(name);
    if (value === undefined) throw unknown(`the stub does not give the register ${name}, so it could not be restored`);
    return { name, value };
  });
  const begin = saved.flatMap((register) => {
    const value = register.name === arch.pc ? at : calibration.begin(register);
    return value === undefined ? [] : [{ name: register.name, value }];
  });
  const kind = arch.breakpointKind(bytes.subarray(Number(breakpoint - at)));
  const place = { type: 0, address: breakpoint, kind } as const;
  const { after, time } = await ranTo(session, place, { begin, saved, clock });
  const found = after.register(arch.pc) === breakpoint ? calibration.result(after) : undefined;
  if (!found || found.elapsed <= 0 || found.reference <= 0) throw unknown('the measurement was interrupted');
  const nanosPerTick = ((found.reference / found.elapsed) * 1e9) / calibration.referenceHz;
  const base = time();
  const { counter } = found;
  const scale = (ticks: number): number => Math.round(base + (ticks - counter) * nanosPerTick);
  const counted = { time: scale, nanosPerTick, origin: () => ({ ticks: counter, nanos: base }) };
  return clock.info.guest ? counted : behindStops(counted, lastTime);
}

interface RegisterValue {
  readonly name: string;
  readonly value: bigint;
}

interface Run {
  /** What registers have when it begins. */
  readonly begin: readonly RegisterValue[];
  /** All that it changes, as they were. */
  readonly saved: readonly RegisterValue[];
  readonly clock: ClockReader;
}

/**
 * Runs to a breakpoint: the registers there, and the clock. Whatever happens, the saved registers are restored and the
 * breakpoint is removed, because the target would otherwise go on in memory that is given back.
 */
async function ranTo(
  session: Session,
  place: Breakpoint,
  { begin, saved, clock }: Run,
): Promise<{ readonly after: RegisterReader; readonly time: () => number }> {
  const insertion = session.batch();
  const inserted = insertion.insertBreakpoint(place);
  await insertion.send();
  if (!inserted.value) throw unknown('the stub takes no breakpoint in the scratch memory');
  let changed: readonly RegisterValue[] = [];
  try {
    const written = await writeRegisters(session, begin);
    changed = saved.filter(({ name }) => written.has(name));
    const refused = begin.find(({ name }) => !written.has(name));
    if (refused) throw unknown(`the stub does not write the register ${refused.name}`);
    changed = saved;
    // This hart alone: other harts would meanwhile hit breakpoints.
    const { stop } = session.state.kind === 'idle' ? session.state : { stop: undefined };
    const hart = stop?.kind === 'signal' ? stop.hart : undefined;
    await session.resume({ kind: 'continue', ...(hart !== undefined && { hart }) });
    const reading = session.batch();
    const after = reading.readRegisters(saved.map(({ name }) => name));
    const time = clock.request(reading);
    await reading.send();
    return { after: after.value, time };
  } finally {
    if (session.state.kind === 'idle') await restore(session, changed, place);
  }
}

/** The names of the registers that the stub has written. */
async function writeRegisters(session: Session, registers: readonly RegisterValue[]): Promise<ReadonlySet<string>> {
  const batch = session.batch();
  const replies = registers.map(({ name, value }) => ({ name, reply: batch.writeRegister(name, value) }));
  await batch.send();
  return new Set(replies.flatMap(({ name, reply }) => (reply.value ? [name] : [])));
}

async function restore(session: Session, registers: readonly RegisterValue[], place: Breakpoint): Promise<void> {
  const written = await writeRegisters(session, registers);
  const removal = session.batch();
  const removed = removal.removeBreakpoint(place);
  await removal.send();
  const lost = registers.filter(({ name }) => !written.has(name)).map(({ name }) => name);
  if (!removed.value) lost.push('the breakpoint');
  if (lost.length === 0) return;
  throw new RsptraceError(
    'RSP_WRITE_REFUSED',
    `the stub does not let the target be as it was before its counter was measured: ${lost.join(', ')}`,
    { hint: 'restart the target; --engine stop reads the time at each stop and measures no counter' },
  );
}

/**
 * For a trace whose stops have the host's time, which runs ahead of the counter by what each stop takes: the counter is
 * set after the last stop whenever it is behind. So time goes on, and what happens between two stops takes as long as
 * the counter says. `lastTime`: the time of the last event.
 */
export function behindStops(counter: RecordCounter, lastTime: () => number): RecordCounter {
  let ahead = 0;
  let latest = Number.NEGATIVE_INFINITY;
  const time = (ticks: number): number => {
    const stopped = lastTime();
    const nanos = counter.time(ticks);
    // Records of several harts may be a little out of order: then the last event was none of a stop.
    if (stopped > latest) ahead = Math.max(ahead, stopped - nanos);
    latest = Math.max(latest, nanos + ahead);
    return nanos + ahead;
  };
  const origin = (): ReturnType<RecordCounter['origin']> => {
    const { ticks, nanos } = counter.origin();
    return { ticks, nanos: nanos + ahead };
  };
  return { ...counter, time, origin, behindStops: true };
}

function unknown(why: string): RsptraceError {
  return new RsptraceError(
    'COUNTER_UNKNOWN',
    `the rate of the target's time stamp counter cannot be found out: ${why}`,
    {
      hint: '--engine stop reads the time at each stop',
    },
  );
}

/** Converts a moment of the host (milliseconds as `performance.now` counts) to the trace's nanoseconds. */
export type TraceTime = (hostMs: number) => number;

/**
 * Measures how the ticks of a process's counter become the trace's nanoseconds. Code in the process counts them
 * against the kernel's clock for some milliseconds. A process on this machine shares that clock with the client.
 * Elsewhere the measurement is assumed to end now.
 * @throws RsptraceError `SCRATCH_UNAVAILABLE` if the process may not read its counter, `RSP_*`
 */
export async function processScale(
  session: Session,
  clock: ClockSamples,
  scratch: Scratch,
  traceTime: TraceTime,
): Promise<RecordCounter> {
  const { calls, code, data } = scratch;
  if (!calls || data.size < clock.size) throw unavailable('it is no memory of a process');
  const { bytes, breakpoint } = clock.code(code.address, data.address);
  const memory = session.memory();
  if (!(await memory.write(code.address, bytes))) throw unavailable('the stub does not write memory');
  const began = performance.now();
  await calls.with(() => calls.run(code.address, breakpoint));
  const ended = performance.now();
  const samples = await memory.read(data.address, clock.size);
  await memory.write(data.address, new Uint8Array(clock.size));
  const found = samples && clock.result(samples);
  if (!found) throw unavailable('its time stamp counter does not go forward');
  const [first, last] = found;
  const msPerTick = Number(last.nanos - first.nanos) / Number(last.ticks - first.ticks) / 1e6;
  const [start, end] = [first, last].map(({ nanos }) => hostMs(nanos)) as [number, number];
  const atEnd = start >= began && end <= ended ? end : ended;
  const endTicks = Number(last.ticks);
  const exact = (ticks: number): number => traceTime(atEnd + (ticks - endTicks) * msPerTick);
  const time = (ticks: number): number => Math.round(exact(ticks));
  const origin = (): ReturnType<RecordCounter['origin']> => {
    const ticks = endTicks + (performance.now() - atEnd) / msPerTick;
    return { ticks, nanos: exact(ticks) };
  };
  return { time, nanosPerTick: msPerTick * 1e6, origin, stands: true };
}

/** A moment of this machine's monotonic clock, as `performance.now` counts. */
function hostMs(nanos: bigint): number {
  const now = performance.now();
  return now - Number(process.hrtime.bigint() - nanos) / 1e6;
}
