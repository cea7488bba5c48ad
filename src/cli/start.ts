import { sayWhereNothingIsKept } from '../base/kept-files.js';
import { asksForJson, fail, note } from './failure.js';
import { watchStandardStreams } from './standard-streams.js';

/** Runs a command line as the process's own. */
export async function start(words: readonly string[]): Promise<void> {
  watchStandardStreams();
  sayWhereNothingIsKept(note);
  try {
    const { runCommandLine } = await import('./command-line.js');
    process.exitCode = await runCommandLine(words);
  } catch (error) {
    process.exitCode = fail(error, { json: asksForJson(words) });
  }
}
