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
  besideKernel,
  type EngineSituation,
  endsThere,
  engineSentence,
  extraLines,
  reasonLines,
  scratchNone,
  summarizeEngines,
} from './engine-summary.js';
export { Engines } from './engines.js';
export type { CounterScale, InstallationLog } from './engines-options.js';
export {
  cautionsOf,
  counterHurdle,
  findHurdles,
  type Hurdle,
  hurdleLines,
  hurdlesJson,
  hurdlesOfCode,
  isOfTarget,
  situationOf,
} from './hurdles.js';
export { type InstalledFacts, type RecoveredRecords, recoveredRecords } from './recovered-records.js';
