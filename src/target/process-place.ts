// Where a process of this machine has loaded its program, read before it is stopped.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { type ElfFile, ET } from '../elf/index.js';
import { parseAuxv } from './auxv.js';
import { biasFromAuxv, biasFromMapping } from './load-bias.js';
import { parseMaps } from './process-maps.js';

/**
 * Where x86_64's Linux puts a position-independent program that is started without randomisation, as gdbserver does
 * (ELF_ET_DYN_BASE, arch/x86/include/asm/elf.h, rounded down to a page by fs/binfmt_elf.c).
 */
const unrandomized = 0x555555554000n;

/** How far a process has moved the ELF; 0 where that is not known, and is found when it is stopped. */
export function placeInProcess(pid: number, elf: ElfFile): bigint {
  if (elf.type !== ET.DYN) return 0n;
  try {
    const fromAuxv = biasFromAuxv(parseAuxv(readFileSync(`/proc/${pid}/auxv`)), elf);
    if (fromAuxv !== undefined) return fromAuxv;
    const maps = parseMaps(readFileSync(`/proc/${pid}/maps`, 'latin1'));
    return biasFromMapping(maps.find(({ path }) => basename(path) === basename(elf.path))?.start, elf) ?? 0n;
  } catch {
    return 0n;
  }
}

/** How far the ELF will be moved when gdbserver starts it. */
export function placeAtStart(elf: ElfFile): bigint {
  return elf.type === ET.DYN ? unrandomized : 0n;
}
