// RAM by packets: what the stub does not read is counted, so that nobody takes a search for complete.
import t from 'tap';
import type { Session } from '../../src/rsp/index.js';
import { PacketRam } from '../../src/target/index.js';

const MiB = 2 ** 20;

const tree = `FlatView #0
 AS "memory", root: system
 Root memory region: system
  0000000080000000-00000000803fffff (prio 0, ram): riscv_virt_board.ram
`;

t.test('packet RAM: pieces that the stub does not read are left out and counted', async (t) => {
  const hole = 0x8010_0000n;
  const memory = {
    read: async (address: bigint, length: number) => (address === hole ? undefined : new Uint8Array(length)),
  };
  const session = {
    stub: async () => ({ name: 'qemu-system' }),
    physicalMemory: async () => memory,
    monitor: async () => tree,
  } as unknown as Session;
  const ram = await PacketRam.find(session, 64 * MiB);
  t.equal(ram?.size, 4 * MiB);
  const starts: bigint[] = [];
  for await (const { start } of ram?.chunks(ram.touched()) ?? []) starts.push(start);
  t.same(starts, [0x8000_0000n, 0x8020_0000n, 0x8030_0000n]);
  t.equal(ram?.unread, MiB);
});
