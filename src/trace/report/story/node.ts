import type { GuestNanos } from '../../events/events.js';

/** What something in a story is. */
export type StoryKind =
  | 'call'
  | 'future'
  | 'poll'
  | 'lock'
  | 'irq'
  | 'fault'
  | 'syscall'
  | 'trap'
  | 'wait'
  | 'wake'
  | 'place';

/** Something that happened for the subject of a story. */
export interface StoryNode {
  readonly kind: StoryKind;
  readonly name: string;
  /** Arguments, with which state a poll began, who held a lock. */
  detail: string | undefined;
  /** Where it began. Of a wait the hart that was left. */
  readonly hart: number;
  readonly began: GuestNanos;
  /** Undefined for what takes no time, and for what has no end in the trace. */
  took: number | undefined;
  result: string | undefined;
  readonly children: StoryNode[];
  readonly wait?: StoryWait;
}

/** The subject has no hart. */
export interface StoryWait {
  /** Who has the hart next; undefined if that was not seen. */
  next: string | undefined;
  /** Who ended the wait, and when. */
  wokenBy: string | undefined;
  woken: GuestNanos | undefined;
  /** Where it went on. */
  back: number | undefined;
}
