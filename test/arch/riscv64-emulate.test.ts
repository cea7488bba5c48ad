import t from 'tap';
import { riscv64 } from '../../src/arch/index.js';
import { decode, type Instruction } from '../../src/arch/riscv64/decode.js';
import { addr } from '../../src/base/addr.js';
import { elfPath } from '../qemu/guests/guests.js';
import { long } from '../support/long.js';
import { carriesOut } from './compare.js';
import { mustBeStepped, needsRegisters, neverThrows } from './emulated.js';
import { disassemble } from './objdump.js';

/** The order of QEMU's `g` packet: x0 to x31 by the names of its riscv-64bit-cpu.xml, then pc. */
const order =
  'zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc'.split(' ');
const machine = '-M virt -m 32M -bios none -display none -serial none -monitor none -S -gdb stdio'.split(' ');

const CODE = 0x8010_0000n;
const STACK = 0x8080_0000n;

/** What an instruction is to the code under test: the op, and whether it came compressed. */
function classOf({ op, compressed }: Instruction): string {
  return compressed ? `c.${op}` : op;
}

/** Everything that must be carried out, by the manual's mnemonics; `c.` marks what has a compressed form. */
const wanted = [
  'add sub sll slt sltu xor srl sra or and addw subw sllw srlw sraw mul mulh mulhsu mulhu mulw div divu rem remu divw divuw remw remuw',
  'addi slti sltiu xori ori andi slli srli srai addiw slliw srliw sraiw lui auipc jal jalr beq bne blt bge bltu bgeu',
  'lb lh lw ld lbu lhu lwu sb sh sw sd',
  'c.add c.sub c.xor c.or c.and c.addw c.subw c.addi c.addiw c.andi c.slli c.srli c.srai c.lui c.jal c.jalr c.beq c.bne c.lw c.ld c.sw c.sd',
].flatMap((line) => line.split(' '));

/** Encodings of every class: random words of the right opcodes, and what the guests' compiler wrote. */
function encodings(perClass: number, next: () => number): Map<string, Uint8Array[]> {
  const found = new Map<string, Uint8Array[]>(wanted.map((name) => [name, []]));
  const offer = (bytes: Uint8Array, room: number): void => {
    const instruction = decode(bytes);
    const list = instruction && found.get(classOf(instruction));
    if (list !== undefined && list.length < room && riscv64.emulate(bytes, addr(CODE)) !== undefined) list.push(bytes);
  };
  for (const name of ['rv-o0', 'rv-o2']) {
    const unique = new Map(
      disassemble('riscv64', elfPath(name)).map(({ bytes }) => [Buffer.from(bytes).toString('hex'), bytes]),
    );
    const all = [...unique.values()];
    for (let left = all.length; left > 0; left--) {
      const index = next() % left;
      offer(all[index] as Uint8Array, perClass / 2);
      all[index] = all[left - 1] as Uint8Array;
    }
  }
  const opcodes = [0x03, 0x13, 0x17, 0x1b, 0x23, 0x33, 0x37, 0x3b, 0x63, 0x67, 0x6f];
  for (let round = 0; round < 400 * perClass; round++) {
    const opcode = opcodes[round % opcodes.length] as number;
    let word = (next() & 0xffff_ff80) | opcode;
    if (opcode === 0x33 || opcode === 0x3b)
      word = (word & 0x1ff_ffff) | (([0, 1, 1, 0x20][next() & 3] as number) << 25);
    if (opcode === 0x1b || (opcode === 0x13 && (next() & 1) === 0)) word &= 0x43ff_ffff;
    // Loads and stores go through sp or s0.
    if (opcode === 0x03 || opcode === 0x23) word = (word & ~(31 << 15)) | ((next() & 1 ? 2 : 8) << 15);
    offer(Uint8Array.of(word, word >> 8, word >> 16, word >> 24), perClass);
    const half = next();
    if ((half & 3) !== 3) offer(Uint8Array.of(half, half >> 8), perClass);
  }
  return found;
}

t.test('carrying an instruction out leaves what QEMU leaves after a step', { timeout: 600_000 }, async (t) => {
  await carriesOut(t, {
    ...{ architecture: riscv64, program: 'qemu-system-riscv64', machine, order },
    ...{ code: CODE, stack: STACK, alignment: 1, perClass: long ? 240 : 30, least: long ? 60 : 30 },
    encodings: (next) => encodings(long ? 240 : 100, next),
    framePointer: 'fp',
    equal: order.slice(10, 16),
    prepare: (registers) => registers.set('zero', 0n),
    left: /^(c\.)?(l[bhwd]u?|s[bhwd])$/,
  });
});

t.test('what must be stepped is refused', async (t) => {
  mustBeStepped(t, riscv64, {
    'csrrw zero,mscratch,t0': '73900234',
    lpad: '17100000',
    ecall: '73000000',
    ebreak: '73001000',
    'c.ebreak': '0290',
    wfi: '73005010',
    mret: '73002030',
    'fence rw,rw': '0f003003',
    'fence.i': '0f100000',
    'amoadd.w a6,a7,(a6)': '2f281801',
    'lr.w.aq a3,(a0)': 'af260514',
    'fld fa0,0(sp)': '07350100',
    'c.fsdsp fs0,8(sp)': '22a4',
    'lw a0,0(a0)': '03250500',
    'sd a0,0(a1)': '23b0a500',
    'c.ld a0,0(a1)': '8861',
    illegal: '0000',
  });
  t.equal(riscv64.emulate(Uint8Array.of(0x13), addr(CODE)), undefined, 'cut off');
});

t.test('a register that is not known means no effects', async (t) => {
  // ld ra,8(sp), in two bytes; add a0,a1,a2; sd ra,8(sp), in two bytes
  needsRegisters(t, riscv64, ['a260', '3385c500', '06e4']);
  const load = riscv64.emulate(Uint8Array.of(0xa2, 0x60), addr(CODE));
  t.same(load?.load?.({ register: () => STACK }), { address: STACK + 8n, length: 8 });
});

t.test('random bytes are carried out or not, and never throw', async (t) => {
  neverThrows(t, riscv64, { maxLength: 8 });
});

t.test('a breakpoint is as long as what it takes the place of', async (t) => {
  t.equal(riscv64.breakpointKind(Uint8Array.of(0x41, 0x11)), 2, 'c.addi sp,-16');
  t.equal(riscv64.breakpointKind(Uint8Array.of(0x13, 0x01, 0x01, 0xfe)), 4, 'addi sp,sp,-32');
  t.equal(riscv64.breakpointKind(new Uint8Array(0)), 4);
});
