import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type Addr, addr } from '../../src/base/addr.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { elfPath, guest as guestOf } from '../qemu/guests/guests.js';
import { frozenGuest, type Running, scratchFolder, start } from '../support/command.js';
import { usually } from '../support/long.js';

type Test = Parameters<typeof scratchFolder>[0];

/** A machine with nothing to run but its firmware, frozen at reset. */
function machine(t: Test, arch: 'riscv64' | 'x86_64', ...extra: string[]): Running & { readonly socket: string } {
  const socket = join(scratchFolder(t), 'gdb');
  const options = [
    '-S',
    '-display',
    'none',
    '-serial',
    'null',
    '-monitor',
    'none',
    '-gdb',
    `unix:${socket},server=on,wait=off`,
  ];
  const running = start(`qemu-system-${arch}`, [...(arch === 'riscv64' ? ['-M', 'virt'] : []), ...options, ...extra]);
  t.teardown(() => void running.process.kill('SIGKILL'));
  return { ...running, socket };
}

/** The address that binutils give a symbol whose demangled name ends so. */
function symbol(elf: string, name: string): Addr {
  const found = execFileSync('riscv64-linux-gnu-nm', ['-C', elf], { encoding: 'utf8', maxBuffer: 64 << 20 })
    .split('\n')
    .find((line) => line.endsWith(` ${name}`));
  if (found === undefined) throw new Error(`no ${name} in ${elf}`);
  return addr(BigInt(`0x${found.split(' ')[0]}`));
}

/** What QEMU itself says of its registers: ` x10/a0  0000000000000010`, `mhartid  0000000000000000`, `EAX=00000000`. */
async function monitored(session: Session): Promise<Map<string, bigint>> {
  const text = (await session.monitor('info registers')) ?? '';
  const found = new Map<string, bigint>();
  for (const [, name = '', value] of text.matchAll(/(?:x\d+\/)?(\w+) +([0-9a-f]{16})\b/g))
    found.set(name, BigInt(`0x${value}`));
  for (const [, name, value] of text.matchAll(/\b[ER]([A-Z0-9]{2}) *=([0-9a-f]+)/g)) {
    found.set(`r${name?.toLowerCase()}`, BigInt(`0x${value}`));
  }
  return found;
}

for (const arch of ['riscv64', 'x86_64'] as const) {
  t.test(`qemu-system-${arch}: registers and memory are those of its own monitor`, async (t) => {
    const qemu = machine(t, arch);
    await using session = await connect(qemu.socket, { waitMs: 60_000 });
    const hart = (await session.harts())[0]?.id ?? '';
    for (let step = 0; step < 20; step++) await session.resume({ kind: 'step', hart });
    const batch = session.batch();
    const block = batch.readRegisters();
    await batch.send();
    const truth = await monitored(session);
    const names =
      arch === 'riscv64' ? ['pc', 'ra', 'sp', 't0', 'a0', 'a1', 'a2', 'mhartid', 'mstatus'] : ['rip', 'rax', 'rdx'];
    let compared = 0;
    for (const [name, value] of truth) {
      const register = session.target.register(name);
      if (register?.offsetInG === undefined) continue;
      t.equal(block.value.register(name), value, name);
      compared++;
    }
    t.ok(compared >= (arch === 'riscv64' ? 32 : 9), `${compared} registers compared`);
    const singles = session.batch();
    const asked = names.map((name) => ({ name, reply: singles.readRegister(name) }));
    await singles.send();
    for (const { name, reply } of asked) if (truth.has(name)) t.equal(reply.value, truth.get(name), `p ${name}`);

    const rom = arch === 'riscv64' ? 0x1000 : 0xffff0;
    const dump = (await session.monitor(`xp /16xb ${rom}`)) ?? '';
    const bytes = [...dump.matchAll(/0x([0-9a-f]{2})\b/g)].map((match) => Number.parseInt(match[1] ?? '', 16));
    const physical = await session.physicalMemory();
    t.same([...((await physical?.read(addr(rom), 16)) ?? [])], bytes);
    t.equal(await session.memory().read(addr(0xffff_0000_0000_0000n), 8), undefined, 'nothing is there');
    const scratch = arch === 'riscv64' ? addr(0x8000_0ffe) : addr(0x8ffe);
    const pattern = new Uint8Array(9000).map((_, index) => index * 7);
    t.equal(await session.memory().write(scratch, pattern), true);
    t.same(await session.memory().read(scratch, pattern.length), pattern);

    const write = session.batch();
    const name = arch === 'riscv64' ? 'a0' : 'rax';
    const written = write.writeRegister(name, 0x5566_7788n);
    await write.send();
    t.equal(written.value, true);
    t.equal((await monitored(session)).get(name), 0x5566_7788n);
  });
}

