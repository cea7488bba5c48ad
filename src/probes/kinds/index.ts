import { RsptraceError } from '../../base/errors.js';
import { nearestWords } from '../../base/search.js';
import { fn } from './fn/index.js';
import type { AnyProbe, ProbeKind } from './kind.js';
import { line } from './line.js';
import { lock } from './locks/index.js';
import { poll } from './poll/index.js';
import { sample } from './sample.js';
import { switches } from './switches/index.js';
import { avg, count, hist, sum } from './tallies/index.js';
import { trapKinds } from './traps/index.js';
import { watch } from './watch/index.js';

/** Every kind of probe. Calls that begin in one place nest in this order, and reports follow it. */
export const kinds: readonly ProbeKind[] = [
  poll,
  fn,
  lock,
  ...trapKinds,
  switches,
  count,
  hist,
  sum,
  avg,
  watch,
  line,
  sample,
];

/**
 * Parses a probe: a kind, a colon, and what the kind reads. `known`: the kinds that there are.
 * @throws RsptraceError `PROBE_SYNTAX`, `EXPRESSION_SYNTAX`, `WATCH_SIZE`
 */
export function parseProbe(text: string, known: readonly ProbeKind[] = kinds): AnyProbe {
  const excludes = /^\s*!/.test(text);
  const whole = text.replace(/^\s*!?\s*/, '').trimEnd();
  const [head = '', name, argument] = /^(\w+)(?:\(\s*([^)]*?)\s*\))?\s*:(?!:)/.exec(whole) ?? [];
  const kind = known.find((each) => each.name === name);
  if (!kind || (kind.isPlain && (excludes || argument !== undefined))) throw noProbe(text, whole, known);
  return kind.parse({ text, excludes, argument, rest: whole.slice(head.length).trim() });
}

function noProbe(text: string, whole: string, known: readonly ProbeKind[]): RsptraceError {
  const name = whole.replace(/^\w+(?:\([^)]*\))?:(?!:)/, '') || '**';
  const [, open] = /^(\w+)\([^)]*$/.exec(whole) ?? [];
  if (known.some((kind) => kind.name === open)) {
    return new RsptraceError('PROBE_SYNTAX', `'${text}' is not a probe: its parenthesis is never closed`, {
      hint: `write '${open}(EXPRESSION):GLOB'`,
    });
  }
  const [near] = nearestWords(
    /^\w*/.exec(whole)?.[0] ?? '',
    known.map((kind) => kind.name),
    1,
  );
  const ways = known.flatMap((kind) => (kind.purpose ? [`'${kind.name}:${name}' ${kind.purpose}`] : []));
  return new RsptraceError(
    'PROBE_SYNTAX',
    `'${text}' is not a probe: it must begin with ${known.map((kind) => kind.name).join(' or ')} and a colon`,
    { hint: `${near === undefined ? '' : `perhaps '${near}:${name}'; `}write --probe ${ways.join(', ')}` },
  );
}

/** One kind, and the probes that ask for it. */
interface AskedKind {
  readonly kind: ProbeKind;
  readonly probes: readonly AnyProbe[];
}

/**
 * The kinds that probes ask for, in the order of the list. Without any probe of another kind, the default kind is
 * asked for too.
 * @throws RsptraceError `PROBE_SYNTAX` for probes that make no sense together
 */
export function askedKinds(probes: readonly AnyProbe[], known: readonly ProbeKind[] = kinds): readonly AskedKind[] {
  const all = known.map((kind) => ({ kind, probes: probes.filter((probe) => probe.kind === kind.name) }));
  const names = new Set(probes.map(({ kind }) => kind));
  for (const each of all) each.kind.check?.(each.probes, names);
  return all.filter((each) => each.probes.length > 0 || (each.kind.isDefault && probes.length === 0));
}
