import type { Architecture, TrapKind } from '../../../arch/index.js';
import { plural } from '../../../text/index.js';
import { FunctionSummary, functionJson, functionTable } from '../../../trace/index.js';
import { entryPlan, trapIsRead } from '../../read-plan.js';
import type { KindReport, Outcome, ProbeKind, ProbeText } from '../kind.js';
import { parseNames, verifyIncludes } from '../names.js';
import { ProcessCalls } from './process-calls.js';
import { type FoundTraps, resolveTraps, type TrapSpec } from './resolve.js';
import { TrapTracer } from './tracer.js';

const name = 'trap';
const storm =
  'the guest was interrupted again and again at one instruction: stops take longer than its timer lets them; -icount shift=0 for QEMU has its clock stand meanwhile\n';

interface TrapWords {
  readonly everything: string;
  readonly of?: TrapKind;
}

/**
 * Traps of a kernel: interrupts, faults, system calls and all others, from entry to return. Nothing has to be named:
 * where they enter is what the kernel itself sets in the processor.
 */
const trap: ProbeKind<TrapSpec, FoundTraps> = {
  name,
  help: "'trap:GLOB' traps of a kernel by their names: irq::**, fault::**, syscall::64, trap::breakpoint",
  parse: (text) => parse(text, name, { everything: 'every trap' }),
  check: (specs) => verifyIncludes(specs, name),
  resolve: resolveTraps,
  plans: ({ places }, { arch }) =>
    places.map((place) => ({
      ...entryPlan({ ...place, codeSize: 0 }),
      entryRegisters: [...registersOf(arch)],
      needsStop: trapIsRead,
      stopIsAsked: true,
    })),
  tracer(found, context) {
    if (found.atCall) return { crossings: new ProcessCalls(found, context, found.atCall) };
    const tracer = new TrapTracer(found, context);
    return { crossings: tracer, current: (registers) => tracer.current(registers) };
  },
  report: (found) => (found ? reportOf(found) : nothing),
  preview(found) {
    const { of } = found?.systemCalls ?? {};
    if (of === undefined) return { json: {}, table: undefined };
    const table = `system calls of the process: ${of === 'all' ? 'all' : of.length}, by two stops each, which its stub makes\n`;
    return { json: { system_calls: of }, table };
  },
};

/** What {@link trap} reads besides the general registers. */
function registersOf({ traps, privilege }: Architecture): ReadonlySet<string> {
  return new Set([...(traps?.registers ?? []), ...(privilege?.registers ?? [])]);
}

const nothing: KindReport = { json: () => ({}), tables: () => [] };

function reportOf({ seen, isAll, atCall }: FoundTraps): KindReport {
  const summary = new FunctionSummary(({ kind }) => kind !== undefined && kind !== 'lock' && kind !== 'thread');
  const rows = ({ stopError }: Outcome) => summary.rows(stopError);
  // Where only some traps are traced, others end too.
  const unmatched = (): number | undefined => (isAll ? seen.returnsAlone : undefined);
  return {
    sink: summary,
    json: (outcome) => ({
      traps: functionJson(rows(outcome)),
      trap_returns_alone: unmatched() ?? null,
      interrupts_only: seen.isStorm,
    }),
    tables(outcome, options) {
      const count = unmatched() ?? 0;
      const note = `${plural(count, 'return')} from traps ${count === 1 ? 'ends' : 'end'} none that was seen: ${atCall ? 'they began before that' : 'a program begins there, or the entry was not known yet'}\n`;
      const all = rows(outcome);
      const names = [...seen.others].slice(0, 8).join(', ');
      if (all.length === 0 && names !== '') return [`no trap of these names: there were ${names}\n`];
      if (all.length === 0 && seen.returnsAlone > 0) return [idleText(seen)];
      return [`${functionTable(all, options)}${count === 0 ? '' : note}${seen.isStorm ? storm : ''}`];
    },
  };
}

function idleText({ returnsAlone, areIdle }: FoundTraps['seen']): string {
  const returns = `${plural(returnsAlone, 'stop')} ${returnsAlone === 1 ? 'was a return' : 'were returns'} from others`;
  const rest = areIdle ? ', which were then no longer watched' : '';
  return `no such trap yet: ${returns}${rest}. A kernel that still boots runs no program that calls it: give it longer\n`;
}

/** The same, of one kind. */
function only(of: TrapKind, everything: string, help: string): ProbeKind<TrapSpec, FoundTraps> {
  return { ...trap, name: of, help, parse: (text) => parse(text, of, { everything, of }), report: () => nothing };
}

export const trapKinds = [
  trap,
  only('irq', 'every interrupt', "'irq:GLOB' its interrupts"),
  only('fault', 'every fault', "'fault:GLOB' accesses that have no right to their memory"),
  only('syscall', 'every system call', "'syscall:GLOB' system calls of its programs, by number or name"),
] as const;

/** @throws RsptraceError `PROBE_SYNTAX` */
function parse(text: ProbeText, prefix: string, { everything, of }: TrapWords): TrapSpec {
  const spec = parseNames({ name: prefix, everything, unconditional: 'traps' }, text);
  return {
    ...{ ...spec, kind: name, of },
    matches: (path) => (of === undefined || path.startsWith(`${of}::`)) && spec.matches(path),
  };
}
