import { addOffset, addr } from '../base/addr.js';
import type { DebugInfo } from '../dwarf/index.js';
import { type Die, layoutOf, variantName } from '../dwarf/index.js';
import type { FutureSet } from '../futures/index.js';
import { genericsOf, type Part } from './layout.js';
import { futureOffset, vtableLayout } from './runtimes/async-task.js';
import { functionsOf, wordsInData } from './runtimes/constants.js';
import { storageLayouts } from './runtimes/embassy.js';
import { cellLayouts } from './runtimes/tokio.js';

/** How many bytes behind its task's header a Future lies, by the offset of its type's DIE. Wakers point to headers. */
export type TaskHeaders = ReadonlyMap<number, number>;

/** Where the runtimes that the program uses put the Futures of their tasks, as far as its ELF tells. */
export async function taskHeaders(debug: DebugInfo, futures: FutureSet): Promise<TaskHeaders> {
  const found = new Map<number, number>();
  const inside = new Map<number, number>();
  const add = (type: Die, offset: number): void => {
    const future = futures.ofType(type);
    if (future) found.set(future.typeOffset, offset);
    for (const held of futures.inPlace(type))
      if (held.repeats.length === 0) inside.set(held.future.typeOffset, offset + held.offset);
  };
  const context = { debug, futures, note: () => {}, memory: { read: async () => undefined } };
  for (const { future, stage } of cellLayouts(context).values()) {
    const place = runningOffset(stage);
    if (place !== undefined) add(future, place);
  }
  for (const { future, place } of storageLayouts(context).values()) add(future, place.offset);
  const runs = new Map(functionsOf(context, 'async_task::raw::RawTask::run').map(({ die, address }) => [address, die]));
  const table = runs.size > 0 ? vtableLayout(context) : undefined;
  for (const { word, at } of table ? wordsInData(debug.elf, new Set<bigint>(runs.keys())) : []) {
    const future = genericsOf(runs.get(addr(word)) as Die).get('F');
    const offset = table && future && (await futureOffset(context, table, addOffset(at, -table.run.offset)));
    if (future && offset !== undefined) add(future, offset);
  }
  // A Future inside a task's is known by where that one lies; one that is a task itself, by its own place.
  return new Map([...inside, ...found]);
}

/** Where tokio's stage has the Future as long as it runs. */
function runningOffset({ offset, type }: Part): number | undefined {
  const variants = layoutOf(type).variantPart?.variants ?? [];
  const member = variants.find((variant) => variantName(variant) === 'Running')?.members[0];
  if (member?.type === undefined) return undefined;
  const [inner] = layoutOf(member.type).members;
  return offset + member.offset + (inner?.offset ?? 0);
}
