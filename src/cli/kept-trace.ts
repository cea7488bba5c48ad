import { statSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import { plural } from '../base/plural.js';
import { onEvents, readTrace, timeText } from '../trace/index.js';

/** The error of a trace that found no room, with how much of it is there, if that can be read back. */
export async function withKept<E>(error: E, path: string | undefined): Promise<E | RsptraceError> {
  if (!(error instanceof RsptraceError) || error.code !== 'TRACE_WRITE_FAILED' || path === undefined) return error;
  const kept = await keptOf(path);
  if (kept === undefined) return error;
  const { code, message, hint, cause } = error;
  return new RsptraceError(code, `${message}; ${kept}`, { ...(hint === undefined ? {} : { hint }), cause });
}

async function keptOf(path: string): Promise<string | undefined> {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return undefined;
  let last: number | undefined;
  const ends = onEvents((event) => {
    last = event.type === 'gap' ? event.to : event.time;
  });
  try {
    const { events } = await readTrace(path, ends);
    const until = last === undefined ? '' : `, up to ${timeText(last)}`;
    return `the file has ${plural(events, 'event')}${until}`;
  } catch {
    // A format that is not read back: then nothing is claimed of it.
    return undefined;
  }
}
