import type { Architecture, CounterCalibration } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { ClockReader } from '../clock/index.js';
import { registersOf, type Session } from '../rsp/index.js';
import type { RecordCounter } from './record-dispatcher.js';

/**
 * Measures how a counter's ticks become the nanoseconds of `clock`. It runs code at `at` in the target for a few
 * milliseconds, then restores everything. The target is stopped in its kernel's code.
 * @throws RsptraceError `COUNTER_UNKNOWN` if that cannot be done
 */
export async function counterScale(
  session: Session,
  arch: Architecture,
  calibration: CounterCalibration,
  clock: ClockReader,
  at: Addr,
): Promise<RecordCounter> {
  const reference = await calibration.reference((command) => session.monitor(command));
  if (reference === undefined) throw unknown('the machine has no timer that it can be counted against');
  const { bytes, breakpoint } = calibration.code(at, reference);
  if (!(await session.memory().write(at, bytes))) throw unknown('the scratch memory cannot be written');
  const before = await registersOf(session);
  const saved = calibration.changes.flatMap((name) => {
    const value = before.register(name);
    return value === undefined ? [] : [{ name, value }];
  });
  const place = { type: 0, address: breakpoint, kind: 1 } as const;
  const set = session.batch();
  for (const register of saved) {
    const value = register.name === arch.pc ? at : calibration.begin(register);
    if (value !== undefined) set.writeRegister(register.name, value);
  }
  const planted = set.insertBreakpoint(place);
  await set.send();
  if (!planted.value) throw unknown('the stub takes no breakpoint in the scratch memory');
  // This hart alone: other harts would meanwhile hit breakpoints.
  const { stop } = session.state.kind === 'idle' ? session.state : { stop: undefined };
  const hart = stop?.kind === 'signal' ? stop.hart : undefined;
  await session.resume({ kind: 'continue', ...(hart !== undefined && { hart }) });
  const after = await registersOf(session);
  const now = session.batch();
  const time = clock.request(now);
  for (const { name, value } of saved) now.writeRegister(name, value);
  now.removeBreakpoint(place);
  await now.send();
  const found = after.register(arch.pc) === breakpoint ? calibration.result(after) : undefined;
  if (!found || found.elapsed <= 0 || found.reference <= 0) throw unknown('the measurement was interrupted');
  const nanosPerTick = ((found.reference / found.elapsed) * 1e9) / calibration.referenceHz;
  const base = time();
  const { counter } = found;
  const scale = (ticks: number): number => Math.round(base + (ticks - counter) * nanosPerTick);
  return { time: scale, nanosPerTick, origin: () => ({ ticks: counter, nanos: base }) };
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
