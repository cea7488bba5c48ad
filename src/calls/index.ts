export { CallTracer } from './call-tracer.js';
export { EventOutput } from './follows.js';
export {
  type Hit,
  type MemoryRequest,
  newRequests,
  type Reaction,
  SpaceNumbers,
  type StopObserver,
  type Tracer,
  type Visit,
} from './hit.js';
export {
  type AheadReads,
  type BlockEdge,
  type BlockKind,
  type BlocksHere,
  type Call,
  type CallKind,
  type CallSite,
  type Crossing,
  type CrossingKind,
  type CrossingPlace,
  emittedAround,
  type HitObserver,
  type InstantKind,
  type InstantSite,
  inSameFrame,
  isSameFrame,
  type Moment,
  type OpenKind,
  type TracedCall,
} from './kinds.js';
export { type OpenCall, stackNumber, stackNumberOf } from './open-call.js';
export { type EarlierRecords, QueuedStops } from './queued-stops.js';
export { Answers, type FutureLook, type HitMemory, nothingRead, Reading, type Running } from './reading.js';
