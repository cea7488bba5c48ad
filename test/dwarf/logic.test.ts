// Expressions, names, ranges and symbols: the specification's examples, and properties checked against the plainest code that can
// answer the same question.
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { splitPath } from '../../src/dwarf/function-names.js';
import {
  DebugInfo,
  DW_AT,
  DW_ATE,
  DW_FORM,
  DW_OP,
  DW_TAG,
  demangle,
  type Evaluated,
  evaluate,
  evaluateAsync,
  type Need,
  stripGenerics,
  type Unit,
} from '../../src/dwarf/index.js';
import { CodeSpace } from '../../src/elf/code-address.js';
import { ElfFile } from '../../src/elf/index.js';
import { IntervalIndex, IntervalList } from '../../src/elf/intervals.js';
import { DwarfWriter } from '../support/dwarf-writer.js';
import { ByteWriter, writeElf } from '../support/elf-writer.js';

/** `own`: where the DIE 'endless' lies, whose location calls itself. */
function unitWithTypes(own = 0): { unit: Unit; at: (label: string) => number } {
  const writer = new DwarfWriter();
  const base = (label: string, size: number, encoding: number) => ({
    tag: DW_TAG.base_type,
    label,
    attributes: [
      [DW_AT.name, DW_FORM.string, label],
      [DW_AT.byte_size, DW_FORM.data1, size],
      [DW_AT.encoding, DW_FORM.data1, encoding],
    ] as const,
  });
  writer.unit({
    version: 5,
    root: {
      tag: DW_TAG.compile_unit,
      attributes: [[DW_AT.addr_base, DW_FORM.sec_offset, 8]],
      children: [
        base('i32', 4, DW_ATE.signed),
        base('u8', 1, DW_ATE.unsigned),
        base('f32', 4, DW_ATE.float),
        base('f64', 8, DW_ATE.float),
        base('i8', 1, DW_ATE.signed_char),
        base('bool', 1, DW_ATE.boolean),
        base('u128', 16, DW_ATE.unsigned),
        base('i128', 16, DW_ATE.signed),
        base('f16', 2, DW_ATE.float),
        base('no bytes', 0, DW_ATE.unsigned),
        base('17 bytes', 17, DW_ATE.unsigned),
        {
          tag: DW_TAG.structure_type,
          label: 'struct',
          attributes: [[DW_AT.byte_size, DW_FORM.data1, 4]],
        },
        {
          tag: DW_TAG.variable,
          label: 'called',
          attributes: [[DW_AT.location, DW_FORM.exprloc, Uint8Array.of(DW_OP.plus_uconst, 5)]],
        },
        {
          tag: DW_TAG.variable,
          label: 'endless',
          attributes: [[DW_AT.location, DW_FORM.exprloc, Uint8Array.of(DW_OP.call4, own, own >> 8, 0, 0)]],
        },
      ],
    },
  });
  writer.addresses.uint(0x1000, 8).uint(0x7fff_ffff_8000_0010n, 8);
  const debug = DebugInfo.load(ElfFile.parse(writer.elf(), 'test.elf'));
  const unit = debug.units[0];
  if (unit === undefined) throw new Error('no unit');
  return { unit, at: (label) => writer.labels.get(label) ?? -1 };
}

const { unit, at } = unitWithTypes(unitWithTypes().at('endless'));
/** Registers hold 1000 times their number; a memory word is its own address, upside down. */
const answer = (need: Need): bigint | undefined => {
  switch (need.kind) {
    case 'register':
      return BigInt(need.register * 1000);
    case 'memory':
      return BigInt.asUintN(need.size * 8, ~need.address);
    case 'frame-base':
      return 0x8000n;
    case 'cfa':
      return 0x9000n;
    case 'tls':
      return 0xb000n + need.offset;
    case 'entry-value':
      return BigInt(need.expression.length);
    case 'unserved':
      return undefined;
  }
};
const code = (...parts: (number | ByteWriter)[]): Uint8Array => {
  const w = new ByteWriter();
  for (const part of parts) typeof part === 'number' ? w.u8(part) : w.raw(part.bytes());
  return w.bytes();
};
const uleb = (n: number | bigint): ByteWriter => new ByteWriter().uleb(n);
const sleb = (n: number | bigint): ByteWriter => new ByteWriter().sleb(n);
const pieces = (result: Evaluated): unknown => ('pieces' in result ? result.pieces.map((p) => p.location) : result);
/** The value of an expression that leaves one on the stack. */
const value = (...parts: (number | ByteWriter)[]): bigint | undefined => {
  const result = evaluate(code(...parts, DW_OP.stack_value), unit, answer);
  const location = 'pieces' in result ? result.pieces[0]?.location : undefined;
  return location?.kind === 'value' ? location.value : undefined;
};
const M64 = (n: bigint): bigint => BigInt.asUintN(64, n);
const lit = (n: number): number => DW_OP.lit0 + n;

