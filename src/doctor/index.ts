// What a stub, its target and a program are and can do together, and how fast: for people who set a recording up.

export type { Advice } from './advice.js';
export { type Diagnosis, type ExamineOptions, examine } from './examine.js';
export type { ProgramReport, Subject } from './program.js';
export { diagnosisJson } from './report-json.js';
export { diagnosisText } from './report-text.js';
export { abilitiesOf, type StubAbilities } from './stub.js';
export {
  examineTrampolines,
  madeUpScratch,
  type TrampolineReport,
  type TrampolineSubject,
  targetScratch,
} from './trampolines.js';
export { trampolinesJson, trampolinesText } from './trampolines-report.js';
