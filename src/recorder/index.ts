export {
  addressesOf,
  architectureFor,
  type EnginePlanWishes,
  enginePlan,
  loadedProgram,
  type Program,
  planHarts,
  prepare,
} from './program.js';
export { type Progress, type Recording, type RecordOptions, record } from './record.js';
