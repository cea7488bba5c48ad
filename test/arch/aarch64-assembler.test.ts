// Every instruction that trampolines have, as objdump reads it; constants and addresses by what a machine makes of them.
import t from 'tap';
import * as arm from '../../src/arch/aarch64/assembler.js';
import { Label } from '../../src/arch/inject/code-buffer.js';
import { addr } from '../../src/base/addr.js';
import { EL1, Machine, place } from './aarch64-machine.js';
import { words } from './machine.js';
import { disassembleBytes } from './objdump.js';

const cases: readonly (readonly [word: number, text: string])[] = [
  [arm.addi(0, 31, 4095), 'add x0, sp, #0xfff'],
  [arm.addi(31, 31, -64), 'sub sp, sp, #0x40'],
  [arm.add(1, 2, 31), 'add x1, x2, xzr'],
  [arm.sub(30, 29, 28), 'sub x30, x29, x28'],
  [arm.and(1, 2, 3), 'and x1, x2, x3'],
  [arm.bic(1, 2, 3), 'bic x1, x2, x3'],
  [arm.orr(1, 2, 3), 'orr x1, x2, x3'],
  [arm.eor(1, 2, 3), 'eor x1, x2, x3'],
  [arm.mov(1, 3), 'orr x1, xzr, x3'],
  [arm.andOnes(4, 5, 1), 'and x4, x5, #0x1'],
  [arm.andOnes(4, 5, 48), 'and x4, x5, #0xffffffffffff'],
  [arm.andOnes(4, 5, 63), 'and x4, x5, #0x7fffffffffffffff'],
  [arm.andOnes(4, 5, 61, 3), 'and x4, x5, #0xfffffffffffffff8'],
  [arm.eorOnes(4, 5, 1, 63), 'eor x4, x5, #0x8000000000000000'],
  [arm.lsl(1, 2, 3), 'ubfm x1, x2, #61, #60'],
  [arm.lsl(1, 2, 0), 'ubfm x1, x2, #0, #63'],
  [arm.lsr(1, 2, 3), 'ubfm x1, x2, #3, #63'],
  [arm.asr(1, 2, 63), 'sbfm x1, x2, #63, #63'],
  [arm.extend(1, 2, 1, false), 'ubfm x1, x2, #0, #7'],
  [arm.extend(1, 2, 4, true), 'sbfm x1, x2, #0, #31'],
  [arm.clz(7, 8), 'clz x7, x8'],
  [arm.adrp(3, -1), 'adrp x3, 0xfffffffffffff000'],
  [arm.adrp(3, 0xfffff), 'adrp x3, 0xfffff000'],
  [arm.adr(3, -3), 'adr x3, 0xfffffffffffffffd'],
  [arm.access('load', 1, 1, 2, 4095), 'ldrb w1, [x2, #4095]'],
  [arm.access('load', 2, 1, 2, 8190), 'ldrh w1, [x2, #8190]'],
  [arm.access('load', 4, 1, 2, 3), 'ldur w1, [x2, #3]'],
  [arm.access('load', 8, 1, 2, -256), 'ldur x1, [x2, #-256]'],
  [arm.access('signed', 1, 1, 2, 0), 'ldrsb x1, [x2]'],
  [arm.access('signed', 2, 1, 2, -2), 'ldursh x1, [x2, #-2]'],
  [arm.access('signed', 4, 1, 2, 4), 'ldrsw x1, [x2, #4]'],
  [arm.access('signed', 8, 1, 31, 8), 'ldr x1, [sp, #8]'],
  [arm.access('store', 1, 31, 2, 5), 'strb wzr, [x2, #5]'],
  [arm.access('store', 2, 1, 2, 255), 'sturh w1, [x2, #255]'],
  [arm.access('store', 4, 1, 2, 8), 'str w1, [x2, #8]'],
  [arm.ldr(9, 16, 32760), 'ldr x9, [x16, #32760]'],
  [arm.str(30, 31, 0), 'str x30, [sp]'],
  [arm.strD(7, 9, 16), 'str d7, [x9, #16]'],
  [arm.pop(30, 16), 'ldr x30, [sp], #16'],
  [arm.push(16, 16), 'str x16, [sp, #-16]!'],
  [arm.ldxr(10, 16), 'ldxr x10, [x16]'],
  [arm.stxr(9, 17, 16), 'stxr w9, x17, [x16]'],
  [arm.stlxr(10, 17, 16), 'stlxr w10, x17, [x16]'],
  [arm.stlr(17, 9), 'stlr x17, [x9]'],
  [arm.clrex, 'clrex'],
  [arm.dmbLoads, 'dmb ishld'],
  [arm.nop, 'hint #0x0'],
  [arm.mrs(3, 0xdf02), 'mrs x3, cntvct_el0'],
  [arm.mrs(3, 0xdf00), 'mrs x3, cntfrq_el0'],
  [arm.mrs(3, 0xc005), 'mrs x3, mpidr_el1'],
  [arm.mrs(3, 0xc082), 'mrs x3, cpacr_el1'],
  [arm.ret(16), 'ret x16'],
  [arm.ret(30), 'ret'],
  [arm.b(-(2 ** 27)), 'b 0xfffffffff8000000'],
  [arm.b(2 ** 27 - 4), 'b 0x7fffffc'],
  [arm.branch('zero', 3, 2 ** 20 - 4), 'cbz x3, 0xffffc'],
  [arm.branch('not-zero', 3, -(2 ** 20)), 'cbnz x3, 0xfffffffffff00000'],
  [arm.branchBit('zero', 3, 63, 2 ** 15 - 4), 'tbz x3, #63, 0x7ffc'],
  [arm.branchBit('not-zero', 3, 5, -(2 ** 15)), 'tbnz w3, #5, 0xffffffffffff8000'],
];

