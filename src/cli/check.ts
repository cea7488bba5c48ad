import { existsSync } from 'node:fs';
import { jsonLine, textLines } from '../base/visible.js';
import {
  type BudgetFile,
  type Checked,
  Checker,
  checkedJson,
  checkedText,
  isBroken,
  NameCollector,
  proposedBudget,
  readBudget,
  writeBudget,
} from '../check/index.js';
import { hartWord, sampleFactsJson, sampleFactsLines, type TraceRead } from '../trace/index.js';
import type { CheckArguments } from './check-options.js';
import { reportChecked } from './check-report.js';
import { ExitCode } from './failure.js';
import { headJson, readSaved, tableOptions } from './saved-trace.js';

/** `rsptrace check TRACE --budget FILE`: 0 if every budget is kept, 4 if one is broken. */
export async function check(args: CheckArguments): Promise<number> {
  const budget = args.update && !existsSync(args.budget) ? await newBudget(args) : readBudget(args.budget);
  const checker = new Checker(budget);
  const read = await readSaved(args.trace, checker, args);
  if (args.update) return update(args, checker);
  const checked: Checked = {
    ...{ program: read.info.program, trace: args.trace, budget: args.budget },
    ...{ verdicts: checker.verdicts(), isStrict: args.strict },
  };
  process.stdout.write(
    args.json
      ? jsonLine({ ...headJson(args.trace, read), ...sampledJson(read), ...checkedJson(checked) })
      : checkedText(checked, tableOptions()),
  );
  const { samples } = read.facts?.recording ?? {};
  if (samples && !args.json) process.stdout.write(textLines(sampleFactsLines(samples, hartWord(read.info))));
  reportChecked(checked, args, args.json ? process.stderr : process.stdout);
  return isBroken(checked) ? ExitCode.limitBroken : ExitCode.recorded;
}

/** How stacks were sampled, if they were. */
function sampledJson({ facts }: TraceRead): object {
  const { samples } = facts?.recording ?? {};
  return samples ? { samples: sampleFactsJson(samples) } : {};
}

async function newBudget(args: CheckArguments): Promise<BudgetFile> {
  const collector = new NameCollector();
  await readSaved(args.trace, collector, args);
  return proposedBudget(collector.names, args.budget);
}

function update(args: CheckArguments, checker: Checker): number {
  const json = checker.updated(args.headroom);
  writeBudget(args.budget, json);
  const limits = Object.keys(json).filter((key) => checker.budget.head[key] === undefined);
  process.stdout.write(
    args.json
      ? jsonLine({ version: 1, budget: json })
      : textLines([`${args.budget}: limits of ${limits.join(', ')} written`]),
  );
  return ExitCode.recorded;
}
