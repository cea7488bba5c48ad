/* Field numbers of the messages that a trace is made of; the files they are from: ./packets.ts. */

export const PACKET = 1;

export const TRACE_PACKET = {
  clockSnapshot: 6,
  timestamp: 8,
  trustedPacketSequenceId: 10,
  trackEvent: 11,
  internedData: 12,
  sequenceFlags: 13,
  compressedPackets: 50,
  timestampClockId: 58,
  tracePacketDefaults: 59,
  trackDescriptor: 60,
  perfSample: 66,
  firstPacketOnSequence: 87,
};
export const SEQ_INCREMENTAL_STATE_CLEARED = 1;

export const TRACK_EVENT = {
  categoryIids: 3,
  debugAnnotations: 4,
  type: 9,
  nameIid: 10,
  trackUuid: 11,
  categories: 22,
  name: 23,
  counterValue: 30,
  sourceLocation: 33,
  sourceLocationIid: 34,
  doubleCounterValue: 44,
  flowIds: 47,
  terminatingFlowIds: 48,
  callstackIid: 56,
};
/** TrackEvent.Type. */
export const EVENT = { sliceBegin: 1, sliceEnd: 2, instant: 3, counter: 4 } as const;
export type EventType = (typeof EVENT)[keyof typeof EVENT];

export const INTERNED_DATA = {
  eventCategories: 1,
  eventNames: 2,
  debugAnnotationNames: 3,
  sourceLocations: 4,
  functionNames: 5,
  frames: 6,
  callstacks: 7,
  mappingPaths: 17,
  sourcePaths: 18,
  mappings: 19,
  debugAnnotationStringValues: 29,
};
/** TracePacketDefaults. */
export const PACKET_DEFAULTS = { trackEventDefaults: 11, timestampClockId: 58 };
export const CLOCK_SNAPSHOT = { clocks: 1 };
/** ClockSnapshot.Clock. */
export const CLOCK = { clockId: 1, timestamp: 2, isIncremental: 3, unitMultiplierNs: 4 };
/** BuiltinClock's BOOTTIME, which readers take as the trace's own time; clocks of a sequence count from 64. */
export const CLOCK_ID = { boottime: 6, firstOfSequence: 64 };
export const SOURCE_LOCATION = { iid: 1, fileName: 2, lineNumber: 4 };
/** InternedString, and the messages of profiling/profile_common.proto and profile_packet.proto. */
export const INTERNED_STRING = { iid: 1, str: 2 };
export const MAPPING = { iid: 1, pathStringIds: 7 };
export const FRAME = { iid: 1, functionNameId: 2, mappingId: 3, relPc: 4, sourcePathIid: 5, lineNumber: 6 };
export const CALLSTACK = { iid: 1, frameIds: 2 };
export const PERF_SAMPLE = { cpu: 1, pid: 2, tid: 3, callstackIid: 4, cpuMode: 5, timebaseCount: 6 };
export const DEBUG_ANNOTATION = {
  nameIid: 1,
  boolValue: 2,
  uintValue: 3,
  intValue: 4,
  doubleValue: 5,
  stringValue: 6,
  pointerValue: 7,
  name: 10,
  stringValueIid: 17,
};

export const TRACK_DESCRIPTOR = {
  uuid: 1,
  name: 2,
  process: 3,
  thread: 4,
  parentUuid: 5,
  counter: 8,
  childOrdering: 11,
  siblingOrderRank: 12,
  description: 14,
};
export const CHILD_ORDERING = { chronological: 2, explicit: 3 };
export const PROCESS_DESCRIPTOR = { pid: 1, processName: 6, processLabels: 8 };
export const THREAD_DESCRIPTOR = { pid: 1, tid: 2, threadName: 5 };

/** Numbers of tracks of ours: those that are high are no hart's, and take two bytes. */
export const TRACK = {
  process: 1,
  tasks: 2,
  /** Around the roots that are parts of tasks that are not known. */
  parts: 0x3ff8,
  console: 0x3ffa,
  waiting: 0x3ffc,
  runnable: 0x3ffe,
};
