import { type DebugInfo, type Die, typeName } from '../../dwarf/index.js';
import { type FutureSet, type FutureType, onlyHeld, type TaskEnder, type TaskPlaces } from '../futures/index.js';
import { asyncTasks, closed, dropperOf } from './runtimes/async-task.js';
import { embassyPollers, embassyPolls, storageLayouts } from './runtimes/embassy.js';
import { headerKinds, runningOffset } from './runtimes/header-tasks.js';
import { headerTasks, runtimes } from './runtimes/index.js';
import { cellLayouts, tokioPollers, tokioPolls } from './runtimes/tokio.js';

/** What the functions poll by which runtimes with cells and storages poll their tasks. */
function hostsOf(
  tokio: ReturnType<typeof tokioPolls>,
  embassy: ReturnType<typeof embassyPolls>,
  futures: FutureSet,
): TaskPlaces['hosts'][number][] {
  const cells = tokio.map(({ die, layout: { future, stage, header } }) => {
    return { die, future, place: runningOffset(stage), header };
  });
  const storages = embassy.map(({ die, layout: { future, place, raw } }) => {
    return { die, future, place: place.offset, header: raw.offset };
  });
  return [...cells, ...storages].flatMap(({ die, future: type, place, header }) => {
    const future = futures.ofType(type);
    return future && place !== undefined ? [{ die, future: future.typeOffset, offset: place - header }] : [];
  });
}

/** Where the runtimes that the program uses put the Futures of their tasks, as far as its ELF says. */
export async function taskPlaces(debug: DebugInfo, futures: FutureSet): Promise<TaskPlaces> {
  const found = new Map<number, number>();
  const inside = new Map<number, number>();
  const tasks = new Set<number>();
  const holders = new Map<string, { readonly future: number; readonly offset: number }>();
  const enders: TaskEnder[] = [];
  const add = (type: Die, offset: number, isThread = false): FutureType | undefined => {
    const future = futures.ofType(type);
    if (future) found.set(future.typeOffset, offset);
    if (future && !isThread) tasks.add(future.typeOffset);
    for (const held of futures.inPlace(type))
      if (held.repeats.length === 0) inside.set(held.future.typeOffset, offset + held.offset);
    for (const held of future ? onlyHeld(future) : []) inside.set(held.future.typeOffset, offset + held.offset);
    return future;
  };
  const context = { debug, futures, note: () => {}, memory: { read: async () => undefined } };
  const [cells, storages] = [cellLayouts(context), storageLayouts(context)];
  const [ofTokio, ofEmbassy] = [tokioPolls(context, cells), embassyPolls(context, storages)];
  for (const { future: type, stage, scheduler, holders: around } of cells.values()) {
    const place = runningOffset(stage);
    const future = place === undefined ? undefined : add(type, place, scheduler === 'blocking');
    for (const { type: holder, offset } of future ? [...around, stage] : [])
      holders.set(typeName(holder), { future: future?.typeOffset ?? 0, offset: (place ?? 0) - offset });
  }
  for (const { future, place } of storages.values()) add(future, place.offset);
  const hosts = hostsOf(ofTokio, ofEmbassy, futures);
  for (const { future: type, offset, die } of headerTasks.flatMap((tasks) => headerKinds(context, tasks))) {
    const future = add(type, offset);
    if (future) hosts.push({ die, future: future.typeOffset, offset });
  }
  for (const { type, header, offset, die } of await asyncTasks(context)) {
    const future = add(type, offset);
    if (future === undefined) continue;
    // It runs a task that was closed only to drop its Future.
    const when = { offset: header.state.offset, size: 8, bits: closed } as const;
    const dropper = dropperOf(context, die);
    for (const held of [{ future, offset: 0 }, ...onlyHeld(future)]) {
      const drops = { future: held.future.typeOffset, offset: offset + held.offset };
      enders.push({ ...drops, die, name: 'async_task::raw::RawTask::run', when });
      if (dropper)
        enders.push({ ...drops, die: dropper, name: 'async_task::raw::RawTask::drop_future', when: undefined });
    }
  }
  // A Future inside a task's is known by where that one lies; one that is a task itself, by its own place.
  const pollers = [...tokioPollers(context, ofTokio), ...embassyPollers(context, ofEmbassy)];
  const polls = runtimes.flatMap(({ name, polls }) => (polls ? [{ runtime: name, functions: polls }] : []));
  return { offsets: new Map([...inside, ...found]), tasks, holders, enders, pollers, hosts, polls };
}
