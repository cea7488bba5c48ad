import { RsptraceError } from '../base/errors.js';
import type { ClockReader } from '../clock/index.js';
import type { Session } from '../rsp/index.js';
import type { Gap, GuestNanos } from '../trace/index.js';

/** The error of a link that breaks in the middle. */
export function isLinkError(thrown: unknown): boolean {
  return thrown instanceof RsptraceError && /^RSP_(?:CLOSED|TIMEOUT|PROTOCOL)$/.test(thrown.code);
}

/** The gap that ends now, by the clock that was used before. */
export async function gapUntilNow(
  session: Session,
  clock: ClockReader,
  before: ClockReader,
  from: GuestNanos,
): Promise<Gap> {
  if (clock.info.name !== before.info.name) {
    throw new RsptraceError(
      'CLOCK_UNAVAILABLE',
      `after the link was broken the clock ${before.info.name} cannot be read any more`,
    );
  }
  const batch = session.batch();
  const time = clock.request(batch);
  await batch.send();
  const to = time() as GuestNanos;
  if (to < from) {
    throw new RsptraceError(
      'TARGET_RESTARTED',
      'the target was restarted while the link was broken: its clock went back',
    );
  }
  return { type: 'gap', from, to };
}
