export { CallTimes } from './call-times.js';
export type {
  AnyBegin,
  AnyEnd,
  ArgumentValue,
  AwaitLink,
  CallBegin,
  CallEnd,
  CallEvent,
  CallLost,
  Cancelled,
  ClockInfo,
  ConsoleLine,
  DerivedPoll,
  FunctionRef,
  FutureKind,
  FutureRef,
  Gap,
  GuestNanos,
  HartInfo,
  OwnTime,
  PlaceHit,
  PlaceRef,
  PollBegin,
  PollEnd,
  PollLost,
  PollResult,
  ProbeFact,
  RecordingFacts,
  Reset,
  RootRef,
  Sample,
  SampledFrame,
  StackEntry,
  StateChange,
  StateRef,
  Stuck,
  ThreadRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
  TraceSink,
  Wake,
  WatchAccess,
  WatchHit,
  WatchRef,
} from './events.js';
export { endMissing } from './events.js';
export { type Finding, type FindingKind, Findings, findingsText, findingText } from './findings.js';
export type { Extension, Format } from './formats/format.js';
export { FunctionGraph } from './formats/ftrace.js';
export { formatOf, formats } from './formats/index.js';
export { writeJsonLines } from './formats/json-lines.js';
export { Lanes, type LaneWriter, type LifeEnd } from './formats/lanes.js';
export { type Lines, TreeWriter } from './formats/tree.js';
export { FromFirstEvent } from './from-first-event.js';
export { type FunctionRow, FunctionSummary, functionJson } from './function-summary.js';
export { HartLabels, hartWord } from './hart-labels.js';
export { isSuspended } from './late-results.js';
export { leftOutText, namesLeftOut, probesLeftOut, subjectOf } from './left-out.js';
export { type Merged, type MergeInput, mergeTraces } from './merge/merge.js';
export { type Newest, NewestEvents } from './newest-events.js';
export { onEvents } from './on-events.js';
export { formatFor, openTrace, type TraceOptions } from './open-trace.js';
export { OutputFile, type OutputOptions } from './output-file.js';
export { readParts, readTrace, type TraceRead } from './read/read-trace.js';
export { type Arc, Arcs, type Node } from './report/arcs.js';
export { CallTree, type Frame, type TreeNode, totals } from './report/call-tree.js';
export { CallsBelow } from './report/calls-below.js';
export { type Change, changeOf, type DiffRow, deltaOf, diffRows } from './report/diff.js';
export { Durations } from './report/durations.js';
export { memberText } from './report/member-text.js';
export { OffCpu, type WaitRow } from './report/off-cpu.js';
export { offCpuTable } from './report/off-cpu-table.js';
export { type Grouping, groupings, type Report, type ReportRow, reportBy } from './report/report.js';
export {
  arcJson,
  arcTable,
  reportTable,
  rowJson,
  type SortKey,
  sortArcs,
  sortKeys,
  sortRows,
} from './report/report-table.js';
export { type SampleRow, type SampleSortKey, sampleRows, sampleSortKeys, sampleTable } from './report/sample-rows.js';
export { Choosing, type Chosen, chosenByName, Inside, isNamed, type Selection } from './report/selection.js';
export { type AwaitAt, type TaskAt, TasksAt } from './report/tasks-at.js';
export { type Moment, Window } from './report/window.js';
export { ringFullText } from './ring-full.js';
export { type SampleFacts, sampleFactsFrom, sampleFactsJson, sampleFactsLines } from './sample-facts.js';
export { stopsBesideText } from './stops-beside.js';
export { type StopError, Summary, type SummaryRow, summaryJson } from './summary.js';
export { functionTable, summaryTable } from './summary-table.js';
export { addedJson, addedTable, boundTallies, countTable, histogramText, type TallyRow, tallyJson } from './tallies.js';
export { type TaskRow, type TaskState, TaskSummary } from './task-summary.js';
export { taskTable } from './task-table.js';
export { tee } from './tee.js';
export {
  argumentsText,
  ChainTexts,
  gapText,
  ownTimeText,
  placeText,
  rootText,
  stateText,
  waitingState,
  waitText,
} from './text.js';
export { TextBytes } from './text-bytes.js';
export { FILE_WIDTH, type TableOptions, textTable, timeText } from './text-table.js';
export { Threshold } from './threshold.js';
export { type WatchRow, WatchSummary } from './watch-summary.js';