t.test("the specification's stack operations (DWARF 5, appendix D.1.2)", async (t) => {
  // Before: 17 (top), 29, 1000.
  const before = [DW_OP.const2u, 0xe8, 0x03, lit(29), lit(17)] as const;
  const after = (...ops: number[]): (bigint | undefined)[] => {
    // What stands on the stack from the top: values are taken off by dropping.
    const found: (bigint | undefined)[] = [];
    for (let i = 0; i < 5; i++) {
      const drops = Array.from({ length: i }, () => DW_OP.drop);
      try {
        found.push(value(...before, ...ops, ...drops));
      } catch {
        break;
      }
    }
    return found;
  };
  t.strictSame(after(DW_OP.dup), [17n, 17n, 29n, 1000n]);
  t.strictSame(after(DW_OP.drop), [29n, 1000n]);
  t.strictSame(after(DW_OP.pick, 2), [1000n, 17n, 29n, 1000n]);
  t.strictSame(after(DW_OP.over), [29n, 17n, 29n, 1000n]);
  t.strictSame(after(DW_OP.swap), [29n, 17n, 1000n]);
  t.strictSame(after(DW_OP.rot), [29n, 1000n, 17n]);
});

t.test('operations without an effect, and a stack that only grows', async (t) => {
  t.equal(value(lit(3), DW_OP.nop, DW_OP.nop), 3n);
  t.equal(value(lit(4), DW_OP.GNU_uninit), 4n);
  // It jumps back to its own begin: three bytes for the jump, and one for what it pushes.
  t.throws(() => value(lit(1), DW_OP.skip, -4 & 0xff, 0xff), { code: 'DWARF_DAMAGED', message: /past all bounds/ });
});

t.test('literals, arithmetic, logic and comparisons', async (t) => {
  t.equal(value(DW_OP.const1s, 0xff), M64(-1n));
  t.equal(value(DW_OP.const2s, 0x00, 0x80), M64(-32768n));
  t.equal(value(DW_OP.const4s, 0, 0, 0, 0x80), M64(-(1n << 31n)));
  t.equal(value(DW_OP.const4u, 0, 0, 0, 0x80), 1n << 31n);
  t.equal(value(DW_OP.const8u, 1, 2, 3, 4, 5, 6, 7, 0x88), 0x8807060504030201n);
  t.equal(value(DW_OP.constu, uleb((1n << 64n) - 1n)), (1n << 64n) - 1n);
  t.equal(value(DW_OP.addrx, uleb(1)), 0x7fff_ffff_8000_0010n);
  t.equal(value(DW_OP.consts, sleb(-7), lit(2), DW_OP.div), M64(-3n), 'division is signed and rounds to zero');
  t.equal(value(DW_OP.consts, sleb(-8), lit(2), DW_OP.shra), M64(-2n));
  t.equal(value(DW_OP.consts, sleb(-8), lit(1), DW_OP.shr), (1n << 63n) - 4n);
  t.equal(value(lit(1), DW_OP.const1u, 200, DW_OP.shl), 0n, 'shifted out');
  t.equal(value(DW_OP.consts, sleb(-5), DW_OP.abs), 5n);
  t.equal(value(lit(5), DW_OP.neg), M64(-5n));
  t.equal(value(lit(0), DW_OP.not), M64(-1n));
  t.equal(value(lit(12), lit(10), DW_OP.and), 8n);
  t.equal(value(lit(12), lit(10), DW_OP.or), 14n);
  t.equal(value(lit(12), lit(10), DW_OP.xor), 6n);
  t.equal(value(DW_OP.consts, sleb(-1), lit(1), DW_OP.lt), 1n, 'comparisons are signed');
  t.strictSame(
    [DW_OP.eq, DW_OP.ne, DW_OP.lt, DW_OP.le, DW_OP.gt, DW_OP.ge].map((op) => value(lit(3), lit(3), op)),
    [1n, 0n, 0n, 1n, 0n, 1n],
  );
  t.equal(value(lit(1), DW_OP.bra, 1, 0, lit(9), lit(7)), 7n, 'a taken branch');
  t.equal(value(lit(8), lit(0), DW_OP.bra, 1, 0, lit(9)), 9n);
  t.equal(value(DW_OP.skip, 1, 0, lit(9), lit(7)), 7n);
});

