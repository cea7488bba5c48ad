// The programs of a recording that has several: the kernel's, or whatever its ELF is, and further ones of --elf.
import { type Logger, silent } from '../base/logger.js';
import { ElfFile, type OpenOptions } from '../elf/index.js';
import { besideKernel } from '../engines/index.js';
import { type AnyProbe, kinds, type PlanWishes, type ProbeKind } from '../probes/index.js';
import { nameIn } from '../target/stacks/index.js';
import type { ProbeFact } from '../trace/index.js';
import { isCalled, isExcluding, kindsOfOthers, programIn, verifyNames } from './named-programs.js';
import { type PlaceOptions, type PollOptions, type Program, plansOf, understand } from './program.js';
import { matchesNothing } from './unmatched.js';

interface PrepareOptions extends OpenOptions, PollOptions, PlaceOptions {
  /** Further programs of the same machine. */
  readonly others?: readonly ElfFile[];
}

/**
 * Reads an ELF (and its debug file, if it has one) and resolves probes against it.
 * @throws RsptraceError `ELF_*`, `DWARF_*`, `DEBUG_FILE_MISMATCH`, `ARCH_UNSUPPORTED`, `PROBE_*`, `EXPRESSION_*`,
 * `WATCH_*`
 */
export async function prepare(
  path: string,
  specs: readonly AnyProbe[],
  logger: Logger = silent,
  { inlined, wakes, place, others = [], ...debugFiles }: PrepareOptions = {},
  known: readonly ProbeKind[] = kinds,
): Promise<Program> {
  const linked = await ElfFile.open(path, { ...debugFiles, logger });
  const bias = place?.(linked) ?? 0n;
  const elf = bias === 0n ? linked : linked.loadedAt(bias);
  return understandAll([elf, ...others], specs, known, logger, { inlined, wakes });
}

/**
 * Resolves probes in several programs. Each probe must be found in one of them; those that name a program, in that.
 * @throws RsptraceError as `prepare` does
 */
async function understandAll(
  [main, ...others]: readonly [ElfFile, ...ElfFile[]],
  specs: readonly AnyProbe[],
  known: readonly ProbeKind[],
  logger: Logger = silent,
  options: PollOptions = {},
): Promise<Program> {
  verifyNames(specs, [main, ...others]);
  if (others.length === 0) return understand(main, specs, known, logger, options);
  const understood: Program[] = [];
  for (const elf of others) {
    // Nothing of theirs is seen without a stop.
    const inlined = options.inlined === 'auto' ? 'needed' : options.inlined;
    const wakes = options.wakes === 'auto' ? 'never' : options.wakes;
    const own = { ...options, inlined, wakes, isAmong: true };
    understood.push(await understand(elf, specsOf(elf, specs, false), known, logger, own));
  }
  const first = await understand(main, specsOf(main, specs, true), known, logger, {
    ...options,
    ...{ isAmong: true, others: understood },
  });
  verifyFound([first, ...understood], specs, logger);
  return first;
}

/** The probes that are meant in a program. Where others are named, one without any has none. */
function specsOf(elf: ElfFile, specs: readonly AnyProbe[], isMain: boolean): readonly AnyProbe[] | undefined {
  const asked = specs.filter((spec) => {
    const program = programIn(spec);
    if (program !== undefined) return isCalled(elf, program);
    return isMain || kindsOfOthers.has(spec.kind);
  });
  const includes = (all: readonly AnyProbe[], kind: string): boolean =>
    all.some((spec) => spec.kind === kind && !isExcluding(spec));
  // What leaves out needs something that takes, but where all is taken by itself.
  const kept = asked.filter((spec) => includes(asked, spec.kind) || !includes(specs, spec.kind));
  return kept.length === 0 && specs.length > 0 ? undefined : kept;
}

/** What no program has is an error, or said where something else of its kind was found. */
function verifyFound(programs: readonly Program[], specs: readonly AnyProbe[], logger: Logger): void {
  const found = new Set(programs.flatMap((program) => program.kinds.map(({ kind }) => kind.name)));
  const failed = programs.flatMap(({ unfound }) => unfound).find(({ kind }) => !found.has(kind));
  if (failed) throw failed.error;
  const isMatched = (text: string, kind: string): boolean =>
    programs.some((program) => {
      const probes = program.kinds.find((each) => each.kind.name === kind)?.found;
      const isAsked = program.specs.some((spec) => spec.text === text);
      return isAsked && probes !== undefined && !probes.unmatched?.includes(text);
    });
  for (const { text, kind } of specs.filter((spec) => !isExcluding(spec)))
    if (!isMatched(text, kind)) logger.warn({ probe: text }, matchesNothing);
}

/** How the probes of further programs are carried out: all by stops. */
export function choicesOfOthers({ others }: Program, wishes: Pick<PlanWishes, 'stackDepth' | 'values'>): ProbeFact[] {
  return others.flatMap((program) =>
    plansOf(program, wishes).map(({ address, others, ...plan }) => {
      const named = ({ name, subject }: Pick<ProbeFact, 'name' | 'subject'>): Pick<ProbeFact, 'name' | 'subject'> => ({
        name: nameIn(program.elf, name),
        ...(subject === undefined ? {} : { subject: nameIn(program.elf, subject) }),
      });
      return {
        ...named(plan),
        address,
        engine: 'stop',
        why: besideKernel,
        ...(others && { others: others.map(named) }),
      };
    }),
  );
}
