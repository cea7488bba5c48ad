export { examine } from './examine.js';
export type { Subject } from './program.js';
export { diagnosisJson } from './report-json.js';
export { diagnosisText } from './report-text.js';
export { abilitiesOf } from './stub.js';
export {
  examineTrampolines,
  madeUpScratch,
  type TrampolineReport,
  targetScratch,
  trampolinesJson,
  trampolinesText,
} from './trampolines.js';
