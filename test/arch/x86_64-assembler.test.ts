import t from 'tap';
import { Label } from '../../src/arch/inject/code-buffer.js';
import { Assembler } from '../../src/arch/x86_64/assembler.js';
import type { Place } from '../../src/arch/x86_64/encoder.js';
import { addr } from '../../src/base/addr.js';
import { disassembleBytes, type Line } from './objdump.js';
import { random, values } from './random.js';

const wide = 'rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15'.split(' ');
const narrow: Record<number, string[]> = {
  1: 'al cl dl bl spl bpl sil dil r8b r9b r10b r11b r12b r13b r14b r15b'.split(' '),
  2: 'ax cx dx bx sp bp si di r8w r9w r10w r11w r12w r13w r14w r15w'.split(' '),
  4: 'eax ecx edx ebx esp ebp esi edi r8d r9d r10d r11d r12d r13d r14d r15d'.split(' '),
  8: wide,
};
const pointers: Record<number, string> = { 1: 'BYTE', 2: 'WORD', 4: 'DWORD', 8: 'QWORD' };
const sizes = [1, 2, 4, 8] as const;
const numbers = wide.map((_, number) => number);
const hex = (value: bigint | number): string => `0x${value.toString(16)}`;
const named = (number: number, size: number): string => narrow[size]?.[number] as string;

/** An instruction, and what objdump must say of it. */
type Case = readonly [write: (code: Assembler) => void, mnemonic: string, operands: string];

/** Where objdump reads something else. */
function differences(cases: readonly Case[]): object[] {
  const code = new Assembler(addr(0));
  for (const [write] of cases) write(code);
  const lines = disassembleBytes('x86_64', code.finish());
  const actual = lines.map(({ mnemonic, operands }) => `${mnemonic} ${operands}`);
  const expected = cases.map(([, mnemonic, operands]) => `${mnemonic} ${operands}`);
  if (actual.length > expected.length) expected.push('the end');
  return expected
    .flatMap((text, index) => (actual[index] === text ? [] : [{ expected: text, actual: actual[index] }]))
    .slice(0, 5);
}

/** Every kind of operand in memory, with the text for it. */
function places(): [Place, string][] {
  const offsets = [0, 1, -1, 127, 128, -128, -129, 0x7fff_ffff, -0x8000_0000];
  const signed = (offset: number): string => (offset < 0 ? `-${hex(-offset)}` : `+${hex(offset)}`);
  return numbers.flatMap((base): [Place, string][] => [
    ...offsets.map((offset): [Place, string] => {
      const text = offset === 0 && (base & 7) !== 5 ? '' : signed(offset);
      return [{ base, offset }, `[${wide[base]}${text}]`];
    }),
    ...numbers
      .filter((index) => index !== 4)
      .map((index): [Place, string] => {
        const scale = ([1, 2, 4, 8] as const)[index & 3] as 1 | 2 | 4 | 8;
        return [{ base, offset: 0x40, index, scale }, `[${wide[base]}+${wide[index]}*${scale}+0x40]`];
      }),
  ]);
}

t.test('operands in memory', async (t) => {
  t.same(
    differences(
      places().flatMap(([place, text]): Case[] => [
        [(code) => code.address(13, place), 'lea', `r13,${text}`],
        [(code) => code.load(3, place), 'mov', `rbx,QWORD PTR ${text}`],
        [(code) => code.store(place, 12, 4), 'mov', `DWORD PTR ${text},r12d`],
        [(code) => code.push(place), 'push', `QWORD PTR ${text}`],
      ]),
    ),
    [],
  );
});

