// A QEMU that somebody else has started, on this machine: traced like one of rsptrace's own. Counts against the guest's.

import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addOffset } from '../../src/base/addr.js';
import { isRefusal } from '../../src/base/errors.js';
import { silent } from '../../src/base/logger.js';
import { connect } from '../../src/rsp/index.js';
import { hideAtReset } from '../../src/scratch/index.js';
import { GuestRam } from '../../src/target/index.js';
import { type Frozen, frozenGuest, rsptrace, scratchFolder, start } from '../support/command.js';
import { programOf } from '../support/hidden.js';
import { compareCounts } from '../support/lab.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, guest, type Lab, parseLab, qemuArgv } from './guests/guests.js';

/** Futures of which every poll is seen without stops. */
const exact = new Set(['chain_task', 'level3', 'leaf_io', 'joiner', 'producer', 'consumer', 'sleeper']);
const probes = [...[...exact].map((name) => `poll:${name}*`), 'fn:labkern::work::deep0'].flatMap((one) => ['-p', one]);

async function record(
  t: Test,
  { socket }: Pick<Frozen, 'socket'>,
  name: string,
  ...options: string[]
): Promise<{ output: Recording; stderr: string }> {
  const files = ['--json', '-o', join(scratchFolder(t), 'out.pftrace')];
  const ran = await rsptrace(
    ...['--remote', socket, '--engine', 'target', '--scratch', 'hidden', ...files, ...options, ...probes],
    ...[elfPath(name)],
  ).ended;
  t.equal(ran.status, 0, ran.stderr.slice(-500));
  return { output: JSON.parse(ran.stdout) as Recording, stderr: ran.stderr };
}

/** What the guest has printed when it has ended. */
async function labOf(t: Test, name: string, qemu: Frozen): Promise<Lab> {
  const ended = await qemu.ended;
  t.equal(ended.status, guest(name).exit);
  const lab = parseLab(ended.stdout);
  t.equal(lab.checksum, guest(name).checksum);
  return lab;
}

function checkCounts(t: Test, lab: Lab, { functions, futures, missing, tail_lost: tailLost }: Recording): void {
  t.equal(missing, 0);
  t.notOk(tailLost);
  t.equal(functions.find((row) => row.function.endsWith('deep0'))?.calls, lab.stats.get('deep_calls')?.calls);
  const whole = compareCounts(lab, futures).filter(({ name, timing }) => exact.has(name) && !timing);
  for (const { name, counted, polls } of whole) t.equal(polls, counted, name);
  t.ok(whole.length >= 6, `${whole.length} compared`);
}

for (const name of usually(['rv-o2', 'rvm-o2', 'x86-o2'], (one) => one === 'x86-o2')) {
  t.test(`${name}, frozen at its reset: no probe stops it`, async (t) => {
    const qemu = frozenGuest(t, name);
    const { output, stderr } = await record(t, qemu, name, '--until', 'labkern::arch::shutdown');
    checkCounts(t, await labOf(t, name, qemu), output);
    t.match(stderr, /16 MiB of the guest's RAM are kept from it/);
    t.match(output.scratch, /^hidden RAM 0x[0-9a-f]+\.\.0x[0-9a-f]+, read past the wire \(\/proc\/\d+\/mem\)$/);
    t.equal(output.ram?.source, `/proc/${qemu.process.pid}/mem`);
    t.ok(output.stops < 10, `${output.stops} stops`);
  });
}

t.test('memory that the user names is read past the wire, whatever gave it', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2');
  const { output } = await record(t, qemu, 'rv-o2', '--scratch', '0x87000000,4M', '--until', 'labkern::arch::shutdown');
  checkCounts(t, await labOf(t, 'rv-o2', qemu), output);
  t.match(output.scratch, /^--scratch .*, read past the wire \(\/proc\/\d+\/mem\)$/);
});

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}, its RAM in a file: the last events are there when QEMU has ended`, async (t) => {
    const path = join(scratchFolder(t), 'ram');
    const object = `memory-backend-file,id=ram,share=on,size=128M,mem-path=${path}`;
    const qemu = frozenGuest(t, name, ['-object', object, '-machine', 'memory-backend=ram']);
    const { output } = await record(t, qemu, name);
    t.equal(output.end, 'guest-ended');
    checkCounts(t, await labOf(t, name, qemu), output);
    t.equal(output.ram?.source, path);
  });
}

t.test('by way of a process that forwards the connection: by packets, and that is said', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2');
  const path = join(scratchFolder(t), 'proxy');
  const code = `const net = require('net');
