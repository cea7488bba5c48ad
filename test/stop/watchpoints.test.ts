// Watchpoints on real stubs, with breakpoints in every place where one could take the other's stop away: what the program counts in
// memory, and what binutils say of its code, against what is reported.

import { execFileSync } from 'node:child_process';
import t, { type Test } from 'tap';
import { architectureNamed } from '../../src/arch/index.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { type Access, parseProbe, resolveWatches, type WatchSpec } from '../../src/probes/index.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { Watchpoints } from '../../src/stop/index.js';
import { STATUS } from '../support/counted-program.js';
import { countingEngine } from '../support/counting-engine.js';
import { usually } from '../support/long.js';
import { TRIGGERS } from '../support/riscv-hart/board.js';
import { qemuSystem, type StartedStub, type StubServer, stubServers } from '../support/stub-servers.js';

/** How many calls of `work` by the first hart are followed, where nothing else is said. */
const CALLS = 30;

interface Instruction {
  readonly address: Addr;
  readonly text: string;
}

/** The instructions of `work`, by objdump. */
function workOf({ program }: StartedStub): Instruction[] {
  const objdump = program.arch === 'riscv64' ? 'riscv64-linux-gnu-objdump' : 'objdump';
  const args = ['-d', '--no-show-raw-insn', '--disassemble=work', program.elf];
  return [...execFileSync(objdump, args, { encoding: 'utf8' }).matchAll(/^\s*([0-9a-f]+):\t(.*)$/gm)].map(
    ([, at, text = '']) => ({ address: addr(BigInt(`0x${at}`)), text: text.trim() }),
  );
}

async function watching(
  session: Session,
  { program }: StartedStub,
  ...probes: readonly string[]
): Promise<{ readonly watches: Watchpoints; readonly seen: readonly Access[] }> {
  const arch = architectureNamed(program.arch === 'riscv64' ? 'riscv:rv64' : 'i386:x86-64');
  if (!arch) throw new Error('no architecture');
  const specs = probes.map((text) => parseProbe(text) as WatchSpec);
  const places = await resolveWatches(specs, undefined, session.memory());
  const seen: Access[] = [];
  return { watches: new Watchpoints({ session, arch, places, emit: (access) => void seen.push(access) }), seen };
}

const eight = (address: bigint): string => `0x${address.toString(16)},8`;

const number = (bytes: Uint8Array | undefined): bigint | undefined =>
  bytes && new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);

/** Where the first hart's `work` saves a register, on a machine whose stack lies in the program. */
function savedAt({ program }: StartedStub): Addr {
  return program.arch === 'riscv64'
    ? addOffset(program.symbol('stacks'), 256 - 8)
    : addOffset(program.symbol('stack_end'), -16);
}

interface Followed {
  /** A word of the stack is watched, too. */
  readonly stack: boolean;
  readonly calls?: number;
  /** Breakpoints: at all instructions of `work`, or only at its last. */
  readonly breakpoints?: 'all' | 'last';
}

async function follow(t: Test, server: StubServer, how: Followed): Promise<void> {
  const { stack, calls: wanted = CALLS, breakpoints = 'all' } = how;
  const stub = await server.start(t);
  await using session = await connect(stub.address, { waitMs: 60_000 });
  const counters = stub.program.symbol('counters');
  const work = workOf(stub);
  const index = (pattern: RegExp): number => work.findIndex(({ text }) => pattern.test(text));
  const counts = index(/^(?:sd\s+t1,0\(t0\)|incq )/);
  const saves = index(/^(?:sd\s+ra,8\(sp\)|push )/);
  const restores = index(/^(?:ld\s+ra,8\(sp\)|pop )/);
  const probes = [`watch:${eight(counters)}`, ...(stack ? [`watch:${eight(savedAt(stub))}:rw`] : [])];
  const { watches, seen } = await watching(session, stub, ...probes);
  const last = work.at(-1)?.address;
  let calls = 0;
  const onHit = (pc: bigint, hart: number): boolean => hart === 0 && pc === last && ++calls === wanted;
  const { engine, hits } = await countingEngine(session, stub.program.arch, { watches, onHit });
  const stopsAt = work.filter(({ address }) => breakpoints === 'all' || address === last);
  await engine.points.arm(stopsAt.map(({ address }) => address));
  await watches.arm();
  t.equal((await engine.run()).kind, 'asked');

  t.equal(number(await session.memory().read(counters, 8)), BigInt(wanted), 'the program has counted');
  for (const { address, text } of stopsAt)
    t.equal(hits.get(0)?.get(address), wanted, `no hit lost or doubled at ${text}`);
  const before = stub.program.arch === 'riscv64';
  /** The pc of an instruction. */
  const told = (at: number): bigint | undefined => work[before ? at : at + 1]?.address;
  const ofCounter = seen.filter(({ point }) => point.index === 0);
  t.strictSame(
    ofCounter.map(({ old, value, pc, hart, exact }) => [number(old), number(value), pc, hart, exact]),
    Array.from({ length: wanted }, (_, i) => [BigInt(i), BigInt(i + 1), told(counts), 0, before]),
    'every write, with what was there before, and who wrote',
  );
  if (stack) {
    t.strictSame(
      seen.filter(({ point }) => point.index === 1).map(({ pc }) => pc),
      Array.from({ length: wanted }, () => [told(saves), told(restores)]).flat(),
      'accesses by instructions that are otherwise carried out from outside',
    );
  }
  await engine.settle();
  await session.memory().write(stub.program.symbol('release'), new Uint8Array([1]));
  await session.detach();
  const ended = await stub.guest.ended;
  t.match(ended.stdout, `calls ${stub.program.calls}\n`, 'the program runs on, and well');
  if (server.hidesStatus !== true) t.equal(ended.status, STATUS);
}

