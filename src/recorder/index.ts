export {
  addressesOf,
  type EnginePlanWishes,
  enginePlan,
  loadedProgram,
  type Program,
  planHarts,
  prepare,
} from './program.js';
export { record } from './record.js';
export type { Progress, Recording, RecordOptions } from './recording.js';
