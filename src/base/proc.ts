// proc(5): what is not there, or may not be read, is empty.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/**
 * The fields of `/proc/PID/stat`, or of a thread's, from its state on (the third of proc(5)). They follow the name in
 * parentheses, which may have some itself. Empty for what is not there.
 */
export function statOf(process: string | number): readonly string[] {
  const text = textOf(`/proc/${process}/stat`);
  return text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Who traces a process, by the text of its `status`; undefined if nobody does, or if there is no such text. */
export function tracerIn(status: string): number | undefined {
  return Number(/^TracerPid:\s*(\d+)$/m.exec(status)?.[1] ?? 0) || undefined;
}

/** Whether a thread runs, or is ready to: state R of proc(5). */
export function isRunnable(pid: number, thread: string | number): boolean {
  return statOf(`${pid}/task/${thread}`)[0] === 'R';
}

export function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

export function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** A process that has ended gets none. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
