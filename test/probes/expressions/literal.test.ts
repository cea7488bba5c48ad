// What a comparison with a literal holds for. The shapes are written by hand, as rustc's DWARF has them.
import fc from 'fast-check';
import t from 'tap';
import { meaningOf, scalarOf } from '../../../src/probes/expressions/literal.js';
import type { Shape, ShapeKind } from '../../../src/values/shape.js';
import { scalarValue } from '../../../src/values/value.js';

const shape = (kind: ShapeKind, name = 'T', size: number | undefined = 8): Shape => ({
  ...kind,
  name,
  size,
  die: undefined,
});
const integer = (signed: boolean, size = 8): Shape => shape({ kind: 'integer', signed, character: false }, 'i64', size);
const number = (value: bigint) => ({ kind: 'number', value }) as const;
const word = (name: string) => ({ kind: 'variant', name }) as const;

const one = (value: bigint) => [{ low: value, high: value }];
const enumOf = (variants: Readonly<Record<string, readonly { low: bigint; high: bigint }[] | undefined>>): Shape =>
  shape({
    kind: 'enum',
    short: '',
    discriminant: { offset: 4, size: 1 },
    fields: [],
    variants: Object.entries(variants).map(([name, values]) => ({ name, values, fields: () => [] })),
  });

const names = new Map([
  [0n, 'Idle'],
  [1n, 'kern::Mode::Busy'],
]);
const plain = shape({ kind: 'enumeration', names, signed: false }, 'Mode', 1);

t.test('where the number is that is compared', async (t) => {
  t.same(scalarOf(integer(true, 4)), { offset: 0, size: 4, signed: true });
  t.same(scalarOf(integer(false, 16)), { offset: 0, size: 16, signed: false });
  t.same(scalarOf(plain), { offset: 0, size: 1, signed: false });
  t.same(scalarOf(shape({ kind: 'enumeration', names, signed: true })), { offset: 0, size: 8, signed: true });
  for (const kind of [{ kind: 'bool' }, { kind: 'char' }] as const)
    t.same(scalarOf(shape(kind, 'T', 4)), { offset: 0, size: 4, signed: false });
  const pointer = shape({ kind: 'pointer', style: 'ref', target: () => undefined });
  t.same(scalarOf(pointer), { offset: 0, size: 8, signed: false });
  t.same(scalarOf(enumOf({ A: one(0n) })), { offset: 4, size: 1, signed: false });
});

t.test('what is no number has none', async (t) => {
  const single = shape({ kind: 'enum', short: '', discriminant: undefined, fields: [], variants: [] });
  const wide = shape({ kind: 'integer', signed: false, character: false }, 'u256', 32);
  const unsized = { ...integer(true), size: undefined };
  for (const none of [shape({ kind: 'float' }), shape({ kind: 'unit' }), single, wide, unsized]) {
    t.equal(scalarOf(none), undefined, none.kind);
    t.throws(() => meaningOf(number(1n), 'eq', none, 'self.x'), {
      code: 'EXPRESSION_TYPE',
      message: /^self\.x is a .*: no integer, bool, char or enum$/,
    });
  }
});

const holds = {
  eq: (a: bigint, b: bigint) => a === b,
  ne: (a: bigint, b: bigint) => a !== b,
  lt: (a: bigint, b: bigint) => a < b,
  le: (a: bigint, b: bigint) => a <= b,
  gt: (a: bigint, b: bigint) => a > b,
  ge: (a: bigint, b: bigint) => a >= b,
} as const;
const ops = Object.keys(holds) as (keyof typeof holds)[];

t.test('numbers are compared as they are', async (t) => {
  const near = fc.bigInt({ min: -3n, max: 3n });
  fc.assert(
    fc.property(fc.constantFrom(...ops), near, near, (op, found, wanted) => {
      const { accepts, target } = meaningOf(number(wanted), op, integer(true), 'x');
      return accepts(found) === holds[op](found, wanted) && target?.op === op && target.value === wanted;
    }),
  );
  t.pass();
});

t.test('an enum without members: by the whole name, or its end', async (t) => {
  for (const [name, value] of [
    ['Idle', 0n],
    ['Busy', 1n],
    ['Mode::Busy', 1n],
    ['kern::Mode::Busy', 1n],
  ] as const)
    for (const op of ['eq', 'ne'] as const) {
      const { accepts, target } = meaningOf(word(name), op, plain, 'mode');
      t.same(target, { op, value });
      t.same([accepts(0n), accepts(1n)], [holds[op](0n, value), holds[op](1n, value)], `${op} ${name}`);
    }
  t.throws(() => meaningOf(word('Idel'), 'eq', plain, 'mode'), {
    code: 'EXPRESSION_TYPE',
    message: 'mode, a Mode, has no variant Idel',
    hint: 'did you mean Idle? its variants: Idle, kern::Mode::Busy',
  });
});

