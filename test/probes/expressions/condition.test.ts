// The language of conditions: whatever is written down is read as it was meant, and nothing else throws anything but an error for the user.
import fc from 'fast-check';
import t from 'tap';
import { RsptraceError } from '../../../src/base/errors.js';
import { parseCondition } from '../../../src/probes/expressions/condition.js';
import { textOf } from '../../../src/values/member-expr.js';

const parse = (text: string) => parseCondition(text, `fn:a if ${text}`, 'fn:a');

const symbols = { '==': 'eq', '!=': 'ne', '<': 'lt', '<=': 'le', '>': 'gt', '>=': 'ge' } as const;

const name = fc
  .stringMatching(/^[a-z_][a-z0-9_]{0,6}$/)
  .filter((word) => !['as', 'mut', 'true', 'false'].includes(word));
/** As written, and as it is meant. */
const expression = fc.letrec<{ expr: string }>((tie) => ({
  expr: fc.oneof(
    { weight: 3, arbitrary: name },
    fc.tuple(tie('expr'), name).map(([of, member]) => `${of}.${member}`),
    fc.tuple(tie('expr'), fc.nat(99)).map(([of, index]) => `${of}[${index}]`),
    fc.tuple(name, name).map(([of, member]) => `${of}::${member.toUpperCase()}`),
    fc.tuple(tie('expr'), name).map(([of, member]) => `(*${of}).${member}`),
    name.map((of) => `${of}::Vec<u8>::LEN`),
  ),
})).expr;
const space = fc.constantFrom('', ' ', '  ');
const literal = fc.oneof(
  fc.bigInt({ min: -(1n << 64n), max: 1n << 64n }).map((value) => ({ text: `${value}`, means: value })),
  fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }).map((value) => ({ text: `0x${value.toString(16)}`, means: value })),
  fc.constantFrom(true, false).map((value) => ({ text: `${value}`, means: value ? 1n : 0n })),
  fc
    .constantFrom('a', '=', '<', '0', 'é', '|', '"')
    .map((value) => ({ text: `'${value}'`, means: BigInt(value.codePointAt(0) ?? 0) })),
);
const comparison = fc.oneof(
  fc.record({ left: expression, op: fc.constantFrom(...Object.keys(symbols)), literal, space }),
  fc.record({
    left: expression,
    op: fc.constantFrom('==', '!='),
    literal: name.map((word) => ({ text: `State::${word}X`, means: `${word}X` })),
    space,
  }),
);

const again = (left: string) => parse(`${left} == 1`)[0]?.[0]?.expression ?? { kind: 'number', value: 0n };
const big = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value);

t.test('what is written is read', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(comparison, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
      (lists) => {
        const text = lists
          .map((all) =>
            all.map(({ left, op, literal: { text: right }, space: s }) => `${left}${s}${op}${s}${right}`).join(' && '),
          )
          .join('||');
        const read = parse(text);
        const found = read.map((all) =>
          all.map(({ text: left, op, literal: right }) => [left, op, 'value' in right ? right.value : right.name]),
        );
        const wanted = lists.map((all) =>
          all.map(({ left, op, literal: { means } }) => [left, symbols[op as keyof typeof symbols], means]),
        );
        const same = JSON.stringify(found, big) === JSON.stringify(wanted, big);
        // An expression's own text is read as the same expression.
        return same && read.flat().every(({ expression: e, text: left }) => textOf(e) === textOf(again(left)));
      },
    ),
    { seed: 11, numRuns: 1000 },
  );
});

t.test('whatever else comes is an error for the user', async () => {
  const pieces = fc.constantFrom(
    'a',
    '.',
    '==',
    '<',
    '>',
    '&&',
    '||',
    '3',
    "'",
    '(',
    ')',
    '[',
    ']',
    '*',
    '::',
    '-',
    ' ',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces, { maxLength: 12 }).map((all) => all.join('')),
      ),
      (text) => {
        try {
          parse(text);
        } catch (error) {
          return error instanceof RsptraceError && /^(?:PROBE|EXPRESSION)_SYNTAX$/.test(error.code);
        }
        return true;
      },
    ),
    { seed: 12, numRuns: 3000 },
  );
});

t.test('characters, spelt as in Rust', async (t) => {
  for (const [text, code] of [
    ["'\\n'", 10n],
    ["'\\''", 39n],
    ["'\\\\'", 92n],
    ["'\\u{1f600}'", 0x1f600n],
    ["'\\u{10FFFF}'", 0x10ffffn],
    ["'\\u{00006e}'", 110n],
    ["'😀'", 0x1f600n],
  ] as const)
    t.match(parse(`c == ${text}`), [[{ literal: { value: code } }]], text);
  t.throws(() => parse('c == a > 3'), { code: 'EXPRESSION_SYNTAX' });
  for (const wrong of ["'\\N'", "'\\T'", "'\\R'", "'\\U{41}'", "'\\u{110000}'"])
    t.throws(() => parse(`c == ${wrong}`), { code: 'PROBE_SYNTAX' }, wrong);
  for (const wrong of ['c < Running', "c == ''", "c == 'ab'", '3 == 3', 'c ==', '== 3', 'c == 3 ||'])
    t.throws(() => parse(wrong), { code: 'PROBE_SYNTAX', hint: /^write 'fn:a if len > 100'/ }, wrong);
});
