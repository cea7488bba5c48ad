// Packets that describe tracks and clocks.
import type { Fields } from '../../read/fields.js';
import { CLOCK_ID, CLOCK_SNAPSHOT, TRACK_DESCRIPTOR } from '../fields.js';
import type { SequenceClock } from './sequence.js';

/** A track's number; a bigint if it is above 2^53. */
export type Uuid = number | bigint;

export interface TrackDescriptor {
  readonly uuid: Uuid;
  readonly parent: Uuid | undefined;
  readonly name: string;
  readonly description: string | undefined;
  readonly rank: number;
  readonly isCounter: boolean;
  readonly isProcess: boolean;
  readonly isThread: boolean;
}

export function readDescriptor(cursor: Fields, from: number, to: number): TrackDescriptor {
  const { uuid = 0, parentUuid, name, process, thread, ...more } = TRACK_DESCRIPTOR.read(cursor, from, to);
  const other = thread
    ? (thread.threadName ?? `thread ${thread.tid ?? 0}`)
    : process && (process.processName ?? `process ${process.pid ?? 0}`);
  return {
    uuid,
    parent: parentUuid,
    name: name ?? other ?? '',
    description: more.description,
    rank: more.siblingOrderRank ?? 0,
    isCounter: more.counter !== undefined,
    isProcess: process !== undefined && thread === undefined,
    isThread: thread !== undefined,
  };
}

/** Reads a ClockSnapshot: clocks of a sequence, by what BOOTTIME shows then. */
export function readClocks(cursor: Fields, from: number, to: number): [id: number, clock: SequenceClock][] {
  const { clocks = [] } = CLOCK_SNAPSHOT.read(cursor, from, to);
  const time = clocks.findLast(({ clockId }) => clockId === CLOCK_ID.boottime)?.timestamp ?? 0;
  return clocks.flatMap(({ clockId: id = 0, isIncremental, unitMultiplierNs: unit = 1 }) =>
    id >= CLOCK_ID.firstOfSequence && isIncremental ? [[id, { time, unit }]] : [],
  );
}
