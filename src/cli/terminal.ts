// What stdout is: a terminal, with its columns and colours, or a file.
import { FILE_WIDTH, type TableOptions } from '../trace/index.js';

/** For tables, which have no endless lines in a file either. */
export function tableOptions(): TableOptions {
  const { isTTY, columns } = process.stdout;
  return { color: isColored(), width: columns ?? (isTTY ? 80 : FILE_WIDTH) };
}

/** For all else: endless in a file, where lines are searched and cut by other programs. */
export function lineWidth(): number {
  return process.stdout.isTTY ? tableOptions().width : Number.POSITIVE_INFINITY;
}

export function isColored(): boolean {
  return process.stdout.isTTY === true && process.stdout.hasColors();
}
