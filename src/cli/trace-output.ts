import { RsptraceError } from '../base/errors.js';
import { formatFor, formats, openTrace, type TraceSink } from '../trace/index.js';
import { note } from './failure.js';
import { loadPlugins } from './plugins.js';

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
export async function traceOutput(args: TraceOutputArguments): Promise<{ open: () => TraceSink; use: string }> {
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
