// The language of member expressions; what they mean is tested on running programs (value-std.test.ts, qemu/values.test.ts).
import fc from 'fast-check';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { type MemberExpr, parseMemberExpr, textOf } from '../../src/values/member-expr.js';

t.test('a number has 128 bits at most, however it is written', async (t) => {
  const most = 2n ** 128n - 1n;
  for (const text of [`${most}`, `0x${most.toString(16)}`, `0b${most.toString(2)}`, `0o${most.toString(8)}`]) {
    t.same(parseMemberExpr(text), { kind: 'number', value: most });
    t.throws(() => parseMemberExpr(`${text}0`), { code: 'EXPRESSION_SYNTAX', message: /more than 128 bits/ });
  }
  t.throws(() => parseMemberExpr(`${most + 1n}`), { code: 'EXPRESSION_SYNTAX' });
});

t.test('how expressions are read', async (t) => {
  const read: Readonly<Record<string, string>> = {
    'self.header.id.0': 'self.header.id.0',
    't.0.1': 't.0.1',
    '(*p).next': '(*p).next',
    '*p.next': '(*p.next)',
    'p->next->next': '(*(*p).next).next',
    'a[3][i]': 'a[3][i]',
    'a[1..b.len]': 'a[1..b.len]',
    'a[..2]': 'a[..2]',
    'a[1..]': 'a[1..]',
    '&x': '&x',
    '&mut x.y': '&x.y',
    '-5': '-5',
    '0x1F': '31',
    '1_000u64': '1000',
    'p as *const T': '(p as *const T)',
    'p as *mut *const a::T as usize': '((p as *mut *const a::T) as usize)',
    '&x as *const [u8; 4]': '(&x as *const [u8; 4])',
    'x as &[u8]': '(x as &[u8])',
    'x as &dyn a::Trait': '(x as &dyn a::Trait)',
    '(T*)x.y': '(x.y as *mut T)',
    '(struct a_b **)x': '(x as *mut *mut a_b)',
    '(x)': 'x',
    '(a::B)': 'a::B',
    '::a::b::C': 'a::b::C',
    'a::{impl#0}::S': 'a::{impl#0}::S',
    'v as *const Vec<(u64, &str), alloc::alloc::Global>': '(v as *const Vec<(u64, &str), alloc::alloc::Global>)',
    assembly: 'assembly',
    'x.as_': 'x.as_',
  };
  for (const [text, wanted] of Object.entries(read)) t.equal(textOf(parseMemberExpr(text)), wanted, text);
});

t.test('what is no expression is refused, with the place', async (t) => {
  for (const text of [
    '',
    ' ',
    'a.',
    'a[',
    'a[]',
    'a[1',
    'a b',
    '1 +',
    '*',
    '&',
    '(a',
    'a)',
    'a as',
    'a as *T',
    'a::',
    'f(1)',
    'a..b',
    '<a',
    '0x',
    '"s"',
  ]) {
    t.throws(() => parseMemberExpr(text), { code: 'EXPRESSION_SYNTAX' }, text);
  }
  t.throws(() => parseMemberExpr('a.b.!'), { message: /at '!'/ });
  for (const deep of [
    '('.repeat(2000),
    '*'.repeat(2000),
    `a${'.b'.repeat(2000)}`,
    `a${'[a'.repeat(1000)}`,
    'a'.repeat(5000),
  ]) {
    t.throws(() => parseMemberExpr(deep), { code: 'EXPRESSION_SYNTAX' });
  }
});

t.test('any text is read or refused', async () => {
  const piece = fc.constantFrom(
    ...['a', 'self', '0', '12', '0x1f', '.', '..', '->', '*', '&', 'mut ', ' as ', 'const ', '(', ')', '[', ']', '::'],
    ...['<', '>', '{', '}', '#', ',', ';', '-', 'T', 'dyn ', 'struct ', ' ', 'ß', '\u{1f600}'],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      let expression: MemberExpr;
      try {
        expression = parseMemberExpr(pieces.join(''));
      } catch (error) {
        return error instanceof RsptraceError;
      }
      // What was read says the same when it is written and read again.
      return textOf(parseMemberExpr(textOf(expression))) === textOf(expression);
    }),
    { seed: 3, numRuns: 20_000 },
  );
});
