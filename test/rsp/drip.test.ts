// A stub whose answers come in drops, each of them in time: what takes several answers has an end of its own.

import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { addr } from '../../src/base/addr.js';
import { connect } from '../../src/rsp/index.js';
import { FakeStub, riscv, type Script } from '../support/fake-stub.js';

const timeoutMs = 100;

/** Answers with one more byte each time, a fifth of the time-out later, for ever. */
function drip(packets: string[]): Script[string] {
  return (packet, stub) => {
    packets.push(packet);
    void sleep(timeoutMs / 5).then(() => stub.reply('m '));
    return undefined;
  };
}

async function told(t: Test, what: Promise<unknown>, message: RegExp, packets: readonly string[]): Promise<void> {
  await t.rejects(what, { code: 'RSP_TIMEOUT', message });
  t.ok(packets.length > 5, 'while pieces came, each of them in time');
}

t.test('the target description', async (t) => {
  const packets: string[] = [];
  await using stub = await FakeStub.start(riscv, { 'qXfer:features:read:target.xml:*': drip(packets) });
  await told(t, connect(`unix:${stub.path}`, { timeoutMs }), /telling what it is|reading features/, packets);
});

t.test('an object, and a file', async (t) => {
  const packets: string[] = [];
  const supported = 'PacketSize=1000;qXfer:features:read+;qXfer:auxv:read+;vContSupported+;multiprocess+';
  const file: Script[string] = (_, stub) => {
    packets.push('file');
    void sleep(timeoutMs / 5).then(() => stub.reply('F1; '));
    return undefined;
  };
  const script = { 'qSupported*': supported, 'qXfer:auxv:read:*': drip(packets), 'vFile:open:*': 'F5' };
  await using stub = await FakeStub.start(riscv, script, { 'vFile:pread:*': file, 'vFile:close:*': 'F0' });
  const session = await connect(`unix:${stub.path}`, { timeoutMs });
  await told(t, session.object('auxv'), /^The stub has not finished reading auxv within 1\d{3} ms$/, packets);
  packets.length = 0;
  await told(t, session.remoteFile('/proc/1/maps'), /reading \/proc\/1\/maps/, packets);
  await session.detach();
  t.match(stub.packets.at(-1), /^D/, 'and the target is left');
});

t.test('many answers at once', async (t) => {
  let answers = 0;
  const slow: Script[string] = (_, stub) => {
    answers++;
    // One at a time, as a stub answers.
    void sleep((timeoutMs / 2) * answers).then(() => stub.reply('00'));
    return undefined;
  };
  await using stub = await FakeStub.start(riscv, { 'm*': slow });
  const session = await connect(`unix:${stub.path}`, { timeoutMs });
  const batch = session.batch();
  for (let i = 0; i < 200; i++) batch.readMemory(addr(i), 1);
  await t.rejects(batch.send(), { code: 'RSP_TIMEOUT' });
});
