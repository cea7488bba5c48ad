export { refusedByStub } from './breakpoints.js';
export { StopEngine } from './stop-engine.js';
export type { EngineEnd, ResetWatch, StopSampler } from './stop-engine-options.js';
export { StopWarning } from './stop-warning.js';
export { Watchpoints } from './watchpoints.js';
