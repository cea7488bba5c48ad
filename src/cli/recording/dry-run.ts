import {
  engineChoices,
  type Hurdle,
  hurdleLines,
  hurdlesJson,
  hurdlesOfCode,
  planEngines,
} from '../../engines/index.js';
import type { ExcludedFunction } from '../../probes/index.js';
import { enginePlan, type Program } from '../../record/index.js';
import { jsonLine, textLines } from '../../text/index.js';
import type { ProbeFact } from '../../trace/index.js';
import { choicesJson, choiceTable, excludedJson, merged } from '../engine-report.js';
import { ExitCode } from '../failure.js';
import { createLogger } from '../logging.js';
import type { RecordingArguments } from '../options/recording.js';
import { loadPlugins } from '../plugins.js';
import { ReadingLine } from '../reading-line.js';
import { givenScratchOf } from '../scratch-options.js';
import { foundOf, planWishes, preparedProgram } from './asked.js';

/** Shows what would be probed, and how; uses neither the target nor a trace file. */
export async function dryRun(args: RecordingArguments): Promise<number> {
  const { program, choices, hurdles } = await chosen(args);
  const previews = program.known.flatMap((kind) => kind.preview?.(foundOf(program, kind)) ?? []);
  const tables = previews.flatMap(({ table }) => table ?? []);
  const excluded = program.kinds.flatMap(({ found }) => found.excluded ?? []);
  process.stdout.write(
    args.json
      ? jsonLine({
          ...{ version: 1, probes: choicesJson(choices), hurdles: hurdlesJson(hurdles) },
          ...merged(previews.map(({ json }) => json)),
          not_probed: excludedJson(excluded),
        })
      : [
          ...(choices.length > 0 || tables.length === 0 ? [choiceTable(choices)] : []),
          ...tables,
          ...(excluded.length > 0 ? [textLines(['not probed:', ...excludedLines(excluded)])] : []),
          ...(hurdles.length > 0 ? [textLines(['in the way of probes without stops:', ...indented(hurdles)])] : []),
        ].join('\n'),
  );
  return ExitCode.recorded;
}

/** The program, and the engine of each probe as far as the code alone says. */
async function chosen(
  args: RecordingArguments,
): Promise<{ program: Program; choices: readonly ProbeFact[]; hurdles: readonly Hurdle[] }> {
  using line = new ReadingLine(args.elf, args.progress);
  const program = await preparedProgram(args, await loadPlugins(args.plugin), createLogger(args.log));
  line.phase('choosing engines for');
  const options = enginePlan(program, planWishes(args, program));
  const { given } = givenScratchOf(args, program.elf);
  const planned = planEngines(options);
  const hurdles = hurdlesOfCode(options, planned, program.elf, given?.address);
  return { program, choices: engineChoices(options, planned), hurdles };
}

function indented(hurdles: readonly Hurdle[]): string[] {
  return hurdleLines(hurdles).map((line) => `  ${line}`);
}

/** A line a reason. */
function excludedLines(excluded: readonly ExcludedFunction[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const { name, reason } of excluded) byReason.set(reason, [...(byReason.get(reason) ?? []), name]);
  return [...byReason].map(([reason, names]) => {
    const more = names.length > 6 ? ` and ${names.length - 6} more` : '';
    return `  ${names.slice(0, 6).join(', ')}${more}: ${reason}`;
  });
}
