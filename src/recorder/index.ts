export { enginePlan, type Program, prepare } from './program.js';
export { type Progress, type Recording, type RecordOptions, record } from './record.js';
