import { spawn } from 'node:child_process';

/**
 * Ends a process when rsptrace ends without a call of `dismiss`, in whatever way: SIGKILL too. A shell with a session
 * of its own waits for a line on a pipe. Only rsptrace has the pipe's other end. When rsptrace is gone, the shell
 * reads the end of the file.
 *
 * @param folder removed then too
 */
export function watch(pid: number, folder: string): { dismiss(): void } {
  const script = 'read -r _ || { kill -KILL "$1"; rm -rf "$2"; }';
  const shell = spawn('sh', ['-c', script, 'rsptrace-watchdog', String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Without a shell there is no watchdog.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  if ('unref' in shell.stdin && typeof shell.stdin.unref === 'function') shell.stdin.unref();
  return { dismiss: () => void shell.stdin.end('\n') };
}
