import t from 'tap';
import { loongarch64 } from '../../src/arch/index.js';
import { decode, type Instruction } from '../../src/arch/loongarch64/decode.js';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { long } from '../support/long.js';
import { carriesOut } from './compare.js';
import { mustBeStepped, needsRegisters, neverThrows } from './emulated.js';

/** The order of QEMU's `g` packet. */
const order = [...Array.from({ length: 32 }, (_, number) => `r${number}`), 'orig_a0', 'pc'];
const machine = '-M virt -m 1G -display none -serial none -monitor none -S -gdb stdio'.split(' ');

/** In RAM; the processor begins without paging, so addresses are physical. */
const CODE = 0x10_0000n;
const STACK = 0x80_0000n;

const classOf = (instruction: Instruction): string =>
  instruction.form === 'memory'
    ? `${instruction.access} ${instruction.size} ${instruction.signed ? 'signed' : ''}`.trim()
    : 'op' in instruction
      ? `${instruction.form} ${instruction.op}`
      : instruction.form === 'jump' && instruction.link
        ? 'bl'
        : instruction.form;

const registerOps =
  'addw add subw sub slt sltu maskeqz masknez nor and or xor orn andn sllw srlw sraw sll srl sra mulw mul mulh mulhu';
const wanted = [
  ...registerOps.split(' ').map((op) => `register ${op}`),
  ...'slt sltu addw add and or xor sllw srlw sraw sll srl sra'.split(' ').map((op) => `immediate ${op}`),
  ...['constant', 'upper', 'address', 'bits', 'jump', 'bl', 'jump-register'],
  ...'beq bne blt bge bltu bgeu'.split(' ').map((op) => `branch ${op}`),
  ...['load 1 signed', 'load 2 signed', 'load 4 signed', 'load 8 signed', 'load 1', 'load 2', 'load 4'],
  ...['store 1', 'store 2', 'store 4', 'store 8'],
];

/** Where the fixed bits of these classes are set; the others are random. */
const openings: readonly (readonly [mask: number, bits: number])[] = [
  [0xfff0_0000, 0x0010_0000],
  [0xffff_8000, 0x0040_8000],
  [0xffff_8000, 0x0044_8000],
  [0xffff_8000, 0x0048_8000],
  [0xffff_0000, 0x0041_0000],
  [0xffff_0000, 0x0045_0000],
  [0xffff_0000, 0x0049_0000],
  [0xffe0_8000, 0x0060_8000],
  [0xffc0_0000, 0x00c0_0000],
  [0xfe00_0000, 0x0200_0000],
  [0xfc00_0000, 0x1000_0000],
  [0xf800_0000, 0x1000_0000],
  [0xf800_0000, 0x1800_0000],
  [0xf800_0000, 0x4000_0000],
  [0xfc00_0000, 0x4c00_0000],
  [0xf800_0000, 0x5000_0000],
  [0xf000_0000, 0x5000_0000],
  [0xf000_0000, 0x6000_0000],
  [0xfc00_0000, 0x2800_0000],
  [0xf800_0000, 0x2000_0000],
];

const bytesOfWord = (word: number): Uint8Array => Uint8Array.of(word, word >> 8, word >> 16, word >> 24);

async function written(): Promise<readonly Uint8Array[]> {
  const elf = await ElfFile.open(elfPath('loong-o2'));
  const text = elf.sections.find(({ name }) => name === '.text');
  const bytes = elf.bytesAt(text?.address ?? addr(0), Number(text?.size)) ?? new Uint8Array(0);
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.slice(4 * index, 4 * index + 4));
}

/** Encodings of every class: random words of the right opcodes, and what the guests' compiler wrote. */
async function encodings(perClass: number, next: () => number): Promise<Map<string, Uint8Array[]>> {
  const found = new Map<string, Uint8Array[]>(wanted.map((name) => [name, []]));
  const offer = (bytes: Uint8Array, room: number): void => {
    const instruction = decode(bytes);
    const list = instruction && found.get(classOf(instruction));
    if (list && list.length < room && loongarch64.emulate(bytes, addr(CODE))) list.push(bytes);
  };
  const guest = await written();
  for (let round = 0; round < guest.length; round++) offer(guest[next() % guest.length] as Uint8Array, perClass / 2);
  for (let round = 0; round < 1000 * perClass; round++) {
    const [mask, bits] = openings[round % openings.length] as (typeof openings)[number];
    let word = ((next() & ~mask) | bits) >>> 0;
    // Loads and stores go by sp or fp.
    if (bits >>> 28 === 2) word = ((word & ~(31 << 5)) | ((next() & 1 ? 3 : 22) << 5)) >>> 0;
    offer(bytesOfWord(word), perClass);
  }
  return found;
}

