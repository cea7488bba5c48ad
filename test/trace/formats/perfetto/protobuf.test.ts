import t from 'tap';
import { ProtoBuffer } from '../../../../src/trace/formats/perfetto/protobuf.js';
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
