import type { Architecture } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import { type DebugInfo, debugInfoMissing } from '../dwarf/index.js';
import { type ElfFile, importSlots } from '../elf/index.js';
import { Describer, type FunctionProbe, type Unread } from './describer.js';
import { type Conditions, compareFor, type FunctionComparison } from './expressions/comparison.js';
import type { Comparison } from './expressions/condition.js';
import { ProgramExpressions } from './expressions/program.js';
import { functionsMatching, namedFunctions } from './function-names.js';
import { noMatch } from './glob.js';
import type { ExcludedFunction } from './inlined-functions.js';
import { inlinedFunctions } from './inlined-functions.js';
import { type ProbeSpec, whiteList } from './kinds/names.js';
import { leftToNames, NoTrace } from './notrace.js';

export interface FunctionProbes {
  /** In order of address. */
  readonly probes: readonly FunctionProbe[];
  readonly excluded: readonly ExcludedFunction[];
  /** Probes that match no function, while others do. */
  readonly unmatched: readonly string[];
}

/**
 * Resolves function probes to addresses. Without debug info the symbols are used. The architecture must be prepared.
 *
 * @throws RsptraceError `PROBE_NO_MATCH`, with the nearest names; `PROBE_INLINED` if every match was inlined;
 *   `PROBE_UNSAFE` if no match may be probed;
 *   `PROBE_CONDITION` if none has the argument of its condition, or of a part of it behind `||`
 */
export function resolveFunctions(
  elf: ElfFile,
  debug: DebugInfo | undefined,
  arch: Architecture,
  specs: readonly ProbeSpec[],
): FunctionProbes {
  const list = whiteList(specs);
  const includes = specs.filter((spec) => !spec.excludes);
  const { places, matched } = functionsMatching(namedFunctions(elf, debug, arch), list, includes);
  const notrace = new NoTrace(elf, arch);
  const excluded: ExcludedFunction[] = [];
  /** Matched only by probes whose conditions cannot apply to them. */
  const unconditional: ExcludedFunction[] = [];
  const refused: Refused = new Map();
  const probes: FunctionProbe[] = [];
  const describer = new Describer(
    elf,
    arch,
    debug,
    unreadCode([...places.values()].map(([first]) => first?.size ?? 0)),
  );
  const program = debug && new ProgramExpressions(debug);
  for (const names of places.values()) {
    const functions = names.filter((one) => one.isFunction);
    const [first] = functions.length > 0 ? functions : names;
    if (!first) continue;
    const { address, name, size, symbol } = first;
    const reason =
      functions.length === 0
        ? 'a label in assembly: nothing says that it is a function'
        : (notrace.reason(symbol, address, size) ??
          // A probe may ask for this very name.
          (includes.some(({ glob }) => glob === name || glob === symbol) ? undefined : leftToNames(symbol, size)));
    const isWanted = includes.some(({ insists, matches }) => insists && names.some((one) => one.names.some(matches)));
    if (reason !== undefined && !(isWanted && notrace.maySeeEntry(address))) {
      excluded.push({ name, address, reason });
      continue;
    }
    const described = describer.probe(first, functions.slice(1), probes.length + 1);
    const probe = reason === undefined ? described : entriesOf(elf, described, reason);
    const conditions = conditionsOf(
      probe,
      includes.filter((spec) => names.some((one) => one.names.some(spec.matches))),
      program,
      refused,
    );
    if (typeof conditions === 'string') unconditional.push({ name, address, reason: conditions });
    else probes.push(conditions ? { ...probe, when: conditions } : probe);
  }
  describer.keep();
  const inVain = askedInVain(includes, refused, probes.length > 0);
  excluded.push(...unconditional);
  if (probes.length === 0) throw nothingToProbe(elf, debug, includes, list.allows, excluded);
  probes.sort((a, b) => (a.address < b.address ? -1 : 1));
  const unmatched = includes.filter((spec) => !matched.has(spec) || inVain.includes(spec)).map(({ text }) => text);
  return { probes, excluded, unmatched };
}

/**
 * Following code takes some two seconds a MiB. Of more than this the largest functions are not read, which are few and
 * have most of it.
 */
const mostCode = 6 << 20;

/** Undefined if all code is read. */
function unreadCode(sizes: readonly number[]): Unread | undefined {
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  if (whole <= mostCode) return undefined;
  let above = 0;
  let left = mostCode;
  for (const size of sizes.toSorted((a, b) => a - b)) {
    left -= size;
    if (left < 0) break;
    above = size;
  }
  const why = `its code is not read, because the ${sizes.length} functions that are asked for have ${Math.round(whole / 1e6)} MB: only those up to ${above} bytes are. Ask for fewer`;
  return { above, why: (size) => (size > above ? why : undefined) };
}

/** Larger code than this is not looked at behind a label. */
const mostBehind = 4096;

