// A hart in an interrupt handler that has a stack of its own: what it has interrupted lies on the one before, where frame pointers lead.
import t from 'tap';
import { riscv64, x86_64 } from '../../src/arch/index.js';
import { type Addr, addr } from '../../src/base/addr.js';
import { interruptedInside } from '../../src/inject/interrupted.js';
import type { Session } from '../../src/rsp/index.js';

const patched = { address: addr(0xffff_ffff_8000_1000n), length: 8 };
const inside = patched.address + 4n;
const handler = addr(0xff20_0000_0001_0000n);
const task = addr(0xff20_0000_0009_0000n);

/** One hart, and words in pages of its memory. */
function machine(
  words: ReadonlyMap<bigint, bigint>,
  registers: Readonly<Record<string, bigint>>,
  transfers: readonly string[] = [],
): Session {
  const pages = new Set([...words.keys()].map((address) => address / 4096n));
  const read = (from: Addr, length: number): Uint8Array | undefined => {
    const bytes = new Uint8Array(length);
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < length; at += 8) {
      const address = from + BigInt(at);
      if (!pages.has(address / 4096n)) return undefined;
      view.setBigUint64(at, words.get(address) ?? 0n, true);
    }
    return bytes;
  };
  const session: unknown = {
    harts: async () => [{ id: '1' }],
    target: { register: () => undefined },
    features: { transfer: new Set(transfers) },
    batch: () => ({
      readRegister: (name: string) => ({ value: registers[name] }),
      readMemory: (from: Addr, length: number) => ({ value: read(from, length) }),
      send: async () => {},
    }),
  };
  return session as Session;
}

/** A handler in a handler's softirq: two frames on its own stack, then that which has changed the stack. */
const chain = new Map([
  [handler + 0x130n, handler + 0x200n],
  [handler + 0x1f0n, task + 0x100n],
  [task + 0xf0n, 0x3fff_1234n],
  [task + 0x108n, inside],
]);
const registers = { sp: handler + 0x100n, fp: handler + 0x140n };

t.test('a word on the stack that was left', async (t) => {
  const session = machine(chain, registers);
  t.same([...(await interruptedInside(session, riscv64, [patched], { chained: true }))], [patched.address]);
  t.same([...(await interruptedInside(session, riscv64, [patched]))], [], 'only where there are frame pointers');
});

t.test('no chain is followed that does not begin on the stack, or leads out of the kernel', async (t) => {
  for (const fp of [task + 0x100n, 0x3fff_1230n, handler + 0x141n]) {
    const session = machine(chain, { ...registers, fp });
    t.same([...(await interruptedInside(session, riscv64, [patched], { chained: true }))], []);
  }
  const round = new Map([...chain, [handler + 0x1f0n, handler + 0x140n]]);
  t.same(
    [...(await interruptedInside(machine(round, registers), riscv64, [patched], { chained: true }))],
    [],
    'a chain without an end',
  );
});

t.test('a word counts only where an instruction of the patch begins', async (t) => {
  // auipc t0; jr: by the assembler's own manual, 4 bytes each.
  const code = Uint8Array.from(Buffer.from('970200006780c204', 'hex'));
  for (const [offset, expected] of [
    [2n, []],
    [4n, [patched.address]],
    [6n, []],
  ] as const) {
    const session = machine(new Map([[task + 8n, patched.address + offset]]), { sp: task });
    t.same([...(await interruptedInside(session, riscv64, [{ ...patched, code }]))], expected, `${offset} bytes in`);
  }
  const unknown = machine(new Map([[task + 8n, patched.address + 2n]]), { sp: task });
  t.same([...(await interruptedInside(unknown, riscv64, [patched]))], [patched.address], 'of unknown code, any does');
});

t.test('bytes that end within an instruction: it begins there all the same', async (t) => {
  await x86_64.prepare();
  for (const [arch, hex, offsets] of [
    // push rbp; mov rbp, rsp; the first byte of sub rsp, 16
    [x86_64, '554889e548', [1n, 4n]],
    // c.addi sp, -16; c.sd ra, 8(sp); c.mv a0, sp; the first half of addi a2, a0, 1, of which each byte counts
    [riscv64, '411106e40a851306', [2n, 4n, 6n, 7n]],
  ] as const) {
    const code = Uint8Array.from(Buffer.from(hex, 'hex'));
    const place = { address: patched.address, length: code.length, code };
    const found: bigint[] = [];
    for (let offset = 1n; offset < BigInt(code.length); offset++) {
      const sp: Record<string, bigint> = arch === x86_64 ? { rsp: task } : { sp: task };
      const session = machine(new Map([[task + 8n, patched.address + offset]]), sp);
      if ((await interruptedInside(session, arch, [place])).size > 0) found.push(offset);
    }
    t.same(found, offsets, arch.name);
  }
});

t.test(
  'of a process, the frame of a signal is found above the locals of its handler, up to where nothing is mapped',
  async (t) => {
    const deep = task + 0x5008n;
    for (const [pages, transfers, expected] of [
      [6n, ['auxv'], [patched.address]],
      [6n, [], []],
      [3n, ['auxv'], []],
    ] as const) {
      const words = new Map(
        Array.from({ length: Number(pages) }, (_, i): [bigint, bigint] => [task + BigInt(i) * 4096n, 0n]),
      );
      if (pages > 5n) words.set(deep, inside);
      const session = machine(words, { sp: task }, transfers);
      t.same([...(await interruptedInside(session, riscv64, [patched]))], expected, `${pages} pages, ${transfers}`);
    }
  },
);
