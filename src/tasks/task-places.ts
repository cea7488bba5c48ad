import type { DebugInfo } from '../dwarf/index.js';
import { type Die, layoutOf, typeName, variantName } from '../dwarf/index.js';
import type { FutureSet, FutureType, TaskEnder, TaskPlaces } from '../futures/index.js';
import type { Part } from './layout.js';
import { asyncTasks, closed, dropperOf } from './runtimes/async-task.js';
import { embassyPollers, storageLayouts } from './runtimes/embassy.js';
import { runtimes } from './runtimes/index.js';
import { cellLayouts, tokioPollers } from './runtimes/tokio.js';

/** Where the runtimes that the program uses put the Futures of their tasks, as far as its ELF tells. */
export async function taskPlaces(debug: DebugInfo, futures: FutureSet): Promise<TaskPlaces> {
  const found = new Map<number, number>();
  const inside = new Map<number, number>();
  const holders = new Map<string, { readonly future: number; readonly offset: number }>();
  const enders: TaskEnder[] = [];
  const add = (type: Die, offset: number): FutureType | undefined => {
    const future = futures.ofType(type);
    if (future) found.set(future.typeOffset, offset);
    for (const held of futures.inPlace(type))
      if (held.repeats.length === 0) inside.set(held.future.typeOffset, offset + held.offset);
    return future;
  };
  const context = { debug, futures, note: () => {}, memory: { read: async () => undefined } };
  for (const { future: type, stage, holders: around } of cellLayouts(context).values()) {
    const place = runningOffset(stage);
    const future = place === undefined ? undefined : add(type, place);
    for (const { type: holder, offset } of future ? [...around, stage] : [])
      holders.set(typeName(holder), { future: future?.typeOffset ?? 0, offset: (place ?? 0) - offset });
  }
  for (const { future, place } of storageLayouts(context).values()) add(future, place.offset);
  for (const { type, header, offset, die } of await asyncTasks(context)) {
    const future = add(type, offset)?.typeOffset;
    if (future === undefined) continue;
    const drops = { future, offset };
    // It runs a task that was closed only to drop its Future.
    const when = { offset: header.state.offset, size: 8, bits: closed } as const;
    enders.push({ ...drops, die, name: 'async_task::raw::RawTask::run', when });
    const dropper = dropperOf(context, die);
    if (dropper)
      enders.push({ ...drops, die: dropper, name: 'async_task::raw::RawTask::drop_future', when: undefined });
  }
  // A Future inside a task's is known by where that one lies; one that is a task itself, by its own place.
  const pollers = [...tokioPollers(context), ...embassyPollers(context)];
  const polls = runtimes.flatMap((runtime) => runtime.polls ?? []);
  return { offsets: new Map([...inside, ...found]), holders, enders, pollers, polls };
}

/** Where tokio's stage has the Future as long as it runs. */
function runningOffset({ offset, type }: Part): number | undefined {
  const variants = layoutOf(type).variantPart?.variants ?? [];
  const member = variants.find((variant) => variantName(variant) === 'Running')?.members[0];
  if (member?.type === undefined) return undefined;
  const [inner] = layoutOf(member.type).members;
  return offset + member.offset + (inner?.offset ?? 0);
}
