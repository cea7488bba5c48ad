// A further program as --elf names it, with where a kernel loads one that is position-independent.
import { existsSync } from 'node:fs';
import { usage } from './options/option.js';

interface PlacedProgram {
  readonly path: string;
  /** How far its addresses are moved; 0 where nothing is said. */
  readonly bias: bigint;
}

/**
 * `shell.elf`, or `shell.elf@0x10000`. A file that is called so is itself.
 * @throws RsptraceError `USAGE`
 */
export function placedProgram(words: string): PlacedProgram {
  const [, path = '', place = ''] = /^(.+)@(.*)$/.exec(words) ?? [];
  if (path === '' || existsSync(words)) return { path: words, bias: 0n };
  if (!/^0x[0-9a-f]{1,16}$/i.test(place)) {
    if (!existsSync(path)) return { path: words, bias: 0n };
    throw usage(`--elf ${words}: '${place}' is no address`, `write where it is loaded in hexadecimal: ${path}@0x10000`);
  }
  const bias = BigInt(place);
  if (bias % 0x1000n === 0n) return { path, bias };
  throw usage(
    `--elf ${words}: a program is loaded at a whole page, and ${place} is in the middle of one`,
    'give a multiple of 0x1000',
  );
}
