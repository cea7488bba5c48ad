// The Futures that held-futures finds, in a guest that runs: what its memory says before a task is polled must be polled then, at
// these addresses (a join polls all its open branches, a select both), as breakpoints at every poll function see it; and the
// vtables in memory are those that the debug info names.

import { execFileSync } from 'node:child_process';
import t from 'tap';
import { architectureOf } from '../../../src/arch/index.js';
import { type FutureSet, type FutureType, findFutures, stateOf } from '../../../src/async/futures/index.js';
import { type Addr, addr, hex } from '../../../src/base/addr.js';
import { DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { connect, type Session } from '../../../src/rsp/index.js';
import { elfPath } from '../../qemu/guests/guests.js';
import { frozenGuest } from '../../support/command.js';
import { heldPlaces } from '../../support/held-places.js';
import { usually } from '../../support/long.js';

interface Node {
  readonly future: FutureType;
  readonly address: Addr;
}

type Memory = ReturnType<Session['memory']>;

const key = ({ future, address }: Node): string => `${future.future} ${hex(address)}`;

/** Every Future that is certainly there in a suspended one, to the end of each branch. */
async function tree(node: Node, set: FutureSet, memory: Memory): Promise<Node[]> {
  const places = await heldPlaces(node.future, node.address, memory, set);
  const certain = places.filter(({ held }) => !held.maybe);
  return (await Promise.all(certain.map(async (one) => [one, ...(await tree(one, set, memory))]))).flat();
}

/** The guest's heap, as binutils know it: its first part, where all that it has allocated by then lies. */
function heapOf(path: string): Addr {
  const line = execFileSync('riscv64-linux-gnu-nm', ['-C', path], { encoding: 'utf8', maxBuffer: 64 << 20 })
    .split('\n')
    .find((text) => text.endsWith(' labkern::heap::ARENA'));
  return addr(BigInt(`0x${line?.split(' ')[0]}`));
}

const guests = [
  { name: 'rv-o0', roots: 150, least: { nodes: 400, future: 'labkern::futs::Select2' } },
  { name: 'x86-o0', roots: 90, least: { nodes: 200, future: 'labkern::futs::Join2' } },
  { name: 'rv-o2', roots: 150, least: { nodes: 100, future: 'labkern::work::level3' } },
];
for (const { name, roots, least } of usually(guests, (one) => one.name === 'x86-o0')) {
  t.test(`${name}: what is held is what is polled next`, async (t) => {
    const elf = await ElfFile.open(elfPath(name));
    const arch = architectureOf(elf.machine);
    if (arch === undefined) throw new Error('unknown architecture');
    const set = findFutures(DebugInfo.load(elf));
    const polled = new Map(
      set.all.flatMap((future) => future.polls.map((poll) => [poll.address, { future, poll }] as const)),
    );
    const guest = frozenGuest(t, name);
    await using session = await connect(guest.socket, { waitMs: 60_000 });
    const breakpoint = (address: Addr) => ({ type: 0, address, kind: arch.name === 'riscv64' ? 2 : 1 }) as const;
    for (const address of polled.keys()) await session.insertBreakpoint(breakpoint(address));
    const memory = session.memory();

    let expected: Node[] = [];
    let observed = new Set<string>();
    let tasks = 0;
    let last = '';
    let nodes = 0;
    const kinds = new Set<string>();
    const missing: string[] = [];
    const strangers: string[] = [];
    const running = new Map<Addr, FutureType>();
    while (tasks < roots) {
      const stop = await session.resume();
      if (stop.kind !== 'signal') throw new Error(`the guest ended: ${stop.kind}`);
      const batch = session.batch();
      const registers = batch.readRegisters();
      await batch.send();
      const pc = addr(registers.value.register(arch.name === 'riscv64' ? 'pc' : 'rip') ?? 0n);
      const here = polled.get(pc);
      if (here === undefined) throw new Error(`stopped at ${hex(pc)}`);
      // A step that an interrupt takes the place of ends at the same place again.
      const now = `${pc} ${registers.value.register('sp') ?? registers.value.register('rsp')}`;
      const again = now === last;
      last = now;
      const hart = stop.hart ?? '';
      if (again) {
        await session.stepOver(hart, breakpoint(pc));
        continue;
      }
      const self = arch.arguments[here.poll.resultSize > 16 ? 1 : 0] as string;
      const node = { future: here.future, address: addr(registers.value.register(self) ?? 0n) };
      // Only tasks are ready with nothing and polled through a vtable.
      if (node.future.output === '()' && node.future.vtables.length > 0) {
        missing.push(...expected.map(key).filter((one) => !observed.has(one)));
        nodes += expected.length;
        for (const { future } of expected) kinds.add(future.future);
        expected = (await tree(node, set, memory)).filter(({ future }) => future.polls.length > 0);
        observed = new Set();
        running.set(node.address, node.future);
        tasks++;
      } else if (!expected.some((one) => key(one) === key(node))) {
        // What nobody held before has just been made: it has not run yet, or its state says that it had ended.
        const bytes = await memory.read(node.address, node.future.size);
        const state = bytes && stateOf(node.future, bytes);
        if (state?.name.startsWith('Suspend') && !observed.has(key(node))) strangers.push(key(node));
      }
      observed.add(key(node));
      await session.stepOver(hart, breakpoint(pc));
    }
    t.same(missing, [], `${nodes} held Futures were polled where they lie`);
    t.same(strangers, [], 'none was resumed that was not held');
    t.ok(nodes >= least.nodes, `${nodes} in ${tasks} polls of tasks`);
    t.ok(kinds.has(least.future), [...kinds].join(', '));

    await t.test('vtables in memory', async (t) => {
      for (const future of set.all) {
        for (const vtable of future.vtables) {
          const bytes = await memory.read(vtable, 32);
          if (bytes === undefined) throw new Error(`no vtable at ${hex(vtable)}`);
          const word = (at: number): bigint => Buffer.from(bytes).readBigUInt64LE(at);
          t.same(
            [word(8), word(16)],
            [BigInt(future.size), BigInt(future.align ?? 0)],
            `${future.future}: size, align`,
          );
          t.equal(set.byPollAddress(addr(word(24))), future);
        }
      }
      // A task's box is a pointer to the Future and one to its vtable.
      const start = heapOf(elf.path);
      const heap = Buffer.from((await memory.read(start, 64 << 10)) ?? []);
      // An older task's box may still be there, with the same pointer.
      const boxed = new Map<Addr, FutureType[]>();
      for (let at = 0; at + 16 <= heap.length; at += 8) {
        const pointer = addr(heap.readBigUInt64LE(at));
        const future = running.has(pointer) ? set.byVtable(addr(heap.readBigUInt64LE(at + 8))) : undefined;
        if (future) boxed.set(pointer, [...(boxed.get(pointer) ?? []), future]);
      }
      t.ok(boxed.size >= 5, `${boxed.size} tasks found by their boxes`);
      for (const [pointer, futures] of boxed) {
        const now = running.get(pointer);
        t.ok(
          now && futures.includes(now),
          `${hex(pointer)}: ${now?.future} is among ${futures.map(({ future }) => future)}`,
        );
      }
    });
    await session.kill();
  });
}
