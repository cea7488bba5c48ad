// A recording into a file of records, of which events are made later: what it cannot do, and the file.
import { closeSync } from 'node:fs';
import { messageOf, RsptraceError } from '../../base/errors.js';
import { abandon, holdsBytes, type OpenedFile, openLocked } from '../../base/locked-file.js';
import { type Program, samplesOf, watchesOf } from '../../record/index.js';
import type { TraceSink } from '../../trace/index.js';
import { note } from '../failure.js';
import type { RecordingArguments } from '../options/recording.js';

/** @throws RsptraceError `USAGE` for what needs events while it is recorded, or what is in no record */
export function refuseWithoutEvents(args: RecordingArguments, program: Program): void {
  const guestTime = 'guest-time-limit' in args ? args['guest-time-limit'] : undefined;
  const asked = {
    ...{ '--max-events': args['max-events'], '--last': args.last, '--budget': args.budget },
    ...{ '--long-poll': args['long-poll'], '--guest-time-limit': guestTime },
    '--findings error': args.findings === 'error' || undefined,
  };
  const [option] = Object.entries(asked).find(([, value]) => value !== undefined) ?? [];
  if (option !== undefined) throw withoutEvents(args, `${option} needs events while they are recorded`);
  if (samplesOf(program)) throw withoutEvents(args, "of 'sample:' no records are kept");
  if (watchesOf(program).length > 0) throw withoutEvents(args, "of 'watch:' no records are kept");
  if (program.others.length > 0) throw withoutEvents(args, 'of the programs of --elf no records are kept');
  const counts = program.kinds.find(({ kind }) => kind.onlyCounts)?.kind.name;
  if (counts !== undefined) throw withoutEvents(args, `of what '${counts}:' counts no records are kept`);
}

function withoutEvents({ output }: RecordingArguments, why: string): RsptraceError {
  return new RsptraceError('USAGE', `-o ${output} keeps records, and makes events of them later: ${why}`, {
    hint: 'record into a .pftrace',
  });
}

/** Holds the file until the recording begins to write its records there. */
export function recordsSink(path: string): TraceSink {
  const opened = openedFor(path);
  let [isBegun, isOver] = [false, false];
  return {
    begin: () => {
      isBegun = true;
    },
    event() {},
    hart() {},
    flush() {},
    end: () => {
      if (isOver) return;
      isOver = true;
      if (isBegun || holdsBytes(opened.fd)) closeSync(opened.fd);
      else abandon(path, opened);
    },
  };
}

function openedFor(path: string): OpenedFile {
  try {
    return openLocked(path, note);
  } catch (error) {
    if (error instanceof RsptraceError) throw error;
    throw new RsptraceError('OUTPUT_CANNOT_WRITE', `cannot write the trace to ${path}: ${messageOf(error)}`, {
      hint: 'Name a file that can be written with -o.',
      cause: error,
    });
  }
}
