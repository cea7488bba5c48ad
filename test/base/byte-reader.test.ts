import fc from 'fast-check';
import t from 'tap';
import { addOffset, addr, hex } from '../../src/base/addr.js';
import { ByteReader } from '../../src/base/byte-reader.js';

const reader = (...bytes: number[]): ByteReader => new ByteReader(Uint8Array.from(bytes), '.test');

t.test('LEB128: the examples of DWARF 5, tables 7.7 and 7.8', async (t) => {
  const unsigned: [number, number[]][] = [
    [2, [0x02]],
    [127, [0x7f]],
    [128, [0x80, 0x01]],
    [129, [0x81, 0x01]],
    [12857, [0xb9, 0x64]],
  ];
  for (const [value, bytes] of unsigned) {
    t.equal(reader(...bytes).uleb(), value);
    t.equal(reader(...bytes).uleb64(), BigInt(value));
  }
  const signed: [number, number[]][] = [
    [2, [0x02]],
    [-2, [0x7e]],
    [127, [0xff, 0x00]],
    [-127, [0x81, 0x7f]],
    [128, [0x80, 0x01]],
    [-128, [0x80, 0x7f]],
    [129, [0x81, 0x01]],
    [-129, [0xff, 0x7e]],
  ];
  for (const [value, bytes] of signed) {
    t.equal(reader(...bytes).sleb(), value);
    t.equal(reader(...bytes).sleb64(), BigInt(value));
  }
});

function encode(value: bigint, signed: boolean): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; ) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    const last = signed ? (rest === 0n && low < 0x40) || (rest === -1n && low >= 0x40) : rest === 0n;
    bytes.push(last ? low : low | 0x80);
    if (last) return bytes;
  }
}

t.test('LEB128: every 64-bit value comes back', async () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      (value) => reader(...encode(value, false)).uleb64() === value,
    ),
    { seed: 3, numRuns: 1000 },
  );
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      (value) => reader(...encode(value, true)).sleb64() === value,
    ),
    { seed: 3, numRuns: 1000 },
  );
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => reader(...encode(BigInt(value), true)).sleb() === value),
    { seed: 3, numRuns: 1000 },
  );
});

t.test('numbers past 2^53 are refused where a number is asked for', async (t) => {
  t.throws(() => reader(...encode(2n ** 53n, false)).uleb(), { code: 'INPUT_RANGE' });
  t.throws(() => reader(...encode(-(2n ** 60n), true)).sleb(), { code: 'INPUT_RANGE' });
  t.throws(() => reader(0, 0, 0, 0, 0, 0, 0x20, 0).u64n(), { code: 'INPUT_RANGE' });
  t.equal(reader(255, 255, 255, 255, 255, 255, 0x1f, 0).u64n(), Number.MAX_SAFE_INTEGER);
  t.throws(() => reader(...new Array(40).fill(0x80), 1).uleb(), { code: 'INPUT_RANGE' }, 'endless continuation');
});

t.test('a read past the end names the section, the offset and what was wanted', async (t) => {
  const r = reader(1, 2, 3);
  r.u8();
  t.throws(() => r.u32(), { code: 'INPUT_TRUNCATED', message: /^\.test .*u32 at offset 0x1/ });
  t.equal(r.offset, 1, 'and does not move');
  t.throws(() => reader(65, 66).cstr(), { code: 'INPUT_TRUNCATED' });
  t.throws(() => new ByteReader(new Uint8Array(4), '.test', 5), { code: 'INPUT_TRUNCATED' });
  t.throws(() => reader(1).take(-1), { code: 'INPUT_TRUNCATED' });
  t.throws(() => reader(0x80).uleb(), { code: 'INPUT_TRUNCATED' });
});

t.test('random reads give a value or INPUT_*, and never leave the range', async () => {
  const methods = [
    'u8',
    'i8',
    'u16',
    'u24',
    'u32',
    'i32',
    'u64',
    'u64n',
    'uleb',
    'uleb64',
    'sleb',
    'sleb64',
    'cstr',
    'skipCstr',
  ] as const;
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 24 }),
      fc.array(fc.constantFrom(...methods), { maxLength: 20 }),
      (bytes, calls) => {
        const r = new ByteReader(bytes, '.test');
        for (const call of calls) {
          try {
            r[call]();
          } catch (error) {
            if (!/^INPUT_/.test((error as { code: string }).code)) return false;
          }
          if (r.offset > r.end) return false;
        }
        return true;
      },
    ),
    { seed: 5, numRuns: 2000 },
  );
});

t.test('addresses wrap to 64 bits', async (t) => {
  t.equal(hex(addr(-1)), '0xffffffffffffffff');
  t.equal(addOffset(addr(0xffff_ffff_ffff_fff8n), 16), 8n);
  t.equal(addOffset(addr(16), -8), 8n);
});
