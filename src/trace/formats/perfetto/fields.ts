/*
 * Messages that a trace is made of; the files they are from: ./packets.ts. Those that most packets have are field
 * numbers alone: their writer and reader go without an object a message.
 */
import { bool, list, Message, message, text, uint, uint32, uint64, uuid } from './message.js';

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
const EVENT_DEFAULTS = new Message({ trackUuid: uuid(TRACK_EVENT.trackUuid) });
export const PACKET_DEFAULTS = new Message({
  trackEventDefaults: message(11, EVENT_DEFAULTS),
  timestampClockId: uint32(58),
});
/** ClockSnapshot.Clock. */
const CLOCK = new Message({
  clockId: uint32(1),
  timestamp: uint(2),
  isIncremental: bool(3),
  unitMultiplierNs: uint(4),
});
export const CLOCK_SNAPSHOT = new Message({ clocks: list(message(1, CLOCK)) });
/** BuiltinClock's BOOTTIME, which readers take as the trace's own time; clocks of a sequence count from 64. */
export const CLOCK_ID = { boottime: 6, firstOfSequence: 64 };
export const SOURCE_LOCATION = new Message({ iid: uint(1), fileName: text(2), lineNumber: uint(4) });
/** InternedString, EventName, EventCategory, DebugAnnotationName. */
export const INTERNED_STRING = new Message({ iid: uint(1), str: text(2) });
/** Messages of profiling/profile_common.proto and profile_packet.proto. */
export const MAPPING = new Message({ iid: uint(1), pathStringIds: uint(7) });
export const FRAME = new Message({
  ...{ iid: uint(1), functionNameId: uint(2), mappingId: uint(3), relPc: uint64(4) },
  ...{ sourcePathIid: uint(5), lineNumber: uint(6) },
});
export const CALLSTACK = new Message({ iid: uint(1), frameIds: list(uint(2)) });
export const PERF_SAMPLE = new Message({
  ...{ cpu: uint32(1), pid: uint32(2), tid: uint32(3), callstackIid: uint(4), cpuMode: uint32(5) },
  ...{ timebaseCount: uint(6) },
});
export const DEBUG_ANNOTATION = {
  nameIid: 1,
  boolValue: 2,
  uintValue: 3,
  intValue: 4,
  doubleValue: 5,
  stringValue: 6,
  pointerValue: 7,
  legacyJsonValue: 9,
  name: 10,
  stringValueIid: 17,
};

const PROCESS_DESCRIPTOR = new Message({ pid: uint32(1), processName: text(6), processLabels: list(text(8)) });
const THREAD_DESCRIPTOR = new Message({ pid: uint32(1), tid: uint32(2), threadName: text(5) });
export const TRACK_DESCRIPTOR = new Message({
  ...{ uuid: uuid(1), name: text(2), process: message(3, PROCESS_DESCRIPTOR), thread: message(4, THREAD_DESCRIPTOR) },
  ...{ parentUuid: uuid(5), counter: message(8, new Message({})), childOrdering: uint32(11) },
  ...{ siblingOrderRank: uint32(12), description: text(14) },
});
export const CHILD_ORDERING = { chronological: 2, explicit: 3 };

/** Numbers of tracks of ours. Those that are high take two bytes. */
export const TRACK = {
  process: 1,
  tasks: 2,
  /** Around the roots that are parts of tasks that are not known. */
  parts: 0x3ff8,
  console: 0x3ffa,
  waiting: 0x3ffc,
  runnable: 0x3ffe,
};

/** The number of a hart's track: none of those above. */
export function hartTrack(hart: number): number {
  const track = 4 + 2 * hart;
  return track < TRACK.parts ? track : track + TRACK.runnable + 2 - TRACK.parts;
}

/** The first flow that is none of a task: those have the roots' keys. */
export const FIRST_WAKE = 2 ** 40;
