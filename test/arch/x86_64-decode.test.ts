import fc from 'fast-check';
import t from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { decode } from '../../src/arch/x86_64/decode.js';
import { addr } from '../../src/base/addr.js';
import { elfPath } from '../qemu/guests/guests.js';
import { long, usually } from '../support/long.js';
import { disassemble, type Line } from './objdump.js';

await t.rejects(async () => decode(Uint8Array.of(0x90), addr(0)), { code: 'ARCH_DECODER' }, 'not before it is loaded');
// The program around the library may use the package itself, and may have been first.
const theirs = await import('capstone-wasm');
await theirs.loadCapstone({});
await x86_64.prepare();
await x86_64.prepare();

t.test('an instance of its own', (t) => {
  const { Capstone, Const } = theirs;
  const [found] = new Capstone(Const.CS_ARCH_X86, Const.CS_MODE_64).disasm(Uint8Array.of(0x90), { address: 0n });
  t.equal(found?.mnemonic, 'nop', 'theirs is there too');
  t.equal(decode(Uint8Array.of(0xc3), addr(0))?.flow, 'return');
  t.end();
});

/** Without `--long`: so many instructions of each program, evenly. */
const sampled = 8_000;

/** Debian's own: gcc, with endbr64 and plt stubs, and code that people wrote by hand. */
const programs = {
  'x86-o0': elfPath('x86-o0'),
  'x86-o2': elfPath('x86-o2'),
  bash: '/bin/bash',
  libc: '/lib/x86_64-linux-gnu/libc.so.6',
};

for (const [name, file] of usually(Object.entries(programs), ([name]) => /^(x86-o2|libc)$/.test(name))) {
  const lines = disassemble('x86_64', file);

  t.test(`${name} decodes with the lengths, flow and targets that objdump shows`, async (t) => {
    const wrong: object[] = [];
    const every = long ? 1 : Math.ceil(lines.length / sampled);
    for (const [index, line] of lines.entries()) {
      if (index % every !== 0) continue;
      const instruction = decode(line.bytes, addr(line.address));
      const flow = flowOf(line);
      const direct = flow !== 'next' && flow !== 'return' && /^(0x)?[0-9a-f]+$/.test(line.operands);
      const target = direct ? BigInt(`0x${line.operands.replace(/^0x/, '')}`) : undefined;
      const same =
        instruction?.length === line.bytes.length && instruction.flow === flow && instruction.target === target;
      if (!same && !line.mnemonic.startsWith('(bad)')) wrong.push({ line, instruction });
    }
    t.same(wrong.slice(0, 10), []);
  });
}

function flowOf({ mnemonic }: Line): string {
  const op = mnemonic.split(' ').at(-1) ?? '';
  if (/^(ret|iret|sysret|sysexit)/.test(op)) return 'return';
  if (op === 'call') return 'call';
  if (op === 'jmp') return 'jump';
  if (/^(j|loop|xbegin)/.test(op)) return 'branch';
  return /^(int|int3|int1|into|syscall|sysenter)$/.test(op) ? 'interrupt' : 'next';
}

t.test('operands are read whole, kernel addresses too', async (t) => {
  const at = (hex: string) => decode(Buffer.from(hex, 'hex'), addr(0xffff_ffff_8100_0000n));
  t.match(at('65488b04252800ffff'), {
    op: 'mov',
    operands: [
      { kind: 'register', name: 'rax', size: 8 },
      { kind: 'memory', segment: 'gs', base: undefined, index: undefined, displacement: -0xffd8, size: 8 },
    ],
  });
  t.match(at('8d84d1f0ffffff'), {
    text: 'lea eax, [rcx + rdx*8 - 0x10]',
    operands: [
      { name: 'eax', size: 4 },
      { base: 'rcx', index: 'rdx', scale: 8, displacement: -16 },
    ],
  });
  t.match(at('4883e4f0'), { op: 'and', operands: [{ name: 'rsp' }, { kind: 'immediate', value: -16n, size: 8 }] });
  t.equal(at('e8fbffffff')?.target, 0xffff_ffff_8100_0000n);
  t.match(at('488d05f9ffffff'), { length: 7, operands: [{}, { base: 'rip', displacement: -7 }] });
  t.match(at('06'), { op: 'unknown', length: 1 });
  t.match(at('48'), { op: 'unknown', length: 1 }, 'cut off');
  t.equal(at(''), undefined);
  t.equal(decode(Uint8Array.of(0x90, 0xc3), addr(0), 1)?.op, 'ret');
});

t.test('random bytes decode to something, and never throw', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 20 }), (bytes) => {
      const instruction = decode(bytes, addr(0x1000));
      if (instruction === undefined || instruction.length < 1 || instruction.length > bytes.length)
        throw new Error('length');
    }),
    { seed: 11, numRuns: 10_000 },
  );
  t.pass();
});