const type = (label: string): ByteWriter => uleb(at(label));
/** A value of a type on the stack, from its bytes. */
const held = (label: string, bytes: ArrayBufferView): ByteWriter => {
  const w = new ByteWriter().u8(DW_OP.const_type).raw(type(label).bytes()).u8(bytes.byteLength);
  return w.raw(new Uint8Array(bytes.buffer));
};

t.test('arithmetic of a type is that of an array of it', async () => {
  const arrays = {
    i8: Int8Array,
    u8: Uint8Array,
    bool: Uint8Array,
    i32: Int32Array,
    f32: Float32Array,
    f64: Float64Array,
  };
  const operations = { plus: (a, b) => a + b, minus: (a, b) => a - b, mul: (a, b) => a * b } as Record<
    'plus' | 'minus' | 'mul' | 'div' | 'mod',
    (a: number, b: number) => number
  >;
  operations.div = (a, b) => a / b;
  operations.mod = (a, b) => a % b;
  const small = fc.integer({ min: -120, max: 250 });
  fc.assert(
    fc.property(
      fc.constantFrom(...(Object.keys(arrays) as (keyof typeof arrays)[])),
      fc.constantFrom(...(Object.keys(operations) as (keyof typeof operations)[])),
      small,
      small,
      (name, op, first, second) => {
        const list = arrays[name];
        const [a, b] = [list.of(first), list.of(second)];
        const isFloat = name.startsWith('f');
        if (!isFloat && b[0] === 0 && (op === 'div' || op === 'mod')) return;
        const result = operations[op](a[0] ?? 0, b[0] ?? 0);
        const expected = new Uint8Array(list.of(isFloat ? result : Math.trunc(result)).buffer);
        // In which bits, whatever its type.
        const to = { 1: 'u8', 4: 'i32', 8: 'generic' }[expected.length] ?? '';
        const cast = to === 'generic' ? uleb(0) : type(to);
        const found = value(held(name, a), held(name, b), DW_OP[op], DW_OP.reinterpret, cast);
        let bits = 0n;
        for (const byte of expected.toReversed()) bits = (bits << 8n) | BigInt(byte);
        if (found !== bits && !Number.isNaN(result)) throw new Error(`${name} ${a} ${op} ${b}: ${found}, not ${bits}`);
      },
    ),
    { seed: 21, numRuns: 2000 },
  );
});

t.test('generic values: division is signed, modulo is not; neither by zero', async (t) => {
  t.equal(value(DW_OP.consts, sleb(-7), lit(2), DW_OP.mod), M64(-7n) % 2n);
  t.equal(value(lit(7), lit(4), DW_OP.minus), 3n);
  t.equal(value(lit(7), lit(4), DW_OP.mod), 3n);
  t.equal(value(lit(7), lit(4), DW_OP.mul), 28n);
  for (const op of [DW_OP.div, DW_OP.mod])
    t.throws(() => value(lit(1), lit(0), op), { code: 'DWARF_DAMAGED', message: /zero/ });
  t.throws(() => value(held('u8', Uint8Array.of(1)), held('u8', Uint8Array.of(0)), DW_OP.mod), {
    code: 'DWARF_DAMAGED',
  });
});

t.test('comparisons by type: of signs, of none, and of numbers that are none', async (t) => {
  const order = (a: ByteWriter, b: ByteWriter): unknown =>
    [DW_OP.eq, DW_OP.ne, DW_OP.lt, DW_OP.le, DW_OP.gt, DW_OP.ge].map((op) => Number(value(a, b, op)));
  const [below, above, none] = [
    [0, 1, 1, 1, 0, 0],
    [0, 1, 0, 0, 1, 1],
    [0, 1, 0, 0, 0, 0],
  ];
  t.same(order(held('u8', Uint8Array.of(200)), held('u8', Uint8Array.of(100))), above);
  t.same(order(held('i8', Uint8Array.of(200)), held('i8', Uint8Array.of(100))), below);
  t.same(order(held('f64', Float64Array.of(-1.5)), held('f64', Float64Array.of(-0.5))), below);
  t.same(order(held('f32', Float32Array.of(2.5)), held('f32', Float32Array.of(-3))), above);
  t.same(order(held('f64', Float64Array.of(Number.NaN)), held('f64', Float64Array.of(1))), none);
  const big = (bits: bigint): BigUint64Array => BigUint64Array.of(bits, 1n << 63n);
  t.same(order(held('u128', big(1n)), held('u128', big(2n))), below);
});

