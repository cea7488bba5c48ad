// Where a guest stops when it panics or powers its machine off, no breakpoint lies in a page of the program: QEMU would
// run that page instruction by instruction.
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { long } from '../support/long.js';
import { elfPath, qemuArgv } from './guests/guests.js';

/** The places where breakpoints were when the guest was let go for the last time, as the packets tell. */
function insertedAtEnd(log: string): bigint[] {
  const places = new Set<string>();
  let inserted: string[] = [];
  for (const [, packet, place = ''] of log.matchAll(/"packet":"(Z0|z0|vCont;c|c)(?:,([0-9a-f]+),|["#:])/g)) {
    if (packet === 'Z0') places.add(place);
    else if (packet === 'z0') places.delete(place);
    else inserted = [...places];
  }
  return inserted.map((place) => BigInt(`0x${place}`));
}

/** Without those behind changes of the page table, which are there for half a second. */
async function inPages(name: string, places: readonly bigint[]): Promise<bigint[]> {
  const { segments, symbols } = await ElfFile.open(elfPath(name));
  const loaded = segments.filter(({ type, fileSize }) => type === 1 && fileSize > 0);
  const others = places.filter((place) => symbols.at(addr(place))?.name !== '_start');
  return others.filter((place) =>
    loaded.some(({ address, fileSize }) => place >= (address & -4096n) && place < address + BigInt(fileSize)),
  );
}

for (const name of ['rv-o2', 'x86-o2']) {
  // Each end once.
  if (long || name === 'x86-o2')
    t.test(`${name}: what stops the guest when it panics is not in its pages`, async (t) => {
      const options = ['--log', 'trace', '-p', 'fn:deep*', '-o', join(scratchFolder(t), 'out.pftrace')];
      const { status, stderr } = await rsptrace('run', ...options, elfPath(name), '--', ...qemuArgv(name)).ended;
      t.equal(status, 0, stderr.slice(-500));
      const inserted = insertedAtEnd(stderr);
      t.ok(inserted.length > 0, `${inserted.length} breakpoints`);
      t.strictSame(await inPages(name, inserted), []);
    });

  if (long || name === 'rv-o2')
    t.test(`${name}: what stops the guest when it powers off is not in its pages`, async (t) => {
      const qemu = frozenGuest(t, name);
      const options = ['--log', 'trace', '--json', '-p', 'fn:deep*', '-o', join(scratchFolder(t), 'out.pftrace')];
      const { status, stdout, stderr } = await rsptrace('--remote', `unix:${qemu.socket}`, ...options, elfPath(name))
        .ended;
      t.equal(status, 0, stderr.slice(-500));
      const output = JSON.parse(stdout) as { end: string; tail_lost: boolean; records: number };
      t.match(output, { end: 'guest-ended', tail_lost: false });
      t.ok(output.records > 100, `${output.records} records`);
      const inserted = insertedAtEnd(stderr);
      t.ok(inserted.length > 0, `${inserted.length} breakpoints`);
      t.strictSame(await inPages(name, inserted), []);
    });
}
