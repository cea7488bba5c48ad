import { setTimeout as sleep } from 'node:timers/promises';
import { RsptraceError } from '../../base/errors.js';
import type { SessionState } from '../session/run-control.js';

/** A disturbance of a wire may last for a while: the most retries, with a pause in between that doubles each time. */
const mostTries = 7;
const firstPauseMs = 10;
/** A dropped packet is noticed only by silence, for a whole timeout each time. */
const mostSilences = 2;

/**
 * Retries if answers are lost and the link has found its place in their sequence. Only for requests that may be sent
 * twice.
 * @param ask gets whether all of it or a part may be done already
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