t.test('conversions keep the value, and what has none becomes 0', async (t) => {
  const as = (label: string, value: ByteWriter): readonly (number | ByteWriter)[] => [
    value,
    DW_OP.convert,
    type(label),
  ];
  t.equal(value(...as('i32', held('f64', Float64Array.of(-2.9))), DW_OP.convert, uleb(0)), M64(-2n));
  t.equal(value(...as('i32', held('f64', Float64Array.of(Number.POSITIVE_INFINITY)))), 0n);
  t.equal(value(...as('i32', held('f32', Float32Array.of(Number.NaN)))), 0n);
  t.equal(value(...as('f32', held('i32', Int32Array.of(-1))), DW_OP.reinterpret, type('i32')), 0xbf80_0000n);
  t.equal(value(...as('i32', held('bool', Uint8Array.of(255)))), 255n);
  t.equal(value(...as('i32', held('i8', Uint8Array.of(255)))), 0xffff_ffffn);
  t.equal(value(...as('i32', held('i32', Int32Array.of(-1))), DW_OP.convert, uleb(0)), M64(-1n), 'sign extended');
  t.equal(value(DW_OP.regval_type, uleb(1), type('u8')), 1000n & 0xffn);
  t.equal(value(lit(1), DW_OP.deref_type, 1, type('u8')), 0xfen);
  t.throws(() => value(lit(1), DW_OP.convert, uleb(3)), { code: /DWARF_/ });
  // A float of another width than 4 or 8 bytes is bits.
  t.equal(value(...as('i32', held('f16', Uint16Array.of(0x3c00)))), 0x3c00n);
});

t.test('what is no base type, or larger than any, is refused', async (t) => {
  for (const label of ['struct', 'called', 'no bytes', '17 bytes'])
    t.throws(
      () => value(lit(1), DW_OP.convert, type(label)),
      { code: 'DWARF_DAMAGED', message: /no base type/ },
      label,
    );
  t.equal(value(lit(1), DW_OP.convert, type('u128')), 1n);
});

t.test('literals at the ends of their ranges', async (t) => {
  t.equal(value(DW_OP.lit31), 31n);
  t.equal(value(DW_OP.const1u, 0xff), 0xffn);
  t.equal(value(DW_OP.const2u, 0xff, 0xff), 0xffffn);
  t.equal(value(DW_OP.const8s, ...Array<number>(8).fill(0xff)), M64(-1n));
  t.equal(value(DW_OP.constu, uleb(0x7f)), 0x7fn);
  t.equal(value(DW_OP.addr, new ByteWriter().uint(0x12_3456_789a, 8)), 0x12_3456_789an);
  for (const op of [DW_OP.addrx, DW_OP.GNU_addr_index, DW_OP.constx, DW_OP.GNU_const_index])
    t.equal(value(op, uleb(0)), 0x1000n);
  t.equal(value(lit(1), DW_OP.const8u, ...Array<number>(8).fill(0xff), DW_OP.shl), 0n);
});

t.test('registers 0 and 31, and reads of 1 to 16 bytes', async (t) => {
  const where = (...parts: (number | ByteWriter)[]): unknown => pieces(evaluate(code(...parts), unit, answer));
  t.strictSame(where(DW_OP.reg0), [{ kind: 'register', register: 0 }]);
  t.strictSame(where(DW_OP.reg31), [{ kind: 'register', register: 31 }]);
  t.strictSame(where(DW_OP.breg0, sleb(1)), [{ kind: 'memory', address: 1n }]);
  t.strictSame(where(DW_OP.breg31, sleb(1)), [{ kind: 'memory', address: 31001n }]);
  t.equal(value(lit(0), DW_OP.deref_size, 16), M64(-1n));
  t.equal(value(lit(0), DW_OP.deref_size, 1), 0xffn);
  for (const bytes of [0, 17]) t.throws(() => value(lit(0), DW_OP.deref_size, bytes), { code: 'DWARF_DAMAGED' });
  t.same(await evaluateAsync(code(DW_OP.fbreg, sleb(8)), unit, async () => undefined), {
    missing: { kind: 'frame-base' },
  });
});