const serverNamed = (name: string): StubServer => {
  const found = stubServers.find((server) => server.name === name);
  if (!found) throw new Error(`no ${name}`);
  return found;
};

for (const server of [qemuSystem('riscv64', 2), qemuSystem('x86_64', 1)]) {
  t.test(`${server.name}: watchpoints and breakpoints at the same instructions`, (t) =>
    follow(t, server, { stack: true }),
  );
}
t.test('gdbserver: watchpoints and breakpoints at the same instructions', (t) =>
  follow(t, serverNamed('gdbserver'), { stack: false }),
);

for (const breakpoints of usually(['all', 'last'] as const, (one) => one === 'all')) {
  t.test(`OpenOCD: triggers for loads and stores, with breakpoints at ${breakpoints} of the same instructions`, (t) =>
    follow(t, serverNamed('OpenOCD, a JTAG hart'), { stack: true, calls: 10, breakpoints }),
  );
}

t.test('OpenOCD: a third place has no trigger left, and the target is as it was', async (t) => {
  const stub = await serverNamed('OpenOCD, a JTAG hart').start(t);
  await using session = await connect(stub.address, { waitMs: 60_000 });
  const scratch = stub.program.symbol('scratch');
  const three = [0, 8, 16].map((offset) => `watch:${eight(addOffset(scratch, offset))}`);
  const { watches } = await watching(session, stub, ...three);
  await t.rejects(watches.arm(), {
    code: 'WATCH_REFUSED',
    message: new RegExp(`at 0x${addOffset(scratch, 16).toString(16)}: ${TRIGGERS} that it took are in use`),
    hint: /watch fewer places/,
  });
  await session.memory().write(stub.program.symbol('release'), new Uint8Array([1]));
  await session.detach();
  t.match(await stub.guest.ended, { stdout: `calls ${stub.program.calls}\n`, status: STATUS });
});

t.test('gdbserver: no watchpoints of reads alone on x86, and four in all', async (t) => {
  const stub = await serverNamed('gdbserver').start(t);
  await using session = await connect(stub.address, { waitMs: 60_000 });
  const counters = stub.program.symbol('counters');
  const { watches } = await watching(session, stub, `watch:${eight(counters)}:r`);
  await watches.arm();
  t.match(session.breakpoints, [{ type: 4, address: counters, kind: 8 }], 'reads and writes are watched instead');
  await watches.disarm();
  t.strictSame(session.breakpoints, []);
  const scratch = stub.program.symbol('scratch');
  const five = [0, 4, 8, 12, 16].map((offset) => `watch:0x${addOffset(scratch, offset).toString(16)},4`);
  const many = await watching(session, stub, ...five);
  await t.rejects(many.watches.arm(), { code: 'WATCH_REFUSED', message: /4 that it took are in use/ });
  await session.kill();
});

t.test('lldb-server: which of two places was accessed', async (t) => {
  const stub = await serverNamed('lldb-server').start(t, CALLS);
  await using session = await connect(stub.address, { waitMs: 60_000 });
  const [counters, begin] = [stub.program.symbol('counters'), stub.program.symbol('begin')];
  const { watches, seen } = await watching(session, stub, `watch:${eight(begin)}:rw`, `watch:${eight(counters)}`);
  const arrived = stub.program.symbol('arrived');
  const onHit = (pc: bigint): boolean => pc === arrived;
  const { engine } = await countingEngine(session, stub.program.arch, { watches, onHit });
  await engine.points.arm([arrived]);
  await watches.arm();
  t.equal((await engine.run()).kind, 'asked');
  t.strictSame(
    seen.map(({ point, old, value }) => [point.index, number(old), number(value)]),
    [[0, 1n, 1n], ...Array.from({ length: CALLS }, (_, i) => [1, BigInt(i), BigInt(i + 1)])],
    'it looks at `begin` once, and counts its calls',
  );
  await engine.settle();
  // Left alone, it would run on for ever.
  await session.kill();
});

t.test('valgrind: a stub that refuses says so', async (t) => {
  const stub = await serverNamed('valgrind, through vgdb').start(t);
  await using session = await connect(stub.address, { waitMs: 60_000 });
  const { watches } = await watching(session, stub, `watch:${eight(stub.program.symbol('counters'))}`);
  await t.rejects(watches.arm(), { code: 'WATCH_REFUSED', message: /it took none/ });
  await session.kill();
});
