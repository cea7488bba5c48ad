import { existsSync } from 'node:fs';
import {
  type BudgetFile,
  type Checked,
  Checker,
  checkedJson,
  checkedText,
  isBroken,
  leftOutOf,
  NameCollector,
  proposedBudget,
  readBudget,
  writeBudget,
} from '../check/index.js';
import { textLines } from '../text/index.js';
import { hartWord, sampleFactsJson, sampleFactsLines, type TraceRead } from '../trace/index.js';
import { reportChecked } from './check-report.js';
import { ExitCode } from './failure.js';
import type { CheckArguments } from './options/saved-trace.js';
import { headJson, readSaved } from './saved-trace.js';
import { isColored, lineWidth, printed } from './terminal.js';

/** `rsptrace check TRACE --budget FILE`: 0 if every budget is kept, 4 if one is broken. */
export async function check(args: CheckArguments): Promise<number> {
  const isNew = args.update && !existsSync(args.budget);
  const budget = isNew ? await newBudget(args) : readBudget(args.budget);
  const checker = new Checker(budget);
  const read = await readSaved(args.trace, checker, args);
  if (args.update) return update(args, checker, isNew);
  const checked: Checked = {
    ...{ program: read.info.program, trace: args.trace, budget: args.budget },
    ...{ verdicts: checker.verdicts(), isStrict: args.strict },
  };
  printed(args, { ...headJson(args.trace, read), ...sampledJson(read), ...checkedJson(checked) }, () =>
    checkedText(checked, { color: isColored(), width: lineWidth() }),
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

function update(args: CheckArguments, checker: Checker, isNew: boolean): number {
  const json = checker.updated(args.headroom);
  writeBudget(args.budget, json);
  const { asked, head } = checker.budget;
  const limits = Object.keys(json).filter((key) => head[key] === undefined);
  const leftOut = isNew ? [] : leftOutOf(asked, json);
  const lines = [`${args.budget}: limits of ${limits.join(', ')} written`];
  if (leftOut.length > 0) {
    lines.push(`left out, because this trace has no limit for it: ${leftOut.join(', ')}`);
    lines.push('a file that is not there yet gets limits of all that was traced');
  }
  return printed(args, { version: 1, budget: json, left_out: leftOut }, () => textLines(lines));
}