t.test('jumps and calls', async (t) => {
  const where = (...parts: (number | ByteWriter)[]): unknown => pieces(evaluate(code(...parts), unit, answer));
  t.strictSame(where(lit(3), DW_OP.skip, 0, 0), [{ kind: 'memory', address: 3n }], 'to its end');
  t.throws(() => where(lit(3), DW_OP.skip, 1, 0), { message: /jumps out/ });
  t.equal(value(lit(0), DW_OP.skip, 1, 0, lit(9)), 0n, 'whatever is on the stack');
  t.equal(value(lit(3), DW_OP.call2, new ByteWriter().uint(at('called'), 2)), 8n);
  t.equal(value(lit(3), DW_OP.call_ref, new ByteWriter().uint(at('called'), 4)), 8n);
  for (const op of [DW_OP.push_object_address, DW_OP.GNU_parameter_ref, DW_OP.GNU_variable_value])
    t.same(evaluate(code(op, 1, 0, 0, 0), unit, answer), { missing: { kind: 'unserved' } });
  t.equal(value(lit(3), DW_OP.call4, new ByteWriter().uint(at('i32'), 4)), 3n, 'of a DIE without a location');
  t.throws(() => value(DW_OP.call4, new ByteWriter().uint(at('endless'), 4)), { message: /calls itself/ });
});

t.test('a stack holds 1,024 values, and gives no more than it has', async (t) => {
  const full = Array<number>(1024).fill(lit(1));
  t.equal(value(...full), 1n);
  t.throws(() => value(...full, lit(1)), { code: 'DWARF_DAMAGED', message: /past all bounds/ });
  t.throws(() => value(lit(1), DW_OP.pick, 1), { code: 'DWARF_DAMAGED' });
});

t.test('what comes from outside, and where things lie', async (t) => {
  const where = (...parts: (number | ByteWriter)[]): unknown => pieces(evaluate(code(...parts), unit, answer));
  t.strictSame(where(DW_OP.reg0 + 10), [{ kind: 'register', register: 10 }]);
  t.strictSame(where(DW_OP.regx, uleb(4000)), [{ kind: 'register', register: 4000 }]);
  t.strictSame(where(DW_OP.fbreg, sleb(-16)), [{ kind: 'memory', address: 0x7ff0n }]);
  t.strictSame(where(DW_OP.breg0 + 2, sleb(-1)), [{ kind: 'memory', address: 1999n }]);
  t.strictSame(where(DW_OP.bregx, uleb(40), sleb(3)), [{ kind: 'memory', address: 40003n }]);
  t.strictSame(where(DW_OP.call_frame_cfa), [{ kind: 'memory', address: 0x9000n }]);
  t.strictSame(where(lit(4), DW_OP.form_tls_address), [{ kind: 'memory', address: 0xb004n }]);
  t.equal(value(lit(0), DW_OP.deref_size, 2), 0xffffn);
  t.equal(value(DW_OP.entry_value, uleb(1), DW_OP.reg0 + 5), 1n);
  t.equal(value(lit(3), DW_OP.call4, new ByteWriter().uint(at('called'), 4)), 8n);
  t.strictSame(where(DW_OP.implicit_value, uleb(2), 7, 8), [{ kind: 'bytes', bytes: Uint8Array.of(7, 8) }]);
  t.strictSame(where(DW_OP.implicit_pointer, new ByteWriter().uint(0x20, 4), sleb(-2)), [
    { kind: 'implicit-pointer', die: 0x20, offset: -2 },
  ]);
  t.strictSame(where(), [{ kind: 'optimized-out' }]);
  // DWARF 5, section 2.6.1.2: a value in two registers, its middle optimised away.
  const split = evaluate(
    code(
      DW_OP.reg0 + 3,
      DW_OP.piece,
      uleb(4),
      DW_OP.piece,
      uleb(2),
      DW_OP.reg0 + 4,
      DW_OP.bit_piece,
      uleb(12),
      uleb(3),
    ),
    unit,
    answer,
  );
  t.strictSame('pieces' in split && split.pieces, [
    { location: { kind: 'register', register: 3 }, bitSize: 32, bitOffset: 0 },
    { location: { kind: 'optimized-out' }, bitSize: 16, bitOffset: 0 },
    { location: { kind: 'register', register: 4 }, bitSize: 12, bitOffset: 3 },
  ]);
  t.strictSame(
    evaluate(code(DW_OP.fbreg, sleb(0)), unit, () => undefined),
    { missing: { kind: 'frame-base' } },
  );
  const later = await evaluateAsync(code(DW_OP.fbreg, sleb(8), DW_OP.deref), unit, async (need) => answer(need));
  t.strictSame(pieces(later), [{ kind: 'memory', address: M64(~0x8008n) }]);
});

