import { type Addr, addOffset } from '../../../base/addr.js';
import { type Die, rangesOf } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import type { TaskContext } from '../runtime.js';

const WORD = 8;

/** A function that was compiled for one type of task, and where its code begins. */
export interface TaskFunction {
  readonly die: Die;
  readonly address: Addr;
}

/** The functions of a path that have code, one an instance of their types. */
export function functionsOf({ debug }: Pick<TaskContext, 'debug'>, path: string): TaskFunction[] {
  const found: TaskFunction[] = [];
  for (const die of debug.functionsNamed(path)) {
    const first = debug.attempt(die.unit, () => rangesOf(die)[0]);
    if (first && debug.elf.isLoaded(first.low)) found.push({ die, address: debug.elf.codes.fromCode(first.low) });
  }
  return found;
}

/** Where the program's own data hold one of these words, by the ELF: vtables, which no runtime changes. */
export function wordsInData(elf: ElfFile, words: ReadonlySet<bigint>): { readonly word: bigint; readonly at: Addr }[] {
  const found: { word: bigint; at: Addr }[] = [];
  const lows = new Set(Array.from(words, (word) => Number(word & 0xffff_ffffn)));
  for (const { address, view } of elf.constants()) {
    for (let offset = 0; offset + WORD <= view.byteLength; offset += WORD) {
      if (!lows.has(view.getUint32(offset, true))) continue;
      const word = view.getBigUint64(offset, true);
      if (words.has(word)) found.push({ word, at: addOffset(address, offset) });
    }
  }
  return found;
}
