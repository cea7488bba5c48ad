export { type AwaitNode, AwaitTrees } from './await-tree.js';
export { type FoundRoot, findTasks, type Runtime, searchBoxes, type TaskContext, type Tasks } from './find-tasks.js';
export { FutureFields, type FutureLocal } from './future-fields.js';
export { type MemoryImage, openMemoryImage, type Region } from './memory-image.js';
export { deadStack, writableRegions } from './regions.js';
