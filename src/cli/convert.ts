import { RsptraceError } from '../base/errors.js';
import { plural } from '../base/plural.js';
import { jsonLine, textLines } from '../base/visible.js';
import { compileGlob } from '../probes/index.js';
import { formatOf, formats, onlyNamed, openTrace } from '../trace/index.js';
import { ExitCode } from './failure.js';
import { warn } from './open-output.js';
import { loadPlugins } from './plugins.js';
import { headJson, readSaved } from './saved-trace.js';
import type { ConvertArguments } from './saved-trace-options.js';

/** `rsptrace convert IN -o OUT`: a saved trace in another format. Gives the exit status. */
export async function convert(args: ConvertArguments): Promise<number> {
  const { output, force, format } = args;
  const plugins = await loadPlugins(args.plugin);
  const known = [...plugins.formats, ...formats];
  const wanted = format === undefined ? known : known.filter((one) => isNamed(one, format));
  if (wanted.length === 0) {
    throw new RsptraceError('TRACE_UNKNOWN_FORMAT', `no trace format is called ${format}`, {
      hint: `Known: ${known.map(({ name, extensions: [first] }) => `${first?.slice(1)} (${name})`).join(', ')}.`,
    });
  }
  const sink = openTrace(output, {
    lock: warn,
    onlyTraces: !force,
    formats: plugins.formats,
    as: format === undefined ? undefined : wanted[0],
  });
  let shown = sink;
  if (args.filter !== undefined) shown = onlyNamed(sink, compileGlob(args.filter));
  try {
    const read = await readSaved(args.trace, shown, args);
    const use = (format === undefined ? formatOf(output, known) : wanted[0])?.use ?? '';
    if (args.json) process.stdout.write(jsonLine({ ...headJson(args.trace, read), output }));
    else process.stdout.write(textLines([`${plural(read.events, 'event')} in ${output} (${use})`]));
    return ExitCode.recorded;
  } catch (error) {
    // What was converted before is kept, as far as the format allows.
    sink.end();
    throw error;
  }
}

function isNamed({ name, extensions }: (typeof formats)[number], wanted: string): boolean {
  return name.toLowerCase() === wanted.toLowerCase() || extensions.some((one) => one.slice(1) === wanted);
}
