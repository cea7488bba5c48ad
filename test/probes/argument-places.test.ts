// Where calling conventions put numbers: AMD64's psABI ("Parameter Passing"), RISC-V's ("Hardware Floating-point
// Calling Convention"), and what clang 14 and rustc 1.95 make of the same functions.
import t from 'tap';
import { riscv64, x86_64 } from '../../src/arch/index.js';
import { type Calling, placeArguments, placeResult, type ValuePlace } from '../../src/probes/argument-places.js';
import type { Shape } from '../../src/values/index.js';

const base = { name: '', die: undefined };
const f64: Shape = { ...base, kind: 'float', size: 8 };
const f32: Shape = { ...base, kind: 'float', size: 4 };
const i64: Shape = { ...base, kind: 'integer', signed: true, character: false, size: 8 };
const i32: Shape = { ...i64, size: 4 };
const wide: Shape = { ...base, kind: 'opaque', size: 16 };

function struct(...types: Shape[]): Shape {
  let end = 0;
  const fields = types.map((type) => {
    const size = type.size ?? 0;
    const offset = Math.ceil(end / size) * size;
    end = offset + size;
    return { name: '', offset, bits: undefined, type: () => type };
  });
  const most = Math.max(...types.map(({ size = 0 }) => size));
  return { ...base, kind: 'struct', short: '', fields, view: () => undefined, size: Math.ceil(end / most) * most };
}

const text = (place: ValuePlace | undefined): string => {
  if (place?.kind === 'registers') return place.parts.map(({ register, offset }) => `${register}+${offset}`).join(' ');
  return place?.kind === 'pointer' ? `[${place.register}]` : '?';
};
const conventions: Record<string, Calling> = {
  'x86_64 C': { arch: x86_64, convention: 'c', floats: x86_64.floats?.({ flags: 0, isProcess: true }) },
  'x86_64 Rust': { arch: x86_64, convention: 'rust', floats: x86_64.floats?.({ flags: 0, isProcess: true }) },
  'x86_64 kernel': { arch: x86_64, convention: 'c', floats: x86_64.floats?.({ flags: 0, isProcess: false }) },
  'lp64d C': { arch: riscv64, convention: 'c', floats: riscv64.floats?.({ flags: 5, isProcess: false }) },
  'lp64d Rust': { arch: riscv64, convention: 'rust', floats: riscv64.floats?.({ flags: 5, isProcess: false }) },
  'lp64f C': { arch: riscv64, convention: 'c', floats: riscv64.floats?.({ flags: 3, isProcess: false }) },
  'lp64 C': { arch: riscv64, convention: 'c', floats: riscv64.floats?.({ flags: 1, isProcess: false }) },
};
const nine = Array.from({ length: 9 }, () => f64);

const cases: [string, Shape[], string, boolean][] = [
  ['x86_64 C', [f64, i32, f32], 'xmm0+0, rdi+0, xmm1+0', false],
  ['x86_64 C', [struct(f64, f64), struct(f32, f32, f32), i64], 'xmm0+0 xmm1+8, xmm2+0 xmm3+8, rdi+0', false],
  ['x86_64 C', [struct(i32, f32), struct(f64, i64)], 'rdi+0, xmm0+0 rsi+8', false],
  ['x86_64 C', [struct(f64, f64, f64), i64], '?, rdi+0', true],
  [
    'x86_64 C',
    [...nine.slice(2), struct(f64, f64), f64],
    'xmm0+0, xmm1+0, xmm2+0, xmm3+0, xmm4+0, xmm5+0, xmm6+0, ?, xmm7+0',
    true,
  ],
  ['x86_64 C', [wide, i64], '?, ?', true],
  ['x86_64 kernel', [f64, i64], '?, ?', false],
  ['x86_64 kernel', [struct(f64, f64, f64), i64], '?, rdi+0', true],
  ['x86_64 Rust', [struct(f32, f32), struct(i64, f64), f64], 'xmm0+0 xmm1+4, rdi+0 xmm2+8, xmm3+0', false],
  ['x86_64 Rust', nine.slice(1), 'xmm0+0, xmm1+0, xmm2+0, xmm3+0, xmm4+0, xmm5+0, xmm6+0, xmm7+0', false],
  [
    'x86_64 Rust',
    [...nine, i64].slice(0, 9),
    'xmm0+0, xmm1+0, xmm2+0, xmm3+0, xmm4+0, xmm5+0, xmm6+0, xmm7+0, ?',
    true,
  ],
  ['lp64d C', [f64, i32, f32], 'fa0+0, a0+0, fa1+0', false],
  ['lp64d C', [struct(f64, f64), struct(f32, f32, f32), i64], 'fa0+0 fa1+8, a0+0 a1+8, a2+0', false],
  ['lp64d C', [struct(i32, f32), struct(f64, i64)], 'a0+0 fa0+4, fa1+0 a1+8', false],
  ['lp64d C', [...nine, i64], 'fa0+0, fa1+0, fa2+0, fa3+0, fa4+0, fa5+0, fa6+0, fa7+0, a0+0, a1+0', false],
  ['lp64d Rust', [struct(f32, f32), struct(i64, f64), f64], 'fa0+0 fa1+4, a0+0 fa2+8, fa3+0', false],
  ['lp64f C', [f32, f64, struct(f32, f32)], 'fa0+0, a0+0, fa1+0 fa2+4', false],
  ['lp64 C', [f32, f64, struct(f32, f32)], 'a0+0, a1+0, a2+0', false],
];
for (const [name, types, wanted, stack] of cases) {
  t.test(`${name}: ${types.map((type) => `${type.kind} ${type.size}`).join(', ')}`, async (t) => {
    const placed = placeArguments(conventions[name] as Calling, types, { most: 0, result: 0, isKnown: true });
    t.equal(placed.places.map(text).join(', '), wanted);
    t.equal(placed.stack, stack, 'on the stack');
  });
}

const results: [string, Shape, string][] = [
  ['x86_64 C', f32, 'xmm0+0'],
  ['x86_64 C', struct(f32, f32, f32), 'xmm0+0 xmm1+8'],
  ['x86_64 C', struct(f64, i64), 'xmm0+0 rax+8'],
  ['x86_64 C', wide, '?'],
  ['x86_64 kernel', f64, '?'],
  ['x86_64 Rust', struct(f32, f32), 'xmm0+0 xmm1+4'],
  ['x86_64 Rust', struct(i64, f64), 'rax+0 xmm0+8'],
  ['lp64d C', struct(f64, f64), 'fa0+0 fa1+8'],
  ['lp64d C', struct(f32, f32, f32), 'a0+0 a1+8'],
  ['lp64d Rust', struct(i64, f64), 'a0+0 fa0+8'],
  ['lp64f C', f64, 'a0+0'],
];
for (const [name, type, wanted] of results)
  t.test(`${name}: result ${type.kind} ${type.size}`, async (t) => {
    const { place, inMemory } = placeResult(conventions[name] as Calling, type);
    t.equal(text(place), wanted);
    t.equal(inMemory, false);
  });
