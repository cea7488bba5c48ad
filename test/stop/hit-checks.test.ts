// Whose a stop is where no code can be compared, as in rsptrace's own: the mode tells a kernel from its programs.
import t from 'tap';
import { riscv64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import type { Session } from '../../src/rsp/index.js';
import { HitChecks } from '../../src/stop/hit-checks.js';

const own = { pc: addr(0x8800_0000n), code: new Uint8Array(16) };

function checks(): HitChecks {
  const session = { features: { transfer: new Map() }, target: { register: () => undefined } } as unknown as Session;
  const made = HitChecks.for({ session, arch: riscv64, code: () => undefined });
  if (made === undefined) throw new Error('a machine has address spaces');
  return made;
}

t.test('a kernel that has its firmware in the same ELF stops in both modes, and its programs are others', async (t) => {
  const both = checks();
  const whose = (privilege: 'firmware' | 'kernel' | 'user') =>
    both.whose({ ...own, standing: { privilege, root: undefined } }, undefined);
  t.equal(await whose('firmware'), 'own');
  t.equal(await whose('kernel'), 'own');
  t.equal(await whose('user'), 'foreign');
});

t.test('a program is no kernel', async (t) => {
  const program = checks();
  t.equal(await program.whose({ ...own, standing: { privilege: 'user', root: 4096n } }, undefined), 'own');
  t.equal(await program.whose({ ...own, standing: { privilege: 'kernel', root: 4096n } }, undefined), 'foreign');
});
