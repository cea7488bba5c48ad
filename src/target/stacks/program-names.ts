import { basename } from 'node:path';
import type { ElfFile } from '../../elf/index.js';

/** What a program is called: its file without `.elf`. */
export function programName({ path }: Pick<ElfFile, 'path'>): string {
  return basename(path).replace(/\.elf$/, '');
}

/**
 * A function of one program among several: `shell::main`. Functions of the program's own crate bear its name already;
 * those of libraries, and of C, may be in each of them.
 */
export function nameIn(elf: Pick<ElfFile, 'path'>, name: string): string {
  const program = programName(elf);
  const crate = `${program.replaceAll('-', '_')}::`;
  return name.startsWith(crate) || name.startsWith(`<${crate}`) ? name : `${program}::${name}`;
}
