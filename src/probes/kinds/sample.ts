import { RsptraceError } from '../../base/errors.js';
import { nanos, timeOf } from '../../base/time.js';
import { plural } from '../../text/index.js';
import {
  CallTree,
  hartWord,
  onEvents,
  type SampleFacts,
  sampleFactsJson,
  sampleFactsLines,
  sampleRows,
  sampleTable,
} from '../../trace/index.js';
import type { AnyProbe, Found, FoundSamples, ProbeKind } from './kind.js';

/**
 * Samples a second, as `profile -F` takes them. An interrupt takes some 100 us at least to stop a target, so a higher
 * rate gives no more samples. At less than one each 100 s most recordings would have none.
 */
const [fewestHz, mostHz] = [0.01, 10_000];
/** Rows of the table at the end. */
const mostRows = 30;

interface SampleProbe extends AnyProbe, FoundSamples {}

interface FoundPeriod extends Found {
  readonly samples: FoundSamples;
}

/** The stack of every hart, again and again. It needs no place in the program. */
export const sample: ProbeKind<SampleProbe, FoundPeriod> = {
  name: 'sample',
  help: "'sample:99hz' or 'sample:10ms' every hart's or thread's stack",
  isPlain: true,
  parse: ({ text, rest }) => ({ kind: 'sample', text, periodMs: periodOf(text, rest) }),
  check(probes) {
    const [, second] = probes;
    if (second)
      throw new RsptraceError('PROBE_SYNTAX', `'${second.text}' is a second rate of samples`, { hint: 'give one' });
  },
  resolve: (_, probes) => ({ addresses: [], samples: probes[0] as SampleProbe }),
  report(found) {
    if (!found) return { json: () => ({ samples: null }), tables: () => [] };
    const tree = new CallTree();
    return {
      sink: { ...onEvents((event) => event.type === 'sample' && tree.event(event)), end: () => tree.end() },
      json: ({ samples }) => ({
        samples: { ...sampleFactsJson(factsOf(samples, found)), functions: sampleRows(tree) },
      }),
      tables({ samples, isProcess }, options) {
        const facts = factsOf(samples, found);
        const rows = sampleRows(tree);
        const left = rows.length - mostRows;
        const notes = [
          ...(left > 0 ? [`... and ${plural(left, 'function')}: --json has them`] : []),
          ...sampleFactsLines(facts, hartWord({ isProcess })),
        ].map((line) => `${line}\n`);
        return [`${sampleTable(rows.slice(0, mostRows), tree.samples, options)}${notes.join('')}`];
      },
    };
  },
  preview(found) {
    if (!found) return { json: {}, table: undefined };
    const { periodMs } = found.samples;
    const table = `every hart's or thread's stack: an interrupt stops the target for it each ${text(periodMs)} that it runs\n`;
    return { json: { samples: { period_ms: periodMs } }, table };
  },
};

/** A recording that failed before it began has none. */
function factsOf(facts: SampleFacts | undefined, { samples }: FoundPeriod): SampleFacts {
  const none = { wanted: 0, looks: 0, samples: 0, idle: 0, own: 0, incomplete: 0, atProbes: 0, stoodNs: 0 };
  return facts ?? { periodNs: Math.round(samples.periodMs * 1e6), ...none };
}

/** `10 ms`, `10.1 ms`. */
function text(ms: number): string {
  return `${Number(ms.toPrecision(3))} ms`;
}

/** `99hz`, `10ms`, in milliseconds. */
function periodOf(probe: string, words: string): number {
  const [, hz] = /^(\d+(?:\.\d+)?)\s*hz$/i.exec(words) ?? [];
  const time = timeOf(words.toLowerCase(), ['us', 'ms', 's']) ?? Number.NaN;
  const ms = hz === undefined ? time / nanos.ms : 1000 / Number(hz);
  if (ms >= 1000 / mostHz && ms <= 1000 / fewestHz) return ms;
  const range = `from ${fewestHz}hz to ${mostHz}hz, or from 100us to 100s`;
  throw new RsptraceError('PROBE_SYNTAX', `'${probe}' is no rate of samples: it goes ${range}`, {
    hint: "write 'sample:99hz' or 'sample:10ms'",
  });
}