t.test('each is what objdump reads', async (t) => {
  // Each at address 0.
  for (const [word, text] of cases) {
    const [line] = disassembleBytes('aarch64', new Uint8Array(Uint32Array.of(word).buffer));
    t.equal(`${line?.mnemonic} ${line?.operands}`.trim(), text);
  }
});

t.test('what does not fit is a RangeError', async (t) => {
  for (const wrong of [
    () => arm.addi(0, 1, 4096),
    () => arm.addi(0, 1, 0.5),
    () => arm.add(32, 0, 0),
    () => arm.ldr(0, 1, 32768),
    () => arm.ldr(0, 1, -257),
    () => arm.b(2 ** 27),
    () => arm.b(2),
    () => arm.branch('zero', 0, 2 ** 20),
    () => arm.branchBit('zero', 0, 64, 0),
    () => arm.adrp(0, 2 ** 20),
    () => arm.lsl(0, 0, 64),
    () => new arm.Assembler(addr(0)).jumpNear(addr(2 ** 27)),
    () => new arm.Assembler(addr(0)).loadAddress(0, addr(2 ** 32)),
    () => {
      const code = new arm.Assembler(addr(0));
      code.jump(new Label());
      code.finish();
    },
  ])
    t.throws(wrong, RangeError);
});

t.test('a machine finds the constants and addresses that were asked for', async (t) => {
  await using machine = await Machine.start();
  const constants = [0n, 1n, 0xffffn, 0x1_0000n, 0xffff_0000n, -1n, -2n, -0x1_0000n, 1n << 63n, 0x1234_5678_9abc_def0n];
  for (let bit = 4n; bit < 64n; bit += 7n) constants.push(1n << bit, -(1n << bit), (1n << bit) - 3n);
  const distances = [0n, 1n, 0xfffn, 0x1000n, -1n, -0x1001n, 0xffff_0000n, -0x4000_0000n];
  const code = new arm.Assembler(place.code);
  const wanted: bigint[] = [];
  const keep = (value: bigint): void => {
    code.emit(arm.str(0, 1, 8 * wanted.length));
    wanted.push(BigInt.asUintN(64, value));
  };
  for (const value of constants) {
    code.loadConstant(0, value);
    keep(value);
  }
  for (const distance of distances) {
    const address = addr(BigInt.asUintN(64, place.code + distance));
    code.loadAddress(0, address);
    keep(address);
  }
  code.emit(arm.ret(30));
  await machine.write(place.code, code.finish());
  const registers = await machine.registers();
  await machine.setRegisters({ ...registers, pc: place.code, x1: place.data, x30: place.done + 0x1000n, cpsr: EL1 });
  await machine.run([place.done + 0x1000n]);
  t.same(await machine.read(place.data, 8 * wanted.length), words(...wanted));
});
