import type { ClockSamples } from '../arch/index.js';
import type { Session } from '../rsp/index.js';
import { type Scratch, unavailable } from '../scratch/index.js';
import type { RecordCounter } from './record-dispatcher.js';

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
  const time = (ticks: number): number => Math.round(traceTime(atEnd + (ticks - endTicks) * msPerTick));
  const origin = (): ReturnType<RecordCounter['origin']> => {
    const ticks = endTicks + (performance.now() - atEnd) / msPerTick;
    return { ticks, nanos: time(ticks) };
  };
  return { time, nanosPerTick: msPerTick * 1e6, origin, stands: true };
}

/** A moment of this machine's monotonic clock, as `performance.now` counts. */
function hostMs(nanos: bigint): number {
  const now = performance.now();
  return now - Number(process.hrtime.bigint() - nanos) / 1e6;
}
