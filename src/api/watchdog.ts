import { spawn } from 'node:child_process';

/**
 * Has a process ended when we end without having called `dismiss`, however that comes: SIGKILL too. A shell of its own session waits for a line on a
 * pipe whose other end nobody but us has; what it gets when we are gone is the end of the file.
 * @param folder removed then too
 */
export function watch(pid: number, folder: string): { dismiss(): void } {
  const script = 'read -r _ || { kill -KILL "$1"; rm -rf "$2"; }';
  const shell = spawn('sh', ['-c', script, 'rsptrace-watchdog', String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Where there is no shell nobody watches.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  if ('unref' in shell.stdin && typeof shell.stdin.unref === 'function') shell.stdin.unref();
  return { dismiss: () => void shell.stdin.end('\n') };
}
