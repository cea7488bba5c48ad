import { controlBlock, frameNoteBytes, type ProbeCode, type RingGeometry } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { Region } from '../scratch/index.js';
import { type Placement, placeSites } from './placement.js';
import { layOutRing, type Piece, type RingLayout, type Write } from './ring.js';
import { codeRoom, controlRoom, type Site } from './sites.js';

/** With less memory for data the table of noted pointers is small. */
const smallData = 64 << 10;

interface LayoutOptions {
  readonly code: ProbeCode;
  readonly sites: readonly Site[];
  readonly slotShift: number;
  /** Where trampolines go, and where the ring goes. */
  readonly scratch: { readonly code: Region; readonly data: Region };
  /** Bytes at the end of the scratch memory's code that trampolines must not use. */
  readonly reserved?: number | undefined;
  /** Executable zero bytes near the program's text, for hops. */
  readonly near: Region | undefined;
  /** Polls can read the Future around them. */
  readonly nests: boolean;
  /** Bytes from fs's base to the words of the open outer poll. */
  readonly outerWords?: number | undefined;
}

/**
 * Where each part of the engine lies in the scratch memory: code in `code`; in `data` control block | lists |
 * counters | notes | ring.
 */
export interface TrampolineLayout {
  readonly control: Addr;
  /** The ring's memory. */
  readonly memory: Piece;
  readonly ring: RingLayout;
  readonly counters: Piece;
  /** Where places inside functions note pointers. */
  readonly notes: Piece;
  readonly placement: Placement & { readonly lists: readonly Write[] };
}

/**
 * Divides the scratch memory and builds every byte of code; writes nothing. Undefined if there is no room for a ring. Of
 * much memory only the begin is for trampolines, so that it does not depend on the rest whether short jumps reach them.
 */
export function layOutTrampolines(options: LayoutOptions): TrampolineLayout | undefined {
  const { scratch, sites, slotShift, near } = options;
  const control = scratch.data.address;
  const countShift = scratch.data.size < smallData ? 4 : 7;
  const isNoted = sites.some(({ plan: { inside } }) => inside && inside.noted.length > 0);
  const noteBytes = isNoted ? frameNoteBytes << countShift : 0;
  const { size: used, counters: countersAt, notes: notesAt } = controlRoom(sites, noteBytes);
  const memory = { address: addOffset(control, used), length: scratch.data.size - used };
  const ring = layOutRing(control, control, memory, slotShift);
  if (!ring) return undefined;
  const lists = { address: addOffset(control, controlBlock.size), length: countersAt - controlBlock.size };
  const counters = { address: addOffset(control, countersAt), length: notesAt - countersAt };
  const notes = { address: addOffset(control, notesAt), length: noteBytes };
  const length = Math.min(scratch.code.size - (options.reserved ?? 0), 2 * codeRoom(sites));
  const code = { address: scratch.code.address, length };
  // Slack that holds the trampolines themselves is not free for hops, and such trampolines need none.
  const hops = near && near.address !== code.address ? [{ address: near.address, length: near.size }] : [];
  const geometry = withOuterWords(ring.geometry, options.outerWords, lists);
  const placement = placeSites({
    sites,
    code: options.code,
    room: { code, near: hops },
    geometry,
    lists,
    counters,
    notes: { at: notes.address, countShift },
    nests: options.nests,
  });
  return { control, memory, ring, counters, notes, placement };
}

function withOuterWords(geometry: RingGeometry, fs: number | undefined, lists: Piece): RingGeometry {
  if (fs === undefined) return { ...geometry, outer: undefined };
  return { ...geometry, outer: { fs, plans: { at: lists.address, bytes: lists.length } } };
}
