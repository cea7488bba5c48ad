import { createWriteStream, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf, RsptraceError } from '../base/errors.js';
import { ExitCode, reportError } from './failure.js';

/** The exit status if stdout could not be written. */
let statusWithout: number = ExitCode.failed;

/** From here on, stdout describes a recording that is kept. */
export function recordsBesideStdout(): void {
  statusWithout = ExitCode.cutShort;
}

/**
 * A stdout that cannot be written (a full disk) is reported once, in one sentence and by the exit status. The command
 * goes on, so that a recording is not lost with its table. A reader that has gone away (`rsptrace ... | head`) is no
 * error.
 */
export function watchStandardStreams(): void {
  let failed = false;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || failed) return;
    failed = true;
    reportError(
      new RsptraceError('OUTPUT_CANNOT_WRITE', `standard output cannot be written: ${messageOf(error)}`, {
        hint: 'send it to a disk with room',
      }),
    );
  });
  // No stream is left for the message.
  process.stderr.on('error', () => {});
  process.on('exit', (status) => {
    if (failed && status === ExitCode.recorded) process.exitCode = statusWithout;
  });
}

/** What streams lines ends when nobody reads them any more: `| head`. */
export function abortWithoutReader(controller: AbortController): Disposable {
  const abort = (): void => controller.abort();
  process.stdout.once('error', abort);
  return { [Symbol.dispose]: () => void process.stdout.off('error', abort) };
}

/** Writes standard input into a file without a name, which goes with this process, however it ends. Gives its path. */
export async function keptStandardInput(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-'));
  const fd = openSync(join(folder, 'stdin'), 'w+');
  rmSync(folder, { recursive: true });
  await pipeline(process.stdin, createWriteStream('', { fd, autoClose: false }));
  return `/dev/fd/${fd}`;
}
