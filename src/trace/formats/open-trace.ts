import { RsptraceError } from '../../base/errors.js';
import type { TraceSink } from '../events/events.js';
import type { Format } from './format.js';
import { extensionsText, formatOf, formats } from './index.js';
import { OutputFile, type OutputOptions } from './output/output-file.js';

export interface TraceOptions extends Pick<OutputOptions, 'lock' | 'keepAs' | 'force'> {
  /** Formats besides ours. For an extension that both know, these come first. */
  readonly formats?: readonly Format[] | undefined;
  /** This one, whatever the extension. */
  readonly as?: Format | undefined;
  /** Packed if a file of this name would be. */
  readonly packedAs?: string | undefined;
}

/**
 * Opens a trace file in the format that its extension names. Throws `TRACE_UNKNOWN_FORMAT`, `OUTPUT_CANNOT_WRITE`,
 * `OUTPUT_EXISTS`, and the errors of the options, all before anything is written. Later, `event`, `flush` and `end` can
 * throw `TRACE_WRITE_FAILED`, once.
 *
 * A format of your own is an object:
 *
 *     const csv: Format = {
 *       name: 'CSV',
 *       extensions: ['.csv'],
 *       about: 'a line an event',
 *       use: 'open it in a spreadsheet',
 *       isAppended: true,
 *       recognizes: ({ bytes }) => Buffer.from(bytes).toString().startsWith('time,event\n'),
 *       open: (file) => ({
 *         begin: () => file.textRecord('time,event\n'),
 *         event: (event) => file.textRecord(`${event.type === 'gap' ? event.from : event.time},${event.type}\n`),
 *         hart: () => {},
 *         flush: () => file.flush(),
 *         end: () => file.close(),
 *       }),
 *     };
 *     openTrace('kernel.csv', { formats: [csv] });
 */
export function openTrace(path: string, options: TraceOptions = {}): TraceSink {
  const format = options.as ?? formatFor(path, [...(options.formats ?? []), ...formats]);
  const { lock, keepAs, force = false } = options;
  const { open, openFolder } = format;
  if (openFolder) return openFolder(path, force);
  if (!open) throw new TypeError(`the format ${format.name} has neither open nor openFolder`);
  const file = new OutputFile(path, {
    lock,
    keepAs,
    force,
    isAppended: format.isAppended,
    packing: format.packing,
    isPacked: isPacked(options.packedAs ?? path),
  });
  try {
    return open(file);
  } catch (error) {
    file.close();
    throw error;
  }
}

/** The format that a file's extension names. Throws `TRACE_UNKNOWN_FORMAT`. */
export function formatFor(path: string, known: readonly Format[]): Format {
  const format = formatOf(path, known);
  if (format) return format;
  throw new RsptraceError('TRACE_UNKNOWN_FORMAT', `no trace format goes by the extension of ${path}`, {
    hint: `known extensions: ${extensionsText(known)}`,
  });
}

function isPacked(path: string): boolean {
  return path.toLowerCase().endsWith('.gz');
}
