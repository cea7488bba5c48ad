// A dump of a loongarch64 machine as QEMU 10.0 writes it (7.2 cannot): physical addresses of a kernel that lies in a window, and no pc. It is
// made of the RAM and the registers of a stopped guest, which is asked itself where it is, and whose executor counts its tasks.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loongarch64 } from '../../src/arch/index.js';
import { connect, registersOf } from '../../src/rsp/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { ByteWriter } from '../support/elf-writer.js';
import { symbolOf } from '../support/native.js';
import { elfPath } from './guests/guests.js';

const RAM = 16 << 20;
/** Of NT_PRSTATUS: 112 bytes, 45 registers, and whether there are floating-point ones. */
const PRSTATUS = 480;

interface Frame {
  readonly function: string;
  readonly line: number;
  readonly cfa: string;
}

function core(ram: Uint8Array, registers: readonly bigint[]): Uint8Array {
  const out = new ByteWriter().raw([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  out.uint(4, 2).uint(258, 2).uint(1, 4).uint(0, 8).uint(64, 8).uint(0, 8).uint(0, 4);
  out.uint(64, 2).uint(56, 2).uint(2, 2).uint(0, 6);
  const notes = 64 + 2 * 56;
  const size = 12 + 8 + PRSTATUS;
  for (const [type, at, length] of [
    [4, notes, size],
    [1, notes + size, ram.length],
  ] as const)
    out.uint(type, 4).uint(0, 4).uint(at, 8).uint(0, 16).uint(length, 8).uint(length, 8).uint(0, 8);
  out.uint(5, 4).uint(PRSTATUS, 4).uint(1, 4).raw(Buffer.from('CORE\0\0\0\0'));
  out.raw(new Uint8Array(32)).uint(1, 4).raw(new Uint8Array(76));
  for (const value of registers) out.uint(value, 8);
  out.raw(new Uint8Array(notes + size - out.length));
  return Buffer.concat([out.bytes(), ram]);
}

t.test('its tasks and its stack, from the call on that the return address names', async (t) => {
  const elf = elfPath('loong-o0');
  const qemu = frozenGuest(t, 'loong-o0', ['-icount', 'shift=0']);
  const session = await connect(qemu.socket, { waitMs: 60_000 });
  const point = { type: 0, address: symbolOf(elf, 'labkern::exec::poll_task'), kind: 4 } as const;
  for (let hits = 0; hits < 20; hits++) {
    const [{ id }] = (await session.harts()) as [{ id: string }];
    if (hits > 0) await session.resume({ kind: 'step', hart: id });
    await session.insertBreakpoint(point);
    await session.resume();
    await session.removeBreakpoint(point);
  }
  const [hart] = await session.harts();
  const block = await registersOf(session, hart?.id);
  const raw = join(scratchFolder(t), 'raw');
  await session.monitor(`pmemsave 0 ${RAM} "${raw}"`);
  session.close();
  const file = join(scratchFolder(t), 'core');
  const registers = loongarch64.generalRegisters.map((name) => block.register(name) ?? 0n);
  // In place of the pc ERA, where the last exception was to return to.
  const ram = readFileSync(raw);
  writeFileSync(file, core(ram, [...registers, 0n, BigInt(elf.length), 0n]));

  const json = async (...args: string[]) => {
    const { status, stdout, stderr } = await rsptrace(...args, '--json', elf).ended;
    t.equal(status, 0, stderr);
    return JSON.parse(stdout);
  };
  const shown = ({ frames }: { frames: Frame[] }) => frames.map((one) => [one.function, one.line, one.cfa]);
  const [live] = (await json('bt', '-r', qemu.socket)).harts;
  const [kept] = (await json('bt', '--core', file)).harts;
  t.match(live.frames[0].function, /poll_task$/);
  t.match(live, { begins_at: 'pc' });
  t.match(kept, { begins_at: 'last_call', pc: null, end: { complete: true } });
  t.ok(kept.frames.length >= 3);
  t.same(shown(kept), shown(live).slice(1));
  const { stdout } = await rsptrace('bt', '--core', file, elf).ended;
  t.match(stdout, /the dump has no pc: the first frame is the last call/);

  const { tasks } = await json('tasks', '--core', file);
  const counted = ram.readBigUInt64LE(Number(symbolOf(elf, 'labkern::exec::LIVE') & 0xffff_ffffn));
  t.equal(BigInt(tasks.length), counted, 'as many as the executor counts');
});
