import { jsonLine, plural, textLines } from '../text/index.js';
import { endMissing, FromFirstEvent, Inside } from '../trace/index.js';
import { ExitCode } from './failure.js';
import type { ConvertArguments } from './options/saved-trace.js';
import { headJson, readChosen } from './saved-trace.js';
import { traceOutput } from './trace-output.js';

/** `rsptrace convert IN -o OUT`: a saved trace in another format. Gives the exit status. */
export async function convert(args: ConvertArguments): Promise<number> {
  const { output } = args;
  const { open, use } = await traceOutput(args);
  const sink = new FromFirstEvent(open);
  try {
    const read = await readChosen(args.trace, (chosen) => (chosen ? new Inside(sink, chosen) : sink), args);
    sink.finish();
    if (args.json) process.stdout.write(jsonLine({ ...headJson(args.trace, read), output }));
    else process.stdout.write(textLines([`${plural(read.events, 'event')} in ${output} (${use})`]));
    return ExitCode.recorded;
  } catch (error) {
    // What was converted before is kept, as far as the format allows.
    sink.end(endMissing);
    throw error;
  }
}