net.createServer((from) => { const to = net.connect(process.argv[1]); from.pipe(to).pipe(from); }).listen(process.argv[2], () => console.log('ready'));`;
  const proxy = spawn(process.execPath, ['-e', code, qemu.socket, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => void proxy.kill('SIGKILL'));
  await new Promise((resolve) => proxy.stdout.once('data', resolve));
  const until = ['--until', 'labkern::arch::shutdown'];
  const { output } = await record(t, { socket: path }, 'rv-o2', ...until);
  t.match(output.ram, { past_wire: false, why: `process ${proxy.pid}, which answers, has other bytes` });
  t.match(output.scratch, /^hidden RAM 0x[0-9a-f]+\.\.0x[0-9a-f]+$/);
  checkCounts(t, await labOf(t, 'rv-o2', qemu), output);
});

t.test('over TCP, RAM is what packets give, everywhere and in both directions', async (t) => {
  const port = await freePort();
  const [program = '', ...args] = qemuArgv('x86-o2', ['-S', '-gdb', `tcp:127.0.0.1:${port}`]);
  const qemu = start(program, args);
  t.teardown(() => void qemu.process.kill('SIGKILL'));
  const session = await connect(`127.0.0.1:${port}`, { waitMs: 10_000 });
  t.teardown(() => session.close());
  const ram = await GuestRam.find(session);
  if (ram === undefined || isRefusal(ram)) throw new Error(JSON.stringify(ram));
  const physical = await session.physicalMemory();
  const { elf } = await programOf(elfPath('x86-o2'));
  const text = elf.segments.find(({ flags }) => (flags & 1) !== 0);
  if (!physical || !text) throw new Error('no physical memory');
  const places = [text.physical, text.physical + 0x5ffn, 0x10_0000n, 0x7ff_f000n, 0x7ff_fff0n];
  for (const at of places) {
    const bytes = new Uint8Array(16);
    t.ok(ram.read(at, bytes));
    t.same(bytes, await physical.read(addOffset(text.address, at - text.address), 16));
  }
  t.ok(ram.write(0x700_0ffcn, Buffer.from('over a page')));
  t.same(
    Buffer.from((await physical.read(addOffset(text.address, 0x700_0ffcn - text.address), 11)) ?? []).toString(),
    'over a page',
  );
  t.notOk(ram.read(0x7ff_fff8n, new Uint8Array(16)), 'beyond the end');
  t.notOk(ram.read(0xa_0000n, new Uint8Array(16)), 'no RAM');
  t.notOk(ram.write(0xfee0_0000n, new Uint8Array(4)), 'a device');
  qemu.process.kill('SIGKILL');
  await qemu.ended;
  t.notOk(ram.read(places[0] ?? 0n, new Uint8Array(16)), 'QEMU has ended');
});

t.test('a kernel that uses RAM which it was not told of: refused', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2');
  const session = await connect(`unix:${qemu.socket}`, { waitMs: 10_000 });
  t.teardown(() => session.close());
  const { arch, elf } = await programOf(elfPath('rv-o2'));
  const machine = { session, arch, elf, codeSize: 0, logger: silent };
  const found = await hideAtReset(machine);
  if (found === undefined || isRefusal(found)) throw new Error(JSON.stringify(found));
  t.equal(found.taken, 16 * 2 ** 20);
  const ram = await GuestRam.find(session);
  if (ram === undefined || isRefusal(ram)) throw new Error(JSON.stringify(ram));
  const text = elf.segments[0]?.address;
  if (text === undefined) throw new Error('no text');
  ram.write(found.hidden.start + 0x12_3456n, Uint8Array.of(1));
  t.match(await found.hidden.map(arch, { text, pages: false }, ram), {
    refused: /uses it nevertheless, at 0x87123456/,
  });
  ram.write(found.hidden.start + 0x12_3456n, Uint8Array.of(0));
  const mapped = await found.hidden.map(arch, { text, pages: false }, ram);
  t.notOk(isRefusal(mapped));
  t.equal(await hideAtReset(machine).then((again) => again && isRefusal(again)), true, 'only once');
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
