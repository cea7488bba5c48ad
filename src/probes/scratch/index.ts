export { findScratch, type ScratchRequest, type ScratchSources, slackOf, unusableScratch } from './find-scratch.js';
export { type GivenMemory, givenScratch, parseScratch, sectionMemory, symbolMemory } from './given-memory.js';
export { HiddenMemory, type PagingFacts } from './hidden-memory.js';
export { pagingIsFinal, turnsPagingOn } from './paging-moment.js';
export { type HiddenMemoryPlan, planHiddenMemory } from './plan-hidden-memory.js';
export { beginPrivacyProof, type PrivacyProof } from './prove-private.js';
export { isRefusal, type MapRefusal, type Refusal, type Region, type Scratch, type SharedMemory } from './scratch.js';
export { unavailable } from './system-calls.js';
export { textSlack } from './text-slack.js';
