export { Backtraces } from './backtraces.js';
export { type CallKind, CallTracer, EventOutput } from './call-tracer.js';
export { type ClockReader, findClock } from './clock.js';
export { type ClockName, clockNames } from './clock-names.js';
export { codeFacts, loopsToStart } from './code-facts.js';
export {
  type EnginePlanOptions,
  engineChoices,
  lookAtPlans,
  planEngines,
  unavailable,
} from './engine-choice.js';
export { type EngineName, engineNames } from './engine-names.js';
export { Engines } from './engines.js';
export { type FunctionOptions, FunctionTracer } from './function-tracer.js';
export { type HartSource, hartSource } from './hart-source.js';
export { type HartStack, hartStack, isSeen, type OtherCode } from './hart-stack.js';
export { mayInline } from './inlined-chain.js';
export { type Libraries, loadedLibraries } from './libraries.js';
export { changesItsCode, choosesItsPlace, stackBytes } from './linux-kernel.js';
export { loadedElf } from './load-bias.js';
export { insideKernel } from './other-spaces.js';
export { type CatchProbe, catchProbes, planCatch } from './panics.js';
export { PollTracer } from './poll-tracer.js';
export { type AnyProbe, type ProbeKind, type ProbeSpec, parseNames, parseProbe, probesByKind } from './probe-spec.js';
export { processMemory, whyProcessStops } from './process-memory.js';
export { mergePlans, planFunction, planPoll, planTally } from './read-plan.js';
export {
  type ExcludedFunction,
  type FunctionProbe,
  type FunctionProbes,
  resolveFunctions,
} from './resolve-functions.js';
export { type PollProbe, type PollProbes, resolvePolls } from './resolve-polls.js';
export { resolveTallies, type TallyProbe, type TallyProbes } from './resolve-tallies.js';
export type { ScratchSources } from './scratch/index.js';
export { SpaceNumbers } from './space-numbers.js';
export { SteadyClock } from './steady-clock.js';
export { type EngineEnd, StopEngine } from './stop-engine.js';
export type { ResetWatch } from './stop-engine-options.js';
export { TallyTracer } from './tally-tracer.js';
export { counterScale } from './target/counter-rate.js';
export { type Leftovers, removeLeftovers } from './target/leftovers.js';
export type { RecordCounter } from './target/told-records.js';
export { type CodeCheck, verifyArchitecture, verifyCode, verifyPlace } from './verify-target.js';
export { knownPlaces, resolveWatches, type WatchPlace } from './watch/resolve-watches.js';
export { WatchEvents, watchRef } from './watch/watch-events.js';
export type { WatchSpec } from './watch/watch-spec.js';
export { Watchpoints } from './watch/watchpoints.js';
