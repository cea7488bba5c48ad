export type { OtherCounts } from './other-programs.js';
export { StopEngine } from './stop-engine.js';
export type { EngineEnd, LeftStop, ResetWatch, StopSampler } from './stop-engine-options.js';
export { Watchpoints } from './watchpoints.js';
