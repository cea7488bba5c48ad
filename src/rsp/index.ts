export { Batch } from './session/batch.js';
export type { Breakpoint } from './session/batch-requests.js';
export { CoalescedReads } from './session/coalesced-reads.js';
export { type ConnectOptions, connect } from './session/connect.js';
export { isProcess, type StubFeatures } from './session/features.js';
export { ANY_HART, type Resume } from './session/hart-requests.js';
export { type ListedLibrary, type MemoryRegion, parseLibraryList, regionOf } from './session/memory-map.js';
export type { SystemCalls } from './session/packets.js';
export type { TargetMemory } from './session/paged-memory.js';
export type { KnownRegisters } from './session/registers.js';
export { RegisterBlock, registerOf, registersOf, setRegister } from './session/registers.js';
export type { Reply, SectionOffsets } from './session/request.js';
export { retry } from './session/request.js';
export type { SessionState, Standing } from './session/run-control.js';
export { type Hart, Session } from './session/session.js';
export { type StandingMemory, standingMemory } from './session/standing-memory.js';
export {
  parseStopReply,
  pidOf,
  programSignal,
  type SignalStop,
  type StopReason,
  type StopReply,
} from './session/stop-reply.js';
export { Stub, type StubName, stubOfHandshake } from './session/stub.js';
export { type RegisterDescription, TargetDescription } from './session/target-description.js';
export { formatRemote, parseRemote, type RemoteAddress } from './wire/address.js';
export { hexDigit } from './wire/hex.js';
export { WireRecorder, wasLaunched } from './wire/wire-log.js';