t.test('a crafted expression ends', async (t) => {
  t.throws(() => value(DW_OP.skip, 0xfd, 0xff), { code: 'DWARF_DAMAGED', message: /steps/ });
  t.throws(() => value(lit(1), DW_OP.dup, DW_OP.skip, 0xfc, 0xff), { code: 'DWARF_DAMAGED' });
  t.throws(() => value(DW_OP.skip, 0, 0x80), { code: 'DWARF_DAMAGED', message: /jumps/ });
  t.throws(() => value(DW_OP.drop), { code: 'DWARF_DAMAGED' });
  t.throws(() => value(0xef), { code: 'DWARF_DAMAGED', message: /0xef/ });
  t.throws(() => value(lit(0), DW_OP.deref_size, 200), { code: 'DWARF_DAMAGED' });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        evaluate(bytes, unit, answer);
      } catch (error) {
        if ((error as { name?: string }).name !== 'RsptraceError') throw error;
      }
    }),
    { seed: 5, numRuns: 3000 },
  );
});

t.test('the innermost range wins, as a scan over all of them finds it', async () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(60), fc.integer({ min: -3, max: 30 })), { maxLength: 25 }), (ranges) => {
      const list = new IntervalList();
      for (const [i, [start, size]] of ranges.entries()) list.add(start, start + size, i);
      const index = new IntervalIndex(list);
      for (let a = -1; a < 95; a++) {
        const holding = ranges
          .map(([start, size], i) => ({ start, size, i }))
          .filter((r) => a >= r.start && a < r.start + r.size);
        // The last to begin; of those that begin together the shortest, then the first given.
        holding.sort((x, y) => y.start - x.start || x.size - y.size || x.i - y.i);
        if (index.find(a) !== (holding[0]?.i ?? -1)) return false;
      }
      return index.find(Number.NaN) === -1;
    }),
    { seed: 7, numRuns: 400 },
  );
});

t.test('addresses as numbers keep their order and come back, wherever the program lies', async (t) => {
  const near = fc.bigInt({ min: -(1n << 52n), max: (1n << 52n) - 1n });
  fc.assert(
    fc.property(
      near,
      (n) => new CodeSpace([], 0n).toCode(M64(n)) === Number(n) && new CodeSpace([], 0n).fromCode(Number(n)) === M64(n),
    ),
    { seed: 9 },
  );
  const nearTheEdge = fc
    .tuple(fc.constantFrom(0n, 1n << 52n, -1n << 52n), fc.integer())
    .map(([a, b]) => M64(a + BigInt(b)));
  const part = fc.record({
    address: fc.oneof(fc.bigInt(0n, (1n << 64n) - 1n), nearTheEdge),
    size: fc.integer({ min: 1, max: 2 ** 40 }),
  });
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 20 }),
      fc.bigInt(0n, (1n << 64n) - 1n),
      fc.array(fc.nat(1000)),
      (parts, bias, picks) => {
        const codes = new CodeSpace(parts, bias);
        return parts.every(({ address, size }) =>
          [-1, 0, 1, size - 1, size, ...picks].every((offset) => {
            const there = M64(address + BigInt(offset));
            const code = codes.toCode(there);
            const file = M64(there - bias);
            return (
              codes.fromCode(code) === there &&
              code - codes.toCode(address) === offset &&
              codes.ofFile(Number(file & 0xffff_ffffn), Number(file >> 32n)) === code &&
              codes.plus(codes.toCode(parts[0]?.address ?? 0n), ...halves(there - (parts[0]?.address ?? 0n))) === code
            );
          }),
        );
      },
    ),
    { seed: 10, numRuns: 300 },
  );
  t.ok(Number.isNaN(new CodeSpace([{ address: 0x8000_0000n, size: 4096 }], 0n).toCode(1n << 60n)), 'nothing is there');
});

