// The control flow of assembled functions.
import t from 'tap';
import { type Architecture, aarch64, riscv64, x86_64 } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import type { ElfFile } from '../../src/elf/index.js';
import { FlowGraph } from '../../src/probes/flow-graph.js';
import { assemble } from '../support/assembled.js';

const start = addr(0x10000);

/** The graph of the code up to a label `data`, or of all, and how far from the start each label is. */
async function followed(arch: Architecture, source: string) {
  await arch.prepare?.();
  const { bytes, labels } = assemble(arch, source);
  const bytesAt = (at: bigint, size: number): Uint8Array | undefined => {
    const from = Number(at - start);
    return from >= 0 && from + size <= bytes.length ? bytes.subarray(from, from + size) : undefined;
  };
  const at = new Map(labels);
  const range = { low: start, high: addOffset(start, at.get('data') ?? bytes.length) };
  const graph = FlowGraph.of([range], { elf: { bytesAt } as unknown as ElfFile, arch, neverReturns: () => false });
  if (!graph) throw new Error('the code cannot be followed');
  return { graph, at };
}

const framed: readonly (readonly [Architecture, string, string])[] = [
  [
    riscv64,
    `addi sp, sp, -32
     sd s0, 16(sp)
     addi s0, sp, 32
     frame: sd a1, -24(s0)
     store: sd a1, 0(a0)
     ld s0, 16(sp)
     addi sp, sp, 32
     ret`,
    `addi sp, sp, -32
     sd s0, 16(sp)
     mv s0, a0
     store: sd a1, 8(s0)
     ret`,
  ],
  [
    x86_64,
    `push rbp
     mov rbp, rsp
     frame: mov [rbp - 8], rsi
     store: mov [rdi], rsi
     pop rbp
     ret`,
    `push rbp
     mov rbp, rdi
     store: mov [rbp + 8], rsi
     pop rbp
     ret`,
  ],
  [
    aarch64,
    `stp x29, x30, [sp, #-32]!
     mov x29, sp
     frame: str x1, [x29, #24]
     store: str x1, [x0]
     ldp x29, x30, [sp], #32
     ret`,
    `mov x29, x0
     store: str x1, [x29, #24]
     ret`,
  ],
];

for (const [arch, ...sources] of framed) {
  t.test(`${arch.name}: what is stored by the frame pointer is the frame's`, async (t) => {
    for (const source of sources) {
      const { graph, at } = await followed(arch, source);
      const kindAt = (label: string) => {
        const offset = at.get(label);
        return graph.steps.find(({ address }) => offset !== undefined && address === addOffset(start, offset));
      };
      t.match(kindAt('store'), { kind: 'store' });
      if (at.has('frame')) t.match(kindAt('frame'), { kind: 'next', writesFrame: true });
    }
  });
}

t.test('a jump leads to all places of a long table', async (t) => {
  const cases = Array.from({ length: 1500 }, (_, i) => `case${i}`);
  const { graph } = await followed(
    x86_64,
    `lea rax, [rip + data]
     movsxd rcx, dword ptr [rax + 4*rdi]
     add rcx, rax
     jmp rcx
     ${cases.map((one) => `${one}: nop\nret`).join('\n')}
     data: ${cases.map((one) => `.long ${one} - data`).join('\n')}`,
  );
  t.equal(graph.next.find((to) => to.length > 1)?.length, cases.length);
  t.ok(graph.steps.every((_, node) => graph.isReached(node)));
});
