// `rsptrace tasks` against what gdb reads from the executor's own counters, on a stopped guest and on dumps of it.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import { elfPath, guest } from './guests/guests.js';

interface Node {
  readonly future: string;
  readonly address: string;
  readonly path: string;
  readonly state: string | null;
  readonly file: string | null;
  readonly line: number | null;
  readonly locals?: { name: string; value: unknown }[];
  readonly awaits: readonly Node[];
}

/** Address of the executor's poll_task, as binutils know it: at its entry no task is half spawned or half dropped. */
function pollTask(path: string, arch: string): bigint {
  const nm = arch === 'riscv64' ? 'riscv64-linux-gnu-nm' : 'nm';
  const line = execFileSync(nm, ['-C', path], { encoding: 'utf8', maxBuffer: 64 << 20 })
    .split('\n')
    .find((text) => text.endsWith('labkern::exec::poll_task'));
  return BigInt(`0x${line?.split(' ')[0]}`);
}

/** Lets the guest run over so many polls of tasks, and leaves it stopped, with nobody attached. */
async function advance(socket: string, address: bigint, hits: number): Promise<void> {
  const session = await connect(socket, { waitMs: 60_000 });
  const breakpoint = { type: 0, address: addr(address), kind: 2 } as const;
  for (let i = 0; i < hits; i++) {
    // Stands at the breakpoint after the first: step over it without it, then plant it again.
    const [{ id }] = (await session.harts()) as [{ id: string }];
    if (i > 0) await session.resume({ kind: 'step', hart: id });
    await session.insertBreakpoint(breakpoint);
    await session.resume();
    await session.removeBreakpoint(breakpoint);
  }
  session.close();
}

