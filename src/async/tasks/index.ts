export { genericsOf } from '../../dwarf/index.js';
export { type AwaitNode, AwaitTrees, FutureFields, type FutureLocal } from './await-tree.js';
export type { Deadlock } from './deadlocks.js';
export { BLOCK_ON, findTasks, type NoTask, type Task, type Tasks } from './find-tasks.js';
export { isFreed } from './free-memory.js';
export { memberAt, numberAt, type Part, partCalled } from './layout.js';
export { deadStack, type MemoryImage, openMemoryImage, type Region, writableRegions } from './memory-image.js';
export { merged } from './regions.js';
export { type Fate, type FoundRoot, isIn, type Runtime, type TaskContext, type TaskFacts } from './runtime.js';
export {
  type ClosableBits,
  closableState,
  functionsOf,
  isCounted,
  type TaskFunction,
  wordsInData,
} from './runtimes/constants.js';
export { alignedTo, alignOf, type HeaderFacts, type HeaderTasks, headerRuntime } from './runtimes/header-tasks.js';
export { runtimes, search } from './runtimes/index.js';
export { type AddressRange, mostCopied, type Snapshot, takeSnapshot } from './snapshot.js';
export { taskPlaces } from './task-places.js';
export {
  awaitOf,
  calledNode,
  ITSELF,
  KINDS,
  ownFuture,
  placeOf,
  placeOfWait,
  REACHABLE,
  stuckTasks,
  targetOf,
  taskName,
  waitText,
  whatText,
} from './wait-text.js';
export type { Ender, Wait } from './waits.js';
export { type FoundWaker, wakersInto } from './wakers.js';
