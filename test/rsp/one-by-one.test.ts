import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { riscv, type Script } from '../support/fake-stub.js';
import { open } from './open.js';

/** A stub without acknowledgements and without vCont, as vgdb is. */
const likeVgdb: Script = { QStartNoAckMode: 'OK', 'vCont?': '', 'm*': '11', s: 'T05thread:p01.01;', c: '' };
const packetsOf = (chunk: string): number => chunk.split('$').length - 1;

t.test('each packet waits for the answer to the one before it', async (t) => {
  const { stub, session } = await open(t, likeVgdb);
  t.equal(session.features.batches, false);
  const batch = session.batch();
  const replies = [1, 2, 3].map((at) => batch.readMemory(addr(at), 1));
  const stop = await batch.resume({ kind: 'step', hart: 'p01.01' });
  t.match(stop, { kind: 'signal', signal: 5 });
  t.same(
    replies.map((reply) => [...(reply.value ?? [])]),
    [[0x11], [0x11], [0x11]],
  );
  t.same(stub.heard, ['m1,1', 'm2,1', 'm3,1', 'Hcp01.01', 's']);
  t.ok(stub.chunks.every((chunk) => packetsOf(chunk) === 1));
  await session.detach();
  await stub[Symbol.asyncDispose]();
});

t.test('batches for two harts do not mingle', async (t) => {
  const { stub, session } = await open(t, { ...likeVgdb, qfThreadInfo: 'mp01.01,p01.02' });
  const [one, two] = [session.batch('p01.01'), session.batch('p01.02')];
  for (const batch of [one, two, one]) batch.readMemory(addr(8), 1);
  await Promise.all([one.send(), two.send()]);
  t.same(stub.heard, ['m8,1', 'm8,1', 'Hgp01.02', 'm8,1']);
  await session.detach();
  await stub[Symbol.asyncDispose]();
});

t.test('where a hart cannot be selected, nothing is asked of it', async (t) => {
  const { stub, session } = await open(t, { ...likeVgdb, 'Hgp01.07': 'E01' });
  const batch = session.batch('p01.07');
  const reply = batch.readMemory(addr(8), 1);
  await batch.send();
  t.equal(reply.value, undefined);
  t.equal(reply.errorText, 'the hart could not be selected');
  t.same(stub.heard, ['Hgp01.07']);
  await session.detach();
  await stub[Symbol.asyncDispose]();
});

t.test('an interrupt follows the resume that it is for', async (t) => {
  const { stub, session } = await open(t, { ...likeVgdb, c: () => undefined, '\x03': 'T02thread:p01.01;' });
  const batch = session.batch();
  batch.readMemory(addr(8), 1);
  batch.readMemory(addr(9), 1);
  const run = batch.resume();
  const stop = session.interrupt();
  t.match(await stop, { kind: 'signal', signal: 2 });
  t.equal(await run, await stop);
  t.same(stub.heard, ['m8,1', 'm9,1', 'c', '\x03']);
  await session.detach();
  await stub[Symbol.asyncDispose]();
});

t.test('QEMU in user mode is told by its auxiliary vector', async (t) => {
  const features = 'PacketSize=1000;qXfer:features:read+;qXfer:auxv:read+;vContSupported+;multiprocess+';
  const { stub, session } = await open(t, { 'qSupported*': features });
  t.equal(session.features.batches, false);
  await session.detach();
  await stub[Symbol.asyncDispose]();
  const machine = await open(t, riscv);
  t.equal(machine.session.features.batches, true);
  await machine.session.detach();
  await machine.stub[Symbol.asyncDispose]();
});

t.test('where an answer before a resume is lost, the target stands where it stood', async (t) => {
  const { stub, session } = await open(t, { ...likeVgdb, 'm*': 'what' });
  const batch = session.batch('p01.01');
  batch.readMemory(addr(8), 1);
  const run = batch.resume({ kind: 'step', hart: 'p01.01' });
  const behind = session.batch();
  await t.rejects(run, { code: 'RSP_PROTOCOL' });
  t.match(session.state, { kind: 'idle', stop: { kind: 'signal', hart: 'p01.01' } });
  t.notOk(stub.heard.includes('s'), 'it was not set going');
  stub.script = { ...stub.script, 'm*': '11' };
  const read = behind.readMemory(addr(8), 1);
  t.match(await behind.resume({ kind: 'step', hart: 'p01.01' }), { kind: 'signal', signal: 5 });
  t.same(read.value, new Uint8Array([0x11]));
});

t.test('a batch behind one whose selection was lost selects its hart itself', async (t) => {
  let asked = 0;
  const { stub, session } = await open(t, { ...likeVgdb, 'Hg*': () => (++asked === 1 ? undefined : 'OK') });
  const [lost, next] = [1, 2].map((at) => {
    const batch = session.batch('p01.02');
    batch.readMemory(addr(at), 1);
    return batch.send();
  });
  await t.rejects(lost ?? Promise.resolve(), { code: 'RSP_TIMEOUT' });
  await next;
  t.same(
    stub.heard.filter((packet) => !packet.startsWith('qSupported')),
    ['Hgp01.02', 'Hgp01.02', 'm2,1'],
  );
});
