// Where a panic stops the guest, no breakpoint lies in a page of the program: QEMU would run that page instruction by instruction.
import { join } from 'node:path';
import t from 'tap';
import { ElfFile } from '../../src/elf/index.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { elfPath, qemuArgv } from './guests/guests.js';

for (const name of ['rv-o2', 'x86-o2']) {
  t.test(`${name}: what stops the guest when it panics is not in its pages`, async (t) => {
    const elf = await ElfFile.open(elfPath(name));
    const options = ['--log', 'trace', '-p', 'fn:deep*', '-o', join(scratchFolder(t), 'out.pftrace')];
    const { status, stderr } = await rsptrace('run', ...options, elfPath(name), '--', ...qemuArgv(name)).ended;
    t.equal(status, 0, stderr.slice(-500));
    const [before = '', after] = stderr.split('"trampolines are installed"');
    t.ok(after, 'trampolines are installed');
    const places = new Set<string>();
    for (const [, packet, place = ''] of before.matchAll(/"packet":"([zZ])0,([0-9a-f]+),/g)) {
      if (packet === 'Z') places.add(place);
      else places.delete(place);
    }
    const panics = [...elf.symbols].filter((symbol) => /panic|_fail/.test(symbol.name) && symbol.type === 'function');
    t.ok(panics.length > 5, `${panics.length} functions that panic`);
    const inserted = [...places].map((place) => BigInt(`0x${place}`));
    t.ok(inserted.length > 5, `${inserted.length} breakpoints are inserted when trampolines are`);
    const text = elf.segments.filter(({ type, fileSize }) => type === 1 && fileSize > 0);
    const inPages = inserted.filter((place) =>
      text.some(({ address, fileSize }) => place >= (address & -4096n) && place < address + BigInt(fileSize)),
    );
    t.strictSame(inPages, []);
  });
}
