import { Buffer } from 'node:buffer';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { silent } from '../../src/base/logger.js';
import { connect } from '../../src/rsp/index.js';
import { TextRequest } from '../../src/rsp/session/request.js';
import { onlyPacket } from '../../src/rsp/wire/outgoing.js';
import { FakeStub, frame, riscv } from '../support/fake-stub.js';
import { open } from './open.js';

const breakpoint = { type: 0, address: addr(0x80200000), kind: 4 } as const;
const hexOf = (text: string): string => Buffer.from(text).toString('hex');

t.test('with acknowledgements, those of a batch go along in its one write', async (t) => {
  const { stub, session } = await open(t, { 'm*': 'aabbccdd', 'vCont;c*': () => undefined });
  const batch = session.batch();
  const registers = batch.readRegisters();
  const memory = batch.readMemory(addr(0x80000000), 4);
  const stop = batch.resume();
  await batch.answered;
  t.equal(registers.value.register('a0'), 10n);
  t.same(memory.value, new Uint8Array([0xaa, 0xbb, 0xcc, 0xdd]));
  await stub.hears('vCont;c:p01.-1');
  await new Promise((resolve) => setTimeout(resolve, 50));
  const wanted = `${frame('g')}+${frame('m80000000,4')}+${frame('vCont;c:p01.-1')}`;
  t.equal(stub.chunks.join(''), `+${wanted}`, 'nothing is sent once the target runs');
  t.equal(stub.chunks.length, 1 + (stub.chunks[0] === '+' ? 1 : 0));
  stub.reply('T05thread:p01.01;');
  t.match(await stop, { kind: 'signal', signal: 5, hart: 'p01.01' });
});

t.test('batches that overlap are answered in order', async (t) => {
  const { stub, session } = await open(t, { 'm10,1': '11', 'm20,1': '22', 'm30,1': '33' });
  const reads = [0x10, 0x20, 0x30, 0x10].map((address) => session.memory().read(addr(address), 1));
  t.same(
    await Promise.all(reads),
    [[0x11], [0x22], [0x33], [0x11]].map((bytes) => new Uint8Array(bytes)),
  );
  const wanted = ['m10,1', 'm20,1', 'm30,1', 'm10,1'].map(frame).join('+');
  t.equal(stub.chunks.join('').replace(/^\+/, ''), wanted, 'each acknowledgement stands before the next packet');
});

t.test('no-ack mode: nothing is acknowledged after its own answer', async (t) => {
  await using stub = await FakeStub.start(riscv, { QStartNoAckMode: 'OK' });
  const session = await connect(stub.path);
  t.equal(session.features.noAck, true);
  const from = stub.heard.indexOf('vMustReplyEmpty');
  t.notMatch(stub.heard.slice(from), ['+']);
  t.equal(stub.heard.slice(from).includes('+'), false);
  t.equal(stub.heard[from - 1], '+', 'the answer to QStartNoAckMode itself is acknowledged');
});

t.test('what the stub asks for again is sent again, and both may have an answer', async (t) => {
  let asked = 0;
  const { stub, session } = await open(t);
  stub.acks = false;
  stub.script = {
    'qSupported*': (_, stub) => {
      stub.raw(`+${frame(riscv['qSupported*'] as string)}`);
      return undefined;
    },
    'm*': (_, stub) => {
      stub.raw(++asked < 3 ? '-' : `+${frame('01')}`);
      return undefined;
    },
  };
  t.same(await session.memory().read(addr(16), 1), new Uint8Array([1]));
  t.same(stub.packets.slice(0, 3), ['m10,1', 'm10,1', 'm10,1']);
  t.match(stub.packets.slice(3), [/^qSupported/], 'where the answers end is asked');
});

t.test('a breakpoint that may have been inserted is taken out', async (t) => {
  for (const first of ['insert', 'remove'] as const) {
    const { stub, session } = await open(t);
    const known = { ...stub.script, 'Z0*': 'OK', 'z0*': 'OK' };
    stub.script = known;
    const breakpoint = { type: 0, address: addr(0x40), kind: 2 } as const;
    if (first === 'remove') await session.insertBreakpoint(breakpoint);
    stub.script = { ...known, 'Z0*': 'what', 'z0*': 'what' };
    const asked = first === 'insert' ? session.insertBreakpoint(breakpoint) : session.removeBreakpoint(breakpoint);
    await t.rejects(asked, { code: 'RSP_PROTOCOL' });
    stub.script = known;
    const from = stub.packets.length;
    await session.detach();
    t.same(stub.packets.slice(from), ['z0,40,2', 'D;01'], first);
  }
});

