import { RsptraceError } from '../base/errors.js';
import { jsonLine } from '../text/index.js';
import {
  Inside,
  OffCpu,
  offCpuTable,
  placeText,
  type TraceRead,
  type TraceSink,
  tee,
  type WaitRow,
} from '../trace/index.js';
import { ExitCode } from './failure.js';
import type { ProfileArguments } from './options/target.js';
import { headJson, readChosen } from './saved-trace.js';
import { note } from './standard-error.js';
import { tableOptions } from './terminal.js';
import { openSamples } from './trace-output.js';

/** `rsptrace profile TRACE --off-cpu`: what tasks wait for, and who ends that. Gives the exit status. */
export async function offCpu(args: ProfileArguments & { readonly elf: string }): Promise<number> {
  const { elf: trace, output } = args;
  const file = output === undefined ? [] : [openSamples(output, args.force, 'merged')];
  const waits = new OffCpu(tee(file));
  const into: (chosen: Parameters<Parameters<typeof readChosen>[1]>[0]) => TraceSink = (chosen) =>
    chosen ? new Inside(waits, chosen) : waits;
  let read: TraceRead;
  try {
    read = await readChosen(trace, into, args);
  } catch (thrown) {
    // What was opened is closed.
    for (const sink of file) sink.end();
    throw thrown;
  }
  const rows = waits.rows().sort((a, b) => b.total - a.total || (a.task < b.task ? -1 : 1));
  if (rows.length === 0) throw noWaits(trace);
  if (args.json) {
    process.stdout.write(jsonLine({ ...headJson(trace, read), output: output ?? null, waits: rows.map(rowJson) }));
    return ExitCode.recorded;
  }
  process.stdout.write(offCpuTable(rows.slice(0, args.top), tableOptions()));
  const more = rows.length - args.top;
  const notes = [
    ...(more > 0 ? [`${more} more rows: --top ${rows.length} shows them`] : []),
    ...(waits.wakes === 0 ? ['the trace has no wakes, so nothing says who ends a wait: record with --wakes'] : []),
  ];
  note(...notes);
  return ExitCode.recorded;
}

function rowJson({ task, at, wokenBy, waits, total, max, runnable }: WaitRow): object {
  return {
    task,
    await: at === undefined ? null : (placeText(at) ?? at.name),
    woken_by: wokenBy,
    waits,
    total_ns: total,
    max_ns: max,
    runnable_ns: runnable,
  };
}

function noWaits(trace: string): RsptraceError {
  return new RsptraceError('TRACE_NO_MATCH', `${trace} has no task that waits`, {
    hint: 'record polls of tasks: rsptrace -p poll:** ...; a shorter window or --filter leaves waits out',
  });
}
