import { RsptraceError } from '../base/errors.js';
import { compileGlob } from './glob.js';
import { type Predicate, parsePredicates } from './predicate.js';
import { parseWatch, type WatchSpec } from './watch/watch-spec.js';

/**
 * `poll`: entry and exit of the poll functions of Futures. `fn`: those of any function. `count`: how often functions are entered, and no
 * event of it. `hist`: the same by the size of an argument.
 */
export type ProbeKind = 'poll' | 'fn' | 'count' | 'hist';

/** One `--probe` that names code: which kind of place, and which names. */
export interface ProbeSpec {
  readonly kind: ProbeKind;
  readonly text: string;
  readonly glob: string;
  /** True for `!poll:GLOB`: takes names out again. */
  readonly excludes: boolean;
  /** `fn:GLOB if len > 100`: only calls for which all of these hold. Empty: all calls. */
  readonly when: readonly Predicate[];
  /** The `len` of `hist(len):GLOB`; undefined for other kinds, and where names are taken out. */
  readonly argument: string | undefined;
  matches(path: string): boolean;
}

/** Any `--probe`. */
export type AnyProbe = ProbeSpec | WatchSpec;

/** What `KIND:**` means, for hints. */
const everything: Readonly<Record<ProbeKind, string>> = {
  poll: 'every poll',
  fn: 'every function',
  count: 'every function',
  hist: 'every function',
};

/** What stands before the colon of a probe that includes: `fn`, `hist(len)`. */
export function prefix(kind: ProbeKind, argument = 'len'): string {
  return kind === 'hist' ? `hist(${argument})` : kind;
}

function isKind(text: string): text is ProbeKind {
  return Object.hasOwn(everything, text);
}

/**
 * Reads a probe: `watch:PLACE` (see {@link parseWatch}), or one that {@link parseNames} reads.
 * @throws RsptraceError `PROBE_SYNTAX`, `EXPRESSION_SYNTAX`, `WATCH_SIZE`
 */
export function parseProbe(text: string): AnyProbe {
  const watched = /^\s*watch:(?!:)\s*(.*)$/s.exec(text)?.[1];
  return watched === undefined ? parseNames(text) : parseWatch(text, watched);
}

/**
 * Reads a probe that names code: `poll:GLOB`, `fn:GLOB`, `count:GLOB` or `hist(ARG):GLOB`, with a `!` before either part to exclude (see
 * {@link compileGlob} for globs), and `if ARG OP INTEGER` behind functions that are included.
 * @throws RsptraceError `PROBE_SYNTAX`
 */
export function parseNames(text: string): ProbeSpec {
  let rest = text.trim();
  let excludes = false;
  if (rest.startsWith('!')) {
    excludes = true;
    rest = rest.slice(1).trimStart();
  }
  const colon = rest.indexOf(':');
  const [, kind = '', argument] = /^(\w+)(?:\(\s*([^)]*?)\s*\))?\s*$/.exec(rest.slice(0, Math.max(colon, 0))) ?? [];
  if (!isKind(kind) || rest[colon + 1] === ':') {
    const name = rest.replace(/^\w+(?:\([^)]*\))?:(?!:)/, '') || '**';
    throw new RsptraceError(
      'PROBE_SYNTAX',
      `'${text}' is not a probe: it must begin with ${[...Object.keys(everything), 'watch'].join(' or ')} and a colon`,
      {
        hint: `write --probe 'poll:${name}' for Futures, 'fn:${name}' for functions, 'count:${name}' for their calls alone, 'watch:${name}' for a static`,
      },
    );
  }
  let glob = rest.slice(colon + 1).trim();
  if (glob.startsWith('!')) {
    excludes = true;
    glob = glob.slice(1).trimStart();
  }
  const conditional = /^(.*?)(?:^|\s)if(?:\s(.*))?$/s.exec(glob);
  const condition = conditional ? (conditional[2] ?? '').trim() : undefined;
  if (conditional) glob = (conditional[1] ?? '').trim();
  if (glob === '') {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' names nothing after the colon`, {
      hint: `'${kind}:**' is ${everything[kind]}`,
    });
  }
  const wantsArgument = kind === 'hist' && !excludes;
  if (wantsArgument ? !/^\w+$/.test(argument ?? '') : argument !== undefined) {
    const named = argument ? `names '${argument}', which is not one argument` : 'names no argument';
    const what = wantsArgument ? named : 'has brackets, which only hist(ARG) has';
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' ${what}`, {
      hint: `'hist(len):${glob}' counts calls by the size of their argument len, '!hist:${glob}' leaves functions out`,
    });
  }
  if (condition === undefined) return { kind, text, glob, excludes, when: [], argument, matches: compileGlob(glob) };
  if (kind === 'poll' || excludes) {
    throw new RsptraceError(
      'PROBE_SYNTAX',
      `'${text}' has a condition, which only functions that are traced or counted can have`,
      {
        hint: `'${prefix(kind === 'poll' ? 'fn' : kind)}:${glob} if ${condition}' takes those calls`,
      },
    );
  }
  const when = parsePredicates(condition, text, `${prefix(kind, argument)}:${glob}`);
  return { kind, text, glob, excludes, when, argument, matches: compileGlob(glob) };
}

export interface ProbesByKind {
  readonly poll: readonly ProbeSpec[] | undefined;
  readonly fn: readonly ProbeSpec[] | undefined;
  /** Of functions too: what is only counted. */
  readonly count: readonly ProbeSpec[] | undefined;
  readonly hist: readonly ProbeSpec[] | undefined;
  readonly watch: readonly WatchSpec[];
}

/**
 * The probes of each kind that is asked for. Without any that includes, polls are; a kind of which there are only excludes has what
 * they leave of its default, which functions do not have.
 * @throws RsptraceError `PROBE_SYNTAX` when functions are excluded and none are included
 */
export function probesByKind(specs: readonly AnyProbe[]): ProbesByKind {
  const watch = specs.filter((spec) => spec.kind === 'watch');
  const named = specs.filter((spec) => spec.kind !== 'watch');
  const of = (kind: ProbeKind): readonly ProbeSpec[] | undefined => {
    const specs = named.filter((spec) => spec.kind === kind);
    return specs.length > 0 ? specs : undefined;
  };
  const [fn, count, hist] = [of('fn'), of('count'), of('hist')];
  for (const functions of [fn, count, hist]) {
    const [first] = functions ?? [];
    if (first && functions?.every(({ excludes }) => excludes)) {
      throw new RsptraceError('PROBE_SYNTAX', `'${first.text}' leaves functions out, but none are asked for`, {
        hint: `add --probe '${prefix(first.kind, 'ARG')}:**' for all functions, or a part of them`,
      });
    }
  }
  const others = fn ?? count ?? hist ?? (watch.length > 0 ? watch : undefined);
  return { poll: of('poll') ?? (others ? undefined : []), fn, count, hist, watch };
}

/**
 * What a list of probes lets through: matched by one that includes (or by `otherwise`, when none includes), and by none that
 * excludes. Each path is one of a thing's names; any of them may match.
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
