import t from 'tap';
import { decode, type Instruction } from '../../src/arch/aarch64/decode.js';
import { aarch64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { elfPath } from '../qemu/guests/guests.js';
import { long } from '../support/long.js';
import { carriesOut } from './compare.js';
import { mustBeStepped, neverThrows } from './emulated.js';
import { disassemble } from './objdump.js';

/** The order of QEMU's `g` packet. */
const order = [...Array.from({ length: 31 }, (_, number) => `x${number}`), 'sp', 'pc', 'cpsr'];
const machine = '-M virt -cpu cortex-a72 -m 32M -display none -serial none -monitor none -S -gdb stdio'.split(' ');

const CODE = 0x4010_0000n;
const STACK = 0x4080_0000n;
/** EL1 with its own stack pointer, all interrupts masked. */
const EL1 = 0x3c5n;

/** What an instruction is to the code under test. */
function classOf(instruction: Instruction): string {
  const flags = 'flags' in instruction && instruction.flags ? 's' : '';
  switch (instruction.form) {
    case 'memory':
      return `${instruction.access} ${instruction.mode}${instruction.rt2 === undefined ? '' : ' pair'}`;
    case 'branch':
      return `branch ${instruction.test.kind}`;
    case 'jump':
      return instruction.link ? 'bl' : 'b';
    default:
      return 'op' in instruction ? `${instruction.form} ${instruction.op}${flags}` : instruction.form;
  }
}

const wanted = [
  ...['add-immediate add', 'add-immediate sub', 'add-immediate adds', 'add-immediate subs'],
  ...['add add', 'add sub', 'add adds', 'add subs', 'add-extended add', 'add-extended sub', 'add-extended subs'],
  ...['logical and', 'logical orr', 'logical eor', 'logical ands'],
  ...['logical-immediate and', 'logical-immediate orr', 'logical-immediate eor', 'logical-immediate ands'],
  ...['move-wide movn', 'move-wide movz', 'move-wide movk', 'address', 'b', 'bl'],
  ...['jump-register br', 'jump-register blr', 'jump-register ret'],
  ...['branch condition', 'branch zero', 'branch bit'],
  ...['load offset', 'load pre', 'load post', 'load offset pair', 'load pre pair', 'load post pair'],
  ...['store offset', 'store pre', 'store post', 'store offset pair', 'store pre pair', 'store post pair'],
];

/** Where the fixed bits of these classes are set; the others are random. */
const openings: readonly (readonly [mask: number, bits: number])[] = [
  [0x7f00_0000, 0x1100_0000],
  [0x1f80_0000, 0x1100_0000],
  [0x1f80_0000, 0x1200_0000],
  [0x1f80_0000, 0x1280_0000],
  [0x1f00_0000, 0x1000_0000],
  [0x1f20_0000, 0x0b00_0000],
  [0x1fe0_0000, 0x0b20_0000],
  [0x1f00_0000, 0x0a00_0000],
  [0x7c00_0000, 0x1400_0000],
  [0xff00_0010, 0x5400_0000],
  [0x7e00_0000, 0x3400_0000],
  [0x7e00_0000, 0x3600_0000],
  [0xffff_fc1f, 0xd61f_0000],
  [0xffff_fc1f, 0xd63f_0000],
  [0xffff_fc1f, 0xd65f_0000],
  [0x3e00_0000, 0x2800_0000],
  [0x3f20_0000, 0x3800_0000],
  [0x3f00_0000, 0x3900_0000],
];

function bytesOfWord(word: number): Uint8Array {
  return Uint8Array.of(word, word >> 8, word >> 16, word >> 24);
}

/** Reserved encodings, and those whose result the architecture leaves open. */
function isOpen(instruction: Instruction): boolean {
  if (instruction.form === 'memory') {
    const { rt, rt2, rn, mode, access, size, word } = instruction;
    const isUnprivileged = rt2 === undefined && word >>> 24 !== 0x39 && ((word >>> 10) & 3) === 2;
    const isReserved = rt2 !== undefined && size === 4 && instruction.signed === 8 && access === 'store';
    return (
      (mode !== 'offset' && (rt === rn || rt2 === rn)) ||
      (access === 'load' && rt === rt2) ||
      isUnprivileged ||
      isReserved ||
      (rt2 !== undefined && word >>> 30 === 3) ||
      (instruction.signed === 4 && size === 4) ||
      (instruction.signed !== undefined && size === 8)
    );
  }
  if ('amount' in instruction) {
    const { form, amount } = instruction;
    if (form === 'add-extended') return amount > 4;
    return (amount > 31 && !instruction.wide) || (form === 'add' && instruction.shift === 3);
  }
  if (instruction.form === 'move-wide') return !instruction.wide && instruction.shift > 16;
  return instruction.form === 'logical-immediate' && !instruction.wide && ((instruction.word >>> 22) & 1) === 1;
}

/** Encodings of every class: random words of the right opcodes, and what the guests' compiler wrote. */
function encodings(perClass: number, next: () => number): Map<string, Uint8Array[]> {
  const found = new Map<string, Uint8Array[]>(wanted.map((name) => [name, []]));
  const offer = (bytes: Uint8Array, room: number): void => {
    const instruction = decode(bytes);
    if (!instruction || isOpen(instruction)) return;
    const list = found.get(classOf(instruction));
    if (list && list.length < room && aarch64.emulate(bytes, addr(CODE))) list.push(bytes);
  };
  const written = disassemble('aarch64', elfPath('arm-o2')).map(({ bytes }) => Uint8Array.from(bytes));
  for (let round = 0; round < written.length; round++)
    offer(written[next() % written.length] as Uint8Array, perClass / 2);
  for (let round = 0; round < 200 * perClass; round++) {
    const [mask, bits] = openings[round % openings.length] as (typeof openings)[number];
    let word = ((next() & ~mask) | bits) >>> 0;
    // Loads and stores go by sp or x29.
    if ((bits & 0x0a00_0000) === 0x0800_0000) word = (word & ~(31 << 5)) | ((next() & 1 ? 31 : 29) << 5);
    offer(bytesOfWord(word), perClass);
  }
  return found;
}

t.test('carrying an instruction out leaves what QEMU leaves after a step', { timeout: 600_000 }, async (t) => {
  await carriesOut(t, {
    ...{ architecture: aarch64, program: 'qemu-system-aarch64', machine, order, sizes: { cpsr: 4 } },
    ...{ code: CODE, stack: STACK, alignment: 16, perClass: long ? 240 : 24, least: long ? 40 : 24 },
    encodings: (next) => encodings(240, next),
    framePointer: 'x29',
    equal: order.slice(8, 16),
    prepare(registers, bytes, next) {
      registers.set('cpsr', EL1 | (BigInt(next() >>> 28) << 28n));
      // Where jumps lead must be canonical and aligned.
      const instruction = decode(bytes);
      if (instruction?.form === 'jump-register')
        registers.set(`x${instruction.rn}`, CODE + BigInt(4 * (next() % 4096)));
    },
    left: /^(load|store)/,
  });
});

t.test('what must be stepped is refused', async (t) => {
  mustBeStepped(t, aarch64, {
    'svc #0': '010000d4',
    'brk #0': '000020d4',
    'bti c': '5f2403d5',
    paciasp: '3f2303d5',
    retaa: 'ff0b5fd6',
    wfi: '7f2003d5',
    eret: 'e0039fd6',
    'mrs x0, daif': '20423bd5',
    'ldr x0, [x1]': '200040f9',
    'ldxr x0, [sp]': 'e07f5fc8',
    'ldadd x0, x1, [sp]': 'e10320f8',
    'str q0, [sp]': 'e003803d',
    'stgp x29, x30, [sp, #-32]!': 'fd7bbf69',
    'st2g sp, [sp], #32': 'ff27a0d9',
    'ldg x0, [sp]': 'e00360d9',
    'addg sp, sp, #16, #2': 'ff0b8191',
    'udiv x0, x0, x1': '0008c19a',
    udf: '00000000',
  });
  t.equal(aarch64.emulate(Uint8Array.of(0x1f, 0x20, 0x03), addr(CODE)), undefined, 'cut off');
});

t.test('random bytes are carried out or not, and never throw', async (t) => {
  neverThrows(t, aarch64, { minLength: 3, maxLength: 4 });
});

t.test('which instructions are breakpoints', async (t) => {
  const isBrk = (hex: string): boolean => aarch64.isBreakpoint(Buffer.from(hex, 'hex'));
  t.ok(isBrk('000020d4') && isBrk('00003ed4') && isBrk('e0ff3fd4'));
  t.notOk(isBrk('010000d4') || isBrk('000040d4') || isBrk('1f2003d5'));
});
