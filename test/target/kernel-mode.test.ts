// On the way into a kernel: breakpoints at its trap vectors, of which a stub may refuse some.
import t from 'tap';
import { type Architecture, x86_64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { connect } from '../../src/rsp/index.js';
import { runIntoKernel } from '../../src/target/index.js';
import { FakeStub, riscv } from '../support/fake-stub.js';

t.test('where one vector gets no breakpoint, the others have none either', async (t) => {
  await using stub = await FakeStub.start(riscv, { 'Z0,1000*': 'OK', 'Z0,2000*': 'E22', 'z0,*': 'OK' });
  const session = await connect({ kind: 'unix', path: stub.path });
  t.teardown(() => session.close());
  const kernelEntry = { registers: [], find: () => [0x1000, 0x2000].map(addr), fromFirmware: () => undefined };
  const arch = { ...x86_64, privilege: { kernelEntry } } as unknown as Architecture;
  await runIntoKernel(session, arch, undefined);
  const breakpoints = stub.packets.filter((each) => /^[zZ]/.test(each)).map((each) => each.split(',', 2).join());
  t.strictSame(breakpoints, ['Z0,1000', 'Z0,2000', 'z0,1000']);
  t.strictSame(session.breakpoints, []);
});
