import { execFileSync } from 'node:child_process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes of this process's heap and buffers that are in use. */
export function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
}

/** Does something while no file of this process may grow past these bytes, as a full disk would have it. */
export function withFilesUpTo(bytes: number, work: () => void): void {
  const limit = (...words: string[]) =>
    execFileSync('prlimit', [`--pid=${process.pid}`, ...words], { encoding: 'utf8' });
  const before = limit('--fsize', '--raw', '--noheadings', '--output=SOFT').trim();
  process.on('SIGXFSZ', () => {});
  limit(`--fsize=${bytes}:`);
  try {
    work();
  } finally {
    limit(`--fsize=${before}:`);
  }
}
