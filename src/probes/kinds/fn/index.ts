import { type FunctionRow, FunctionSummary, functionJson, functionTable, namesBound } from '../../../trace/index.js';
import { loopsToStart } from '../../code-facts.js';
import { type FunctionProbes, resolveFunctions } from '../../resolve-functions.js';
import type { Found, Outcome, ProbeKind } from '../kind.js';
import { type NameRules, type ProbeSpec, parseNames, verifyIncludes } from '../names.js';
import { planFunction } from './plan.js';
import { FunctionTracer } from './tracer.js';

const rules: NameRules = { name: 'fn', everything: 'every function', mayInsist: true };

interface FoundFunctions extends Found {
  readonly functions: FunctionProbes;
}

/** Entries and returns of functions. */
export const fn: ProbeKind<ProbeSpec, FoundFunctions> = {
  name: rules.name,
  help: "'fn:GLOB' these functions, '!' in front leaves them out, '!' behind takes labels of assembly and trap entries too",
  purpose: 'for functions',
  parse: (text) => parseNames(rules, text),
  check: (specs) => verifyIncludes(specs, rules.name),
  resolve({ elf, debug, arch }, specs) {
    const functions = resolveFunctions(elf, debug, arch, specs);
    const { probes, excluded, unmatched } = functions;
    return { functions, excluded, unmatched, addresses: probes.map(({ address }) => address) };
  },
  plans: ({ functions }, wishes) => functions.probes.map((probe) => planFunction(probe, wishes)),
  tracer({ functions }, { elf, arch, output, values, maxDepth }) {
    const loops = loopsToStart(elf, arch);
    const options = {
      loops,
      ...(values === undefined ? {} : { values }),
      ...(maxDepth === undefined ? {} : { maxDepth }),
    };
    return { calls: new FunctionTracer(functions, output, options) };
  },
  report(found) {
    if (!found) return { json: () => ({ functions: [] }), tables: () => [] };
    const summary = new FunctionSummary();
    const rows = ({ stopError, engines, missing }: Outcome): readonly FunctionRow[] =>
      summary.rows(stopError, namesBound(engines, missing));
    return {
      sink: summary,
      json: (outcome) => ({ functions: functionJson(rows(outcome)) }),
      tables: (outcome, options) => [functionTable(rows(outcome), options)],
    };
  },
};
