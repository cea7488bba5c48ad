import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { decode } from '../../src/arch/x86_64/decode.js';
import { addr } from '../../src/base/addr.js';
import { elfPath } from '../qemu/guests/guests.js';
import { long } from '../support/long.js';
import { compare, type Trial } from './compare.js';
import { mustBeStepped, needsRegisters, neverThrows } from './emulated.js';
import { disassemble } from './objdump.js';
import { random, values } from './random.js';
import { StepOracle } from './step-oracle.js';

/** The start of an amd64 `g` packet: gdb's 64bit-core.xml. */
const order = 'rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags'.split(' ');
const sizes = order.map((register) => (register === 'eflags' ? 4 : 8));

const CODE = 0x1000_0000n;
const CODE_SIZE = 0x1_0000;
const STACK_SIZE = 0x2_0000;
const STACK = CODE + BigInt(CODE_SIZE);

/** A native program that is nothing but one writable and executable segment: code, then stack. */
function buildProgram(folder: string): string {
  const source = `.globl _start\n.section .all,"awx"\n_start: .fill ${CODE_SIZE}, 1, 0x90\n.fill ${STACK_SIZE}, 1, 0\n`;
  const [assembly, object, program] = ['a.s', 'a.o', 'a.out'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(assembly, source);
  execFileSync('as', [assembly, '-o', object]);
  const place = `--section-start=.all=0x${CODE.toString(16)}`;
  execFileSync('ld', ['--no-warn-rwx-segments', place, object, '-o', program]);
  return program;
}

/** Instructions alike but for their numbers: `mov qword ptr [rbp - 8], rax` is `mov QWORD PTR [rbp-n],r64`. */
function classOf(bytes: Uint8Array): string {
  const text = decode(bytes, addr(CODE))?.text ?? '';
  return text
    .replace(/^repz? /, '')
    .replace(/^nop.*/, 'nop')
    .replace(/\b[a-z]+ ptr\b/, (size) => size.toUpperCase())
    .replace(/(, | [+-] )/g, (between) => between.trim())
    .replace(/(?<=[ ,[+*-])(?:-?0x[0-9a-f]+|-?\d+)/g, 'n')
    .replace(/^(j\w+|call) .*/, '$1')
    .replace(/(?<!\[)\br(?!sp|bp)([a-d]x|[sd]i|\d+)\b/g, 'r64')
    .replace(/\b(e[a-d]x|e[sd]i|e[sb]p|r\d+d)\b/g, 'r32')
    .replace(/\b([a-d]l|[sd]il|[sb]pl|r\d+b)\b/g, 'r8')
    .replace(/\b([a-d]x|[sd]i|[sb]p|r\d+w)\b/g, 'r16')
    .replace(/\[.*\]/, (memory) => (/^\[r[sb]p(-n|\+n)?\]$/.test(memory) ? memory : '[any]'));
}

/** What must be carried out, by the classes above. */
const wanted = [
  ['push r64', 'push rbp', 'push rsp', 'pushfq', 'pop r64', 'pop rbp', 'pop rsp', 'leave', 'endbr64', 'nop', 'jmp'],
  'jo jno jb jae je jne jbe ja js jns jp jnp jl jge jle jg'.split(' '),
  ['add', 'sub', 'and', 'or', 'xor', 'cmp'].flatMap((op) => [
    `${op} r64,n`,
    `${op} r32,n`,
    `${op} r64,r64`,
    `${op} r32,r32`,
    `${op} r8,r8`,
    `${op} r8,n`,
  ]),
  ['test r64,r64', 'test r32,r32', 'test r8,r8', 'test r8,n', 'test r32,n', 'sub rsp,n', 'add rsp,n', 'and rsp,n'],
  ['mov r64,r64', 'mov r32,r32', 'mov r8,r8', 'mov r64,n', 'mov r32,n', 'movabs r64,n', 'mov rbp,rsp', 'mov rsp,rbp'],
  [
    'movzx r32,r8',
    'movzx r32,r16',
    'movzx r64,r8',
    'movzx r64,r16',
    'lea r64,[any]',
    'lea r32,[any]',
    'lea r64,[rsp+n]',
    'lea r64,[rbp-n]',
  ],
  ['[rsp+n]', '[rbp-n]'].flatMap((memory) => [
    ...['QWORD,r64', 'DWORD,r32', 'BYTE,r8'].flatMap((pair) => {
      const [width, register] = pair.split(',');
      return [
        `mov ${width} PTR ${memory},${register}`,
        `mov ${register},${width} PTR ${memory}`,
        `cmp ${register},${width} PTR ${memory}`,
      ];
    }),
    `mov QWORD PTR ${memory},n`,
    `cmp BYTE PTR ${memory},n`,
    `movzx r32,BYTE PTR ${memory}`,
    `add r64,QWORD PTR ${memory}`,
    `test BYTE PTR ${memory},r8`,
  ]),
].flat();

/** Bytes of every class that is met: what compilers wrote, and random bytes after the opcodes of interest. */
function encodings(perClass: number, next: () => number): Map<string, Uint8Array[]> {
  const found = new Map<string, Uint8Array[]>();
  const offer = (bytes: Uint8Array, room: number): void => {
    const carried = x86_64.emulate(bytes, addr(CODE));
    if (carried === undefined) return;
    const name = classOf(bytes);
    const list = found.get(name) ?? [];
    found.set(name, list);
    if (list.length < room) list.push(bytes.slice(0, carried.length));
  };
  for (const name of ['x86-o0', 'x86-o2']) {
    const unique = new Map(
      disassemble('x86_64', elfPath(name)).map(({ bytes }) => [Buffer.from(bytes).toString('hex'), bytes]),
    );
    for (const bytes of unique.values()) offer(bytes, perClass / 2);
  }
  const opcodes = Array.from({ length: 256 }, (_, opcode) => opcode).filter((opcode) => opcode >> 4 !== 4);
  for (let round = 0; round < 600 * perClass; round++) {
    const bytes = Uint8Array.from({ length: 12 }, next);
    let at = 0;
    if ((next() & 1) === 0) bytes[at++] = 0x40 | (next() & 15);
    if ((next() & 3) === 0) {
      bytes[at++] = 0x0f;
      bytes[at] = [0x80 | (next() & 15), 0x1f, 0xb6, 0xb7][next() & 3] as number;
    } else bytes[at] = opcodes[round % opcodes.length] as number;
    // Memory at rsp and rbp, by a displacement of 8 bits.
    if ((next() & 1) === 0) {
      const rsp = (next() & 1) === 0;
      bytes[at + 1] = 0x40 | ((next() & 7) << 3) | (rsp ? 4 : 5);
      if (rsp) bytes[at + 2] = 0x24;
    }
    // Near targets, so that they are addresses that a program can have.
    if (
      /^(0f8.|e8|e9)/.test(Buffer.from(bytes.subarray(at - 1)).toString('hex')) ||
      bytes[at] === 0xe8 ||
      bytes[at] === 0xe9
    ) {
      bytes[at + 3] = bytes[at + 4] = (next() & 1) === 0 ? 0 : 0xff;
    }
    offer(bytes, perClass);
  }
  for (const hex of [
    'f30f1efa',
    'f3c3',
    '66660f1f840000000000',
    '662e0f1f840000000000',
    '6690',
    '0f1f00',
    '48c3',
    'c21000',
    '54',
    '5c',
    '415c',
    '4889e5',
    '4889ec',
    '488d65f0',
    '48c745f8010203ff',
    '48c7442410010203ff',
  ]) {
    offer(Buffer.from(hex, 'hex'), perClass);
  }
  return found;
}

/** TF and RF belong to whoever steps. */
const masks = { eflags: ~0x1_0100n & 0xffff_ffffn };

/** Every class of encodings, each met with random registers and memory; wanted ones `perClass` times. */
function trialsOf(found: ReadonlyMap<string, readonly Uint8Array[]>, perClass: number, next: () => number): Trial[] {
  const value = values(next);
  const trials: Trial[] = [];
  for (const [name, list] of found) {
    for (let index = 0; index < (wanted.includes(name) ? perClass : perClass / 6); index++) {
      const bytes = list[index % list.length] as Uint8Array;
      const registers = new Map(order.map((register) => [register, value()]));
      const pc = CODE + BigInt(0x100 + (next() % (CODE_SIZE - 0x200)));
      const sp = STACK + BigInt(0x8000 + (next() % 0x8000));
      registers.set('rip', pc).set('rsp', sp);
      const frame = next() % 4 !== 0 || name === 'leave' || name === 'mov rsp,rbp';
      if (frame) registers.set('rbp', sp + BigInt(next() % 4096));
      if (next() % 4 === 0)
        for (const register of order.slice(0, 4)) registers.set(register, registers.get('rax') ?? 0n);
      // Bit 1 is always set and IF is on in a program; CF, PF, AF, ZF, SF, DF and OF are random.
      registers.set('eflags', BigInt((next() & 0xcd5) | 0x202));
      const memory = Uint8Array.from({ length: 64 }, next);
      trials.push({ name, bytes, pc, registers, memory });
    }
  }
  return trials;
}

await x86_64.prepare();

const next = random(99);
/** Steps of every kind of instruction. */
const perClass = long ? 120 : 30;
const found = encodings(120, next);

t.test('every kind of instruction that is to be carried out is met', async (t) => {
  for (const name of wanted) t.ok(found.has(name), name);
});

t.test('carrying an instruction out leaves what the processor leaves after a step', { timeout: 600_000 }, async (t) => {
  const trials = trialsOf(found, perClass, next);
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-arch-'));
  try {
    const server = ['--once', '--no-startup-with-shell', '--no-disable-randomization', '-', buildProgram(folder)];
    await using oracle = await StepOracle.start('gdbserver', server, sizes);
    // A step pushes the TF that it has set.
    const others = trials.filter(({ name }) => name !== 'pushfq');
    const { carried, left, differences } = await compare(x86_64, oracle, order, others, masks);
    t.same(differences.slice(0, 10), []);
    t.ok(carried > 0.9 * others.length, `${carried} of ${others.length} carried out`);
    t.ok(
      left.length > 0 && left.every((name) => name.includes('[rbp')),
      'only accesses outside the stack are left to a step',
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

t.test(
  'and what QEMU leaves in a kernel, whose eflags its stub keeps apart while it runs',
  { timeout: 600_000 },
  async (t) => {
    const kernel = elfPath('x86-o2');
    // Past the switch to 64-bit mode; the kernel maps the first 4 GiB one to one.
    const main = /^([0-9a-f]+) T rust_main$/m.exec(execFileSync('nm', [kernel], { encoding: 'latin1' }))?.[1];
    const machine = `-m 512M -display none -serial none -monitor none -nic none -S -gdb stdio -kernel ${kernel}`.split(
      ' ',
    );
    // QEMU 7.2 sign-extends the operand of `ret imm16`, which processors and the manual do not.
    const trials = trialsOf(found, perClass / 4, next).filter(
      ({ name, bytes }) => name !== 'ret n' || (bytes.at(-1) ?? 0) < 0x80,
    );
    await using oracle = await StepOracle.start('qemu-system-x86_64', machine, sizes, BigInt(`0x${main}`));
    const { carried, differences } = await compare(x86_64, oracle, order, trials, masks);
    // An interrupt that is pending makes a step of QEMU's come back without having executed anything: that says nothing.
    const idle = new Set(
      differences
        .filter(({ what, instruction, expected }) => what === 'rip' && instruction.endsWith(` at 0x${expected}`))
        .map(({ instruction }) => instruction),
    );
    t.ok(idle.size <= 3, `${idle.size} steps that did not move`);
    t.same(differences.filter(({ instruction }) => !idle.has(instruction)).slice(0, 10), []);
    t.ok(carried > 0.9 * trials.length, `${carried} of ${trials.length} carried out`);
  },
);

t.test('what must be stepped is refused', async (t) => {
  mustBeStepped(t, x86_64, {
    syscall: '0f05',
    hlt: 'f4',
    'int3 ': 'cc',
    iretq: '48cf',
    'mov rax,QWORD PTR [rdi]': '488b07',
    'mov DWORD PTR [rax],ecx': '8908',
    'mov rax,QWORD PTR [rsp+rcx*8]': '488b04cc',
    'mov rax,QWORD PTR fs:[rsp]': '64488b0424',
    'mov rax,QWORD PTR [rip+0x10]': '488b0510000000',
    'mov eax,DWORD PTR [esp]': '678b0424',
    'lock add DWORD PTR [rsp],eax': 'f0010424',
    'add QWORD PTR [rsp],rax': '48010424',
    'xor BYTE PTR [rsp],al': '300424',
    'mov ax,cx': '6689c8',
    'push ax': '6650',
    'pop bp with a REX that does not count': '4e665d',
    'test rm,imm /1': 'f7c800000000',
    'mov ah,al': '88c4',
    'test ah,ah': '84e4',
    'movzx eax,ah': '0fb6c4',
    'xchg r8,rax': '4990',
    pause: 'f390',
    'adc eax,ecx': '11c8',
    'sbb rsp,0x8': '4883dc08',
    'bnd ret': 'f2c3',
    ret: 'c3',
    call: 'e800000000',
    rdsspq: 'f3480f1ec8',
    'jmp QWORD PTR [rip]': 'ff2500000000',
    'call rax': 'ffd0',
    'lea with a register': '8dc0',
    'mov rm,imm /1': 'c7c800000000',
    'push r64 with REX after a prefix': '4866',
    'sub rsp,imm cut off': '4883ec',
    'mov with a missing displacement': '488b4424',
    'sixteen prefixes': '66666666666666666666666666666690',
  });
});

t.test('where branches are tracked, the processor itself runs their landing pads', async (t) => {
  const pad = x86_64.emulate(Buffer.from('f30f1efa', 'hex'), addr(CODE));
  const withCr4 = (cr4: bigint) => ({ register: (name: string) => (name === 'cr4' ? cr4 : undefined) });
  t.same(pad?.effects(withCr4(0x6f0n)), { registers: [{ name: 'rip', value: CODE + 4n }], memory: [] });
  t.equal(pad?.effects(withCr4(0x6f0n | (1n << 23n))), undefined);
});

t.test('a register that is not known means no effects', async (t) => {
  const codes = '55 5d c9 7400 4883ec18 4889e5 8d0411 488b442408 4889442408 88c1 3a442408';
  needsRegisters(t, x86_64, codes.split(' '));
});

t.test('random bytes are carried out or not, and never throw', async (t) => {
  neverThrows(t, x86_64, { maxLength: 18 });
});
