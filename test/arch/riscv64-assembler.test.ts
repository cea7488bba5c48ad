import t from 'tap';
import { Label } from '../../src/arch/inject/code-buffer.js';
import * as rv from '../../src/arch/riscv64/assembler.js';
import { floatName, integerText as x } from '../../src/arch/riscv64/registers.js';
import { addr } from '../../src/base/addr.js';
import { disassembleBytes, type Line } from './objdump.js';
import { random, values } from './random.js';
import { Machine, words } from './riscv64-machine.js';

const next = random(11);
const register = (): number => next() % 32;
const between = (low: number, high: number): number => low + (next() % (high - low + 1));
const hex = (value: number): string => `0x${value.toString(16)}`;

/** Code, and what objdump must say that it is. */
type Encoded = readonly [word: number, text: string];

/** One of each instruction with random operands; `at` is where it will stand. */
function some(at: number): Encoded[] {
  const [a, b, c] = [register(), register(), register()];
  const imm = between(-2048, 2047);
  const by = between(0, 63);
  const upper = between(-0x8_0000, 0x7_ffff);
  const near = 2 * between(-2048, 2047);
  const far = 2 * between(-0x8_0000, 0x7_ffff);
  const target = (offset: number, index: number): string =>
    BigInt.asUintN(64, BigInt(at + 4 * index + offset)).toString(16);
  const list: ((index: number) => Encoded)[] = [
    () => [rv.addi(a, b, imm), `addi ${x(a)},${x(b)},${imm}`],
    () => [rv.andi(a, b, imm), `andi ${x(a)},${x(b)},${imm}`],
    () => [rv.addiw(a, b, imm), `addiw ${x(a)},${x(b)},${imm}`],
    () => [rv.slli(a, b, by), `slli ${x(a)},${x(b)},${hex(by)}`],
    () => [rv.srli(a, b, by), `srli ${x(a)},${x(b)},${hex(by)}`],
    () => [rv.srai(a, b, by), `srai ${x(a)},${x(b)},${hex(by)}`],
    () => [rv.add(a, b, c), `add ${x(a)},${x(b)},${x(c)}`],
    () => [rv.lui(a, upper), `lui ${x(a)},${hex(upper & 0xf_ffff)}`],
    () => [rv.auipc(a, upper), `auipc ${x(a)},${hex(upper & 0xf_ffff)}`],
    () => [rv.jalr(a, b, imm), `jalr ${x(a)},${imm}(${x(b)})`],
    () => [rv.nop(), 'addi zero,zero,0'],
    (index) => [rv.jal(a, far), `jal ${x(a)},${target(far, index)}`],
    ...(['beq', 'bne', 'blt', 'bge', 'bltu', 'bgeu'] as const).map(
      (op) =>
        (index: number): Encoded => [rv.branch(op, a, b, near), `${op} ${x(a)},${x(b)},${target(near, index)}`],
    ),
    ...(['lb', 'lh', 'lw', 'ld', 'lbu', 'lhu', 'lwu'] as const).map(
      (op) => (): Encoded => [rv.load(op, a, b, imm), `${op} ${x(a)},${imm}(${x(b)})`],
    ),
    ...(['sb', 'sh', 'sw', 'sd'] as const).map(
      (op) => (): Encoded => [rv.store(op, a, b, imm), `${op} ${x(a)},${imm}(${x(b)})`],
    ),
    () => [rv.fsd(a, b, imm), `fsd ${floatName(a)},${imm}(${x(b)})`],
    () => [rv.amoaddD(a, b, c), `amoadd.d ${x(a)},${x(b)},(${x(c)})`],
    () => [rv.lrD(a, c), `lr.d ${x(a)},(${x(c)})`],
    () => [rv.scDRelease(a, b, c), `sc.d.rl ${x(a)},${x(b)},(${x(c)})`],
    () => [rv.fence(2, 2), 'fence r,r'],
    () => [rv.fence(1, 1), 'fence w,w'],
    () => [rv.fence(15, 3), 'fence iorw,rw'],
    () => [rv.csr('csrrs', a, 0xc01, b), `csrrs ${x(a)},time,${x(b)}`],
    () => [rv.csr('csrrs', a, 0xf14, 0), `csrrs ${x(a)},mhartid,zero`],
    () => [rv.csr('csrrw', a, 0x340, b), `csrrw ${x(a)},mscratch,${x(b)}`],
  ];
  return list.map((one, index) => one(index));
}

const textOf = ({ mnemonic, operands }: Line): string =>
  `${mnemonic} ${operands}`.replace(/^(jal|b\w+) (.*)0x/, '$1 $2');

t.test('every instruction is what objdump reads', async (t) => {
  const encoded: Encoded[] = [];
  for (let round = 0; round < 200; round++) encoded.push(...some(4 * encoded.length));
  const code = new Uint8Array(Uint32Array.from(encoded, ([word]) => word).buffer);
  const lines = disassembleBytes('riscv64', code);
  t.equal(lines.length, encoded.length);
  const wrong = lines
    .map((line, index) => [textOf(line), encoded[index]?.[1]])
    .filter(([got, wanted]) => got !== wanted);
  t.same(wrong.slice(0, 20), []);
});

