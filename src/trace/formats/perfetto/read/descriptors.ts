// Packets that describe tracks and clocks.
import { type Fields, LEN, VARINT } from '../../read/fields.js';
import { CLOCK, CLOCK_ID, CLOCK_SNAPSHOT, PROCESS_DESCRIPTOR, THREAD_DESCRIPTOR, TRACK_DESCRIPTOR } from '../fields.js';
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

/** Reads a TrackDescriptor, which `message` has been put into. */
export function readDescriptor(message: Fields, entry: Fields): TrackDescriptor {
  let uuid: Uuid = 0;
  let parent: Uuid | undefined;
  let name: string | undefined;
  let description: string | undefined;
  let rank = 0;
  let isCounter = false;
  let other: string | undefined;
  let isProcess = false;
  let isThread = false;
  while (message.next()) {
    const { number, type } = message;
    if (type === VARINT) {
      if (number === TRACK_DESCRIPTOR.uuid) uuid = message.key();
      else if (number === TRACK_DESCRIPTOR.parentUuid) parent = message.key();
      else if (number === TRACK_DESCRIPTOR.siblingOrderRank) rank = message.low;
    } else if (type === LEN) {
      if (number === TRACK_DESCRIPTOR.name) name = message.text();
      else if (number === TRACK_DESCRIPTOR.description) description = message.text();
      else if (number === TRACK_DESCRIPTOR.counter) isCounter = true;
      else if (number === TRACK_DESCRIPTOR.process || number === TRACK_DESCRIPTOR.thread) {
        isProcess = number === TRACK_DESCRIPTOR.process;
        isThread = !isProcess;
        other = processOrThread(message, entry, isProcess);
      }
    }
  }
  return {
    uuid,
    parent,
    name: name ?? other ?? '',
    description,
    rank,
    isCounter,
    isProcess,
    isThread,
  };
}

function processOrThread(message: Fields, entry: Fields, isProcess: boolean): string {
  const nameField = isProcess ? PROCESS_DESCRIPTOR.processName : THREAD_DESCRIPTOR.threadName;
  let name: string | undefined;
  let id = 0;
  entry.enter(message.from, message.to);
  while (entry.next()) {
    if (entry.type === LEN && entry.number === nameField) name = entry.text();
    else if (entry.type === VARINT && entry.number === (isProcess ? 1 : THREAD_DESCRIPTOR.tid)) id = entry.low;
  }
  return name ?? `${isProcess ? 'process' : 'thread'} ${id}`;
}

/** Reads a ClockSnapshot, which `message` has been put into: clocks of a sequence, by what BOOTTIME shows then. */
export function readClocks(message: Fields, entry: Fields): [id: number, clock: SequenceClock][] {
  let boottime = 0;
  const units = new Map<number, number>();
  while (message.next()) {
    if (message.number !== CLOCK_SNAPSHOT.clocks || message.type !== LEN) continue;
    let [id, time, isIncremental, unit] = [0, 0, false, 1];
    entry.enter(message.from, message.to);
    while (entry.next()) {
      if (entry.number === CLOCK.clockId) id = entry.low;
      else if (entry.number === CLOCK.timestamp) time = entry.value();
      else if (entry.number === CLOCK.isIncremental) isIncremental = entry.low !== 0;
      else if (entry.number === CLOCK.unitMultiplierNs) unit = entry.value();
    }
    if (id === CLOCK_ID.boottime) boottime = time;
    else if (id >= CLOCK_ID.firstOfSequence && isIncremental) units.set(id, unit);
  }
  return [...units].map(([id, unit]) => [id, { time: boottime, unit }]);
}
