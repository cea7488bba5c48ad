// Single files are imported: a command that answers at once loads no more than it needs.
import { architectureOf } from '../arch/index.js';
import {
  FutureGraph,
  FutureNames,
  type FutureSet,
  type FutureType,
  findFutures,
  futuresDot,
  futuresJson,
  futuresSizes,
  futuresTable,
  futuresTree,
  graphSvg,
} from '../async/futures/index.js';
import { taskPlaces } from '../async/tasks/index.js';
import { RsptraceError } from '../base/errors.js';
import { silent } from '../base/logger.js';
import { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { compileGlob, coverageSentence, howSeen, nearest, type SeenFuture } from '../probes/index.js';
import { jsonLine } from '../text/index.js';
import { ExitCode, note } from './failure.js';
import { openElf } from './look-at.js';
import { type Output, writeOutput } from './open-output.js';
import type { FuturesArguments } from './options/target.js';
import { isColored, lineWidth } from './terminal.js';

/** `rsptrace futures kernel.elf [GLOB]`: every Future in the program, without running it. Gives the exit status. */
export async function showFutures(args: FuturesArguments): Promise<number> {
  const logger = { ...silent, warn: (_: object, message: string): void => note(message) };
  const elf = await openElf(args, logger);
  const debug = DebugInfo.load(elf);
  const set = findFutures(debug);
  const [first, ...more] = set.warnings;
  if (first !== undefined && !args.json) {
    note(`note: ${first}${more.length > 0 ? ` (and ${more.length} more: --json lists them)` : ''}`);
  }
  const futures = select(set, args);
  const text = await view(args, { elf, debug, set, futures });
  if (args.svg) writeOutput(svgOutput(args.svg), text);
  else process.stdout.write(text);
  return ExitCode.recorded;
}

interface Shown {
  readonly elf: ElfFile;
  readonly debug: DebugInfo;
  readonly set: FutureSet;
  readonly futures: readonly FutureType[];
}

async function view(args: FuturesArguments, { elf, debug, set, futures }: Shown): Promise<string> {
  const names = new FutureNames(set.all);
  const options = { color: isColored(), width: lineWidth() };
  if (args.json) {
    const known = await seenBy({ elf, debug, set, futures });
    const seen = (future: FutureType): SeenFuture | undefined => known?.get(future);
    return jsonLine(futuresJson({ program: args.elf, buildId: elf.buildId, futures, set, seen }));
  }
  if (args.size) return futuresSizes(futures, names, options);
  if (args.tree) return futuresTree(new FutureGraph(set, futures), names, options.width);
  if (args.dot) return futuresDot(new FutureGraph(set, futures), names);
  if (args.svg !== undefined) {
    const graph = new FutureGraph(set, futures);
    return graphSvg(futuresDot(graph, names), graph.nodes.length);
  }
  const known = await seenBy({ elf, debug, set, futures });
  const seen = (future: FutureType): string => seenText[known?.get(future)?.seen ?? 'no-code'];
  const table = futuresTable(futures, names, seen, options);
  return known ? `${table}\n${coverageSentence([...known.values()])}\n` : table;
}

const seenText: Readonly<Record<SeenFuture['seen'], string>> = {
  exact: 'exactly',
  'lower-bound': 'at least',
  not: 'no',
  'no-code': '-',
};

/** How each is seen; undefined for an architecture that cannot be recorded. */
async function seenBy({ elf, debug, set, futures }: Shown): Promise<ReadonlyMap<FutureType, SeenFuture> | undefined> {
  const arch = architectureOf(elf.machine);
  await arch?.prepare();
  const places = arch && (await taskPlaces(debug, set));
  return arch && new Map(howSeen(debug, set, arch, { selected: futures, places }).map((one) => [one.future, one]));
}

function select(set: FutureSet, { elf, glob }: FuturesArguments): readonly FutureType[] {
  if (set.all.length === 0) {
    throw new RsptraceError('FUTURES_NONE', `${elf} has no Future that DWARF describes`, {
      hint: 'is it built from Rust with async code and debug = 2?',
    });
  }
  if (glob === undefined) return set.all;
  const matches = compileGlob(glob);
  const futures = set.all.filter(({ future, instance }) => matches(future) || matches(instance));
  if (futures.length > 0) return futures;
  const near = nearest(
    glob,
    set.all.map(({ future }) => future),
  );
  throw new RsptraceError('FUTURES_NO_MATCH', `no Future matches '${glob}'`, {
    hint: near.length > 0 ? `nearest: ${near.join(', ')}` : `without a GLOB all ${set.all.length} are listed`,
  });
}

function svgOutput(path: string): Output {
  const failure = { code: 'OUTPUT_CANNOT_WRITE', sentence: 'the graph cannot be written to' } as const;
  return { option: '--svg', path, failure };
}
