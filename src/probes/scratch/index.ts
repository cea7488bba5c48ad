export { accessTo } from './access.js';
export { findScratch, type ScratchRequest, type ScratchSources, slackOf } from './find-scratch.js';
export { type GivenMemory, givenScratch, parseScratch, sectionMemory, symbolMemory } from './given-memory.js';
export type { Intercept } from './guest-allocator.js';
export { HiddenMemory } from './hidden-memory.js';
export { runIntoKernel } from './kernel-mode.js';
export { linuxStart } from './linux-start.js';
export { pagingIsFinal, turnsPagingOn } from './paging-moment.js';
export { type HiddenMemoryPlan, planHiddenMemory } from './plan-hidden-memory.js';
export { beginPrivacyProof } from './prove-private.js';
export { ProvenScratch } from './proven-scratch.js';
export { nanosPerInstruction } from './qemu-options.js';
export type { PagingFacts } from './ram-piece.js';
export { ResetVector } from './reset-vector.js';
export { stackBelow } from './saved-thread.js';
export {
  closeScratch,
  isRefusal,
  type MapRefusal,
  type Refusal,
  type Region,
  type Scratch,
  type SharedMemory,
} from './scratch.js';
export { SystemCalls, unavailable } from './system-calls.js';
export { textSlack } from './text-slack.js';
export { untoldMemory } from './untold-memory.js';