t.test('compressed instructions are what objdump reads', async (t) => {
  const assembler = new rv.Assembler(addr(0));
  assembler.emitCompressed(
    rv.cAddiSp(-16),
    rv.cAddiSp(16),
    rv.cSdsp0(5),
    rv.cLdsp(5, 0),
    rv.cSdsp0(31),
    rv.cLdsp(31, 0),
  );
  assembler.emitCompressed(rv.cLdsp(1, 8), rv.cLdsp(1, 32), rv.cLdsp(1, 56), rv.cLdsp(1, 504), rv.cJrRa);
  assembler.emitCompressed(rv.cAddi16Sp(32), rv.cAddi16Sp(48), rv.cAddi16Sp(64), rv.cAddi16Sp(128));
  t.same(
    disassembleBytes('riscv64', assembler.finish()).map(({ mnemonic, operands }) => `${mnemonic} ${operands}`),
    ['c.addi sp,-16', 'c.addi sp,16', 'c.sdsp t0,0(sp)', 'c.ldsp t0,0(sp)', 'c.sdsp t6,0(sp)', 'c.ldsp t6,0(sp)']
      .concat(['c.ldsp ra,8(sp)', 'c.ldsp ra,32(sp)', 'c.ldsp ra,56(sp)', 'c.ldsp ra,504(sp)', 'c.jr ra'])
      .concat(['c.addi16sp sp,32', 'c.addi16sp sp,48', 'c.addi16sp sp,64', 'c.addi16sp sp,128']),
  );
});

t.test('operands that do not fit are refused', async (t) => {
  for (const wrong of [
    () => rv.addi(1, 1, 2048),
    () => rv.addi(1, 1, -2049),
    () => rv.addi(1, 1, 0.5),
    () => rv.addi(32, 1, 0),
    () => rv.add(1, -1, 0),
    () => rv.slli(1, 1, 64),
    () => rv.srai(1, 1, -1),
    () => rv.lui(1, 0x8_0000),
    () => rv.jal(0, 0x10_0000),
    () => rv.jal(0, 1),
    () => rv.branch('beq', 1, 2, 4096),
    () => rv.branch('beq', 1, 2, -4098),
    () => rv.store('sd', 1, 2, 2048),
    () => rv.csr('csrrs', 1, 4096, 0),
    () => rv.fence(16, 0),
    () => rv.cAddiSp(32),
    () => new rv.Assembler(addr(0)).jumpNear(addr(0x10_0000)),
    () => new rv.Assembler(addr(0)).jumpFar(addr(0x8000_0000), 5),
    () => new rv.Assembler(addr(0x10_0000_0000)).loadAddress(5, addr(0x8000_0000)),
  ])
    t.throws(wrong, RangeError, String(wrong));
});

t.test('labels are resolved in both directions, and must be bound', async (t) => {
  const assembler = new rv.Assembler(addr(0x1000));
  const [before, behind] = [new Label(), new Label()];
  assembler.bind(before);
  assembler.branch('bltu', 5, 6, behind);
  assembler.jump(before);
  assembler.bind(behind);
  t.same(disassembleBytes('riscv64', assembler.finish()).map(textOf), ['bltu t0,t1,8', 'jal zero,0']);
  assembler.jump(new Label());
  t.throws(() => assembler.finish(), /not bound/);
});

t.test('constants and addresses are what the machine has in the register', async (t) => {
  const value = values(next);
  const constants = Array.from({ length: 300 }, value);
  for (let bit = 0n; bit < 64n; bit++)
    for (const low of [-0x801n, -0x800n, -1n, 0n, 1n, 0x7ffn, 0x800n]) constants.push((1n << bit) + low);
  const CODE = addr(0x8010_0000);
  const DATA = 0x8100_0000n;
  const addresses = [0n, 8n, 0x7ffn, 0x800n, 0x801n, -0x800n, -0x801n, 0x7ff0_0000n, -0x7ff0_0000n].map((distance) =>
    addr(CODE + distance),
  );
  // Below 2 GiB and in the highest 2 GiB as constants.
  addresses.push(addr(0x123), addr(0x7fff_f7ff), addr(-1), addr(-0x8000_0000));
  const assembler = new rv.Assembler(CODE);
  const put = (): void => assembler.emit(rv.sd(10, 11, 0), rv.addi(11, 11, 8));
  for (const constant of constants) {
    assembler.loadConstant(10, constant);
    put();
  }
  for (const address of addresses) {
    const before = assembler.here;
    assembler.loadAddress(10, address);
    t.equal(assembler.here - before, 8n);
    put();
  }
  const end = assembler.here;
  await using machine = await Machine.start();
  await machine.write(CODE, assembler.finish());
  await machine.setRegisters({ pc: CODE, a1: DATA });
  await machine.run([end]);
  const wanted = words(...constants, ...addresses);
  t.same(await machine.read(DATA, wanted.length), wanted);
});
