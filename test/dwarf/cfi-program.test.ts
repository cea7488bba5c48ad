// Call frame programs written by hand, instruction by instruction: DWARF 5, section 6.4.2.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import type { ByteReader } from '../../src/base/byte-reader.js';
import { DW_CFA as C } from '../../src/dwarf/cfi-codes.js';
import type { Fde } from '../../src/dwarf/cfi-entries.js';
import { CfiTable } from '../../src/dwarf/cfi-program.js';
import { evaluateCfi } from '../../src/dwarf/expr.js';
import { DW_OP } from '../../src/dwarf/op-codes.js';

const low = 0x1000;

/** The rows of an FDE at 0x1000. Instructions are of two bytes, and the stack grows by eight. */
function table(program: readonly number[], initial: readonly number[] = [], more: object = {}): CfiTable {
  const bytes = Uint8Array.from([...initial, ...program]);
  const section = {
    bytes,
    name: '.debug_frame',
    pointer: (r: ByteReader) => r.u64n(),
  };
  const fde = {
    cie: {
      codeAlign: 2,
      dataAlign: -8,
      returnAddress: 1,
      start: 0,
      end: initial.length,
      isSignalFrame: false,
      ...more,
    },
    section,
    low,
    high: low + 0x10_0000,
    start: initial.length,
    end: bytes.length,
  };
  return new CfiTable(fde as unknown as Fde);
}

/** The CFA as text, and the rules, at so many bytes from the first instruction. */
function at(rows: CfiTable, offset: number): { cfa: unknown; rules: Record<number, unknown> } | undefined {
  const row = rows.at(low + offset);
  return row && { cfa: row.cfa, rules: Object.fromEntries(row.registers) };
}

const damaged = (message: RegExp) => ({ code: 'DWARF_DAMAGED', message });
const cfa = (register: number, offset: number) => ({ kind: 'register', register, offset });
const cfaOf = [C.def_cfa, 2, 16];
const saved = (offset: number) => ({ kind: 'saved', offset });

t.test('rows begin where the program moves on, by every instruction that moves', async (t) => {
  const moves: readonly (readonly [readonly number[], number])[] = [
    [[C.advance_loc | 5], 10],
    [[C.advance_loc | 0x3f], 126],
    [[C.advance_loc1, 200], 400],
    [[C.advance_loc2, 0x34, 0x12], 2 * 0x1234],
    [[C.advance_loc4, 4, 3, 2, 0], 2 * 0x2_0304],
    [[C.advance_loc8, 9, 0, 1, 0, 0, 0, 0, 0], 2 * 0x1_0009],
    [[C.set_loc, 0x40, 0x10, 0, 0, 0, 0, 0, 0], 0x40],
  ];
  for (const [move, offset] of moves) {
    const rows = table([...cfaOf, ...move, C.def_cfa_offset, 32]);
    t.same(at(rows, 0)?.cfa, cfa(2, 16), `0x${move[0]?.toString(16)}`);
    t.same(at(rows, offset - 1)?.cfa, cfa(2, 16));
    t.same(at(rows, offset)?.cfa, cfa(2, 32));
  }
});

t.test('what changes nothing, what goes backwards, and what stays in place', async (t) => {
  const rows = table([...cfaOf, C.nop, C.GNU_args_size, 0x80, 1, C.advance_loc, C.def_cfa_offset, 8]);
  t.same(at(rows, 0)?.cfa, cfa(2, 8), 'no move: the same row');
  t.throws(() => table([...cfaOf, C.set_loc, 0xff, 0x0f, 0, 0, 0, 0, 0, 0]), damaged(/go backwards/));
  t.doesNotThrow(() => table([...cfaOf, C.set_loc, 0, 0x10, 0, 0, 0, 0, 0, 0]));
  t.equal(at(table([C.nop]), 0), undefined, 'without a CFA there is no row');
  const late = table([C.advance_loc | 1, ...cfaOf]);
  t.equal(at(late, 0), undefined);
  t.same(at(late, 2)?.cfa, cfa(2, 16));
  t.throws(() => table([0x3e]), damaged(/the instruction 0x3e, which is not served/));
});