/**
 * What is refused for this reason, by its entries alone: nobody knows its arguments, its result, and how it returns.
 */
function entriesOf(elf: ElfFile, probe: FunctionProbe, insisted: string): FunctionProbe {
  const next = elf.symbols.above(probe.address);
  const behind = next === undefined ? mostBehind : Math.min(mostBehind, Number(next.address - probe.address));
  const size = probe.size > 0 ? probe.size : behind;
  return { ...probe, size, arguments: [], result: undefined, scratchIsFree: false, insisted };
}

/** Conditions that some function does not have: the first of those; undefined where another one has it. */
type Refused = Map<readonly Comparison[], { readonly name: string; readonly reason: string } | undefined>;

/**
 * The condition for tracing a function, by the probes that match it; undefined: always. Words for the user if no
 * probe's condition applies.
 */
function conditionsOf(
  probe: FunctionProbe,
  specs: readonly ProbeSpec[],
  program: ProgramExpressions | undefined,
  refused: Refused,
): Conditions | string | undefined {
  if (specs.some(({ when }) => when.length === 0)) return undefined;
  const conditions: FunctionComparison[][] = [];
  let reason = '';
  for (const all of specs.flatMap(({ when }) => when)) {
    try {
      conditions.push(all.map((comparison) => compareFor(comparison, probe.arguments, program)));
      refused.set(all, undefined);
    } catch (error) {
      reason = reasonOf(error);
      if (!refused.has(all)) refused.set(all, { name: probe.ref.name, reason });
    }
  }
  return conditions.length > 0 ? conditions : reason;
}

/** Probes with a condition that no function has. Throws if there are no others. */
function askedInVain(includes: readonly ProbeSpec[], refused: Refused, any: boolean): readonly ProbeSpec[] {
  const inVain = includes.filter(({ when }) => when.some((all) => refused.get(all)));
  const [first] = inVain.flatMap(({ when }) => when.flatMap((all) => refused.get(all) ?? []));
  if (!first || (any && inVain.length < includes.length)) return inVain;
  const message = `no function that matches has what the condition looks at: ${first.name}`;
  throw new RsptraceError('PROBE_CONDITION', message, { hint: first.reason });
}

/** Why a function has no such expression: the error's words and way out. Any other error is thrown on. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof RsptraceError) || !error.code.startsWith('EXPRESSION_')) throw error;
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}

/** What the poll of an async fn's Future is called behind it. */
const asyncFn = /::\{async_fn#0\}$/;

function nothingToProbe(
  elf: ElfFile,
  debug: DebugInfo | undefined,
  includes: readonly ProbeSpec[],
  allows: (paths: readonly string[], otherwise: boolean) => boolean,
  excluded: readonly ExcludedFunction[],
): RsptraceError {
  const [first] = excluded;
  if (first) {
    const names = excluded.slice(0, 3).map(({ name }) => name);
    return new RsptraceError('PROBE_UNSAFE', `what matches must not be probed (${names.join(', ')})`, {
      hint: `${first.name}: ${first.reason}; ${includes[0]?.prefix === 'fn' ? `fn:${first.name}! takes its entries all the same` : 'fn:NAME! takes its entries all the same'}`,
    });
  }
  const inlined = debug ? inlinedFunctions(debug) : [];
  const known = [...namedFunctions(elf, debug)].filter((one) => one.isFunction).map(({ name }) => name);
  const names = [...known, ...inlined.map(({ name }) => name)];
  const poll = names.find((name) => asyncFn.test(name) && allows([name.replace(asyncFn, '')], false));
  if (poll !== undefined) {
    const name = poll.replace(asyncFn, '');
    return new RsptraceError('PROBE_NO_MATCH', `${name} is an async fn, whose code is its Future's poll`, {
      hint: `-p 'poll:${name}' has each poll`,
    });
  }
  const gone = inlined.filter(({ names }) => allows(names, false));
  if (gone[0]) {
    const into = [...new Set(gone[0].into)].slice(0, 3).join(', ');
    return new RsptraceError(
      'PROBE_INLINED',
      `the compiler inlined every function that matches (${gone
        .slice(0, 3)
        .map(({ name }) => name)
        .join(', ')})`,
      { hint: `probe where its code went: ${gone[0].name} was inlined into ${into}` },
    );
  }
  const [imported] = [...importSlots(elf).values()].filter((name) => allows([name], false));
  if (imported !== undefined) {
    return new RsptraceError('PROBE_NO_MATCH', `${imported} is in a library that the program loads`, {
      hint: `rsptrace attach PID /path/of/the/library -p 'fn:${imported}' traces it there; ldd names the libraries`,
    });
  }
  if (known.length === 0 && !debug) return debugInfoMissing(elf);
  return noMatch('function', includes, names, `--probe '${includes[0]?.prefix ?? 'fn'}:**' takes every function`);
}