t.test('registers of every size', async (t) => {
  const place: Place = { base: 8, offset: 8 };
  t.same(
    differences(
      numbers.flatMap((number): Case[] => [
        [(code) => code.push(number), 'push', named(number, 8)],
        [(code) => code.pop(number), 'pop', named(number, 8)],
        [(code) => code.decrement(number), 'dec', named(number, 8)],
        [(code) => code.decrement(number, 4), 'dec', named(number, 4)],
        [(code) => code.shift('left', number, 32), 'shl', `${named(number, 8)},0x20`],
        [(code) => code.shift('signed right', number, 63), 'sar', `${named(number, 8)},0x3f`],
        [(code) => code.addAtOnce(place, number), 'lock add', `QWORD PTR [r8+0x8],${named(number, 8)}`],
        [(code) => code.arithmetic('adc', number, { constant: 0n }), 'adc', `${named(number, 8)},0x0`],
        [(code) => code.shift('right', number, 7), 'shr', `${named(number, 8)},0x7`],
        [(code) => code.test(number, number), 'test', `${named(number, 8)},${named(number, 8)}`],
        [(code) => code.testConstant(number, 7), 'test', `${named(number, 1)},0x7`],
        [(code) => code.testConstant(number, 0xfff), 'test', `${named(number, 4)},0xfff`],
        [(code) => code.jumpTo(number), 'jmp', named(number, 8)],
        [(code) => code.compareExchange(place, number), 'lock cmpxchg', `QWORD PTR [r8+0x8],${named(number, 8)}`],
        [(code) => code.highestBit(number, 11), 'bsr', `${named(number, 8)},r11`],
        [(code) => code.highestBit(3, number), 'bsr', `rbx,${named(number, 8)}`],
        [(code) => code.extend(number, 9, 1, true), 'movsx', `${named(number, 8)},r9b`],
        [(code) => code.extend(2, number, 1, false), 'movzx', `rdx,${named(number, 1)}`],
        [(code) => code.extend(2, number, 1, true), 'movsx', `rdx,${named(number, 1)}`],
        [(code) => code.extend(12, number, 2, false), 'movzx', `r12,${named(number, 2)}`],
        [(code) => code.extend(12, number, 2, true), 'movsx', `r12,${named(number, 2)}`],
        [(code) => code.extend(0, number, 4, false), 'mov', `eax,${named(number, 4)}`],
        [(code) => code.extend(0, number, 4, true), 'movsxd', `rax,${named(number, 4)}`],
        [(code) => code.extend(0, number, 8, true), 'mov', `rax,${named(number, 8)}`],
        [(code) => code.load(number, place, 1), 'movzx', `${named(number, 4)},BYTE PTR [r8+0x8]`],
        [(code) => code.load(number, place, 2), 'movzx', `${named(number, 4)},WORD PTR [r8+0x8]`],
        [(code) => code.load(number, place, 4), 'mov', `${named(number, 4)},DWORD PTR [r8+0x8]`],
        [(code) => code.load(number, { fs: 0x28 }), 'mov', `${named(number, 8)},QWORD PTR fs:0x28`],
        ...numbers.map(
          (other): Case => [(code) => code.move(number, other), 'mov', `${named(number, 8)},${named(other, 8)}`],
        ),
        ...sizes.flatMap((size): Case[] => [
          [(code) => code.store(place, number, size), 'mov', `${pointers[size]} PTR [r8+0x8],${named(number, size)}`],
          [(code) => code.arithmetic('cmp', number, 5, size), 'cmp', `${named(number, size)},${named(5, size)}`],
          [
            (code) => code.arithmetic('add', number, place, size),
            'add',
            `${named(number, size)},${pointers[size]} PTR [r8+0x8]`,
          ],
          [
            (code) => code.arithmetic('sub', place, number, size),
            'sub',
            `${pointers[size]} PTR [r8+0x8],${named(number, size)}`,
          ],
        ]),
      ]),
    ),
    [],
  );
});

t.test('constants of every size', async (t) => {
  const value = values(random(7));
  const wanted = [
    ...Array.from({ length: 60 }, value),
    0n,
    0x7fn,
    0x80n,
    -1n,
    -0x80n,
    -0x81n,
    0x7fff_ffffn,
    0x8000_0000n,
    -0x8000_0000n,
  ];
  const whole = wanted.map((each): Case => {
    const unsigned = BigInt.asUintN(64, each);
    const mnemonic = BigInt.asIntN(32, each) !== BigInt.asIntN(64, each) && unsigned >> 32n !== 0n ? 'movabs' : 'mov';
    return [(code) => code.constant(9, each), mnemonic, `${unsigned >> 32n === 0n ? 'r9d' : 'r9'},${hex(unsigned)}`];
  });
  const ops = ['add', 'or', 'and', 'sub', 'xor', 'cmp'] as const;
  const compared = sizes.flatMap((size) =>
    wanted.flatMap((each): Case[] => {
      const part = BigInt.asIntN(8 * size, each);
      if (size === 8 && BigInt.asIntN(32, part) !== part) return [];
      const text = hex(BigInt.asUintN(8 * size, part));
      return [
        ...ops.map(
          (op): Case => [(code) => code.arithmetic(op, 11, { constant: part }, size), op, `${named(11, size)},${text}`],
        ),
        [
          (code) => code.arithmetic('cmp', { base: 5, offset: 0 }, { constant: BigInt.asUintN(8 * size, part) }, size),
          'cmp',
          `${pointers[size]} PTR [rbp+0x0],${text}`,
        ],
        [
          (code) => code.storeConstant({ base: 4, offset: 16 }, part, size),
          'mov',
          `${pointers[size]} PTR [rsp+0x10],${text}`,
        ],
      ];
    }),
  );
  t.same(differences([...whole, ...compared]), []);
});

