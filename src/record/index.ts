export { tooEarly } from './early-stops.js';
export { HartNumbers } from './harts.js';
export { type InputObserver, KeptRecords, type Recovered } from './kept-records.js';
export type { LogEntry } from './log-entries.js';
export {
  addressesOf,
  type EnginePlanWishes,
  enginePlan,
  functionNamed,
  loadedProgram,
  type PlaceOptions,
  type Program,
  planHarts,
  samplesOf,
  systemCallsOf,
  trampolineRoom,
  understand,
  watchesOf,
} from './program.js';
export { choicesOfOthers, prepare } from './programs.js';
export type { ForeignHits, Quiet, QuietHart } from './quiet.js';
export { record } from './record.js';
export type { EnginesChosen, Progress, Recording, RecordOptions } from './recording.js';
export type { LogRequest } from './recording-log.js';
export { verifyProgram } from './verify.js';
