import type { Addr } from '../../base/addr.js';
import type { Displaced, DisplacedInside, FunctionExit } from './displaced.js';
import type { Condition, Counter, ExtentCopy, Nesting, OuterCopy, RecordField, ReturnHook } from './record-parts.js';
import type { RingGeometry } from './ring-contract.js';

interface Trampoline {
  /** Where the code will be. Its length does not depend on this. */
  readonly at: Addr;
  readonly ring: RingGeometry;
  readonly fields: readonly RecordField[];
  /** Not inside of a function. */
  readonly extents?: readonly ExtentCopy[];
}

export interface EntryTrampoline extends Trampoline {
  readonly displaced: Displaced;
  readonly when: readonly Condition[];
  readonly hook: ReturnHook | undefined;
  readonly nesting: Nesting | undefined;
  readonly outerCopy: OuterCopy | undefined;
  /** With any, it only counts: no record, no hook. */
  readonly counters: readonly Counter[];
  /** How control comes here: by the patch itself, or through the hop at this address, which has saved a register. */
  readonly via: 'patch' | { readonly hop: Addr };
}

export interface ExitTrampoline extends Trampoline {
  readonly keep: readonly string[];
  readonly nesting: boolean;
}

/**
 * Replaces an exit of a function whose return address must stay unchanged. It runs the displaced instructions, then
 * writes a record and returns. Before a tail jump it hooks the return instead, because the jump's target returns for
 * both.
 */
export interface EndTrampoline extends Trampoline {
  readonly end: FunctionExit;
  /** The exit trampoline for a tail jump. */
  readonly exit: Addr | undefined;
  /** Control comes through a hop, which has saved a register. */
  readonly hopped: boolean;
}

/** A register's value and a number. */
interface RegisterPlace {
  readonly register: string;
  readonly offset: number;
}

/** A pointer by a register: its value, or a word behind what it points to; and a number. */
export interface PointerPlace extends RegisterPlace {
  /** Where that word lies, in bytes from what the register points to. It is in the function's own frame. */
  readonly through?: number | undefined;
}

/**
 * Pointers that code notes where a block begins, and takes where it ends. Each is known by the number of its block and
 * by the frame of the function around it. So threads, recursion and interrupts do not mix them up. An entry is two
 * words, and an entry of another frame is overwritten:
 *
 *     key   frame ^ number << 48 ^ pointer       0: nothing is noted
 *     pointer
 *
 * A torn entry fits no frame, because both words are checked together.
 */
export interface FrameNotes {
  readonly at: Addr;
  /** log2 of the number of entries: at most 7. */
  readonly countShift: number;
}

/** A block's number, below 2^15, and the frame of its function: the same value wherever it begins and ends. */
export interface FrameNote {
  readonly of: number;
  readonly frame: RegisterPlace;
}

/** Bytes of an entry of {@link FrameNotes}. */
export const frameNoteBytes = 16;

/**
 * Runs the displaced instructions of a place inside a function, and writes a record between them. Nothing of the
 * program's state changes, flags included, and the stack below the stack pointer is not touched (a red zone).
 */
export interface InnerTrampoline extends Trampoline {
  readonly displaced: DisplacedInside;
  readonly notes: FrameNotes;
  /** Pointers that are taken first. They are the record's `kept` words; 0 if nothing was noted. */
  readonly taken: readonly FrameNote[];
  /** Pointers that are noted last. */
  readonly noted: readonly (FrameNote & { readonly pointer: PointerPlace })[];
  readonly via: EntryTrampoline['via'];
}
