// What stdout is: a terminal, with its columns and colours, or a file; and how commands write to it.
import { jsonLine } from '../text/index.js';
import { FILE_WIDTH, type TableOptions } from '../trace/index.js';
import { ExitCode } from './failure.js';
import { sizeOf } from './terminal-size.js';

/** Prints what a command has found, with --json as one object. Gives the exit status. */
export function printed(args: { readonly json: boolean }, object: object, text: () => string): number {
  process.stdout.write(args.json ? jsonLine(object) : text());
  return ExitCode.recorded;
}

const BUFFER = 64 * 1024;

/** Standard output in large pieces. To a file, a pipe and a terminal of Linux each is written at once. */
export class LargePieces {
  #text = '';

  write(text: string): void {
    this.#text += text;
    if (this.#text.length > BUFFER) this.flush();
  }

  flush(): void {
    process.stdout.write(this.#text);
    this.#text = '';
  }
}

/** For tables, which are cut for a terminal, and where `COLUMNS` is set. `isFull`: nothing is shortened. */
export function tableOptions(isFull = false): TableOptions {
  const { isTTY } = process.stdout;
  const width = sizeOf(process.stdout).columns ?? (Number(process.env.COLUMNS) || (isTTY ? 80 : undefined));
  const isWhole = isFull || width === undefined;
  return { color: isColored(), width: isWhole ? Math.max(FILE_WIDTH, width ?? 0) : width, isWhole };
}

/** For all else: endless in a file, where lines are searched and cut by other programs. */
export function lineWidth(): number {
  return process.stdout.isTTY ? tableOptions().width : Number.POSITIVE_INFINITY;
}

/**
 * On a terminal that has colours, but for NO_COLOR (no-color.org). In a pipe if FORCE_COLOR or CLICOLOR_FORCE is set,
 * and not 0 (nodejs.org/api/tty.html, bixense.com/clicolors). FORCE_COLOR goes before NO_COLOR, as in Node.
 */
export function isColored(): boolean {
  const { FORCE_COLOR, CLICOLOR_FORCE = '0', NO_COLOR = '' } = process.env;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  if (NO_COLOR !== '') return false;
  return CLICOLOR_FORCE !== '0' || (process.stdout.isTTY === true && process.stdout.hasColors());
}
