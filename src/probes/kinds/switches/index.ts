import { textLines } from '../../../text/index.js';
import { ThreadSummary, threadTable } from '../../../trace/index.js';
import { compileGlob } from '../../glob.js';
import { entryPlan } from '../../read-plan.js';
import type { KindReport, Outcome, ProbeKind, ProbeText } from '../kind.js';
import { type ProbeSpec, parseNames, verifyIncludes } from '../names.js';
import { type FoundSwitches, resolveSwitches, type SwitchFunction } from './resolve.js';
import { SwitchTracer } from './tracer.js';

const name = 'switch';

/** Context switches: which thread has a hart, and from when to when. Nothing has to be named. */
export const switches: ProbeKind<ProbeSpec, FoundSwitches> = {
  name,
  help: "'switch:' context switches: when each thread of a kernel has a hart; 'switch:sh*' threads of these names alone; 'switch:NAME' by this function alone",
  purpose: 'for context switches',
  parse,
  check: (specs) => verifyIncludes(specs, name),
  resolve: resolveSwitches,
  plans: ({ functions, names }) => functions.map((each) => planOf(each, names)),
  tracer: (found, context) => ({ instants: new SwitchTracer(found, context), switchesStacks: true }),
  report: (found) => (found ? reportOf(found) : { json: () => ({}), tables: () => [] }),
};

/** @throws RsptraceError `PROBE_SYNTAX` */
function parse(text: ProbeText): ProbeSpec {
  const rules = { name, everything: 'every context switch', unconditional: 'context switches' };
  const spec = parseNames(rules, text.rest === '' ? { ...text, rest: '**' } : text);
  // A thread's name may have a slash: `kworker/0:1`.
  const { program } = spec;
  const glob = program === undefined ? spec.glob : `${program}/${spec.glob}`;
  return { ...spec, program: undefined, glob, matches: compileGlob(glob) };
}

function planOf({ address, size, name: fn, from, to }: SwitchFunction, names: FoundSwitches['names']) {
  return {
    ...entryPlan({ address, codeSize: size, name: `context switches in ${fn}` }),
    entryRegisters: [from.register, to.register],
    entryReads: to.isContext ? names.planned(to.register) : [],
    scratchIsFree: false,
    partly: names.unread,
  };
}

function reportOf({ seen }: FoundSwitches): KindReport {
  const summary = new ThreadSummary();
  const rows = ({ stopError }: Outcome) => summary.rows(stopError);
  return {
    sink: summary,
    json: (outcome) => ({ threads: rows(outcome), switches_missed: seen.missed, threads_left_out: [...seen.others] }),
    tables(outcome, options) {
      const all = rows(outcome);
      if (all.length === 0) {
        const others = [...seen.others].slice(0, 8).join(', ');
        const none =
          others === '' ? 'no context switch was seen' : `no thread of these names had a hart: ${others} had`;
        return [textLines([none])];
      }
      const missed =
        seen.missed === 0
          ? ''
          : `${seen.missed === 1 ? '1 switch' : `${seen.missed} switches`} left another thread than the hart was seen with: switches between were not seen\n`;
      return [`${threadTable(all, options)}${missed}`];
    },
  };
}
