import { type LockFacts, LockSummary, lockJson, lockTable } from '../../../trace/index.js';
import { foreignIn, functionPlan, type ReadPlan, stackNote } from '../../read-plan.js';
import type { Outcome, ProbeKind } from '../kind.js';
import { type NameRules, type ProbeSpec, parseNames, verifyIncludes } from '../names.js';
import { planCopy } from './inlined-edges.js';
import { lockRole } from './names.js';
import { type FoundLocks, type LockFunction, resolveLocks } from './resolve.js';
import { LockTracer } from './tracer.js';

const rules: NameRules = { name: 'lock', everything: 'every lock', unconditional: 'locks' };
const WORD = 8;

/** Spin locks and mutexes: who takes them, who waits for whom, in which order. */
export const lock: ProbeKind<ProbeSpec, FoundLocks> = {
  name: rules.name,
  help: "'lock:GLOB' spin locks and mutexes, by their statics, types or addresses",
  purpose: 'for a lock',
  parse: (text) => parseNames(rules, text),
  check: (specs) => verifyIncludes(specs, rules.name),
  resolve: resolveLocks,
  plans: ({ functions, inlined }, { general }) => [
    ...functions.map((fn) => planLock(fn, general)),
    ...inlined.flatMap(planCopy),
  ],
  tracer(found, context) {
    const tracer = new LockTracer(found, context);
    return { calls: tracer, instants: tracer };
  },
  report(found) {
    if (!found) return { json: () => ({}), tables: () => [] };
    const summary = new LockSummary();
    return {
      sink: summary,
      json: (outcome) => ({ ...lockJson(summary, factsOf(outcome)), locks_inlined: unseenRows(found) }),
      tables: (outcome, options) => [
        (lockTable(summary, options, factsOf(outcome)) || 'no lock was taken\n') + unseenText(unseenRows(found)),
      ],
      findings: (outcome) => summary.findings(factsOf(outcome).isWhole).length,
      lockWaits: () => summary.open(),
    };
  },
};

/** Whether no use of a lock is missing, be it its record or its probe, and whether times are upper bounds. */
function factsOf({ missing = 0, tailLost = false, engines, stopError }: Outcome): Required<LockFacts> {
  const isLocks = ({ name }: Pick<Outcome['engines'][number], 'name'>): boolean =>
    lockRole(name.replace(/ in .*/, '')) !== undefined;
  const isLeftOut = (fact: Outcome['engines'][number]): boolean =>
    fact.engine === 'none' && [fact, ...(fact.others ?? [])].some(isLocks);
  const isWhole = missing === 0 && !tailLost && !engines.some(isLeftOut);
  return { isWhole, timesAtMost: stopError?.isUnknown === true };
}

interface UnseenRow {
  readonly function: string;
  readonly copies: number;
  /** Of the first of them. */
  readonly reason: string;
}

/** Functions with copies that are not seen, the one with the most first. */
function unseenRows({ unseen }: FoundLocks): readonly UnseenRow[] {
  const rows = new Map<string, UnseenRow>();
  for (const { name, reason } of unseen) {
    const row = rows.get(name) ?? { function: name, copies: 0, reason };
    rows.set(name, { ...row, copies: row.copies + 1 });
  }
  return [...rows.values()].sort((a, b) => b.copies - a.copies);
}

/** Empty if all is seen. */
function unseenText(rows: readonly UnseenRow[]): string {
  const all = rows.reduce((sum, { copies }) => sum + copies, 0);
  if (all === 0) return '';
  const shown = rows.slice(0, 3).map(({ function: name, copies }) => `${name} (${copies})`);
  const more = rows.length > shown.length ? ` and ${rows.length - shown.length} more` : '';
  const copies = all === 1 ? '1 inlined copy' : `${all} inlined copies`;
  return `${copies} of locks' functions ${all === 1 ? 'is' : 'are'} not seen, so counts are lower bounds: ${shown.join(', ')}${more}\n`;
}

/** What the hits of a lock's function read: the lock's address, and whether it was taken. */
function planLock({ probe, role, register, through, taken }: LockFunction, general: ReadonlySet<string>): ReadPlan {
  const isRelease = role.does === 'release';
  const returned = taken?.parts.flatMap((part) => part.register ?? []) ?? [];
  return {
    ...functionPlan(probe, foreignIn([register, ...returned], general)),
    entryRegisters: [register],
    entryReads:
      through === undefined
        ? []
        : [{ pointer: register, align: WORD, size: through + WORD, loads: [{ offset: through, size: WORD }] }],
    exit: { keep: [], registers: [...new Set(returned)], reads: [] },
    returnStays: isRelease ? undefined : stackNote(probe),
    seesReturn: !isRelease,
  };
}
