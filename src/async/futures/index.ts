export {
  awaitChain,
  type ChainLink,
  extentOf,
  type LiveFuture,
  liveAt,
  liveFutures,
  type NextBlock,
  stateOf,
} from './await-chain.js';
export { AwaitPaths, type InnerFuture, type InnerPoll } from './await-path.js';
export { futuresDot, graphSvg } from './dot.js';
export { findFutures } from './find-futures.js';
export { type Dependency, dependenciesOf, FutureGraph, type FutureNode } from './graph.js';
export { allHeld, onlyHeld } from './held-place.js';
export { futuresJson } from './json.js';
export { pointerOf } from './pointers.js';
export { FutureNames, shortType } from './short-names.js';
export { type Blame, blameChain, blameOf } from './size-blame.js';
export { futuresSizes, futuresTable } from './table.js';
export {
  type KnownTask,
  noTaskPlaces,
  type StuckTask,
  type TaskEnder,
  type TaskPlaces,
  type TaskPoller,
} from './task-places.js';
export { futuresTree } from './tree.js';
export {
  type Awaitee,
  type BoxedFuture,
  type FutureKind,
  type FutureSet,
  type FutureState,
  type FutureType,
  type Guard,
  type HeldFuture,
  type HeldInPlace,
  type Hop,
  type HopTarget,
  type InlinedPoll,
  NEVER,
  type Place,
  type PollFunction,
  type PollResultLayout,
  type Repeat,
  type StateLocal,
} from './types.js';
