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

t.test('a read past the end names the section, the offset and what was wanted', async (t) => {
  const r = reader(1, 2, 3);
  r.u8();
  t.throws(() => r.u32(), { code: 'INPUT_DAMAGED', message: /^\.test .*u32 at offset 0x1/ });
  t.equal(r.offset, 1, 'and does not move');
  t.throws(() => reader(0x80).uleb(), { code: 'INPUT_DAMAGED' });
});

t.test('numbers of fixed width: what a Buffer reads, and not a byte past the end', async (t) => {
  const bytes = Buffer.from('80fe7f8182c3d4e5f6a7', 'hex');
  const reads = [
    ['u8', 1, bytes.readUInt8(1)],
    ['i8', 1, bytes.readInt8(1)],
    ['u16', 2, bytes.readUInt16LE(1)],
    ['u24', 3, bytes.readUIntLE(1, 3)],
    ['u32', 4, bytes.readUInt32LE(1)],
    ['i32', 4, bytes.readInt32LE(1)],
    ['u64', 8, bytes.readBigUInt64LE(1)],
  ] as const;
  for (const [name, size, value] of reads) {
    // In the middle of the bytes: others lie before it and behind.
    const whole = new ByteReader(bytes, '.test', 1, 1 + size);
    t.equal(whole.remaining, size);
    t.equal(whole[name](), value, name);
    t.equal(whole.offset, 1 + size);
    t.equal(whole.remaining, 0);
    const short = new ByteReader(bytes, '.test', 2, 1 + size);
    t.throws(() => short[name](), { code: 'INPUT_DAMAGED', message: /offset 0x2, the end is 0x/ });
    t.equal(short.offset, 2, `${name} does not move`);
  }
  const size = Buffer.alloc(9);
  size.writeBigUInt64LE(2n ** 32n + 5n, 1);
  const number = new ByteReader(size, '.test', 1);
  t.equal(number.u64n(), 2 ** 32 + 5);
  t.equal(number.offset, 9);
});

t.test('a range is inside the bytes', async (t) => {
  const bytes = Uint8Array.of(1, 2, 0, 4);
  t.equal(new ByteReader(bytes, '.test', 4).remaining, 0, 'it may be empty');
  t.equal(new ByteReader(bytes, '.test', 1, 3).at(2).remaining, 1, 'and keeps its end');
  t.equal(new ByteReader(bytes, '.test', 1, 3).at(0, 4).remaining, 4, 'unless another is given');
  for (const [offset, end] of [
    [-1, 4],
    [0.5, 4],
    [3, 2],
    [0, 5],
    [Number.NaN, 4],
  ])
    t.throws(() => new ByteReader(bytes, '.test', offset, end), {
      code: 'INPUT_DAMAGED',
      message: /wanted a range inside the section/,
    });
});

t.test('bytes are taken without a copy, and strings end at a zero inside the range', async (t) => {
  const bytes = Buffer.from('a\u00e9\0b\0', 'utf8');
  const r = new ByteReader(bytes, '.test', 0, 5);
  t.equal(r.cstr(), 'a\u00e9');
  t.equal(r.offset, 4);
  // The next zero is the first byte behind the range.
  t.throws(() => r.cstr(), { code: 'INPUT_DAMAGED', message: /a terminated string/ });
  t.equal(r.offset, 4);
  const all = r.at(0, 6);
  all.skip(4);
  t.equal(all.cstr(), 'b', 'a zero may be the last byte');
  t.equal(all.offset, 6);
  t.throws(() => reader(65, 66).cstr(), { code: 'INPUT_DAMAGED' });
  const taken = r.at(1).take(2);
  bytes[1] = 7;
  t.same([...taken], [7, 0xa9]);
  const last = r.at(3);
  t.equal(last.take(0).length, 0);
  last.skip(1);
  t.equal(last.offset, 4);
  for (const length of [-1, 0.5, 2]) {
    t.throws(() => last.take(length), { code: 'INPUT_DAMAGED', message: `wanted ${length} bytes` });
    t.throws(() => last.skip(length), { code: 'INPUT_DAMAGED', message: `wanted ${length} bytes` });
  }
  t.equal(last.offset, 4);
});

t.test('LEB128 at the limits: what is refused is not read, what has no room in 64 bits is left out', async (t) => {
  const at = (...bytes: number[]): ByteReader => new ByteReader(Uint8Array.from([0xff, ...bytes]), '.test', 1);
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  t.equal(at(...encode(most, false)).uleb(), Number.MAX_SAFE_INTEGER);
  t.equal(at(...encode(most, true)).sleb(), Number.MAX_SAFE_INTEGER);
  t.equal(at(...encode(-most, true)).sleb(), Number.MIN_SAFE_INTEGER);
  t.equal(at(0x3f).sleb(), 63);
  t.equal(at(0x40).sleb(), -64);
  const padding = new Array<number>(9).fill(0x80);
  t.equal(at(...padding, 0).uleb(), 0, 'ten bytes, as an assembler pads them');
  for (const refused of [at(...encode(most + 1n, false)), at(...padding, 0x80, 0)]) {
    t.throws(() => refused.uleb(), { code: 'INPUT_DAMAGED', message: /at offset 0x1$/ });
    t.equal(refused.offset, 1);
  }
  for (const value of [most + 1n, -most - 1n]) {
    const refused = at(...encode(value, true));
    t.throws(() => refused.sleb(), { code: 'INPUT_DAMAGED', message: /at offset 0x1$/ });
    t.equal(refused.offset, 1);
  }
  const size = at(0, 0, 0, 0, 0, 0, 0x20, 0);
  t.throws(() => size.u64n(), { code: 'INPUT_DAMAGED', message: /at offset 0x1:/ });
  t.equal(size.offset, 1);
  t.equal(at(255, 255, 255, 255, 255, 255, 0x1f, 0).u64n(), Number.MAX_SAFE_INTEGER);
  t.equal(at(...encode(2n ** 64n + 5n, false)).uleb64(), 5n);
  t.equal(at(...encode(2n ** 70n + 7n, false)).uleb64(), 7n);
  t.equal(at(...new Array<number>(9).fill(0xff), 0x7f).sleb64(), -1n);
  for (const shift of [6n, 13n, 27n, 31n, 32n, 34n, 35n, 62n, 63n])
    t.equal(at(...encode(-(2n ** shift), true)).sleb64(), -(2n ** shift), `-2^${shift}`);
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
