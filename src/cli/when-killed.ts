// What cleans up when this rsptrace is killed: see `Supervisor`.
import { fileURLToPath } from 'node:url';

/** Next to this file, or next to the bundle that has it. */
const cleanUp = fileURLToPath(new URL('clean-up.js', import.meta.url));

/** The first words of a command whose last is a word by which a gdbserver of ours is found. */
export const leavesServer = [process.execPath, cleanUp, 'server'];

/** The first words of a command whose last is the address of a stub: somebody's, or that of a machine of ours. */
export function leavesStub(whose: 'stub' | 'machine', elf: string): readonly string[] {
  return [process.execPath, cleanUp, whose, elf];
}
