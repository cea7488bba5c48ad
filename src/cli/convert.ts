import { basename } from 'node:path';
import { RsptraceError } from '../base/errors.js';
import { plural, textLines } from '../text/index.js';
import {
  endMissing,
  FromFirstEvent,
  formatFor,
  formats,
  type MergeInput,
  mergeTraces,
  openTrace,
  type TraceSink,
  timeText,
} from '../trace/index.js';
import { note } from './failure.js';
import type { ConvertArguments, MergeArguments } from './options/saved-trace.js';
import { loadPlugins } from './plugins.js';
import { hasRecords } from './records-file.js';
import { chosenInto, headJson, notesOn, readChosen } from './saved-trace.js';
import { printed } from './terminal.js';

/** `rsptrace convert IN -o OUT`: a saved trace in another format. Gives the exit status. */
export async function convert(args: ConvertArguments): Promise<number> {
  const { output } = args;
  const { open, use } = await traceOutput(args);
  const sink = new FromFirstEvent(open);
  try {
    const read = await readChosen(args.trace, chosenInto(sink), args);
    sink.finish();
    return printed(args, { ...headJson(args.trace, read), output }, () =>
      textLines([`${plural(read.events, 'event')} in ${output} (${use})`]),
    );
  } catch (error) {
    // What was converted before is kept, as far as the format allows.
    sink.end(endMissing);
    throw error;
  }
}

/** `rsptrace merge A B -o OUT`: several traces on one timeline. Gives the exit status. */
export async function merge(args: MergeArguments): Promise<number> {
  const { output, offset, align } = args;
  const paths = [args.trace, ...args.others];
  for (const path of paths) if (hasRecords(path)) throw notMerged(path);
  const inputs = paths.map((path, index): MergeInput => {
    const label = labelOf(path, paths, index);
    if (align.length > 0) return { path, label, at: align[index] ?? align[0] };
    return { path, label, offset: index === 0 ? 0 : (offset[index - 1] ?? 0) };
  });
  const { open, use } = await traceOutput(args);
  const sink = open();
  try {
    const merged = await mergeTraces(inputs, sink);
    note(...merged.flatMap(({ path, read }) => notesOn(path, read)));
    const events = merged.reduce((sum, { read }) => sum + read.events, 0);
    const traces = merged.map(({ path, read, shift }) => ({ ...headJson(path, read), shift_ns: shift }));
    const shifts = merged.map(({ path, shift }) => `${path} begins at ${timeText(shift)}`);
    return printed(args, { version: 1, output, events, traces }, () =>
      textLines([...shifts, `${plural(events, 'event')} in ${output} (${use})`]),
    );
  } catch (error) {
    // What was merged before is kept, as far as the format allows.
    sink.end(endMissing);
    throw error;
  }
}

function notMerged(path: string): RsptraceError {
  return new RsptraceError('TRACE_FOREIGN', `${path} has records, which are not merged`, {
    hint: `make a trace of it first: rsptrace convert ${path} -o x.pftrace`,
  });
}

/** Its name without extensions, or with its number where several share it. */
function labelOf(path: string, paths: readonly string[], index: number): string {
  const name = (each: string): string => basename(each).replace(/\.(?:gz|pftrace|perfetto-trace|json|uftrace)/g, '');
  const isShared = paths.filter((each) => name(each) === name(path)).length > 1;
  return isShared ? `${name(path)} ${index + 1}` : name(path);
}

/** What names a trace to write, and its format. */
interface TraceOutputArguments {
  readonly output: string;
  readonly format: string | undefined;
  readonly force: boolean;
  readonly plugin: readonly string[];
}

/**
 * The trace of `-o`, in the format of its extension or of `--format`. `use`: what to do with it. `open` throws
 * `OUTPUT_EXISTS` and `OUTPUT_CANNOT_WRITE`.
 * @throws RsptraceError `TRACE_UNKNOWN_FORMAT`
 */
async function traceOutput(args: TraceOutputArguments): Promise<{ open: () => TraceSink; use: string }> {
  const { output, force, format } = args;
  const plugins = await loadPlugins(args.plugin);
  const known = [...plugins.formats, ...formats];
  const as = format === undefined ? formatFor(output, known) : known.find((one) => isNamed(one, format));
  if (as === undefined) {
    throw new RsptraceError('TRACE_UNKNOWN_FORMAT', `no trace format is called ${format}`, {
      hint: `Known: ${known.map(({ name, extensions: [first] }) => `${first?.slice(1)} (${name})`).join(', ')}.`,
    });
  }
  return { open: () => openTrace(output, { lock: note, force, formats: plugins.formats, as }), use: as.use };
}

function isNamed({ name, extensions }: (typeof formats)[number], wanted: string): boolean {
  return name.toLowerCase() === wanted.toLowerCase() || extensions.some((one) => one.slice(1) === wanted);
}
