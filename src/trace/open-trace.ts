import { extname } from 'node:path';
import { RsptraceError } from '../base/errors.js';
import type { TraceSink } from './events.js';
import { OutputFile, type OutputOptions } from './output-file.js';
import { ChromeWriter } from './writers/chrome.js';
import { Lanes } from './writers/lanes.js';
import { PerfettoWriter } from './writers/perfetto.js';
import { TreeWriter } from './writers/tree.js';

const perfetto = (out: OutputFile): TraceSink => new Lanes(new PerfettoWriter(out));

/** Every format that can be written, by the extension that chooses it. */
const FORMATS = new Map<string, (out: OutputFile) => TraceSink>([
  ['.pftrace', perfetto],
  ['.perfetto-trace', perfetto],
  ['.json', (out) => new Lanes(new ChromeWriter(out))],
  ['.txt', (out) => new TreeWriter(out)],
]);

/**
 * Opens a trace file in the format that its extension names. Errors, all before anything is written: `TRACE_UNKNOWN_FORMAT`,
 * `TRACE_CANNOT_WRITE`, and what the options ask for. Later, `event`, `flush` and `end` can throw `TRACE_WRITE_FAILED`, once.
 */
export function openTrace(path: string, options: OutputOptions = {}): TraceSink {
  const make = FORMATS.get(extname(path).toLowerCase());
  if (make === undefined) {
    const known = [...FORMATS.keys()].join(', ');
    throw new RsptraceError('TRACE_UNKNOWN_FORMAT', `no trace format goes by the extension of ${path}`, {
      hint: `Known extensions: ${known}.`,
    });
  }
  return make(new OutputFile(path, options));
}
