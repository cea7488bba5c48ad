import { basename } from 'node:path';
import { addr, hex } from '../../base/addr.js';
import type { Backlog, Recording } from '../../record/index.js';
import { plural } from '../../text/index.js';
import { isThere } from '../open-output.js';
import type { RecordingArguments } from '../options/recording.js';
import { recordsFile } from '../records-file.js';
import { note, sentenceLines } from '../standard-error.js';
import type { Guest } from './outcome.js';
import type { Recorded } from './session.js';

/** So many functions that panic slow a guest, which recordings that take longer than this say. */
const manyPanics = 16;

const slowMs = 5000;

/** What a backlog means for whoever waits, for stderr. */
export function backlogText({ records, ms }: Backlog, output: string): string {
  const left = isThere(recordsFile(output)) ? `leaves them to rsptrace recover ${output}` : 'loses them';
  const text = `${plural(records, 'record')} wait to be understood, about ${Math.ceil(ms / 1000)} s; Ctrl-C ${left}`;
  return sentenceLines([`rsptrace: ${text}`], process.stderr);
}

/** What is left out, stays behind or was slow: a sentence each, on stderr. */
export function reportLimits(args: RecordingArguments, recording: Recorded, guest: Guest | undefined): void {
  if (recording.unread > 0) {
    const isKept = isThere(recordsFile(args.output));
    const wayOut = isKept ? `rsptrace recover ${args.output} makes the whole trace of them` : 'they are lost';
    note(`${plural(recording.unread, 'record')} were left when their time was over: ${wayOut}`);
  }
  if (recording.tailLost) {
    note(
      'the guest ended with events in its memory that were not read yet; --until FUNCTION, the one that powers off, keeps them, and so does `rsptrace run` without --scratch',
    );
  }
  if (recording.trampolinesStay && guest === undefined) {
    // Nobody maps it in a kernel's next page table any more.
    const isHidden = recording.scratch?.startsWith('hidden RAM') === true && recording.trampolinesNeeded;
    const harm = isHidden
      ? 'a kernel that turns to another page table before they have returned dies: record its boot to the end, or with --engine stop'
      : 'they do no harm';
    const what = recording.trampolinesNeeded
      ? 'calls were open that return through trampolines, so these stay'
      : 'calls were open, which return past the trampolines from now on: these stay';
    note(`${what} in ${recording.scratch}; ${harm}`);
  }
  if (recording.panicPlaces >= manyPanics && recording.hostMs > slowMs) {
    note(
      `${recording.panicPlaces} functions that panic had a breakpoint, because their callers are known at their entry only; QEMU looks through all breakpoints at each jump to an address in a register: --on-panic ignore spares that`,
    );
  }
  const { openCounter } = recording;
  // A guest that we have ended keeps nothing.
  if (openCounter && (guest === undefined || guest.status !== null)) {
    const { register, harts } = openCounter;
    note(
      `calls were open that return through trampolines, which read the time counter: the kernel may go on reading it (${register}, on ${plural(harts.length, 'hart')})`,
    );
  }
  if (isNeverSeen(recording)) {
    const isMoved = recording.loadBias !== 0n;
    const where = isMoved ? `${hex(addr(recording.loadBias))} above its own addresses` : 'where it is linked';
    const moves = isMoved ? ' A loader may take another place each time (aslr).' : '';
    note(
      `nothing of ${basename(args.elf)} was in the target's memory when it began, and no probe was hit: is it the ELF that runs there, loaded ${where}?${moves}`,
    );
  }
  if (recording.foreignHits > 0) {
    note(
      `other code than ${basename(args.elf)}'s came to its probes' addresses ${plural(recording.foreignHits, 'time')}: it went on untouched and is not recorded, but each time costs a stop`,
    );
  }
  if (recording.pastWire && args['record-wire'] !== undefined) {
    note(
      `what was noted without stops did not pass over the wire, so that ${args['record-wire']} cannot be replayed; --engine stop makes a recording that can`,
    );
  }
}

/** A wrong ELF, or one at other addresses: nothing else says why nothing was recorded. */
export function isNeverSeen({ codeAbsent, events, records, tallies, foreignHits, neverLoaded }: Recording): boolean {
  const isHit = events + records + foreignHits > 0 || tallies.some(({ calls }) => calls > 0);
  return codeAbsent && !isHit && neverLoaded.length === 0;
}
