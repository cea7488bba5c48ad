import { messageOf, RsptraceError } from '../base/errors.js';
import { ExitCode, errorText } from './failure.js';

/** What becomes of the exit status when stdout could not be written. */
let statusWithout: number = ExitCode.failed;

/** From here on, what is on stdout tells of a recording that is kept. */
export function recordsBesideStdout(): void {
  statusWithout = ExitCode.cutShort;
}

/**
 * A stdout that cannot be written (a full disk) is told once, in one sentence and by the exit status. The command goes on: a
 * recording is not lost with its table. A reader that has gone away (`rsptrace ... | head`) is no error.
 */
export function watchStandardStreams(): void {
  let failed = false;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || failed) return;
    failed = true;
    process.stderr.write(
      errorText(
        new RsptraceError('STDOUT_CANNOT_WRITE', `standard output cannot be written: ${messageOf(error)}`, {
          hint: 'send it to a disk with room',
        }),
      ),
    );
  });
  // There is nowhere left to tell it.
  process.stderr.on('error', () => {});
  process.on('exit', (status) => {
    if (failed && status === ExitCode.recorded) process.exitCode = statusWithout;
  });
}
