/**
 * The library: attach to a target or launch one, probe it, run it, look at it. The layers beneath it are entries of
 * their own (`rsptrace/rsp`, `rsptrace/dwarf`, ...; see package.json).
 */
export {
  type AnyHit,
  type AttachOptions,
  attach,
  type BacktraceOptions,
  type CallHit,
  type FoundTasks,
  type Handler,
  type HartBacktrace,
  type LaunchOptions,
  launch,
  type Plugins,
  type PollHit,
  type PollReturn,
  type Probe,
  type ProbeOptions,
  type RunOptions,
  type Target,
  type TaskOptions,
  type UnseenFuture,
} from './api/index.js';
export { type Architecture, architectures, registerArchitecture } from './arch/index.js';
export { type Addr, addr, hex } from './base/addr.js';
export { type ErrorCode, errorCodes, type OwnErrorCode, RsptraceError } from './base/errors.js';
export type { Logger } from './base/logger.js';
export type { MemoryReader, RegisterReader } from './base/memory-reader.js';
export { type AnyProbe, type ProbeSpec, parseProbe } from './probes/index.js';
export { type Program, type Progress, prepare, type Recording, type RecordOptions, record } from './record/index.js';
export type { Session } from './rsp/index.js';
export { connect, type TargetOptions as ConnectOptions } from './target/index.js';
export {
  type Format,
  openTrace,
  Summary,
  summaryJson,
  summaryTable,
  type TraceEvent,
  type TraceOptions,
  type TraceSink,
  tee,
} from './trace/index.js';
export { type PlainEnum, type PlainValue, Unavailable } from './values/index.js';
