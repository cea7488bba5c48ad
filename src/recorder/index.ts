export { addressesOf, architectureFor, enginePlan, loadedProgram, type Program, prepare } from './program.js';
export { type Progress, type Recording, type RecordOptions, record } from './record.js';
