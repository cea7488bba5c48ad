export { findScratch, memoryMissing } from './find-scratch.js';
export { HiddenMemory } from './hidden-memory.js';
export { type AtReset, expectedAtReset, type HiddenAtReset, hideAtReset } from './hide-at-reset.js';
export { firmwareMs } from './hide-in-memory-map.js';
export { linuxStart } from './linux-start.js';
export { type HiddenMemoryPlan, planHiddenMemory } from './plan-hidden-memory.js';
export { beginPrivacyProof } from './prove-private.js';
export { ProvenScratch } from './proven-scratch.js';
export type { PagingFacts } from './ram-piece.js';
export { accessTo, currentAddressSpace } from './region-access.js';
export {
  parseScratch,
  type ReservedMemory,
  reservedIn,
  reservedScratch,
  sectionMemory,
  symbolMemory,
} from './reserved-memory.js';
export { stackBelow } from './saved-thread.js';
export { closeScratch, type MapRefusal, PAGE, type Region, type Scratch, type SharedMemory } from './scratch.js';
export { type HiddenSource, type ScratchRequest, type ScratchSources, unusable } from './source.js';
export { SystemCalls, unavailable } from './system-calls.js';
export { expectedSlack, slackOf, textSlack } from './text-slack.js';
