export { Backtraces } from './backtraces.js';
export { type CallKind, CallTracer, EventOutput, type Moment } from './calls/call-tracer.js';
export { type CodeFacts, codeFacts, loopsToStart } from './code-facts.js';
export { type FunctionOptions, FunctionTracer } from './function-tracer.js';
export { compileGlob, nearest } from './glob.js';
export { mayInline } from './inlined-chain.js';
export { type CatchProbe, catchProbes, planCatch } from './panics.js';
export { PollTracer } from './poll-tracer.js';
export { type AnyProbe, type ProbeKind, type ProbeSpec, parseNames, parseProbe, probesByKind } from './probe-spec.js';
export {
  mergePlans,
  type PlannedLoad,
  type PlannedReads,
  planFunction,
  planPoll,
  planTally,
  type ReadPlan,
  stackIsRead,
} from './read-plan.js';
export { type HitMemory, Reading } from './reading.js';
export {
  type ExcludedFunction,
  type FunctionProbe,
  type FunctionProbes,
  resolveFunctions,
} from './resolve-functions.js';
export { type PollProbe, type PollProbes, resolvePolls } from './resolve-polls.js';
export { resolveTallies, type TallyProbe, type TallyProbes } from './resolve-tallies.js';
export { TallyTracer } from './tally-tracer.js';
export type { Hit, MemoryRequest, Reaction, StopObserver, Tracer } from './tracer.js';
export { knownPlaces, overlaps, resolveWatches, type WatchPlace } from './watch/resolve-watches.js';
export { WatchEvents, watchRef } from './watch/watch-events.js';
export type { WatchSpec } from './watch/watch-spec.js';
export { type Access, accessOf, type Watchpoint } from './watch/watchpoint.js';
