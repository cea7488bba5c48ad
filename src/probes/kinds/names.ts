import { RsptraceError } from '../../base/errors.js';
import { parseMemberExpr } from '../../values/index.js';
import { type Comparison, parseCondition } from '../expressions/condition.js';
import { compileGlob } from '../glob.js';
import type { AnyProbe, ProbeText } from './kind.js';

/** A probe that names code with a glob. */
export interface ProbeSpec extends AnyProbe {
  readonly glob: string;
  /** `fn:shell/parse`: of this program alone, where there are several. */
  readonly program?: string | undefined;
  /** True for `!poll:GLOB`: excludes names. */
  readonly excludes: boolean;
  /** True for `fn:LABEL!`: also what is refused because nothing says how it returns, by its entry alone. */
  readonly insists?: boolean;
  /** `fn:GLOB if len > 100`: only calls for which all of one list hold, in at least one list. Empty: all calls. */
  readonly when: readonly (readonly Comparison[])[];
  /** The `len` of `hist(len):GLOB`; undefined for other kinds, and in a probe that excludes. */
  readonly argument: Pick<Comparison, 'text' | 'expression'> | undefined;
  /** `count:GLOB by task`: a row each. */
  readonly groupedBy?: Grouping | undefined;
  /** The text before the colon of a probe that includes: `fn`, `hist(len)`. */
  readonly prefix: string;
  matches(path: string): boolean;
}

/** What distinguishes calls when they are counted. */
export type Grouping = 'task' | 'hart';

/** What `hist(len)` is for. */
export const argumentOfHist = 'counts calls by the size of their argument len';

/** What a kind's text may have besides a glob. */
export interface NameRules {
  readonly name: string;
  /** What `NAME:**` means, for hints: `every function`. */
  readonly everything: string;
  /** An expression stands in brackets behind the kind's own name. What it is for, of `len`. */
  readonly argument?: string;
  /** It may be `by task` or `by hart`. */
  readonly isGrouped?: boolean;
  /** A `!` behind the glob insists. */
  readonly mayInsist?: boolean;
  /** It has no conditions, because these have none: `locks`. */
  readonly unconditional?: string;
}

/**
 * Parses the text of a kind that names code: a glob, a `!` before it to exclude, and `if CONDITION` behind it.
 * See {@link compileGlob} for globs.
 * @throws RsptraceError `PROBE_SYNTAX`, `EXPRESSION_SYNTAX`
 */
export function parseNames(rules: NameRules, whole: ProbeText): ProbeSpec {
  const { text, excludes: isOut, argument: bracketed, rest: all } = whole;
  const { rest, groupedBy } = rules.isGrouped ? groupingOf(text, all) : { rest: all };
  const { name: kind, everything } = rules;
  const hasArgument = rules.argument !== undefined;
  let glob = rest;
  let excludes = isOut;
  if (glob.startsWith('!')) {
    excludes = true;
    glob = glob.slice(1).trimStart();
  }
  const conditional = /^(.*?)(?:^|\s)if(?:\s(.*))?$/s.exec(glob);
  const condition = conditional ? (conditional[2] ?? '').trim() : undefined;
  if (conditional) glob = (conditional[1] ?? '').trim();
  const insists = rules.mayInsist === true && glob.endsWith('!');
  if (insists) glob = glob.slice(0, -1);
  const [, program, inProgram] = /^([^/:<>\s]+)\/(.+)$/s.exec(glob) ?? [];
  glob = inProgram ?? glob;
  if (glob === '') {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' names nothing after the colon`, {
      hint: `'${kind}:**' is ${everything}`,
    });
  }
  verifyArgument(rules, whole, glob, hasArgument && !excludes);
  const argument = bracketed === undefined ? undefined : { text: bracketed, expression: parseMemberExpr(bracketed) };
  const prefix = hasArgument ? `${kind}(${bracketed ?? 'len'})` : kind;
  if (excludes && groupedBy) {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' leaves out what matches, so that there is nothing to group`, {
      hint: `leave 'by ${groupedBy}' away`,
    });
  }
  const matches = compileGlob(glob);
  const spec = { kind, text, glob, program, excludes, insists, argument, groupedBy, prefix, matches };
  if (condition === undefined) return { ...spec, when: [] };
  if (rules.unconditional !== undefined) {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' has a condition, which ${rules.unconditional} cannot have`, {
      hint: `'${kind}:${glob}' takes all of them`,
    });
  }
  if (excludes) {
    const taken = `${hasArgument ? `${kind}(len)` : kind}:${glob} if ${condition}`;
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' has a condition and leaves out what matches`, {
      hint: `'${taken}' takes what the condition holds for`,
    });
  }
  return { ...spec, when: parseCondition(condition, text, `${prefix}:${glob}`) };
}