t.test('carrying an instruction out leaves what QEMU leaves after a step', { timeout: 600_000 }, async (t) => {
  await carriesOut(t, {
    ...{ architecture: loongarch64, program: 'qemu-system-loongarch64', machine, order },
    ...{ code: CODE, stack: STACK, alignment: 16, perClass: long ? 240 : 30, least: long ? 120 : 15 },
    encodings: (next) => encodings(long ? 240 : 30, next),
    framePointer: 'r22',
    equal: Array.from({ length: 9 }, (_, index) => `r${11 + index}`),
    prepare(registers, bytes, next) {
      // QEMU 7.2 takes no value for orig_a0 from a `G`, so the one for pc is what comes there.
      registers.set('r0', 0n).set('orig_a0', registers.get('pc') ?? 0n);
      // Where jumps lead must be aligned.
      const instruction = decode(bytes);
      if (instruction?.form === 'jump-register' && instruction.rj !== 0)
        registers.set(`r${instruction.rj}`, CODE + BigInt(4 * (next() % 4096)));
    },
    left: /^(load|store)/,
    masks: { orig_a0: 0n },
  });
});

t.test('what must be stepped is refused', async (t) => {
  mustBeStepped(t, loongarch64, {
    'syscall 0': '00002b00',
    'break 0': '00002a00',
    ertn: '00384806',
    'idle 0': '00804806',
    'csrrd $t0, 0x5': '0c140004',
    'rdtime.d $a0, $zero': '04680000',
    'ld.d $a0, $a1, 0': 'a400c028',
    'll.d $a0, $sp, 0': '64000022',
    'sc.d $a0, $sp, 0': '64000023',
    'amadd.d $a3, $a2, $sp': '67986138',
    'fld.d $fa4, $sp, 200': '6420832b',
    'ldx.d $a0, $sp, $a2': '64180c38',
    'vst $vr0, $sp, 0': '6000402c',
    'div.d $a0, $a0, $a1': '84142200',
    'dbar 0': '00007238',
    ud: '00046038',
  });
  t.equal(loongarch64.emulate(Uint8Array.of(0, 0, 0x40), addr(CODE)), undefined, 'cut off');
});

t.test('without the registers that it needs nothing is carried out', async (t) => {
  needsRegisters(t, loongarch64, ['6380ff02', '6140c028', '6140c029', '20000040', '2000004c']);
});

t.test('random bytes are carried out or not, and never throw', async (t) => {
  neverThrows(t, loongarch64, { minLength: 3, maxLength: 4 });
});

t.test('memory accesses that a watchpoint sees', async (t) => {
  const registers = { register: (name: string) => ({ r3: 0x1000n, r5: 0x20n })[name] };
  const access = (hex: string) => loongarch64.memoryAccess?.(Buffer.from(hex, 'hex'), registers);
  const at = (address: bigint, length: number, reads: boolean, writes: boolean) => ({
    ...{ address: addr(address), length },
    ...{ reads, writes },
  });
  t.same(access('6140c028'), at(0x1010n, 8, true, false), 'ld.d $ra, $sp, 16');
  t.same(access('61f0ff29'), at(0xffcn, 8, false, true), 'st.d $ra, $sp, -4');
  t.same(access('64140c38'), at(0x1020n, 8, true, false), 'ldx.d $a0, $sp, $a1');
  t.same(access('67986138'), at(0x1000n, 8, true, true), 'amadd.d $a3, $a2, $sp');
  t.equal(access('a400c02a'), undefined, 'preld');
  t.equal(access('8400c028'), undefined, 'ld.d $a0, $a0, 0: not known');
});

t.test('which instructions are breakpoints', async (t) => {
  const isBreak = (hex: string): boolean => loongarch64.isBreakpoint(Buffer.from(hex, 'hex'));
  t.ok(isBreak('00002a00') && isBreak('05002a00'));
  t.notOk(isBreak('00802a00') || isBreak('00002b00') || isBreak('00004003'));
});
