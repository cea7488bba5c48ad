export {
  type EnginePlanOptions,
  engineChoices,
  lookAtPlans,
  planEngines,
  unavailable,
  whyNoTrampolines,
} from './engine-choice.js';
export { type EngineName, engineNames } from './engine-names.js';
export {
  adviceOnStops,
  adviceText,
  type EngineSituation,
  type EngineSummary,
  endsThere,
  engineSentence,
  extraLines,
  reasonLines,
  type StopAdvice,
  summarizeEngines,
} from './engine-summary.js';
export { Engines } from './engines.js';
export type { CounterScale, InstallationLog } from './engines-options.js';
export {
  counterHurdle,
  findHurdles,
  type Hurdle,
  hurdleLines,
  hurdlesJson,
  hurdlesOfCode,
  isOfTarget,
  situationOf,
} from './hurdles.js';
export { isMark } from './inject/code-allocator.js';
export { counterScale } from './inject/counter-rate.js';
export { type Leftovers, removeLeftovers } from './inject/leftovers.js';
export { type TakenOut, takeOutOwnCode } from './inject/own-code.js';
export type { Patch, Trampoline } from './inject/placement.js';
export { processCode, processMemory, whyProcessStops } from './inject/process-memory.js';
export { type LogPart, LogReader, RawLog, type ReadAt, rawLogMagic } from './inject/raw-log.js';
export type { RecordCounter, RecordDispatcher, RecordText } from './inject/record-dispatcher.js';
export { codeRoom, type SitePlan } from './inject/sites.js';
export { layOutTrampolines } from './inject/trampoline-layout.js';
export { findScratch } from './memory/find-scratch.js';
export type { Intercept } from './memory/guest-allocator.js';
export { HiddenMemory } from './memory/hidden-memory.js';
export { type AtReset, expectedAtReset, type HiddenAtReset, hideAtReset } from './memory/hide-at-reset.js';
export { firmwareMs } from './memory/hide-in-memory-map.js';
export { linuxStart } from './memory/linux-start.js';
export { type HiddenMemoryPlan, planHiddenMemory } from './memory/plan-hidden-memory.js';
export { beginPrivacyProof } from './memory/prove-private.js';
export { ProvenScratch } from './memory/proven-scratch.js';
export type { PagingFacts } from './memory/ram-piece.js';
export { accessTo } from './memory/region-access.js';
export {
  parseScratch,
  type ReservedMemory,
  reservedIn,
  reservedScratch,
  sectionMemory,
  symbolMemory,
} from './memory/reserved-memory.js';
export { stackBelow } from './memory/saved-thread.js';
export { closeScratch, type MapRefusal, type Region, type Scratch, type SharedMemory } from './memory/scratch.js';
export type { HiddenSource, ScratchRequest, ScratchSources } from './memory/source.js';
export { SystemCalls } from './memory/system-calls.js';
export { slackOf, textSlack } from './memory/text-slack.js';
export { unlistedRam } from './memory/unlisted-ram.js';
export { tooOften } from './probe-choices.js';
export { type InstalledFacts, recoveredRecords } from './recovered-records.js';
export { refusedByStub } from './stop/breakpoints.js';
export type { ClockLeak, StopLeak, UnknownRest } from './stop/clock-leak.js';
export { RepeatedLeak } from './stop/repeated-leak.js';
export { JUMPS, SteppedLeak } from './stop/stepped-leak.js';
export { StopEngine } from './stop/stop-engine.js';
export type { EngineEnd, ResetWatch, StopSampler } from './stop/stop-engine-options.js';
export { Watchpoints } from './stop/watchpoints.js';
