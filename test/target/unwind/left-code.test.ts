// Return addresses that lead into code which a tracer has left, in this recording or an earlier one.
import t from 'tap';
import { type Architecture, architectureOf, type HookFrame, hookMark, hookMarkBytes } from '../../../src/arch/index.js';
import { type Addr, addOffset, addr } from '../../../src/base/addr.js';
import type { CodeImages } from '../../../src/target/unwind/code-image.js';
import { LeftCode } from '../../../src/target/unwind/left-code.js';
import { StackWindow } from '../../../src/target/unwind/stack-window.js';

const EM = { riscv64: 243, x86_64: 62 } as const;
const at = addr(0x9000n);

/** As objdump reads it: `call +0`, `mov eax, 1`, `ret` and what is not a short return. */
const code = {
  riscv64: { call: '97000000e7800000', other: '1305100013051000', near: 'ef000000' },
  x86_64: { call: '909090e800000000', other: '909090b801000000', near: 'ffd0' },
} as const;
const notShort = {
  riscv64: {
    'restores s0, too': '226041018280',
    'jumps through a0': 'a26041010285',
    'an end': '0000',
    'frees nothing': '8280',
  },
  x86_64: { 'pops rbx': '4883c4105bc3', 'jumps through rax': '4883c418ffe0', 'an end': '0f0b' },
} as const;

async function prepared(name: keyof typeof EM): Promise<Architecture> {
  const arch = architectureOf(EM[name]);
  if (arch === undefined) throw new Error(name);
  await arch.prepare();
  return arch;
}

/** What is found at a return address, where memory and ELF have these bytes before it and from it on. */
function found(arch: Architecture, before: Uint8Array, from: Uint8Array, inProgram: boolean): HookFrame | undefined {
  if (arch.frames === undefined) throw new Error('no frames');
  const bytes = new Uint8Array(256);
  const start = addOffset(at, -128);
  bytes.set(before, 128 - before.length);
  bytes.set(from, 128);
  const bytesAt = (address: Addr, length: number) => bytes.subarray(Number(address - start)).subarray(0, length);
  const images = { at: () => (inProgram ? { elf: { bytesAt } } : undefined) } as unknown as CodeImages;
  const window = new StackWindow();
  window.add(start, bytes);
  return new LeftCode(arch.frames, images).at(at, window);
}

for (const name of ['riscv64', 'x86_64'] as const) {
  t.test(`${name}: code that frees a hook's frame and returns, and no call before it`, async (t) => {
    const arch = await prepared(name);
    const { probeCode } = arch;
    if (!probeCode) throw new Error('no probe code');
    const { call, other, near } = code[name];
    for (const [keep, nests] of [
      [0, false],
      [1, false],
      [1, true],
      [2, true],
      [4, true],
    ] as const) {
      const hook = { offset: probeCode.hookedReturnOffset(keep, nests), size: probeCode.hookFrameBytes(keep, nests) };
      for (const bytes of [
        probeCode.bareExit(hook.offset, hook.size),
        probeCode.likeBareExit(hook.offset, hook.size),
      ]) {
        t.same(found(arch, Buffer.from(other, 'hex'), bytes, true), hook, 'in the program');
        t.same(found(arch, new Uint8Array(0), bytes, false), hook, 'outside');
        for (const ends of [call, near]) {
          t.equal(found(arch, Buffer.from(ends, 'hex'), bytes, false), undefined, 'a call of code that no ELF has');
          t.equal(found(arch, Buffer.from(ends, 'hex'), bytes, true), undefined, 'a call returns there');
        }
      }
    }
    for (const [what, bytes] of Object.entries(notShort[name]))
      t.equal(found(arch, new Uint8Array(0), Buffer.from(bytes, 'hex'), false), undefined, what);
  });

  t.test(`${name}: a mark says it of any code`, async (t) => {
    const arch = await prepared(name);
    const hook = { offset: 40, size: 48 };
    const end = Buffer.from(notShort[name]['an end'], 'hex');
    t.equal(hookMark(hook).length, hookMarkBytes);
    t.same(found(arch, hookMark(hook), end, false), hook);
    t.equal(found(arch, hookMark({ offset: 48, size: 48 }), end, false), undefined, 'that frees less than it reads');
  });
}

t.test('memory that is not read yet is asked for, and asked for again', async (t) => {
  const { frames } = await prepared('x86_64');
  if (frames === undefined) throw new Error('no frames');
  const left = new LeftCode(frames, { at: () => undefined } as unknown as CodeImages);
  const window = new StackWindow();
  t.equal(left.at(at, window), undefined);
  t.equal(window.missing, at);
  const bytes = new Uint8Array(256);
  bytes.set(Buffer.from('4883c418c3', 'hex'), 128);
  window.add(addOffset(at, -128), bytes);
  t.same(left.at(at, window), { offset: 24, size: 32 });
});