t.test('the CFA, by each instruction that defines it', async (t) => {
  const first = (...program: number[]) => at(table(program), 0)?.cfa;
  t.same(first(C.def_cfa, 2, 0x90, 1), cfa(2, 144));
  t.same(first(C.def_cfa_sf, 2, 0x7e), cfa(2, 16), '-2 times -8');
  t.same(first(...cfaOf, C.def_cfa_register, 8), cfa(8, 16));
  t.same(first(C.def_cfa_register, 2), cfa(2, 0), 'as GNU as begins programs of RISC-V');
  t.same(first(...cfaOf, C.def_cfa_offset, 24), cfa(2, 24));
  t.same(first(...cfaOf, C.def_cfa_offset_sf, 0x7d), cfa(2, 24));
  const expression = { kind: 'expression', expression: Uint8Array.of(DW_OP.breg0 + 2, 8) };
  t.same(first(C.def_cfa_expression, 2, DW_OP.breg0 + 2, 8), expression);
  const byExpression = [C.def_cfa_expression, 1, DW_OP.lit0];
  t.throws(() => table([...byExpression, C.def_cfa_offset, 8]), damaged(/a CFA that has no register/));
  t.throws(() => table([C.def_cfa_offset, 8]), damaged(/a CFA that has no register/));
  t.throws(() => table([...byExpression, C.def_cfa_register, 8]), damaged(/a CFA that has no offset/));
});

t.test('the rule of a register, by each instruction that sets one', async (t) => {
  const rule = (...program: number[]) => at(table([...cfaOf, ...program]), 0)?.rules;
  t.same(rule(C.offset | 9, 3), { 9: saved(-24) });
  t.same(rule(C.offset_extended, 0x80, 1, 3), { 128: saved(-24) });
  t.same(rule(C.offset_extended_sf, 9, 0x7d), { 9: saved(24) });
  t.same(rule(C.GNU_negative_offset_extended, 9, 3), { 9: saved(24) });
  t.same(rule(C.val_offset, 9, 3), { 9: { kind: 'cfa', offset: -24 } });
  t.same(rule(C.val_offset_sf, 9, 0x7d), { 9: { kind: 'cfa', offset: 24 } });
  t.same(rule(C.undefined, 9), { 9: { kind: 'undefined' } });
  t.same(rule(C.same_value, 9), { 9: { kind: 'same' } });
  t.same(rule(C.register, 9, 10), { 9: { kind: 'register', register: 10 } });
  t.same(rule(C.expression, 9, 1, 0x30), { 9: { kind: 'saved-expression', expression: Uint8Array.of(0x30) } });
  t.same(rule(C.val_expression, 9, 1, 0x30), { 9: { kind: 'expression', expression: Uint8Array.of(0x30) } });
  t.same(rule(C.undefined, 0xff, 0xff, 3), { 65535: { kind: 'undefined' } });
  t.throws(() => rule(C.undefined, 0x80, 0x80, 4), damaged(/it speaks of register 65536/));
});

t.test('a restored register has the rule that its CIE gives, or none', async (t) => {
  const initial = [...cfaOf, C.offset | 9, 1];
  const rows = table(
    [
      ...[C.offset | 9, 2, C.offset | 10, 3],
      ...[C.advance_loc | 1, C.restore | 9, C.restore | 10],
      ...[C.advance_loc | 1, C.offset | 9, 4, C.advance_loc | 1, C.restore_extended, 9],
    ],
    initial,
  );
  t.same(at(rows, 0)?.rules, { 9: saved(-16), 10: saved(-24) });
  t.same(at(rows, 2)?.rules, { 9: saved(-8) });
  t.same(at(rows, 4)?.rules, { 9: saved(-32) });
  t.same(at(rows, 6)?.rules, { 9: saved(-8) });
});

t.test('a row stays as it was when later rules change', async (t) => {
  const rows = table([
    ...[...cfaOf, C.offset | 9, 1],
    ...[C.advance_loc | 1, C.offset | 10, 2],
    ...[C.advance_loc | 1, C.undefined, 9],
  ]);
  t.same(at(rows, 0)?.rules, { 9: saved(-8) });
  t.same(at(rows, 2)?.rules, { 9: saved(-8), 10: saved(-16) });
  t.same(at(rows, 4)?.rules, { 9: { kind: 'undefined' }, 10: saved(-16) });
  // Three rows with their CFAs, and 1 + 2 + 2 rules.
  t.equal(rows.rules, 8);
  // A row that changes the CFA alone shares the rules of the one before.
  t.equal(table([...cfaOf, C.offset | 9, 1, C.advance_loc | 1, C.def_cfa_offset, 8]).rules, 2);
});

