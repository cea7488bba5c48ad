// A process that stops inside of a system call of its own returns from that before anything else is done with it, and the child of a fork is let go
// once, while its parent is the selected thread: gdbserver crashes at the next packet else.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { finishOwnCall } from '../../src/target/own-call.js';
import { FakeStub, riscv, type Script } from '../support/fake-stub.js';

const behind = 'T05thread:p01.01;';

/** A process at this stop; `vCont;s` gives these one after the other. What is sent from there on is noted. */
async function at(
  stop: string,
  steps: readonly string[],
): Promise<{ readonly stub: FakeStub; readonly session: Session }> {
  const left = [...steps];
  const script: Script = {
    ...riscv,
    'qSupported*':
      'PacketSize=1000;qXfer:features:read+;vContSupported+;multiprocess+;fork-events+;vfork-events+;exec-events+',
    '?': stop,
    'vCont;s:p01.01': () => left.shift(),
    'Z*': 'OK',
    'z*': 'OK',
  };
  const stub = await FakeStub.start(script);
  const session = await connect(stub.path);
  return { stub, session };
}

t.test('the child of a fork is let go once, and its parent goes on from its call', async (t) => {
  const { stub, session } = await at('T05fork:p02.02;thread:p01.01;', [behind]);
  await using _ = stub;
  await session.insertBreakpoint({ type: 0, address: addr(0x1000), kind: 2 });
  t.equal(await finishOwnCall(session), true);
  t.equal(await finishOwnCall(session), false, 'it has returned');
  const order = stub.packets.filter((packet) => /^(Hg|z0|D|vCont;)/.test(packet));
  t.strictSame(order.slice(-5), ['Hgp02.02', 'z0,1000,2', 'Hgp01.01', 'D;02', 'vCont;s:p01.01']);
  session.close();
});

t.test('a child that was let go already is left alone, and a later one of its number is let go', async (t) => {
  const { stub, session } = await at('T05fork:p02.02;thread:p01.01;', ['T05fork:p02.02;thread:p01.01;', behind]);
  await using _ = stub;
  const { state } = session;
  if (state.kind === 'idle' && state.stop.kind === 'signal') await session.children.letGoAt(state.stop);
  await finishOwnCall(session);
  t.equal(stub.packets.filter((packet) => packet === 'D;02').length, 2);
  session.close();
});

t.test('a vfork: breakpoints are away until its child has a program of its own', async (t) => {
  const { stub, session } = await at('T05vfork:p02.02;thread:p01.01;', ['T05vforkdone:;thread:p01.01;', behind]);
  await using _ = stub;
  await session.insertBreakpoint({ type: 0, address: addr(0x1000), kind: 2 });
  await finishOwnCall(session);
  const order = stub.packets.filter((packet) => /^(z0|Z0|D|vCont;)/.test(packet));
  t.strictSame(order, ['Z0,1000,2', 'z0,1000,2', 'D;02', 'vCont;s:p01.01', 'Z0,1000,2', 'vCont;s:p01.01']);
  session.close();
});

t.test('a system call that is traced; a signal that comes on the way ends it', async (t) => {
  const { stub, session } = await at('T05syscall_entry:1;thread:p01.01;', ['T11thread:p01.01;']);
  await using _ = stub;
  t.equal(await finishOwnCall(session), true);
  t.match(session.state, { kind: 'idle', stop: { signal: 0x11 } });
  session.close();
});

t.test('any other stop stays as it is', async (t) => {
  const { stub, session } = await at('T05swbreak:;thread:p01.01;', []);
  await using _ = stub;
  t.equal(await finishOwnCall(session), false);
  t.notOk(stub.packets.some((packet) => packet.startsWith('vCont;')));
  session.close();
});
