import { closeSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import { openLocked } from '../base/locked-file.js';
import type { Recovered } from '../record/index.js';
import { plural, textLines } from '../text/index.js';
import { endMissing, formatOf, formats, openTrace, readTrace, type TraceSink, tee } from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import type { RecoverArguments } from './options/saved-trace.js';
import type { LoadedPlugins } from './plugins.js';
import { recordsFile } from './records-file.js';
import { SavedRecords } from './saved-records.js';
import { printed } from './terminal.js';

/** `rsptrace recover TRACE`: makes of a killed recording the trace that it would have been. Gives the exit status. */
export async function recover(args: RecoverArguments): Promise<number> {
  const path = recordsFile(args.trace);
  using records = await SavedRecords.open(path, args.plugin, args.log);
  const lock = lockOf(args.trace);
  try {
    const { asked, plugins } = records;
    if (args.output === undefined && asked.programs.length > 0) throw ofSeveral(args.trace);
    const out = outputOf(args, plugins);
    const recovered = await write(records, args, out.sink);
    if (args.output === undefined) await refuseFewer(args.trace, recovered.events);
    out.finish();
    if (args.output === undefined) rmSync(path);
    report(args, recovered, plugins);
    return ExitCode.recorded;
  } finally {
    if (lock !== undefined) closeSync(lock);
  }
}

/** What is replaced may have more than what replaces it. */
function ofSeveral(trace: string): RsptraceError {
  return new RsptraceError('USAGE', `${trace} has events of further programs, which are not in its records`, {
    hint: 'give -o FILE for what the records have, beside it',
  });
}

/** Records that are cut off, or damaged, may have less than the trace. Throws `RECORDS_DAMAGED`. */
async function refuseFewer(trace: string, recovered: number): Promise<void> {
  const eventsOf = async (path: string): Promise<number> => (await readTrace(path, tee([]))).events;
  const before = await eventsOf(trace).catch(() => 0);
  // The console is in what is read, and no event of the recording.
  if (before <= recovered || before <= (await eventsOf(newFile(trace)))) return;
  rmSync(newFile(trace));
  throw new RsptraceError(
    'RECORDS_DAMAGED',
    `${trace} has more than its records, of which ${plural(recovered, 'event')} came`,
    {
      hint: 'it stays as it is: -o FILE writes what the records have',
    },
  );
}

async function write(records: SavedRecords, args: RecoverArguments, sink: TraceSink): Promise<Recovered> {
  try {
    return await records.read(sink);
  } catch (error) {
    sink.end(endMissing);
    if (args.output === undefined) rmSync(newFile(args.trace), { force: true });
    throw error;
  }
}

/** A recording that still runs has its trace locked. */
function lockOf(trace: string): number | undefined {
  return existsSync(trace) && statSync(trace).isFile() ? openLocked(trace, note).fd : undefined;
}

/** Without -o the old trace is replaced when the new one is whole. */
function outputOf(
  { trace, output, force }: RecoverArguments,
  { formats: more }: LoadedPlugins,
): { readonly sink: TraceSink; readonly finish: () => void } {
  const options = { lock: note, formats: more };
  if (output !== undefined) {
    return { sink: openTrace(output, { ...options, force }), finish: () => {} };
  }
  const as = formatOf(trace, [...more, ...formats]);
  if (as?.openFolder) {
    throw new RsptraceError('USAGE', `${trace} is a folder, which is not replaced`, {
      hint: 'name another one with -o',
    });
  }
  const path = newFile(trace);
  return {
    sink: openTrace(path, { ...options, force: true, as, packedAs: trace }),
    finish: () => renameSync(path, trace),
  };
}

/** Where the new trace is until it is whole. */
function newFile(trace: string): string {
  return `${trace}.recovered`;
}

function report(args: RecoverArguments, { events, records, notes }: Recovered, plugins: LoadedPlugins): void {
  const output = args.output ?? args.trace;
  const use = formatOf(output, [...plugins.formats, ...formats])?.use ?? '';
  printed(args, { version: 1, trace: output, events, records, notes }, () =>
    textLines([`${plural(events, 'event')} of ${plural(records, 'record')} in ${output} (${use})`]),
  );
  if (!args.json) note(...notes);
}
