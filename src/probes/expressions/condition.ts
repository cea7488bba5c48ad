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

const operators: Readonly<Record<string, Condition['op']>> = {
  '==': 'eq',
  '!=': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
};

const number = /^(-?)(0x[\da-f][\da-f_]*|0b[01][01_]*|0o[0-7][0-7_]*|\d[\d_]*)$/i;
const character = /^'(?:\\([nrt0\\'])|\\u\{([\da-f]{1,6})\}|([^'\\]))'$/iu;
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
  return text.split('||').map((all) =>
    all.split('&&').map((part) => {
      const [, left = '', op = '', right = ''] = comparison.exec(part.trim()) ?? [];
      const known = operators[op];
      const literal = parseLiteral(right);
      const isOrdered = op !== '==' && op !== '!=';
      if (known === undefined || literal === undefined || (isOrdered && literal.kind === 'variant'))
        throw noComparison(part, probe, bare);
      const expression = parseMemberExpr(left);
      if (expression.kind === 'number') throw noComparison(part, probe, bare);
      return { text: left.trim(), expression, op: known, literal };
    }),
  );
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
  return new RsptraceError('PROBE_SYNTAX', `'${part.trim()}' in '${probe}' is not a comparison with a constant`, {
    hint: `write '${bare} if len > 100', with one of ${Object.keys(operators).join(' ')}, and && or || between several`,
  });
}