t.test('states are remembered and come back, the CFA too, in the order of a stack', async (t) => {
  const rows = table([
    ...[...cfaOf, C.offset | 9, 1, C.remember_state],
    ...[C.advance_loc | 1, C.def_cfa, 3, 8, C.offset | 9, 2, C.remember_state],
    ...[C.advance_loc | 1, C.def_cfa_offset, 0, C.undefined, 9],
    ...[C.advance_loc | 1, C.restore_state],
    ...[C.advance_loc | 1, C.restore_state],
    ...[C.advance_loc | 1, C.offset | 9, 7],
  ]);
  const states = [0, 2, 4, 6, 8, 10].map((offset) => at(rows, offset));
  t.same(states[0], { cfa: cfa(2, 16), rules: { 9: saved(-8) } });
  t.same(states[1], { cfa: cfa(3, 8), rules: { 9: saved(-16) } });
  t.same(states[2], { cfa: cfa(3, 0), rules: { 9: { kind: 'undefined' } } });
  t.same(states[3], states[1]);
  t.same(states[4], states[0]);
  t.same(states[5], { cfa: cfa(2, 16), rules: { 9: saved(-56) } });
  t.throws(() => table([...cfaOf, C.restore_state]), damaged(/did not remember/));
  const many = (count: number) => [...cfaOf, ...Array<number>(count).fill(C.remember_state)];
  t.doesNotThrow(() => table(many(256)));
  t.throws(() => table(many(257)), damaged(/without end/));
});

t.test('an FDE has at most 200,000 rules', async (t) => {
  // Each row sets one register, so that it has a copy of all rules: the CFA and 99.
  const rules = Array.from({ length: 99 }, (_, i) => [C.undefined, i]).flat();
  const rows = (count: number) => [
    ...rules,
    ...Array.from({ length: count - 1 }, () => [C.advance_loc | 1, C.same_value, 1]).flat(),
  ];
  t.equal(table([...cfaOf, ...rows(2000)]).rules, 200_000);
  t.throws(() => table([...cfaOf, ...rows(2001)]), damaged(/more rules than any real one/));
});

t.test("a signal frame's rows say that it was interrupted, and where it goes on", async (t) => {
  const row = (more: object) => table(cfaOf, [], more).at(low);
  t.match(row({}), { interrupted: false, returnAddress: 1 });
  t.match(row({ isSignalFrame: true, returnAddress: 4160 }), { interrupted: true, returnAddress: 4160 });
});

t.test('jumps in expressions, taken and not, and past the end', async (t) => {
  const operands = { register: (number: number) => BigInt(number * 100), memory: () => undefined };
  const value = (...code: number[]) => evaluateCfi(Uint8Array.from(code), undefined, operands);
  const [lit, skip, bra] = [DW_OP.lit0, DW_OP.skip, DW_OP.bra];
  t.equal(value(lit + 1, skip, 1, 0, lit + 2), 1n, 'over the next');
  t.equal(value(lit + 1, lit + 1, bra, 1, 0, lit + 2), 1n);
  t.equal(value(lit + 1, lit, bra, 1, 0, lit + 2), 2n);
  // Backwards: counts 3 down to 0.
  t.equal(value(lit + 3, lit + 1, DW_OP.minus, DW_OP.dup, bra, 0xfa, 0xff), 0n);
  t.equal(value(lit + 7, skip, 0, 0), 7n, 'to the very end');
  t.throws(() => value(lit + 7, skip, 1, 0), { code: 'DWARF_DAMAGED', message: /jumps out of itself/ });
  t.throws(() => value(lit + 7, skip, 0xfb, 0xff), { code: 'DWARF_DAMAGED', message: /jumps out of itself/ });
  t.throws(() => value(skip, 0xfd, 0xff), { code: 'DWARF_DAMAGED', message: /does not end within 10000 steps/ });
  t.throws(() => value(DW_OP.call_frame_cfa), { code: 'DWARF_DAMAGED', message: /its cfa, which call frame/ });
  t.equal(value(DW_OP.nop, DW_OP.bregx, 3, 4), 304n);
  t.equal(value(DW_OP.addr, 1, 0, 0, 0, 0, 0, 0, 1), 0x100_0000_0000_0001n);
  const memory = (size: number) => {
    const asked: number[] = [];
    evaluateCfi(Uint8Array.of(lit, DW_OP.deref_size, size), undefined, {
      ...operands,
      memory: (_, length) => {
        asked.push(length);
        return 0n;
      },
    });
    return asked;
  };
  t.same(memory(1), [1]);
  t.same(memory(8), [8]);
  t.throws(() => memory(0), { code: 'DWARF_DAMAGED', message: /reads 0 bytes at once/ });
  t.throws(() => memory(9), { code: 'DWARF_DAMAGED', message: /reads 9 bytes at once/ });
  t.equal(evaluateCfi(Uint8Array.of(DW_OP.plus_uconst, 8), addr(0x100n), operands), 0x108n, 'the CFA is on the stack');
  t.equal(
    evaluateCfi(Uint8Array.of(DW_OP.breg0 + 5, 0), undefined, { ...operands, register: () => undefined }),
    undefined,
  );
});
