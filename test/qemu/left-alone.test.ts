// `rsptrace detach` leaves alone what the program has changed itself, however like a jump of ours it looks.
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type Addr, hex } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { rsptrace } from '../support/command.js';
import { checkLoaded, read } from '../support/loaded-bytes.js';
import { usually } from '../support/long.js';
import { tracedQemu } from '../support/orphan.js';
import { elfPath, guest } from './guests/guests.js';

/** The guest still runs when it is looked at again, however busy the host is. */
const slow = ['-icount', 'shift=6,align=on'];

for (const name of usually(['rv-o2-long', 'x86-o2-long'] as const, (one) => one === 'x86-o2-long')) {
  t.test(`${name}: rsptrace detach leaves alone what the program has changed itself`, async (t) => {
    const qemu = await tracedQemu(t, name, ['--probe', 'fn:labkern::**', '--probe', '!fn:**timer_tick'], slow);
    await sleep(100);
    await qemu.orphan();
    const elf = await ElfFile.open(elfPath(name));
    const session = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    const elfBytes = (address: Addr): Buffer => Buffer.from(elf.bytesAt(address, 16) ?? []);
    // These are called once, before the first poll.
    const spawns: { readonly address: Addr; readonly patched: Buffer }[] = [];
    for (const { name: symbol, type, address } of elf.symbols) {
      if (type !== 'function' || !/4exec5spawn/.test(symbol)) continue;
      const patched = await read(session, address, 16);
      if (!patched.equals(elfBytes(address))) spawns.push({ address, patched });
    }
    t.ok(spawns.length >= 4, `${spawns.length} functions are patched that are not called any more`);
    const change = (at: number, to: (patched: Buffer, original: Buffer) => Buffer): Change => {
      const { address, patched } = spawns[at] as (typeof spawns)[number];
      return { address, bytes: to(Buffer.from(patched), elfBytes(address)) };
    };
    const changes: Change[] = [
      // Other code of its own.
      change(0, (_, original) => Buffer.from(original.map((byte, i) => (i === 2 ? byte ^ 0x40 : byte)))),
      // A jump like ours to a place that is not the trampoline of this function.
      change(1, (patched) => moved(patched, guest(name).arch)),
      // Our jump, and behind it what is not in the ELF.
      change(2, (patched) => Buffer.from(patched.map((byte, i) => (i === 15 ? byte ^ 1 : byte)))),
    ];
    for (const { address, bytes } of changes) t.ok(await session.memory().write(address, bytes));
    session.close();
    const command = rsptrace('detach', '--json', '--remote', qemu.socket, elfPath(name));
    const { status, stdout, stderr } = await command.ended;
    t.equal(status, 0, stderr);
    const output = JSON.parse(stdout) as Record<'restored' | 'different', { address: string }[]>;
    const addresses = (of: readonly { readonly address: string }[]): string[] => of.map((one) => one.address).sort();
    t.strictSame(addresses(output.different), changes.map(({ address }) => hex(address)).sort());
    t.ok(output.restored.length > 15, `${output.restored.length} functions are restored`);
    const again = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    for (const { address, bytes } of changes)
      t.ok((await read(again, address, 16)).equals(bytes), `${hex(address)} is as the program left it`);
    // Everything else is the ELF's once more.
    for (const { address, bytes } of changes) {
      t.notOk(elfBytes(address).equals(bytes));
      await again.memory().write(address, elfBytes(address));
    }
    await checkLoaded(t, again, elf);
    await again.detach();
    await qemu.ended();
    t.equal(qemu.lab().checksum, guest(name).checksum);
  });
}

interface Change {
  readonly address: Addr;
  readonly bytes: Buffer;
}

/** The jump leads 16 bytes further: in x86's `jmp rel32` from its byte 1 on, in riscv's `auipc; jalr` in the upper 12 bits of the second. */
function moved(patched: Buffer, arch: string): Buffer {
  if (arch === 'x86_64') patched.writeInt32LE(patched.readInt32LE(1) + 16, 1);
  else patched.writeUInt32LE((patched.readUInt32LE(4) + (16 << 20)) >>> 0, 4);
  return patched;
}