t.test('instructions without operands, and those of the system', async (t) => {
  t.same(
    differences([
      [(code) => code.plain('ret'), 'ret', ''],
      [(code) => code.plain('nop'), 'nop', ''],
      [(code) => code.plain('pause'), 'pause', ''],
      [(code) => code.plain('mov rax, cr0'), 'mov', 'rax,cr0'],
      ...[0, 3, 7].flatMap((number): Case[] => [
        [(code) => code.storeFloat({ base: 11, offset: 512 }, number), 'movq', `QWORD PTR [r11+0x200],xmm${number}`],
        [(code) => code.storeFloat({ base: 3, offset: -8 }, number), 'movq', `QWORD PTR [rbx-0x8],xmm${number}`],
      ]),
      [(code) => code.plain('rdtsc'), 'rdtsc', ''],
      [(code) => code.plain('cpuid'), 'cpuid', ''],
      [(code) => code.increment({ base: 12, offset: 0 }), 'lock inc', 'QWORD PTR [r12]'],
      [(code) => code.moveStack(-40), 'lea', 'rsp,[rsp-0x28]'],
    ]),
    [],
  );
});

/** Where a rip-relative operand of a line points. */
const pointed = ({ address, bytes, operands }: Line): bigint =>
  BigInt.asUintN(
    64,
    address + BigInt(bytes.length) + BigInt.asIntN(64, BigInt(/\[rip\+(0x[0-9a-f]+)\]/.exec(operands)?.[1] ?? 0)),
  );

t.test('jumps, labels, rip-relative operands and literals mean the same everywhere', async (t) => {
  for (const base of [0n, 0x1000_0000n, 0xffff_ffff_8100_0000n]) {
    const code = new Assembler(addr(base));
    const [back, forth] = [new Label(), new Label()];
    const data = addr(base + 0x1234n);
    code.bind(back);
    code.branch('ne', forth);
    code.jump(back);
    code.load(0, { at: data });
    code.arithmetic('cmp', { at: data }, { constant: 0x12345678n });
    code.arithmetic('cmp', { at: data }, { constant: 1n });
    code.storeConstant({ at: data }, 1n, 1);
    code.bind(forth);
    code.address(11, { at: back });
    code.push(code.literal(0x1122_3344_5566_7788n));
    code.push(code.literal(0x1122_3344_5566_7788n));
    code.jump(addr(base - 0x100n));
    const end = code.here - base;
    const bytes = code.finish();
    const lines = disassembleBytes('x86_64', bytes.subarray(0, Number(end)));
    const targets = lines.map((line) => (line.operands.includes('rip') ? pointed(line) : BigInt(line.operands)));
    const at = (index: number): bigint => lines[index]?.address ?? -1n;
    t.same(
      targets,
      [at(6), 0n, 0x1234n, 0x1234n, 0x1234n, 0x1234n, 0n, end, end, BigInt.asUintN(64, -0x100n)],
      hex(base),
    );
    t.equal(bytes.length, Number(end) + 8, 'one literal');
    t.equal(Buffer.from(bytes).readBigUInt64LE(Number(end)), 0x1122_3344_5566_7788n);
  }
});

t.test('what an instruction cannot hold is a RangeError', async (t) => {
  const wrong: ((code: Assembler) => void)[] = [
    (code) => code.jump(addr(0x8000_0005n)),
    (code) => code.load(0, { at: addr(-0x7fff_fffan) }),
    (code) => code.load(0, { base: 0, offset: 2 ** 31 }),
    (code) => code.load(0, { base: 0, offset: 0.5 }),
    (code) => code.load(0, { base: 0, offset: 0, index: 4 }),
    (code) => code.storeConstant({ base: 0, offset: 0 }, 0x8000_0000n, 8),
    (code) => code.storeConstant({ base: 0, offset: 0 }, 256n, 1),
    (code) => code.storeConstant({ base: 0, offset: 0 }, -129n, 1),
    (code) => code.arithmetic('add', 0, { constant: 1n << 32n }, 8),
    (code) => code.shift('left', 0, 64),
    (code) => code.jump(new Label()),
    (code) => code.arithmetic('add', { base: 0, offset: 0 }, { base: 0, offset: 0 }),
  ];
  for (const write of wrong) {
    const code = new Assembler(addr(0));
    t.throws(() => {
      write(code);
      code.finish();
    }, RangeError);
  }
  const code = new Assembler(addr(0));
  code.jump(addr(0x8000_0004n));
  t.equal(Buffer.from(code.finish()).readInt32LE(1), 0x7fff_ffff, 'the furthest');
});
