// What records have of an object: the planned bytes in their places, and the same object for the same bytes.
import fc from 'fast-check';
import t from 'tap';
import { type PlacedLoad, RecordReadings } from '../../src/inject/record-readings.js';

const recordBytes = 64;
/** Loads that lie apart in the record, as those behind the id and those behind the registers do. */
const loads: readonly PlacedLoad[] = [
  { offset: 40, size: 1, at: 12 },
  { offset: 42, size: 2, at: 14 },
  { offset: 0, size: 8, at: 40 },
  { offset: 41, size: 1, at: 48 },
];
const wanted = new Set(loads.flatMap(({ at, size }) => Array.from({ length: size }, (_, i) => at + i)));

function read(readings: RecordReadings, record: Uint8Array) {
  // Records lie anywhere in a ring.
  const ring = new Uint8Array(3 * recordBytes);
  ring.set(record, recordBytes);
  return readings.read(new DataView(ring.buffer, 8), recordBytes - 8, 48);
}

t.test('every planned byte is at its offset, and ones are elsewhere, which are no state of a Future', async (t) => {
  const readings = new RecordReadings(loads);
  fc.assert(
    fc.property(fc.uint8Array({ minLength: recordBytes, maxLength: recordBytes }), (record) => {
      const expected = new Uint8Array(48).fill(0xff);
      for (const { offset, size, at } of loads) expected.set(record.subarray(at, at + size), offset);
      return Buffer.compare(read(readings, record).bytes, expected) === 0;
    }),
  );
  t.pass();
});

t.test('what lies between the loads makes no difference, each byte of a load does', async (t) => {
  const readings = new RecordReadings(loads);
  const record = Uint8Array.from({ length: recordBytes }, (_, i) => i);
  for (let at = 0; at < recordBytes; at++) {
    const first = read(readings, record);
    const other = record.slice();
    other[at] = 200;
    t.equal(read(readings, other) !== first, wanted.has(at), `byte ${at}`);
  }
  t.equal(read(new RecordReadings([]), record).bytes.length, 48, 'nothing planned is no load');
});
