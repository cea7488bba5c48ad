export {
  addressesOf,
  architectureFor,
  enginePlan,
  loadedProgram,
  type Program,
  planHarts,
  prepare,
} from './program.js';
export { type Progress, type Recording, type RecordOptions, record } from './record.js';
