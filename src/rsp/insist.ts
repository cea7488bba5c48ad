import { setTimeout as sleep } from 'node:timers/promises';
import { RsptraceError } from '../base/errors.js';
import type { SessionState } from './run-control.js';

/** What disturbs a wire may go on for a while: so often is asked, with a pause in between that doubles each time. */
const mostTries = 7;
const firstPauseMs = 10;

/**
 * Asks again what may be asked twice when its answers are lost, not by silence, and the link has found back into their sequence.
 * @param ask told whether all of it or a part may be done already
 */
export async function insist(
  session: { readonly state: SessionState },
  ask: (again: boolean) => Promise<void>,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await ask(tries > 1);
      return;
    } catch (error) {
      const isLost = error instanceof RsptraceError && error.code === 'RSP_PROTOCOL';
      if (!isLost || session.state.kind !== 'idle' || tries === mostTries) throw error;
    }
    await sleep(firstPauseMs * 2 ** (tries - 1));
  }
}