function halves(value: bigint): [number, number] {
  return [Number(value & 0xffff_ffffn), Number(BigInt.asIntN(32, value >> 32n))];
}

t.test('symbols: nested, aliases, labels, without a size', async (t) => {
  const names = new ByteWriter().u8(0);
  const table = new ByteWriter().raw(new Uint8Array(24));
  const symbol = (name: string, address: bigint, size: number, info = 0x12, section = 1): void => {
    table.uint(names.length, 4).u8(info).u8(0).uint(section, 2).uint(address, 8).uint(size, 8);
    names.cstr(name);
  };
  symbol('outer', 0x1000n, 0x100);
  symbol('inner', 0x1020n, 0x10);
  symbol('alias_local', 0x1000n, 0x100, 0x02);
  symbol('.Lloop', 0x1030n, 0);
  symbol('$x', 0x1000n, 0, 0x00);
  symbol('$xrv64imac', 0x1040n, 0, 0x00);
  symbol('data', 0x1200n, 8, 0x11);
  symbol('undefined', 0n, 0, 0x10, 0);
  symbol('main.rs', 0n, 0, 0x04);
  symbol('asm_entry', 0x1300n, 0, 0x10);
  symbol('short', 0x1400n, 8);
  symbol('long', 0x1400n, 0x20);
  symbol('high', 0xffff_ffff_8100_0000n, 0x40);
  const elf = ElfFile.parse(
    writeElf({
      sections: [
        { name: '.symtab', bytes: table.bytes(), type: 2, link: 2, entrySize: 24 },
        { name: '.strtab', bytes: names.bytes(), type: 3 },
      ],
    }),
    'x',
  );
  const find = (a: bigint): string | undefined => elf.symbols.at(addr(a))?.name;
  for (const [name, ...addresses] of [
    ['outer', 0x1000n, 0x101fn, 0x1030n, 0x1040n, 0x10ffn],
    ['inner', 0x1020n, 0x102fn],
    ['data', 0x1207n],
    ['asm_entry', 0x1300n, 0x1310n],
    ['short', 0x1407n],
    ['long', 0x1408n],
    ['high', 0xffff_ffff_8100_003fn],
    [undefined, 0x1100n, 0x1208n],
  ] as const)
    for (const address of addresses) t.equal(find(address), name, `${address.toString(16)}`);
  t.strictSame(elf.symbols.named('inner'), [
    { name: 'inner', address: addr(0x1020n), size: 16, type: 'function', chooses: false },
  ]);
  t.strictSame(elf.symbols.named('none'), []);
  t.equal(elf.symbols.count, 8);
});

t.test('names: demangling and generic arguments', async (t) => {
  // The symbols are the guests' own, the texts what rustc's own demangler documents for them.
  t.equal(demangle('_RNCNvNtCslgK8bDzTBJh_7labkern4work7leaf_io0B5_'), 'labkern::work::leaf_io::{closure#0}');
  t.equal(
    demangle('_ZN7labkern4work4Disk4seek28_$u7b$$u7b$closure$u7d$$u7d$17h2c9e4fbd30cb272cE'),
    'labkern::work::Disk::seek::{{closure}}',
  );
  t.equal(demangle('main'), 'main');
  t.equal(demangle('_Rbroken'), '_Rbroken');
  for (const [name, bare] of [
    ['a::F<T>::b::<U>', 'a::F::b'],
    ['<a::D<T> as b::R<U>>::read::{closure#0}', '<a::D as b::R>::read::{closure#0}'],
    ['<a::D>::seek', '<a::D>::seek'],
    ['core::ptr::drop_in_place<<a::D as b::R>::read::{{closure}}>', 'core::ptr::drop_in_place'],
    ['a::G<fn(u8) -> u32>::call', 'a::G::call'],
    ['a::{impl#0}::read', 'a::{impl#0}::read'],
    ['&mut a::F<T>', '&mut a::F'],
  ] as const)
    t.equal(stripGenerics(name), bare);
  t.strictSame(splitPath('<a::D as b::R>::read::{closure#0}'), ['<a::D as b::R>', 'read', '{closure#0}']);
});