t.test('leaving is said once where it may have been heard: QEMU would stop the target at more', async (t) => {
  const { stub, session } = await open(t);
  stub.acks = false;
  stub.script = {
    ...stub.script,
    'D*': (_, stub) => {
      stub.raw(`-+${frame('OK')}`);
      return undefined;
    },
  };
  const from = stub.packets.length;
  await session.detach();
  t.same(stub.packets.slice(from), ['D;01']);
});

t.test('a storm of NAKs ends in one error', async (t) => {
  const { stub, session } = await open(t);
  stub.acks = false;
  stub.script = {
    'm*': (_, stub) => {
      stub.raw('-----------');
      return undefined;
    },
  };
  await t.rejects(session.memory().read(addr(16), 1), { code: 'RSP_PROTOCOL' });
  t.match(session.state, { kind: 'gone', reason: { code: 'RSP_PROTOCOL' } });
});

t.test('a damaged answer is asked for again', async (t) => {
  let damaged = 0;
  const { stub, session } = await open(t, {
    'm*': (_, stub) => {
      stub.raw('$ff#00');
      return undefined;
    },
    '-': '',
  });
  const read = session.memory().read(addr(16), 1);
  await stub.hears('-');
  damaged++;
  stub.reply('7f');
  t.same(await read, new Uint8Array([0x7f]));
  t.equal(damaged, 1);
});

t.test('a damaged answer in the middle of a batch is never believed', async (t) => {
  const { session } = await open(t, {
    'm10,*': (_, stub) => {
      stub.raw('$ff#00');
      return undefined;
    },
    'm20,*': '22',
  });
  const batch = session.batch();
  batch.readMemory(addr(16), 1);
  const second = batch.readMemory(addr(32), 1);
  await t.rejects(batch.send(), { code: 'RSP_PROTOCOL' });
  t.throws(() => second.value, { code: 'RSP_BAD_STATE' });
});

t.test("silence: sent again; the second copy's answer is not taken for the next one", async (t) => {
  const { stub, session } = await open(t);
  let copies = 0;
  let owed = 0;
  stub.acks = false;
  // Both copies are answered, the second one not before something else was asked.
  const next = (answer: string) => (_: string, stub: FakeStub) => {
    for (; owed > 0; owed--) stub.raw(`+${frame('11')}`);
    stub.raw(`+${frame(answer)}`);
    return undefined;
  };
  stub.script = {
    'm10,1': (_, stub) => {
      if (++copies === 2) {
        stub.raw(`+${frame('11')}`);
        owed = 1;
      }
      return undefined;
    },
    'm20,1': next('22'),
    'qSupported*': next(riscv['qSupported*'] as string),
  };
  t.same(await session.memory().read(addr(16), 1), new Uint8Array([0x11]));
  t.same(await session.memory().read(addr(32), 1), new Uint8Array([0x22]));
  t.equal(stub.packets.filter((packet) => packet === 'm10,1').length, 2);
});

t.test('a late answer is not taken for that of a later request', async (t) => {
  const supported = riscv['qSupported*'] as string;
  const { stub, session } = await open(t, { 'm10,1': () => undefined, 'm20,1': '22' }, { timeoutMs: 300 });
  // The stub was busy: it answers what was asked before it answers qSupported.
  stub.script = {
    'm20,1': '22',
    'm10,1': () => undefined,
    'qSupported*': (_, stub) => {
      stub.reply('11');
      return supported;
    },
  };
  await t.rejects(session.memory().read(addr(16), 1), { code: 'RSP_TIMEOUT', message: /m10,1/ });
  t.same(await session.memory().read(addr(32), 1), new Uint8Array([0x22]));

  // The same when the next request comes before the link has found its place again.
  stub.heard.length = 0;
  const first = session.memory().read(addr(16), 1);
  first.catch(() => {});
  let answer = (): void => {};
  stub.script = {
    ...stub.script,
    'qSupported*': (_, stub) => {
      answer = () => {
        stub.reply('11');
        stub.reply(supported);
      };
      return undefined;
    },
  };
  await stub.hears(
    'qSupported:multiprocess+;swbreak+;hwbreak+;fork-events+;vfork-events+;exec-events+;vContSupported+;error-message+;binary-upload+;xmlRegisters=i386',
  );
  const second = session.memory().read(addr(32), 1);
  answer();
  await t.rejects(first, { code: 'RSP_TIMEOUT' });
  t.same(await second, new Uint8Array([0x22]));
  t.equal(session.state.kind, 'idle');
});

