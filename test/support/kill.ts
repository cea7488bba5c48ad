import { readdirSync, readFileSync } from 'node:fs';
import type { Running } from './command.js';

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

/** The supervisors that an rsptrace has started: each cleans up if that is killed. */
export function supervisorsOf({ process: { pid } }: Running): readonly number[] {
  return readdirSync('/proc')
    .filter((each) => new RegExp(`^PPid:\\s*${pid}$`, 'm').test(textOf(`/proc/${each}/status`)))
    .filter((each) => textOf(`/proc/${each}/cmdline`).includes('rsptrace-supervisor'))
    .map(Number);
}

/** Kills an rsptrace, and its supervisors first: nobody cleans up. */
export function killAlone(tracer: Running): void {
  for (const pid of supervisorsOf(tracer)) process.kill(pid, 'SIGKILL');
  tracer.process.kill('SIGKILL');
}
