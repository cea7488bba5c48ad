export { bytesIn, type ValuePlace } from './argument-places.js';
export { CodeEntries } from './code-entries.js';
export { type CodeFacts, codeFacts } from './code-facts.js';
export type { FunctionArgument, FunctionProbe } from './describer.js';
export { type Conditions, holds, holdsAtStop, operandAt, placeIn } from './expressions/comparison.js';
export { compares, eachComparison, operators } from './expressions/condition.js';
export {
  type AssumedNumber,
  bytesAt,
  type NamedPlace,
  numberIn,
  planExpression,
  readsOf,
  registersOf,
  type Spot,
} from './expressions/plan.js';
export { ofFuture, onlyInState, ProgramExpressions, rootOf } from './expressions/program.js';
export { compileGlob, nearest } from './glob.js';
export type { ExcludedFunction } from './inlined-functions.js';
export { type PlannedStop, plannedStops } from './inner-windows.js';
export { type FunctionOptions, FunctionTracer } from './kinds/fn/tracer.js';
export { askedKinds, kinds, parseProbe } from './kinds/index.js';
export type {
  AnyProbe,
  Found,
  FoundKind,
  FoundSamples,
  FoundWatches,
  InlinedPolls,
  KindPreview,
  KindReport,
  KindTracer,
  Outcome,
  PlanWishes,
  ProbedProgram,
  ProbeKind,
  ProbeText,
  ReportWishes,
  TracerContext,
  Wakes,
} from './kinds/kind.js';
export { LockNames } from './kinds/locks/lock-names.js';
export { lockRole } from './kinds/locks/names.js';
export { type ProbeSpec, whiteList } from './kinds/names.js';
export { PollConditions } from './kinds/poll/conditions.js';
export { howSeen, type SeenFuture } from './kinds/poll/coverage.js';
export { coverageSentence } from './kinds/poll/coverage-report.js';
export type { FoundPolls } from './kinds/poll/index.js';
export type { PollProbe } from './kinds/poll/resolve.js';
export { type Access, accessOf, WatchEvents, type Watchpoint, watchRef } from './kinds/watch/events.js';
export { overlaps, type PlannedWatch, resolveWatches, type WatchPlace } from './kinds/watch/resolve.js';
export type { WatchSpec } from './kinds/watch/spec.js';
export { panicPlaces, panicsAt } from './panic-places.js';
export {
  type CodePiece,
  codeOf,
  entryPlan,
  type InnerPlace,
  leavesValuesOut,
  mergePlans,
  noteName,
  type PlannedCount,
  type PlannedExtent,
  type PlannedLoad,
  type PlannedReads,
  type PlannedWord,
  type ReadPlan,
  stackIsRead,
  trapIsRead,
} from './read-plan.js';
export { type FunctionProbes, resolveFunctions } from './resolve-functions.js';
export { StaticCalls } from './static-calls.js';
export { extentWords } from './value-reads.js';
