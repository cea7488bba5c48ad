import fc from 'fast-check';
import t from 'tap';
import { decode } from '../../src/arch/riscv64/decode.js';
import { textOf } from '../../src/arch/riscv64/disassembly.js';
import { addr } from '../../src/base/addr.js';
import { elfPath } from '../qemu/guests/guests.js';
import { usually } from '../support/long.js';
import { disassemble, disassembleBytes, type Line } from './objdump.js';
import { random } from './random.js';
import { expected, words } from './riscv64-words.js';

/** Debian's package opensbi: firmware in C and assembly by gcc, so other instructions than rustc's. */
const firmware = '/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.elf';

/** Floating-point arithmetic is not decoded, by design; nor is what objdump itself prints as data. */
const floatArithmetic = /^f(?!ence|l[wd] |s[wd] )/;

interface Difference {
  readonly bytes: string;
  readonly objdump: string;
  readonly rsptrace: string;
}

function differences(lines: readonly Line[]): Difference[] {
  const found: Difference[] = [];
  for (const line of lines) {
    // Where a file has no symbols objdump marks targets as hex.
    const objdump = expected(line).replace(/^(jal|b\w+) (.*)0x/, '$1 $2');
    const instruction = decode(line.bytes);
    const text = instruction === undefined ? 'truncated' : textOf(instruction, addr(line.address));
    const same =
      instruction?.op === 'unknown' ? floatArithmetic.test(objdump) || objdump.startsWith('.') : text === objdump;
    if (same && instruction?.length === line.bytes.length) continue;
    found.push({ bytes: Buffer.from(line.bytes).toString('hex'), objdump, rsptrace: text });
  }
  return found;
}

for (const name of usually(['rv-o0', 'rv-o2', 'rvm-o2'], (one) => one === 'rv-o2')) {
  t.test(`every instruction of ${name} decodes as objdump says`, async (t) => {
    const lines = disassemble('riscv64', elfPath(name));
    t.ok(lines.length > 5_000, `${lines.length} instructions`);
    t.same(differences(lines).slice(0, 20), []);
  });
}

t.test('every instruction of OpenSBI decodes as objdump says', async (t) => {
  const lines = disassemble('riscv64', firmware);
  t.ok(lines.length > 20_000, `${lines.length} instructions`);
  t.same(differences(lines).slice(0, 20), []);
});

t.test('every 16-bit encoding expands as objdump says', async (t) => {
  const halves = Uint16Array.from({ length: 0x1_0000 }, (_, index) => index).filter((half) => (half & 3) !== 3);
  const lines = disassembleBytes('riscv64', new Uint8Array(halves.buffer));
  t.equal(lines.length, 3 * 0x4000);
  // c.addi16sp by zero is reserved, says the manual; objdump prints it all the same.
  t.same(differences(lines), [{ bytes: '0161', objdump: 'addi sp,sp,0', rsptrace: '.2byte 0x6101' }]);
});

t.test('random 32-bit words of every opcode decode as objdump says', async (t) => {
  const next = random(7);
  const opcodes = [0x03, 0x07, 0x0f, 0x13, 0x17, 0x1b, 0x23, 0x27, 0x2f, 0x33, 0x37, 0x3b, 0x63, 0x67, 0x6f, 0x73];
  const upper = [0x00, 0x01, 0x20, 0x09, 0x10, 0x21];
  const values = opcodes.flatMap((opcode) =>
    Array.from({ length: 1_500 }, (_, index) => {
      const fields = (next() & 0x1ff_ffff) * 0x80 + opcode;
      const f7 = index % 2 === 0 ? undefined : upper[next() % upper.length];
      return f7 === undefined ? fields : f7 * 0x200_0000 + (fields % 0x200_0000);
    }),
  );
  const lines = disassembleBytes('riscv64', words(values));
  t.equal(lines.length, values.length);
  t.same(differences(lines).slice(0, 40), []);
});

t.test('lengths follow the low bits; bytes that end too early are no instruction', async (t) => {
  // Volume I, figure "RISC-V instruction length encoding".
  for (const [first, length] of [
    [0x0001, 2],
    [0x0013, 4],
    [0x001f, 6],
    [0x003f, 8],
    [0x007f, 10],
    [0x107f, 12],
    [0x607f, 22],
  ] as const) {
    const bytes = new Uint8Array(24);
    bytes.set([first & 0xff, first >> 8]);
    t.equal(decode(bytes)?.length, length);
    t.equal(decode(bytes.subarray(0, length))?.length, length);
    t.equal(decode(bytes.subarray(0, length - 1)), undefined);
  }
  t.equal(decode(new Uint8Array(0)), undefined);
  t.equal(decode(Uint8Array.of(0x13, 0, 0, 0, 0x01, 0x11), 4)?.op, 'addi', 'at an offset');
});

t.test('random bytes decode to something or nothing, and never throw', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 24 }), fc.nat(26), (bytes, offset) => {
      const instruction = decode(bytes, offset);
      if (instruction === undefined) return;
      textOf(instruction, addr(0x8000_0000));
      if (offset + instruction.length > bytes.length) throw new Error('past the end');
    }),
    { seed: 11, numRuns: 20_000 },
  );
  t.pass();
});
