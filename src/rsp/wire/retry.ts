import { setTimeout as sleep } from 'node:timers/promises';
import { RsptraceError } from '../../base/errors.js';
import type { SessionState } from '../session/run-control.js';

/** What disturbs a wire may go on for a while: so often is asked, with a pause in between that doubles each time. */
const mostTries = 7;
const firstPauseMs = 10;
/** A packet that was dropped is noticed by silence alone, for a whole time-out each time. */
const mostSilences = 2;

/**
 * Asks again when answers are lost and the link has found its place in their sequence. Only for what may be asked
 * twice.
 * @param ask told whether all of it or a part may be done already
 */
export async function retry<T>(
  session: { readonly state: SessionState },
  ask: (again: boolean) => Promise<T>,
): Promise<T> {
  let silences = 0;
  for (let tries = 1; ; tries++) {
    try {
      return await ask(tries > 1);
    } catch (error) {
      const code = error instanceof RsptraceError ? error.code : undefined;
      const isLost = code === 'RSP_PROTOCOL' || (code === 'RSP_TIMEOUT' && ++silences < mostSilences);
      if (!isLost || session.state.kind !== 'idle' || tries === mostTries) throw error;
    }
    await sleep(firstPauseMs * 2 ** (tries - 1));
  }
}
