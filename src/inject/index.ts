export { isMark, within } from './code-allocator.js';
export { behindStops, counterScale, processScale, type TraceTime } from './counter-scales.js';
export { DigestPace, restTimes } from './digest-pace.js';
export { takeOutTraps } from './forgotten-traps.js';
export { lastPlaces, readLastRecords } from './last-records.js';
export { bareExits, cleanChild, clearSlack } from './left-code.js';
export { type Leftovers, removeLeftovers } from './leftovers.js';
export { type Drain, LiveDrain } from './live-drain.js';
export { exitOf, readLoadedFiles } from './loaded-library.js';
export { traceFailed } from './logged-records.js';
export { MovedStops, movedStopsRoom } from './moved-stops.js';
export { type AddedSteps, addedSteps, TrampolineOverhead } from './overhead.js';
export { type TakenOut, takeOutOwnCode } from './own-code.js';
export { lookAtCode, type PatchVerdict } from './patchable-code.js';
export { callerKeeps, codeIsFull, type Patch, type Trampoline } from './place-site.js';
export type { Placement } from './placement.js';
export { type ServedCode, servedAt } from './placement.js';
export { processCode, processMemory, whyProcessStops } from './process-memory.js';
export { ProcessUnwinders, unwinderRoom } from './process-unwinders.js';
export { isRawLog, type LogPart, LogReader, RawLog, rawLogMagic } from './raw-log.js';
export {
  type RecordCounter,
  RecordDispatcher,
  type RecordText,
  type RecordTime,
  type TimeScale,
} from './record-dispatcher.js';
export type { RecordSources } from './record-layout.js';
export type { Piece } from './ring.js';
export { codeRoom, entryOnly, middleOf, planFormats, planSites, type Site, type SitePlan } from './sites.js';
export { StoppedDrain } from './stopped-drain.js';
export { TargetEngine } from './target-engine.js';
export { findThreadWords, type ThreadWords, threadId, withThreadWords } from './thread-words.js';
export { layOutTrampolines } from './trampoline-layout.js';
export type { WaitLimit } from './wait-lease.js';
export { remembered } from './word-cache.js';
