// How often QEMU carries out instructions, counted by a plugin of ours (linux/fnlog.c): a witness that knows nothing of debuggers.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface InstructionCounts {
  /** QEMU's arguments for counting: all the time, or from one instruction on, and up to another if there is one. */
  counting(addresses: readonly bigint[], span?: readonly [from: bigint, until?: bigint]): string[];
  /** What was counted, by address and CPU, when QEMU has ended. */
  counts(): Map<bigint, readonly number[]>;
}

/** Compiles the plugin into a folder. */
export function instructionCounts(folder: string): InstructionCounts {
  const file = (name: string): string => join(folder, name);
  const source = join(import.meta.dirname, 'linux/fnlog.c');
  execFileSync('gcc', ['-O2', '-shared', '-fPIC', '-o', file('fnlog.so'), source]);
  return {
    counting: (addresses, span) => {
      writeFileSync(file('addresses'), addresses.map((address) => `${address.toString(16)}\n`).join(''));
      const ends = ['from', 'until'].map((end, i) =>
        span?.[i] === undefined ? '' : `,${end}=${span[i].toString(16)}`,
      );
      return ['-plugin', `${file('fnlog.so')},addrs=${file('addresses')},out=${file('counts')}${ends.join('')}`];
    },
    counts: () =>
      new Map(
        [...readFileSync(file('counts'), 'latin1').matchAll(/^(\w+) (.*)$/gm)].map(([, address, counts = '']) => [
          BigInt(`0x${address}`),
          counts.split(' ').map(Number),
        ]),
      ),
  };
}
