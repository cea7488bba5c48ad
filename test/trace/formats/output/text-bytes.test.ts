// What is composed as bytes, against the same made of strings.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { visible } from '../../../../src/text/visible.js';
import { encoded, TextBytes } from '../../../../src/trace/formats/output/text-bytes.js';

const text = fc.string({ unit: 'binary' });
const long = fc.string({ unit: 'grapheme', minLength: 0, maxLength: 6000 });
const number = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(0, 9, 10, 999_999_999, 1e9, 2 ** 53 - 1));
const part = fc.oneof(
  fc.record({ kind: fc.constantFrom('text', 'visible', 'piece') as fc.Arbitrary<string>, value: fc.oneof(text, long) }),
  fc.record({ kind: fc.constantFrom('number', 'padded', 'right', 'micros', 'millis'), value: number }),
);

function put(into: TextBytes, kind: string, value: string | number): string {
  if (typeof value === 'string') {
    if (kind === 'text') into.text(value);
    else if (kind === 'visible') into.visible(value);
    else into.piece(encoded(value));
    return kind === 'visible' ? visible(value) : Buffer.from(value).toString();
  }
  if (kind === 'number') into.number(value);
  else if (kind === 'padded') into.padded(value, 6);
  else if (kind === 'right') into.right(value, 6);
  else if (kind === 'millis') into.millis(value);
  else into.micros(value, 13);
  if (kind === 'padded') return String(value).padStart(6, '0');
  if (kind === 'right') return String(value).padStart(6);
  if (kind === 'micros') return `${Math.floor(value / 1000)}.${String(value % 1000).padStart(3, '0')}`.padStart(13);
  if (kind === 'millis') return milliseconds(BigInt(value));
  return String(value);
}

function milliseconds(nanos: bigint): string {
  return `${nanos / 1_000_000n}.${String(nanos % 1_000_000n).padStart(6, '0')}`.replace(/\.?0+$/, '');
}

t.test('text and numbers are those of strings, in place or in a buffer of its own', async (t) => {
  const bytes = new TextBytes();
  const memory = new Uint8Array(600);
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.boolean(), (parts, isInPlace) => {
      memory.fill(7);
      if (isInPlace) bytes.startIn(memory, 100, 500);
      else bytes.startAlone();
      const expected = parts.map(({ kind, value }) => put(bytes, kind, value)).join('');
      assert.equal(bytes.toString(), expected);
      // Nothing is written past the room that was given.
      assert.ok(memory.subarray(0, 100).every((byte) => byte === 7));
      assert.ok(memory.subarray(500).every((byte) => byte === 7));
    }),
    { seed: 17, numRuns: 300 },
  );
  t.pass();
});

t.test('a text that is not plain leaves nothing behind', async (t) => {
  const bytes = new TextBytes();
  bytes.startAlone();
  bytes.byte(0x3d);
  t.notOk(bytes.plainJson('a"b'));
  t.notOk(bytes.plain('a,b', 0x2c, 0x22));
  t.notOk(bytes.plain('é', 0, 0));
  t.equal(bytes.toString(), '=');
  t.ok(bytes.plainJson("it's, plain"));
  t.equal(bytes.toString(), '="it\'s, plain"');
  t.notOk(bytes.plainQuoted('a"b, c'));
  t.ok(bytes.plainQuoted('a\\b, c'), 'a backslash is plain outside of JSON');
  t.equal(bytes.toString(), '="it\'s, plain""a\\b, c"');
});