t.test('a stub that stays silent is given up', async (t) => {
  const { stub, session } = await open(t, {}, { timeoutMs: 300 });
  stub.silent = true;
  await t.rejects(session.memory().read(addr(16), 1), { code: 'RSP_TIMEOUT' });
  t.match(session.state, { kind: 'gone', reason: { code: 'RSP_TIMEOUT' } });
  await t.rejects(session.resume(), { code: 'RSP_TIMEOUT' });
});

t.test("a busy client does not take its own delay for the stub's", async (t) => {
  const { stub, session } = await open(t, { 'm*': '55' }, { timeoutMs: 500 });
  const read = session.memory().read(addr(16), 1);
  await stub.hears('m10,1');
  const until = performance.now() + 700;
  while (performance.now() < until);
  t.same(await read, new Uint8Array([0x55]));
  t.equal(stub.packets.length, 1);
});

t.test('a stop that nobody asked for is not an answer', async (t) => {
  const { session } = await open(t, {
    'm*': (_, stub) => {
      stub.reply('T05thread:p01.02;');
      return '33';
    },
  });
  t.same(await session.memory().read(addr(0), 1), new Uint8Array([0x33]));
  t.match(session.state, { kind: 'idle', stop: { hart: 'p01.02' } });
});

t.test('answers that cannot be answers are told of, and never believed', async (t) => {
  for (const answer of ['zz', '123', '0011', 'OK', '0* ']) {
    const { session } = await open(t, { 'm*': answer });
    await t.rejects(session.memory().read(addr(0), 1), { code: 'RSP_PROTOCOL' }, answer);
    // The link has found its place again.
    t.equal(session.state.kind, 'idle');
  }
  const { session } = await open(t, { 'Z0*': '00' });
  await t.rejects(session.insertBreakpoint(breakpoint), { code: 'RSP_PROTOCOL' });
  const early = await open(t, { 'm*': () => undefined, 'vCont*': 'T05thread:p01.01;' });
  const batch = early.session.batch();
  batch.readMemory(addr(0), 1);
  await t.rejects(batch.resume(), { code: 'RSP_PROTOCOL' }, 'the stop before the answer');
  const nonsense = await open(t, { 'vCont;c*': 'E01' });
  await t.rejects(nonsense.session.resume(), { code: 'RSP_PROTOCOL', message: /E01/ });
});

t.test('every packet is logged, both ways', async (t) => {
  const lines: string[] = [];
  const logger = {
    ...silent,
    trace: (_: object, message: string) => void lines.push(message),
    isLevelEnabled: () => true,
  };
  const { session } = await open(t, { 'm*': '0* ' }, { logger });
  lines.length = 0;
  await session.memory().read(addr(0), 2);
  t.same(lines, ['-> m0,2', '<- 0000'], 'run lengths are shown decoded');
});

t.test('file-I/O: what the target writes is printed, files are refused', async (t) => {
  let printed = '';
  const onConsole = (text: Uint8Array): void => {
    printed += Buffer.from(text).toString();
  };
  const answers: string[] = [];
  const requests = ['Fwrite,1,80001000,5', 'Fopen,80001000/5,0,1a4', 'Fwrite,3,80001000,5', 'Fwrite,2,0,5'];
  const next = (packet: string): string => {
    answers.push(packet);
    return requests.shift() ?? 'T05thread:p01.01;';
  };
  const { session } = await open(
    t,
    { 'vCont*': () => requests.shift(), 'm80001000,5': hexOf('hello'), 'm0,5': 'E14', 'F*': next },
    { onConsole },
  );
  t.match(await session.resume(), { signal: 5 });
  t.equal(printed, 'hello');
  t.same(answers, ['F5', 'F-1,58', 'F-1,58', 'F-1,e']);
});

t.test('what would go on in a list is not asked twice where the stub is silent', (t) => {
  const isAskedAgain = (packet: string): boolean | undefined =>
    onlyPacket([new TextRequest(packet)], undefined)?.afterSilence;
  t.equal(isAskedAgain('qsThreadInfo'), false, 'its second answer is the next part');
  t.equal(isAskedAgain('qfThreadInfo'), true);
  t.end();
});
