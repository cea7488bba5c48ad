import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { nearestWords } from '../base/search.js';
import { commandNames, helpText } from './command-line.js';
import { ExitCode } from './failure.js';
import { usage } from './options/option.js';
import type { HelpArguments } from './options/own.js';
import { sizeOf } from './terminal-size.js';

/**
 * `rsptrace help COMMAND`: its man page on a terminal where there is `man`, as git shows it, else what --help prints.
 * Gives the exit status.
 */
export async function showHelp({ about }: HelpArguments): Promise<number> {
  if (about !== undefined && !commandNames.includes(about)) {
    const near = nearestWords(about, commandNames);
    throw usage(`there is no command '${about}'`, near.length > 0 ? `nearest: ${near.join(', ')}` : undefined);
  }
  const page = fileURLToPath(new URL(`../man/rsptrace${about === undefined ? '' : `-${about}`}.1`, import.meta.url));
  const isShown =
    process.stdout.isTTY && existsSync(page) && spawnSync('man', [page], { stdio: 'inherit' }).status === 0;
  if (!isShown)
    process.stdout.write(`${await helpText(about, Math.min(120, sizeOf(process.stdout).columns ?? 120))}\n`);
  return ExitCode.recorded;
}