t.test('qemu: four harts, one of them stepped', async (t) => {
  const qemu = machine(t, 'riscv64', '-smp', '4');
  await using session = await connect(qemu.socket, { waitMs: 60_000 });
  const harts = await session.harts();
  t.same(
    harts.map((hart) => hart.id),
    ['p01.01', 'p01.02', 'p01.03', 'p01.04'],
  );
  t.match(harts[3]?.name, /CPU#3/);
  const ids = async (): Promise<(bigint | undefined)[]> => {
    const all = harts.map((hart) => ({ hart, batch: session.batch(hart.id) }));
    const replies = all.map(({ batch }) => batch.readRegister('mhartid'));
    await Promise.all(all.map(({ batch }) => batch.send()));
    return replies.map((reply) => reply.value);
  };
  t.same(await ids(), [0n, 1n, 2n, 3n], 'each batch goes to its own hart');
  const pcs = async (): Promise<(bigint | undefined)[]> => {
    const all = harts.map((hart) => session.batch(hart.id));
    const replies = all.map((batch) => batch.readRegisters());
    for (const batch of all) await batch.send();
    return replies.map((reply) => reply.value.register('pc'));
  };
  const stop = await session.resume({ kind: 'step', hart: 'p01.03' });
  t.match(stop, { kind: 'signal', hart: 'p01.03' });
  t.same(await pcs(), [0x1000n, 0x1000n, 0x1004n, 0x1000n], 'the others are held');
});

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: every hit of a breakpoint, as many as the guest counts`, async (t) => {
    const guest = guestOf(name);
    const breakpoint = {
      type: 0,
      address: symbol(elfPath(name), 'labkern::exec::poll_task'),
      kind: guest.arch === 'riscv64' ? 2 : 1,
    } as const;
    const pc = guest.arch === 'riscv64' ? 'pc' : 'rip';
    const qemu = frozenGuest(t, name);
    const session = await connect(qemu.socket, { waitMs: 60_000 });
    t.equal(await session.insertBreakpoint(breakpoint), true);
    let hits = 0;
    let stop = await session.resume();
    while (stop.kind === 'signal') {
      if (stop.signal !== 5 || stop.hart === undefined) throw new Error(JSON.stringify(stop));
      const { hart } = stop;
      const batch = session.batch();
      const at = batch.readRegisters();
      stop = await batch.resume({ kind: 'step', hart });
      t.equal(at.value.register(pc), breakpoint.address);
      hits++;
      // A step that meets a pending interrupt may execute nothing.
      for (let tries = 0; tries < 100; tries++) {
        const after = session.batch();
        const registers = after.readRegisters();
        await after.send();
        if (registers.value.register(pc) !== breakpoint.address) break;
        await session.stepOver(hart, breakpoint);
      }
      stop = await session.resume();
    }
    const { stdout } = await qemu.ended;
    const counted = /LAB stat poll_task calls=(\d+) /.exec(stdout)?.[1];
    t.equal(hits, Number(counted));
    t.match(stdout, `LAB checksum ${guest.checksum}`);
    t.equal(session.state.kind, 'gone');
  });
}

t.test('a guest that is left runs on to its end', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2');
  const breakpoint = { type: 0, address: symbol(elfPath('rv-o2'), 'labkern::exec::poll_task'), kind: 2 } as const;
  {
    await using session = await connect(qemu.socket, { waitMs: 60_000 });
    await session.insertBreakpoint(breakpoint);
    t.match(await session.resume(), { kind: 'signal', signal: 5 });
  }
  const { stdout, status } = await qemu.ended;
  t.match(stdout, `LAB checksum ${guestOf('rv-o2').checksum}`);
  t.equal(status, 0);
});

t.test('coming to a guest that runs, and interrupting it', async (t) => {
  const qemu = machine(t, 'riscv64');
  const first = await connect(qemu.socket, { waitMs: 60_000 });
  void first.resume();
  await first.detach();
  await using second = await connect(qemu.socket, { waitMs: 60_000 });
  t.equal(second.state.kind, 'idle');
  const run = second.resume();
  t.match(await second.interrupt(), { kind: 'signal', signal: 2 });
  t.equal(await run, await second.interrupt());
});

t.test('a stub that another debugger holds', async (t) => {
  const qemu = machine(t, 'riscv64');
  await using session = await connect(qemu.socket, { waitMs: 60_000 });
  await t.rejects(connect(qemu.socket, { timeoutMs: 300 }), { code: 'RSP_TIMEOUT', hint: /debugger/ });
  t.equal((await session.harts()).length, 1, 'the first is not disturbed');
});

t.test('a stub that dies', async (t) => {
  const running = machine(t, 'riscv64');
  const session = await connect(running.socket, { waitMs: 60_000 });
  const run = session.resume();
  running.process.kill('SIGKILL');
  t.same(await run, { kind: 'gone' });
  await t.rejects(session.memory().read(addr(0x1000), 8), { code: 'RSP_CLOSED' });
  const killed = machine(t, 'x86_64');
  const other = await connect(killed.socket, { waitMs: 60_000 });
  await other.kill();
  t.equal((await killed.ended).status, 0);
});

const PROGRAM = `
#include <stdio.h>
volatile int counter;
__attribute__((noinline)) long work(long a, long b) { counter++; return a * 2 + b; }
int main(void) { long sum = 0; for (long i = 0; i < 6; i++) sum = work(i, sum); printf("sum %ld\\n", sum); return 7; }
`;

t.test('gdbserver: hits, registers written through G, stepping over, the end', async (t) => {
  const folder = scratchFolder(t);
  const program = join(folder, 'program');
  writeFileSync(`${program}.c`, PROGRAM);
  execFileSync('gcc', ['-O1', '-no-pie', '-o', program, `${program}.c`]);
  const server = start('gdbserver', ['--once', '127.0.0.1:0', program]);
  t.teardown(() => void server.process.kill('SIGKILL'));
  let port = '';
  server.process.stderr?.on('data', (text: string) => {
    port ||= /port (\d+)/.exec(text)?.[1] ?? '';
  });
  await server.shows('Listening on port');
  const session = await connect(`127.0.0.1:${port}`);
  t.match(session.features, { noAck: true, singleRegister: false, swbreak: true, qemuStepBits: undefined });
  t.equal(session.attached, false);
  const breakpoint = { type: 0, address: symbol(program, 'work'), kind: 1 } as const;
  const counter = symbol(program, 'counter');
  t.equal(await session.insertBreakpoint(breakpoint), true);
  let sum = 0n;
  for (let call = 0n; call < 6n; call++) {
    const stop = await session.resume();
    t.match(stop, { kind: 'signal', signal: 5, reason: 'swbreak' });
    const hart = stop.kind === 'signal' ? (stop.hart ?? '') : '';
    const batch = session.batch();
    const registers = batch.readRegisters();
    const rdi = batch.readRegister('rdi');
    const memory = batch.readMemory(counter, 4);
    const nothing = batch.readMemory(addr(0), 4);
    await batch.send();
    t.equal(registers.value.register('rip'), breakpoint.address);
    t.same([rdi.value, registers.value.register('rsi')], [call, sum]);
    t.same(memory.value, new Uint8Array([Number(call), 0, 0, 0]));
    t.equal(nothing.value, undefined);
    if (call === 3n) {
      const write = session.batch();
      const done = [write.writeRegister('rdi', 100n), write.writeRegister('rsi', 1000n)];
      await write.send();
      t.same(
        done.map((reply) => reply.value),
        [true, true],
      );
      sum = 1200n;
    } else {
      sum = call * 2n + sum;
    }
    t.match(await session.stepOver(hart, breakpoint), { kind: 'signal', signal: 5 });
  }
  t.same(session.breakpoints, [breakpoint]);
  t.match(await session.resume(), { kind: 'exited', status: 7 });
  t.match((await server.ended).stdout, `sum ${sum}`);
});

t.test('gdbserver: detaching from a running program leaves its code as it was', async (t) => {
  const folder = scratchFolder(t);
  const program = join(folder, 'program');
  writeFileSync(
    `${program}.c`,
    '#include <unistd.h>\nvoid work(void) {}\nint main(void) { for (;;) { usleep(1000); work(); } }\n',
  );
  execFileSync('gcc', ['-O0', '-no-pie', '-o', program, `${program}.c`]);
  const traced = start(program, []);
  const server = start('gdbserver', ['--once', '--attach', '127.0.0.1:0', `${traced.process.pid}`]);
  t.teardown(() => {
    server.process.kill('SIGKILL');
    traced.process.kill('SIGKILL');
  });
  let port = '';
  server.process.stderr?.on('data', (text: string) => {
    port ||= /port (\d+)/.exec(text)?.[1] ?? '';
  });
  await server.shows('Listening on port');
  const session = await connect(`127.0.0.1:${port}`);
  t.equal(session.attached, true);
  const address = symbol(program, 'work');
  const breakpoint = { type: 0, address, kind: 1 } as const;
  const before = await session.memory().read(address, 8);
  await session.insertBreakpoint(breakpoint);
  t.match(await session.resume(), { reason: 'swbreak' });
  const hart =
    session.state.kind === 'idle' && session.state.stop.kind === 'signal' ? session.state.stop.hart : undefined;
  await session.stepOver(hart ?? '', breakpoint);
  const run = session.resume();
  await session.detach();
  t.equal((await run).kind, 'signal');
  await server.ended;
  const status = readFileSync(`/proc/${traced.process.pid}/status`, 'utf8');
  t.match(status, /TracerPid:\s+0/);
  const memory = execFileSync('dd', [
    `if=/proc/${traced.process.pid}/mem`,
    'bs=1',
    `skip=${address}`,
    'count=8',
    'status=none',
  ]);
  t.same(new Uint8Array(memory), before);
});
