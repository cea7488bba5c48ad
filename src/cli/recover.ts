import { closeSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import { openLocked } from '../base/locked-file.js';
import { KilledRecording, type Program, type Recovered, type RecoverOptions } from '../record/index.js';
import { plural, textLines } from '../text/index.js';
import { endMissing, formatOf, formats, openTrace, type TraceSink } from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import { createLogger } from './logging.js';
import type { RecoverArguments } from './options/saved-trace.js';
import { type LoadedPlugins, loadPlugins } from './plugins.js';
import { preparedProgram, untilOf } from './recording/asked.js';
import { type AskedArguments, askedOf, recordsFile } from './records-file.js';
import { printed } from './terminal.js';

/** `rsptrace recover TRACE`: makes of a killed recording the trace that it would have been. Gives the exit status. */
export async function recover(args: RecoverArguments): Promise<number> {
  const records = recordsFile(args.trace);
  const killed = new KilledRecording(records);
  const lock = lockOf(args.trace);
  try {
    const asked = askedOf(killed.asked);
    if (args.output === undefined && (asked.programs ?? []).length > 0) throw ofSeveral(args.trace);
    const plugins = await pluginsAgain(asked.plugins, args.plugin);
    const out = outputOf(args, plugins);
    const recovered = await write(killed, asked, { args, plugins, sink: out.sink });
    out.finish();
    if (args.output === undefined) rmSync(records);
    const notes = asked.console ? ['what the guest printed is not in these records'] : [];
    tell(args, { ...recovered, notes: [...recovered.notes, ...notes] }, plugins);
    return ExitCode.recorded;
  } finally {
    killed.close();
    if (lock !== undefined) closeSync(lock);
  }
}

/** What is replaced may have more than what replaces it. */
function ofSeveral(trace: string): RsptraceError {
  return new RsptraceError('USAGE', `${trace} has events of further programs, which are not in its records`, {
    hint: 'give -o FILE for what the records have, beside it',
  });
}

async function write(
  killed: KilledRecording,
  asked: AskedArguments,
  { args, plugins, sink }: { args: RecoverArguments; plugins: LoadedPlugins; sink: TraceSink },
): Promise<Recovered> {
  try {
    const logger = createLogger(args.log);
    const program = await preparedProgram(asked, plugins, logger);
    return await killed.recover({ ...recoverOptionsOf(asked, program), sink, logger });
  } catch (error) {
    sink.end(endMissing);
    if (args.output === undefined) rmSync(newFile(args.trace), { force: true });
    throw error;
  }
}

/**
 * The plug-ins of a recording, which the command line names again.
 * @throws RsptraceError `RECORDS_MISMATCH` if there were more or fewer
 */
export async function pluginsAgain(recorded: number, paths: readonly string[]): Promise<LoadedPlugins> {
  const plugins = await loadPlugins(paths);
  if (recorded === paths.length) return plugins;
  throw new RsptraceError('RECORDS_MISMATCH', `it was recorded with ${plural(recorded, 'plug-in')}`, {
    hint: 'give the same files with --plugin',
  });
}

/** What decided the events of a recording, as it was asked for. */
export function recoverOptionsOf(asked: AskedArguments, program: Program): Omit<RecoverOptions, 'sink'> {
  const depth = asked['max-depth'];
  const until = untilOf(asked, program);
  return {
    ...{ program, engine: asked.engine },
    functions: { values: asked.args, maxDepth: depth },
    thresholdNs: asked.threshold,
    stackDepth: asked.bt,
    until,
  };
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

function tell(args: RecoverArguments, { events, records, notes }: Recovered, plugins: LoadedPlugins): void {
  const output = args.output ?? args.trace;
  const use = formatOf(output, [...plugins.formats, ...formats])?.use ?? '';
  printed(args, { version: 1, trace: output, events, records, notes }, () =>
    textLines([`${plural(events, 'event')} of ${plural(records, 'record')} in ${output} (${use})`]),
  );
  if (!args.json) note(...notes);
}
