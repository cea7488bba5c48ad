import { type Addr, addOffset } from '../../../base/addr.js';
import { type Die, genericsOf, rangesOf, typeName } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import type { FoundRoot, TaskContext } from '../runtime.js';

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

/** The vtables in the program's data that begin `entry` bytes before one of these functions' addresses. */
export function vtablesOf<K>(elf: ElfFile, kinds: ReadonlyMap<bigint, K>, entry: number): Map<bigint, K> {
  const found = wordsInData(elf, new Set(kinds.keys())).map(({ word, at }) => [addOffset(at, -entry), word] as const);
  return new Map(found.map(([vtable, word]) => [vtable, kinds.get(word) as K]));
}

/** The tasks in memory that point to their vtables. `taskAt`: what lies where such a pointer is. */
export async function tasksByVtable<K>(
  { memory }: TaskContext,
  vtables: ReadonlyMap<bigint, K>,
  taskAt: (kind: K, pointer: Addr) => Promise<FoundRoot | undefined>,
): Promise<FoundRoot[]> {
  const found: FoundRoot[] = [];
  for (const [vtable, places] of memory.places(vtables.keys())) {
    for (const place of places) {
      const root = await taskAt(vtables.get(vtable) as K, place);
      if (root) found.push(root);
    }
  }
  return found;
}

/** The names of the types that a generic type or function was made with. */
export function typesOf(die: Die): string {
  return [...genericsOf(die).values()].map(typeName).join();
}

/** More wakers than a task has. */
const MOST_REFERENCES = 1n << 24n;

/** A task has some. Where a state counts none, or more than there are, the memory was freed and is no task's. */
export function isCounted(references: bigint): boolean {
  return references > 0n && references <= MOST_REFERENCES;
}

/** Bits of a task's state in async-task, and in runtimes made after it. */
export interface ClosableBits {
  readonly SCHEDULED: bigint;
  readonly RUNNING: bigint;
  readonly COMPLETED: bigint;
  readonly CLOSED: bigint;
  /** A handle to it exists. */
  readonly HANDLE: bigint;
}

/** What such a state says, in words. */
export function closableState(
  state: bigint,
  { SCHEDULED, RUNNING, COMPLETED, CLOSED, HANDLE }: ClosableBits,
): { readonly isOver: boolean; readonly words: string[] } {
  const has = (bit: bigint): boolean => (state & bit) !== 0n;
  // A closed task keeps its Future until the executor runs it once more.
  const isOver = has(COMPLETED) || (has(CLOSED) && !has(SCHEDULED) && !has(RUNNING));
  const words = [has(RUNNING) ? 'running' : has(SCHEDULED) ? 'scheduled' : isOver ? 'complete' : 'idle'];
  if (has(CLOSED)) words.push('closed');
  words.push(has(HANDLE) ? 'handle held' : 'detached');
  return { isOver, words };
}
