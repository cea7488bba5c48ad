import t from 'tap';
import { ProtoBuffer, putFixed64, putVarint, varintLength } from '../../../../src/trace/formats/perfetto/protobuf.js';
import { children } from '../../decode-perfetto.js';
import { decode } from '../../written.js';

t.test('varints and lengths are what protoc reads', async (t) => {
  const numbers = [
    0,
    1,
    127,
    128,
    16_383,
    16_384,
    2 ** 28 - 1,
    2 ** 28,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 49 + 5,
    Number.MAX_SAFE_INTEGER,
  ];
  const wide = [0n, 127n, 128n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n, 0xffff_ffff_8041_2340n];
  const texts = [
    '',
    'x'.repeat(127),
    'x'.repeat(128),
    'é'.repeat(8191),
    'é'.repeat(8192),
    '€\n"\\\u{1f980}',
    'x'.repeat(2_097_152),
  ];
  const buffer = new ProtoBuffer(1);
  for (const text of texts) {
    // A string inside three messages: every length that depends on another is tried on both sides of a varint's width.
    const packet = buffer.open(1);
    const event = buffer.open(11);
    const note = buffer.open(4);
    buffer.text(6, text);
    for (const mark of [note, event, packet]) buffer.close(mark);
  }
  for (const value of numbers) {
    const packet = buffer.open(1);
    buffer.uint(8, value);
    buffer.close(packet);
  }
  for (const value of wide) {
    const packet = buffer.open(1);
    const event = buffer.open(11);
    const note = buffer.open(4);
    buffer.uint64(7, value);
    for (const mark of [note, event, packet]) buffer.close(mark);
  }
  const packets = decode(buffer.bytes.subarray(0, buffer.length));
  const notes = packets.flatMap((p) => children(p, 'track_event')).flatMap((e) => children(e, 'debug_annotations'));
  t.same(
    notes.flatMap((note) => note.string_value ?? []),
    texts,
  );
  t.same(
    notes.flatMap((note) => note.pointer_value ?? []),
    wide.map(String),
  );
  t.same(
    packets.flatMap((packet) => packet.timestamp ?? []),
    numbers.map(String),
  );
  t.throws(() => buffer.uint(8, -1), RangeError);
  t.throws(() => buffer.uint(8, Number.NaN), RangeError);
  buffer.clear();
  t.equal(buffer.length, 0);
});

t.test('a varint has as many bytes as it was said to have: seven bits a byte', async (t) => {
  for (let bits = 0; bits <= 53; bits++)
    for (const value of [2 ** bits - 1, 2 ** bits, 2 ** bits + 1]) {
      if (value > Number.MAX_SAFE_INTEGER) continue;
      const expected = Math.max(1, Math.ceil(value.toString(2).length / 7));
      t.same([varintLength(value), putVarint(new Uint8Array(12), 2, value)], [expected, 2 + expected], `${value}`);
    }
});

t.test('fields of eight bytes, and fields that are copied', async (t) => {
  const buffer = new ProtoBuffer(1);
  for (const value of [0, 1, 2 ** 32 - 1, 2 ** 32, 0x12_3456_789a_bcde]) {
    const bytes = Buffer.alloc(9);
    t.equal(putFixed64(bytes, 0, 3, value), 9);
    // The tag: number 3, wire type 1.
    t.same([bytes[0], bytes.readBigUInt64LE(1)], [0x19, BigInt(value)]);
  }
  buffer.clear();
  buffer.double(16, -1.5);
  const view = new DataView(buffer.bytes.buffer, buffer.bytes.byteOffset);
  t.same([buffer.length, view.getUint8(0), view.getUint8(1), view.getFloat64(2, true)], [10, 0x81, 1, -1.5]);

  const other = new ProtoBuffer(1);
  other.bool(1, true);
  other.bool(2, false);
  t.same([...other.bytes.subarray(0, other.length)], [8, 1, 16, 0]);
  for (let i = 0; i < 100; i++) {
    buffer.append(other);
    buffer.raw(Uint8Array.of(24, 5));
  }
  t.equal(buffer.length, 10 + 600);
  t.same([...buffer.bytes.subarray(604, 610)], [8, 1, 16, 0, 24, 5]);
  t.equal(other.length, 4, 'what was copied is left as it was');
});