t.test('an enum without members whose numbers are below zero', async (t) => {
  const level = shape(
    {
      kind: 'enumeration',
      names: new Map([
        [0xffn, 'Low'],
        [0n, 'Mid'],
      ]),
      signed: true,
    },
    'Level',
    1,
  );
  for (const byte of [0xff, 0, 1]) {
    const value = scalarValue(level, Uint8Array.of(byte));
    const found = BigInt.asIntN(8, BigInt(byte));
    const isLow = value.kind === 'enumerator' && value.name === 'Low';
    t.equal(isLow, byte === 0xff);
    t.equal(meaningOf(word('Low'), 'eq', level, 'x').accepts(found), isLow);
    t.equal(meaningOf(word('Low'), 'ne', level, 'x').accepts(found), !isLow);
  }
  // As a trampoline compares it, with its sign.
  t.same(meaningOf(word('Low'), 'eq', level, 'x').target, { op: 'eq', value: -1n });
});

t.test('a variant holds for its own numbers, and for no other', async (t) => {
  // What rustc writes: numbers, ranges of them, and a variant that has all that are left.
  const range = fc.tuple(fc.nat(6), fc.nat(2));
  const numbered = fc.array(fc.oneof(range), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(numbered, numbered, fc.boolean(), fc.constantFrom('eq', 'ne'), (first, second, rest, op) => {
      const owner = new Map<bigint, string>();
      const take = (name: string, offset: number, ranges: [number, number][]) => {
        const taken = ranges.map(([low, more]) => ({ low: BigInt(offset + low), high: BigInt(offset + low + more) }));
        for (const { low, high } of taken) for (let at = low; at <= high; at++) owner.set(at, name);
        return taken;
      };
      const variants = { A: take('A', 0, first), B: take('B', 10, second), ...(rest && { C: undefined }) };
      if (rest) for (let at = 0n; at < 22n; at++) if (!owner.has(at)) owner.set(at, 'C');
      for (const name of Object.keys(variants)) {
        const { accepts, target } = meaningOf(word(name), op, enumOf(variants), 'state');
        for (const [value, is] of owner) {
          const wanted = (is === name) === (op === 'eq');
          if (accepts(value) !== wanted) return false;
          if (target && holds[target.op as 'eq'](value, target.value) !== wanted) return false;
        }
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.pass();
});

t.test('one comparison in the target, where one tells the variant', async (t) => {
  const targetOf = (op: 'eq' | 'ne', name: string, of: Shape) => meaningOf(word(name), op, of, 'x').target;
  const option = enumOf({ None: one(0n), Some: undefined });
  t.same(targetOf('eq', 'None', option), { op: 'eq', value: 0n });
  t.same(targetOf('ne', 'None', option), { op: 'ne', value: 0n });
  t.same(targetOf('eq', 'Some', option), { op: 'ne', value: 0n });
  t.same(targetOf('ne', 'Some', option), { op: 'eq', value: 0n });
  const ranges = enumOf({ A: [{ low: 0n, high: 2n }], B: undefined });
  t.equal(targetOf('eq', 'A', ranges), undefined, 'a range of numbers');
  t.equal(targetOf('eq', 'B', ranges), undefined, 'whatever is outside of a range');
  const two = enumOf({ A: [...one(0n), ...one(2n)], B: undefined });
  t.equal(targetOf('eq', 'A', two), undefined, 'two numbers');
  const three = enumOf({ A: one(0n), B: one(1n), C: undefined });
  t.equal(targetOf('eq', 'C', three), undefined, 'two other variants');
  t.same(targetOf('eq', 'B', three), { op: 'eq', value: 1n });
});

t.test('what does not go together', async (t) => {
  const option = enumOf({ None: one(0n), Some: undefined });
  t.throws(() => meaningOf(number(0n), 'eq', option, 'x'), {
    code: 'EXPRESSION_TYPE',
    message: 'x is a T: it is compared with one of its variants',
    hint: 'its variants: None, Some',
  });
  t.throws(() => meaningOf(word('Somme'), 'eq', option, 'x'), {
    code: 'EXPRESSION_TYPE',
    message: 'x, a T, has no variant Somme',
    hint: 'did you mean Some? its variants: None, Some',
  });
  t.throws(() => meaningOf(word('Some'), 'eq', integer(true), 'x'), {
    code: 'EXPRESSION_TYPE',
    message: 'x is a i64, which has no variant Some',
    hint: undefined,
  });
  const many = enumOf(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`V${i}`, one(BigInt(i))])));
  t.throws(() => meaningOf(number(0n), 'eq', many, 'x'), { code: 'EXPRESSION_TYPE', hint: /V19$/ });
});
