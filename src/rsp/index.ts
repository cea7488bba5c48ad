export { formatRemote, parseRemote, type RemoteAddress } from './address.js';
export { Batch } from './batch.js';
export type { Breakpoint } from './batch-requests.js';
export { type ConnectOptions, connect } from './connect.js';
export type { KnownArchitecture } from './default-registers.js';
export { isProcess, type StubFeatures } from './features.js';
export { hexDigit } from './hex.js';
export { insist } from './insist.js';
export { type ListedLibrary, parseLibraryList } from './library-list.js';
export { type MemoryRegion, regionOf } from './memory-map.js';
export { neverRan } from './never-ran.js';
export { packets } from './packets.js';
export type { TargetMemory } from './paged-memory.js';
export { RegisterBlock } from './registers.js';
export type { Reply } from './request.js';
export { ANY_HART, type Resume, type SessionState } from './run-control.js';
export { type Hart, Session } from './session.js';
export {
  parseStopReply,
  pidOf,
  programSignal,
  type SignalStop,
  type StopReason,
  type StopReply,
} from './stop-reply.js';
export { type RegisterDescription, TargetDescription } from './target-description.js';
export { WireRecorder, wasLaunched } from './wire-log.js';
