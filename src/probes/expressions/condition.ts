// The language of conditions, around that of member expressions (values/member-expr.ts):
//
//   condition  := all { '||' all }
//   all        := comparison { '&&' comparison }
//   comparison := expr ('==' | '!=' | '<' | '<=' | '>' | '>=') literal
//   literal    := [ '-' ] number | 'true' | 'false' | character | variant
//
// A variant stands with == and != alone.
import type { Condition } from '../../arch/index.js';
import { RsptraceError } from '../../base/errors.js';
import { type MemberExpr, parseMemberExpr } from '../../values/index.js';

/** What a value is compared with. */
export type Literal =
  | { readonly kind: 'number'; readonly value: bigint }
  | { readonly kind: 'variant'; readonly name: string };

/** `self.len > 100`. */
export interface Comparison {
  /** The expression as it was written. */
  readonly text: string;
  readonly expression: MemberExpr;
  readonly op: Condition['op'];
  readonly literal: Literal;
}

export const operators: Readonly<Record<string, Condition['op']>> = {
  '==': 'eq',
  '!=': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
};

const number = /^(-?)(0x[\da-f][\da-f_]*|0b[01][01_]*|0o[0-7][0-7_]*|\d[\d_]*)$/i;
const character = /^'(?:\\([nrt0\\'])|\\u\{((?:10|0?[\da-fA-F])?[\da-fA-F]{1,4})\}|([^'\\]))'$/u;
const variant = /^(?:[\p{L}_][\p{L}\p{N}_]*::)*([\p{L}_][\p{L}\p{N}_]*)$/u;
const escapes: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, 0: 0, '\\': 92, "'": 39 };

/** No literal has an operator in it, so the last operator is the one that compares. */
const comparison = /^(.+?)\s*(==|!=|<=|>=|<|>)\s*('(?:\\.|\\u\{[^}]*\}|[^'\\])'|[^<>=!\s]+)$/su;

/**
 * Parses the text behind `if` in a probe. All comparisons of a list hold, in at least one of the lists. `bare` is the
 * probe without its condition.
 * @throws RsptraceError `PROBE_SYNTAX`, `EXPRESSION_SYNTAX`
 */
export function parseCondition(text: string, probe: string, bare: string): Comparison[][] {
  return eachComparison(text, (part) => {
    const [, left = '', op = '', right = ''] = comparison.exec(part) ?? [];
    const known = operators[op];
    const literal = parseLiteral(right);
    const isOrdered = op !== '==' && op !== '!=';
    if (known === undefined || literal === undefined || (isOrdered && literal.kind === 'variant'))
      throw noComparison(part, probe, bare);
    const expression = parseMemberExpr(left);
    if (expression.kind === 'number') throw noComparison(part, probe, bare);
    return { text: left.trim(), expression, op: known, literal };
  });
}

/** What stands in quotes; what is between comparisons; else a letter, also a quote that nothing ends. */
const tokens = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\|\||&&|./gsu;

/** The comparisons of a condition, as what becomes of each: those of one list hold together. */
export function eachComparison<T>(text: string, made: (part: string) => T): T[][] {
  const lists = [['']];
  for (const token of text.match(tokens) ?? []) {
    const list = lists.at(-1) as string[];
    if (token === '||') lists.push(['']);
    else if (token === '&&') list.push('');
    else list.push(`${list.pop()}${token}`);
  }
  return lists.map((list) => list.map((part) => made(part.trim())));
}

const tests: Readonly<Record<Condition['op'], (isLess: boolean, isMore: boolean) => boolean>> = {
  eq: (isLess, isMore) => !isLess && !isMore,
  ne: (isLess, isMore) => isLess || isMore,
  lt: (isLess) => isLess,
  le: (_, isMore) => !isMore,
  gt: (_, isMore) => isMore,
  ge: (isLess) => !isLess,
};

/** Whether two numbers compare so. A bigint and a number of the same value are equal. */
export function compares(op: Condition['op'], left: number | bigint, right: number | bigint): boolean {
  return tests[op](left < right, left > right);
}

function parseLiteral(text: string): Literal | undefined {
  if (text === 'true' || text === 'false') return { kind: 'number', value: text === 'true' ? 1n : 0n };
  const [, sign, digits] = number.exec(text) ?? [];
  if (digits !== undefined) {
    const value = BigInt(digits.replaceAll('_', '').toLowerCase());
    return { kind: 'number', value: sign === '-' ? -value : value };
  }
  const [quoted, escaped, code, plain] = character.exec(text) ?? [];
  if (quoted !== undefined) {
    const point = escaped !== undefined ? escapes[escaped] : code !== undefined ? Number.parseInt(code, 16) : undefined;
    return { kind: 'number', value: BigInt(point ?? plain?.codePointAt(0) ?? 0) };
  }
  const name = variant.exec(text)?.[1];
  return name === undefined ? undefined : { kind: 'variant', name };
}

function noComparison(part: string, probe: string, bare: string): RsptraceError {
  return new RsptraceError('PROBE_SYNTAX', `'${part}' in '${probe}' is not a comparison with a constant`, {
    hint: `write '${bare} if len > 100', with one of ${Object.keys(operators).join(' ')}, and && or || between several`,
  });
}
