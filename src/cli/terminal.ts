// What stdout is: a terminal, with its columns and colours, or a file.
import { FILE_WIDTH, type TableOptions } from '../trace/index.js';

/** Wider than any line. */
const WIDEST = 2 ** 20;

/** For tables, which have no endless lines in a file either. `isFull`: nothing is shortened. */
export function tableOptions(isFull = false): TableOptions {
  const { isTTY, columns } = process.stdout;
  return { color: isColored(), width: isFull ? WIDEST : (columns ?? (isTTY ? 80 : FILE_WIDTH)) };
}

/** For all else: endless in a file, where lines are searched and cut by other programs. */
export function lineWidth(): number {
  return process.stdout.isTTY ? tableOptions().width : Number.POSITIVE_INFINITY;
}

export function isColored(): boolean {
  return process.stdout.isTTY === true && process.stdout.hasColors();
}
