export { type Arc, Arcs, type Node } from './events/arcs.js';
export { type AwaitPlace, insideText, waitText } from './events/await-place.js';
export {
  LEFT_OUT_NOTE,
  leftOutText,
  lossTexts,
  namesBound,
  namesLeftOut,
  probesLeftOut,
  ringFullText,
  subjectsOf,
} from './events/bounds.js';
export { type CallTime, TimedFold } from './events/call-times.js';
export { CallTree, type Frame, type TreeNode, totals } from './events/call-tree.js';
export { CallsBelow } from './events/calls-below.js';
export { type Disturbance, disturbanceOf, ownSpans, type Span } from './events/disturbance.js';
export { Durations } from './events/durations.js';
export * from './events/events.js';
export { probeFrom, probeJson, type SavedProbe, savedProbe } from './events/facts.js';
export type { Finding, FindingKind } from './events/finding.js';
export { Findings } from './events/findings.js';
export { findingsText, findingText } from './events/findings-text.js';
export { type FunctionRow, FunctionSummary, functionJson } from './events/function-summary.js';
export { calledOf, isPointer } from './events/future-names.js';
export { isSuspended } from './events/late-results.js';
export { type LockUse, lockArguments, lockRef, lockText, releaseName } from './events/lock-events.js';
export type { OpenLockWait } from './events/lock-rows.js';
export { LockSummary } from './events/lock-summary.js';
export { type Newest, NewestEvents } from './events/newest-events.js';
export { EventsOfProgram, OnlyOf } from './events/of-program.js';
export { isEnd } from './events/open-calls.js';
export { asyncKindOf } from './events/refs.js';
export { isOfPart, placeOf } from './events/roots.js';
export { type SampleFacts, sampleFactsJson, sampleFactsLines } from './events/sample-facts.js';
export { Choosing, type Chosen, chosenByName, Inside, isNamed, type Selection } from './events/selection.js';
export { Filter, Fold, FromFirstEvent, onEvents, tee } from './events/sinks.js';
export { type StopError, Summary, type SummaryRow, summaryJson } from './events/summary.js';
export type { TaskRow, TaskState } from './events/task-rows.js';
export { TaskSummary } from './events/task-summary.js';
export {
  gapText,
  HartLabels,
  hartWord,
  ownTimeText,
  placeText,
  rootText,
  stackText,
  stateText,
} from './events/text.js';
export { FILE_WIDTH, type TableOptions, tableNotes, textTable, timeText } from './events/text-table.js';
export { type ThreadRow, ThreadSummary } from './events/thread-summary.js';
export { Threshold } from './events/threshold.js';
export { type WatchRow, WatchSummary } from './events/watch-summary.js';
export { type Landmark, Window } from './events/window.js';
export type { LineParts, Lines } from './formats/call-lines.js';
export type { Extension, Format } from './formats/format.js';
export { FunctionGraph } from './formats/ftrace.js';
export { formatOf, formats } from './formats/index.js';
export { writeJsonLines } from './formats/json-lines.js';
export type { LaneWriter, LifeEnd } from './formats/lane-writer.js';
export { Lanes } from './formats/lanes.js';
export { OffCpu, type WaitRow } from './formats/off-cpu.js';
export { formatFor, openTrace, type TraceOptions } from './formats/open-trace.js';
export { OutputFile, type OutputOptions } from './formats/output/output-file.js';
export { type TextPart, wholeText } from './formats/output/record-block.js';
export { readTrace, type TraceRead } from './formats/read/read-trace.js';
export { TreeWriter } from './formats/tree.js';
export { type Change, changeOf, type DiffRow, deltaOf, diffRows, instancesOf } from './report/diff.js';
export { type LockFacts, lockJson, lockTable } from './report/lock-table.js';
export { type Merged, type MergeInput, mergeTraces } from './report/merge/merge.js';
export { offCpuTable } from './report/off-cpu-table.js';
export { type Grouping, groupings, type Report, type ReportRow, reportBy } from './report/report.js';
export {
  arcJson,
  arcTable,
  placeLines,
  reportTable,
  rowJson,
  type SortKey,
  sortArcs,
  sortKeys,
  sortRows,
} from './report/report-table.js';
export { type SampleRow, type SampleSortKey, sampleRows, sampleSortKeys, sampleTable } from './report/sample-rows.js';
export { Story } from './report/story/story.js';
export { hasUnknownWakes, storyJson, storyText } from './report/story/story-text.js';
export { Choice } from './report/story/subjects.js';
export { functionTable, namesOf, summaryTable, taskTable } from './report/summary-table.js';
export {
  addedJson,
  addedTable,
  boundTallies,
  countTable,
  histogramTexts,
  type TallyRow,
  tallyJson,
  threadTable,
} from './report/tallies.js';
export { type AwaitAt, type TaskAt, TasksAt } from './report/tasks-at.js';
