// A kernel whose programs have page tables without it: left while a program runs, it is as it was.
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { frozenQemu, rsptrace, scratchFolder } from '../support/command.js';
import { portalKernel } from '../support/tiny-kernels.js';

t.test('left while its program runs: every byte of its code is as in the ELF, and it goes on to its end', async (t) => {
  const { elf: path, command } = portalKernel(t, { calls: 5000, spin: 500_000 });
  const qemu = frozenQemu(t, command);
  // No time: a busy machine may not come to its first call in it.
  const options = ['--json', '--engine', 'target', '-n', '40', '-o', join(scratchFolder(t), 'out.pftrace')];
  const ran = await rsptrace('--remote', `unix:${qemu.socket}`, ...options, '-p', 'fn:work', path).ended;
  t.equal(ran.status, 0, ran.stderr);
  t.notMatch(ran.stderr, /left as it is|does not come into|keep their jumps/);
  const { end, functions } = JSON.parse(ran.stdout) as { end: string; functions: { calls: number }[] };
  t.equal(end, 'max-events');
  t.ok((functions[0]?.calls ?? 0) > 10, `${functions[0]?.calls} calls`);

  const session = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
  const elf = await ElfFile.open(path);
  const text = elf.sections.find(({ name }) => name === '.text');
  const [address, size] = [addr(text?.address ?? 0n), text?.size ?? 0];
  t.ok(size > 8192);
  const physical = await session.physicalMemory();
  t.strictSame(Buffer.from((await physical?.read(address, size)) ?? []), Buffer.from(elf.bytesAt(address, size) ?? []));
  await session.detach();
  t.match((await qemu.ended).stdout.replaceAll('\r', ''), /05000\n$/);
});
