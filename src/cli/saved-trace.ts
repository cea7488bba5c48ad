import { RsptraceError } from '../base/errors.js';
import { plural } from '../base/plural.js';
import { textLines } from '../base/visible.js';
import { nearest } from '../probes/index.js';
import { readTrace, type TableOptions, type TraceRead, type TraceSink, Window } from '../trace/index.js';
import type { WindowArguments } from './saved-trace-options.js';

/** Reads a trace into a sink, and says on stderr what of it is missing or was not understood. */
export async function readSaved(path: string, sink: TraceSink, window?: WindowArguments): Promise<TraceRead> {
  const { from, to } = window ?? {};
  const inside = from === undefined && to === undefined ? undefined : new Window(sink, from, to);
  const read = await readTrace(path, inside ?? sink);
  if (inside && !inside.hasBegun) {
    throw new RsptraceError('TRACE_NO_MATCH', `${path} has nothing from --from on`, {
      hint: 'take an earlier time, or a function that was traced: rsptrace report lists them',
    });
  }
  for (const note of notesOn(path, read)) process.stderr.write(textLines([`rsptrace: ${note}`]));
  return read;
}

function notesOn(path: string, { cut, isOwn, otherPackets, events }: TraceRead): string[] {
  const notes: string[] = [];
  if (cut) {
    const torn = cut.bytes === 0 ? '' : `, and ${plural(cut.bytes, 'byte')} of another packet are left out`;
    notes.push(`${path} is cut off: ${plural(events, 'event')} could be read, up to byte ${cut.at}${torn}`);
  }
  if (!isOwn) notes.push(`${path} was not written by rsptrace: its slices are taken for calls, its tracks for harts`);
  if (!isOwn && otherPackets > 0) notes.push(`${plural(otherPackets, 'packet')} of it could not be used`);
  return notes;
}

/** The error for a name that a trace does not have. */
export function noMatch(option: string, glob: string, names: readonly string[]): RsptraceError {
  const near = nearest(glob, names);
  const all = [...new Set(names)];
  const some = `the trace has ${plural(all.length, 'name')}, of which ${all.slice(0, 3).join(', ')}: rsptrace report lists them`;
  return new RsptraceError('TRACE_NO_MATCH', `nothing in the trace matches ${option} '${glob}'`, {
    hint: near.length > 0 ? `nearest: ${near.join(', ')}` : all.length > 0 ? some : 'it has no calls and no polls',
  });
}

export function tableOptions(): TableOptions {
  const { isTTY, columns } = process.stdout;
  return { color: isTTY === true && process.stdout.hasColors(), width: columns ?? 200 };
}

/** The head of every JSON object about a trace. */
export function headJson(path: string, { info, events, cut }: TraceRead): object {
  return {
    version: 1,
    trace: path,
    program: info.program,
    build_id: info.buildId ?? null,
    clock: info.clock.name,
    events,
    cut_at: cut?.at ?? null,
  };
}