/** What gdb says of the guest through the same stub, which it leaves stopped. */
function gdbAt(socket: string, elf: string, command: string): string {
  return execFileSync(
    'gdb-multiarch',
    ['-nx', '-batch', elf, '-ex', `target remote ${socket}`, '-ex', command, '-ex', 'disconnect'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  );
}

/** What gdb reads of the executor, through the same stub: tasks that are not done. */
function liveTasks(socket: string, elf: string): number {
  const text = gdbAt(socket, elf, 'print/d labkern::exec::LIVE');
  const found = /\$1 = .*?(\d+)\D*$/m.exec(text);
  if (!found) throw new Error(`gdb did not print LIVE:\n${text}`);
  return Number(found[1]);
}

function leaves(node: Node): Node[] {
  return node.awaits.length === 0 ? [node] : node.awaits.flatMap(leaves);
}

const shape = (node: Node): unknown => [node.future, node.address, node.state, node.line, node.awaits.map(shape)];

/** What each of the guest's 14 tasks is spawned with. */
const rootTypes = new Set(
  [
    'chain_task',
    'joiner',
    'selector',
    'sleeper',
    'irq_wait',
    'fib_task',
    'generic_task',
    'device_task',
    'consumer',
    'producer',
  ]
    .map((name) => `labkern::work::${name}`)
    .concat('labkern::work::spawn_all::{async_block#0}'),
);
/** What a task of the guest can wait on in the end. */
const leafTypes = /^labkern::futs::(YieldN|Sleep|Recv)$|^core::future::poll_fn::PollFn$/;

for (const name of usually(['rv-o0', 'rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: as many tasks as the executor has, each with its leaf`, async (t) => {
    const elf = elfPath(name);
    const address = pollTask(elf, guest(name).arch);
    let most = 0;
    // The tasks' lives are the same in all guests: all four moments in each under `--long`.
    for (const hits of usually([2, 47, 160, 300], (one) => one === 2 || one === 160)) {
      // The same moment in each run: at some others the memory of a dropped box still looks like one.
      const qemu = frozenGuest(t, name, ['-icount', 'shift=1,sleep=off']);
      await advance(qemu.socket, address, hits);
      const live = liveTasks(qemu.socket, elf);
      const { tasks } = await rsptrace('tasks', '--json', '-r', qemu.socket, elf).json<{ tasks: Node[] }>();
      t.equal(tasks.length, live, `at the ${hits}th poll of a task`);
      most = Math.max(most, live);
      for (const task of tasks) {
        t.ok(rootTypes.has(task.future), task.future);
        if (task.state === 'Unresumed') continue;
        for (const leaf of leaves(task)) t.match(leaf.future, leafTypes, `a leaf of ${task.future}`);
      }
      t.equal((await qemu.ended).status, guest(name).exit, 'and the guest ran on to its end');
    }
    t.equal(most, 14, 'all of them at the start');
  });
}

t.test('a dump shows what the stopped guest shows: an ELF core, and a raw image with --base', async (t) => {
  const elf = elfPath('rv-o2');
  const qemu = frozenGuest(t, 'rv-o2');
  await advance(qemu.socket, pollTask(elf, 'riscv64'), 100);
  const folder = scratchFolder(t);
  const [core, raw] = [join(folder, 'core'), join(folder, 'raw')];
  const session = await connect(qemu.socket);
  await session.monitor(`pmemsave 0x80000000 0x1000000 "${raw}"`);
  await session.monitor(`dump-guest-memory ${core}`);
  session.close();
  const read = async (...args: string[]): Promise<readonly Node[]> => {
    return (await rsptrace('tasks', '--json', ...args, elf).json<{ tasks: Node[] }>()).tasks;
  };
  const fromRaw = await read('--core', raw, '--base', '0x80000000');
  const dumps = existsSync(core);
  if (dumps) t.strictSame((await read('--core', core)).map(shape), fromRaw.map(shape), 'the core, and the image');
  const cut = join(folder, 'cut');
  if (dumps) {
    // Linux writes its cores without section headers, so that nothing else shows where they end.
    const start = readFileSync(core).subarray(0, 1 << 20);
    start.writeBigUInt64LE(0n, 0x28);
    start.writeUInt16LE(0, 0x3c);
    writeFileSync(cut, start);
    const ran = await rsptrace('tasks', '--core', cut, elf).ended;
    t.equal(ran.status, 1, ran.stdout);
    t.match(ran.stderr, /ends after 1048576 of \d+ bytes.*\[CORE_TRUNCATED\]/);
  }
  writeFileSync(cut, readFileSync(raw).subarray(0, 1 << 16));
  const other = await rsptrace('tasks', '--core', cut, '--base', '0x80000000', elf).ended;
  t.equal(other.status, 1, other.stdout);
  t.match(other.stderr, '[MEMORY_MISSING]');
  const live = await read('-r', qemu.socket);
  t.ok(live.length >= 8);
  t.strictSame(fromRaw.map(shape), live.map(shape), 'the image, and the guest');
});

t.test('--locals: what a Future keeps across its await', async (t) => {
  const elf = elfPath('rv-o2');
  const qemu = frozenGuest(t, 'rv-o2');
  await advance(qemu.socket, pollTask(elf, 'riscv64'), 60);
  const { stdout } = await rsptrace('tasks', '--locals', '-r', qemu.socket, elf).ended;
  // The second chain task was made with id 1; level1 holds its String.
  t.match(stdout, /labkern::work::chain_task .*\n│ {3}id = 1\n/);
  t.match(stdout, /name = "lvl"/);
  t.match(stdout, /└─ labkern::futs::Join2/);
});

/** Address of a function by its unmangled name, from binutils. */
function symbol(path: string, name: string): bigint {
  const nm = execFileSync('riscv64-linux-gnu-nm', [path], { encoding: 'utf8', maxBuffer: 64 << 20 });
  return BigInt(`0x${new RegExp(`^([0-9a-f]+) \\S ${name}$`, 'm').exec(nm)?.[1]}`);
}

t.test('stopped inside a poll: the task that is polled is marked, and bt --locals shows what gdb shows', async (t) => {
  const elf = elfPath('rv-o0');
  // deep3 is only called by leaf_io's body, so some task is being polled there.
  const qemu = frozenGuest(t, 'rv-o0');
  await advance(qemu.socket, symbol(elf, 'deep3'), 7);
  const gdb = gdbAt(qemu.socket, elf, 'bt 5');
  const tasks = await (async () => {
    const session = await connect(qemu.socket);
    session.close();
    const { stdout } = await rsptrace('bt', '--locals', '--json', '-r', qemu.socket, elf).ended;
    return JSON.parse(stdout) as {
      harts: { frames: { function: string; locals?: { name: string; value: unknown }[] }[] }[];
    };
  })();
  const frames = tasks.harts[0]?.frames ?? [];
  // gdb: `#1  0x... in labkern::work::deep2 (x=5, y=7) at ...`. The innermost frame's prologue has not run.
  const expected = [...gdb.matchAll(/^#([1-3]) .*\blabkern::work::(deep\d) \(x=(\d+), y=(\d+)\)/gm)];
  t.equal(expected.length, 3, gdb);
  for (const [, level, name, x, y] of expected) {
    const frame = frames[Number(level)];
    t.equal(frame?.function, `labkern::work::${name}`);
    const value = (of: string): string => JSON.stringify(frame?.locals?.find((local) => local.name === of)?.value);
    t.match(value('x'), new RegExp(`\\b${x}\\b`), `${name}'s x`);
    t.match(value('y'), new RegExp(`\\b${y}\\b`), `${name}'s y`);
  }

  const again = frozenGuest(t, 'rv-o0');
  await advance(again.socket, symbol(elf, 'deep3'), 7);
  const stack = gdbAt(again.socket, elf, 'bt 40');
  const ran = await rsptrace('tasks', '--json', '-r', again.socket, elf).ended;
  const all = (JSON.parse(ran.stdout) as { tasks: (Node & { running?: boolean })[] }).tasks;
  const running = all.filter((task) => task.running);
  t.equal(running.length, 1, 'one task is being polled');
  const outermost = [...stack.matchAll(/labkern::work::(\w+(?:::\{async_block#0\})?)(?:::\{async_fn#0\})? \(/g)].at(
    -1,
  )?.[1];
  t.equal(running[0]?.future, `labkern::work::${outermost}`, stack);
});

t.test('bad input: one sentence', async (t) => {
  const elf = elfPath('rv-o2');
  for (const [code, ...args] of [
    ['USAGE', elf],
    ['USAGE', '-r', ':1', '--nope', elf],
    ['USAGE', '--core', 'x', '-r', 'y', elf],
    ['USAGE', '-r', ':1', '--scan', 'everything', elf],
    ['USAGE', '--core', 'README.md', '--base', 'start', elf],
    ['CORE_NOT_CORE', '--core', 'README.md', elf],
    ['CORE_NOT_CORE', '--core', elf, elf],
    ['CORE_UNREADABLE', '--core', '/no/such/file', '--base', '0', elf],
    ['RSP_CONNECT', '-r', './nobody', elf],
  ] as [string, ...string[]][]) {
    const { status, stderr } = await rsptrace('tasks', ...args).ended;
    t.equal(status, code === 'USAGE' ? 2 : 1, `${code}: ${stderr}`);
    t.match(stderr, `[${code}]`);
  }
});