/** Cuts `by task` out: it stands behind the glob, or at the end. */
function groupingOf(text: string, all: string): { readonly rest: string; readonly groupedBy: Grouping | undefined } {
  const [found, by, condition = ''] = /\sby\s+(\S*)(\s+if\s.*)?$/s.exec(all) ?? [];
  if (found === undefined) return { rest: all, groupedBy: undefined };
  if (by !== 'task' && by !== 'hart' && by !== 'thread') {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' groups by '${by}', which is no task, hart or thread`, {
      hint: "write 'by task', or 'by hart' (of a process 'by thread'), behind the glob",
    });
  }
  return { rest: `${all.slice(0, -found.length)}${condition}`, groupedBy: by === 'thread' ? 'hart' : by };
}

/**
 * Refuses groups by task where no poll is traced, because then nothing says which task runs.
 * @throws RsptraceError `PROBE_SYNTAX`
 */
export function verifyGrouping(specs: readonly ProbeSpec[], asked: ReadonlySet<string>): void {
  const spec = specs.find(({ groupedBy }) => groupedBy === 'task');
  if (!spec || asked.has('poll')) return;
  throw new RsptraceError('PROBE_SYNTAX', `'${spec.text}' needs polls: without them nothing says which task runs`, {
    hint: "add --probe 'poll:**', or a part of the program's Futures",
  });
}

function verifyArgument(rules: NameRules, { text, argument }: ProbeText, glob: string, isWanted: boolean): void {
  if (isWanted ? /^[^,\s]/.test(argument ?? '') && !argument?.includes(',') : argument === undefined) return;
  const named = argument ? `names '${argument}', which is not one argument` : 'names no argument';
  const what = isWanted ? named : 'has brackets, which only hist(ARG), sum(ARG) and avg(ARG) have';
  const [name, use] = rules.argument === undefined ? ['hist', argumentOfHist] : [rules.name, rules.argument];
  throw new RsptraceError('PROBE_SYNTAX', `'${text}' ${what}`, {
    hint: `'${name}(len):${glob}' ${use}, '!${name}:${glob}' leaves functions out`,
  });
}

/**
 * Refuses a probe that excludes if no probe includes. `prefix`: the text before the colon of a probe that includes.
 * @throws RsptraceError `PROBE_SYNTAX`
 */
export function verifyIncludes(specs: readonly ProbeSpec[], prefix: string): void {
  const [first] = specs;
  if (!first || specs.some(({ excludes }) => !excludes)) return;
  throw new RsptraceError('PROBE_SYNTAX', `'${first.text}' leaves functions out, but none are asked for`, {
    hint: `add --probe '${prefix}:**' for all functions, or a part of them`,
  });
}

/**
 * The filter of a list of probes: a name passes if a probe includes it (or `otherwise` does, when none includes) and
 * none excludes it. Each path is one of a thing's names; any of them may match.
 */
export function whiteList(specs: readonly ProbeSpec[]): {
  readonly hasIncludes: boolean;
  allows(paths: readonly string[], otherwise: boolean): boolean;
  /** Matched by one that excludes. */
  hasExcluded(paths: readonly string[]): boolean;
} {
  const includes = specs.filter((spec) => !spec.excludes);
  const excluders = specs.filter((spec) => spec.excludes);
  const hasExcluded = (paths: readonly string[]): boolean => excluders.some((spec) => paths.some(spec.matches));
  return {
    hasIncludes: includes.length > 0,
    allows(paths, otherwise) {
      const wanted = includes.length > 0 ? includes.some((spec) => paths.some(spec.matches)) : otherwise;
      return wanted && !hasExcluded(paths);
    },
    hasExcluded,
  };
}
