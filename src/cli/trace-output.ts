import { RsptraceError } from '../base/errors.js';
import { formatOf, formats, openTrace, type TraceSink } from '../trace/index.js';
import { warn } from './open-output.js';
import { loadPlugins } from './plugins.js';

/** What names a trace to write, and its format. */
export interface TraceOutputArguments {
  readonly output: string;
  readonly format: string | undefined;
  readonly force: boolean;
  readonly plugin: readonly string[];
}

/**
 * Opens the trace of `-o`, in the format of its extension or of `--format`. `use`: what to do with it.
 * @throws RsptraceError `OUTPUT_EXISTS`, `TRACE_UNKNOWN_FORMAT`, `TRACE_WRITE_FAILED`
 */
export async function openTraceOutput(args: TraceOutputArguments): Promise<{ sink: TraceSink; use: string }> {
  const { output, force, format } = args;
  const plugins = await loadPlugins(args.plugin);
  const known = [...plugins.formats, ...formats];
  const wanted = format === undefined ? formatOf(output, known) : known.find((one) => isNamed(one, format));
  if (format !== undefined && wanted === undefined) {
    throw new RsptraceError('TRACE_UNKNOWN_FORMAT', `no trace format is called ${format}`, {
      hint: `Known: ${known.map(({ name, extensions: [first] }) => `${first?.slice(1)} (${name})`).join(', ')}.`,
    });
  }
  const sink = openTrace(output, { lock: warn, force, formats: plugins.formats, as: wanted });
  return { sink, use: wanted?.use ?? '' };
}

function isNamed({ name, extensions }: (typeof formats)[number], wanted: string): boolean {
  return name.toLowerCase() === wanted.toLowerCase() || extensions.some((one) => one.slice(1) === wanted);
}
