// What `rsptrace detach` says of a target that an rsptrace has left.
import type { Test } from 'tap';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace } from './command.js';

export interface Detached {
  readonly restored: readonly { readonly address: string; readonly function: string | null }[];
  readonly breakpoints: readonly object[];
  readonly different: readonly { readonly address: string }[];
  readonly compared: number;
}

/** `connected` is called when it is at the stub's door. */
export async function detach(t: Test, socket: string, name: string, connected?: () => void): Promise<Detached> {
  const run = rsptrace('detach', '--json', '--log', 'trace', '--remote', socket, elfPath(name));
  // Its first packet: it has read the ELF and is at the door.
  await Promise.race([run.shows('-> '), run.ended]);
  connected?.();
  const { status, stdout, stderr } = await run.ended;
  t.equal(status, 0, stderr.slice(-500));
  return JSON.parse(stdout) as Detached;
}
