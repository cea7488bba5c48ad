// Apart from traces: commands that read a saved one load no kinds of probes, which plug-ins are checked against.
import { RsptraceError } from '../base/errors.js';
import { formatOf, formats, openTrace, type TraceSink } from '../trace/index.js';
import { note } from './failure.js';

/** Refuses a file whose format has no place for samples. `merged`: that adds up those of one stack. Throws `USAGE`. */
export function refuseWithoutSamples(path: string, how: 'any' | 'merged'): void {
  const format = formatOf(path);
  const fits = ({ holdsSamples }: (typeof formats)[number]): boolean =>
    how === 'merged' ? holdsSamples === 'merged' : holdsSamples !== undefined;
  if (format && !fits(format)) {
    const others = formats.filter(fits).flatMap(({ extensions }) => extensions);
    const what = how === 'merged' ? 'the waits of an off-CPU profile' : 'samples';
    throw new RsptraceError('USAGE', `${format.name} has no place for ${what}`, {
      hint: `name a file that ends with ${others.join(', ')}`,
    });
  }
}

/** The file of a profile's -o, in a format that has a place for samples. `merged`: that adds up those of one stack. */
export function openSamples(path: string, force: boolean, how: 'any' | 'merged'): TraceSink {
  refuseWithoutSamples(path, how);
  return openTrace(path, { lock: note, force });
}
