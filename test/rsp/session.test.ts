import { Buffer } from 'node:buffer';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { connect, registersOf, retry, type Session, setRegister } from '../../src/rsp/index.js';
import { knownArchitectures } from '../../src/target/index.js';
import { FakeStub, riscv, type Script } from '../support/fake-stub.js';
import { open } from './open.js';

const breakpoint = { type: 0, address: addr(0x80200000), kind: 4 } as const;
const hexOf = (text: string): string => Buffer.from(text).toString('hex');

t.test('the end of the connection: pending requests fail, a pending run is gone', async (t) => {
  const { session } = await open(t, { 'm*': (_, stub) => void stub.hangUp() });
  await t.rejects(session.memory().read(addr(16), 1), { code: 'RSP_CLOSED' });
  t.same(session.state, { kind: 'gone', reason: undefined });
  await session.detach();

  const other = await open(t, { 'vCont*': (_, stub) => void stub.hangUp() });
  t.same(await other.session.resume(), { kind: 'gone' });
  await t.rejects(other.session.interrupt(), { code: 'RSP_CLOSED' });
  await t.rejects(other.session.harts(), { code: 'RSP_CLOSED' });
});

t.test('the end of the program ends the session', async (t) => {
  const { session } = await open(t, { 'vCont*': 'W03;process:1' });
  t.same(await session.resume(), { kind: 'exited', status: 3 });
  t.same(session.state, { kind: 'gone', reason: undefined, end: { kind: 'exited', status: 3 } });
  await session.detach();
  await session.kill();
  session.close();
});

t.test('while the target runs nothing is sent but the interrupt', async (t) => {
  const { stub, session } = await open(t, { 'vCont*': () => undefined, '\x03': 'T02thread:p01.01;' });
  const run = session.resume();
  t.same(session.state, { kind: 'running' });
  await t.rejects(session.memory().read(addr(16), 1), { code: 'RSP_BAD_STATE' });
  await t.rejects(session.resume(), { code: 'RSP_BAD_STATE' });
  await t.rejects(session.insertBreakpoint(breakpoint), { code: 'RSP_BAD_STATE' });
  const stop = session.interrupt();
  t.same(session.state, { kind: 'interrupting' });
  await t.rejects(session.harts(), { code: 'RSP_BAD_STATE' });
  t.equal(await stop, await run);
  t.match(await stop, { kind: 'signal', signal: 2 });
  t.equal(await session.interrupt(), await stop, 'a target that stands has stopped already');
  t.same(stub.packets, ['vCont;c:p01.-1', '\x03']);
});

t.test('an interrupt that has no effect is an error', async (t) => {
  const { session } = await open(t, { 'vCont*': () => undefined }, { timeoutMs: 300 });
  const run = session.resume();
  await t.rejects(session.interrupt(), { code: 'RSP_TIMEOUT' });
  await t.rejects(run, { code: 'RSP_TIMEOUT' });
});

t.test("console output, and OpenOCD's signs of life", async (t) => {
  let printed = '';
  const onConsole = (text: Uint8Array): void => {
    printed += Buffer.from(text).toString();
  };
  const { session } = await open(
    t,
    {
      'vCont*': (_, stub) => {
        for (const packet of ['O', `O${hexOf('hel')}`, `O${hexOf('lo')}`, 'O']) stub.reply(packet);
        return 'T05thread:p01.01;';
      },
      [`qRcmd,${hexOf('info')}`]: (_, stub) => {
        stub.reply(`O${hexOf('line 1\n')}`);
        stub.reply(`O${hexOf('line 2\n')}`);
        return 'OK';
      },
      [`qRcmd,${hexOf('direct')}`]: hexOf('at once'),
      [`qRcmd,${hexOf('bad')}`]: 'E01',
      'm*': (_, stub) => {
        stub.raw(`%oocd_keepalive:${'00'}#${'00'}`);
        return 'aa';
      },
    },
    { onConsole },
  );
  await session.resume();
  t.equal(printed, 'hello');
  t.equal(await session.monitor('info'), 'line 1\nline 2\n');
  t.equal(await session.monitor('direct'), 'at once');
  t.equal(await session.monitor('bad'), undefined);
  t.equal(await session.monitor('unknown'), undefined);
  t.equal(printed, 'hello');
});

t.test('a hart is selected once, and again after a run', async (t) => {
  const { stub, session } = await open(t, { 'm*': '00', 'vCont*': 'T05thread:p01.01;', 'Hgp01.03': 'E22' });
  await session.memory().read(addr(0), 1);
  await session.memory('p01.02').read(addr(0), 1);
  await session.memory('p01.02').read(addr(0), 1);
  await session.memory().read(addr(0), 1);
  await session.memory('p01.02').read(addr(0), 1);
  await session.resume();
  await session.memory('p01.01').read(addr(0), 1);
  await session.memory('p01.02').read(addr(0), 1);
  t.same(
    stub.packets.filter((packet) => packet !== 'm0,1'),
    ['Hgp01.02', 'Hgp01.01', 'Hgp01.02', 'vCont;c:p01.-1', 'Hgp01.02'],
  );
  const batch = session.batch('p01.03');
  const block = batch.readRegisters();
  const memory = batch.readMemory(addr(0), 1);
  const written = batch.writeRegister('a0', 1n);
  await batch.send();
  t.equal(block.value.register('a0'), undefined, "another hart's answer is not taken");
  t.equal(memory.value, undefined);
  t.equal(written.value, false);
  t.match(memory.errorText, /could not be selected/);
});

t.test('breakpoints are counted by what the stub says, and detaching removes them', async (t) => {
  const { stub, session } = await open(t, {
    'Z0*': 'OK',
    'Z1*': '',
    'z0*': 'OK',
    'vCont*': () => undefined,
    '\x03': 'T02thread:p01.01;',
  });
  const hardware = { type: 1, address: addr(0x80200010), kind: 2 } as const;
  const compressed = { type: 0, address: addr(0xffff_ffff_8020_0000n), kind: 2 } as const;
  t.equal(await session.insertBreakpoint(breakpoint), true);
  t.equal(await session.insertBreakpoint(hardware), false);
  t.equal(await session.insertBreakpoint(compressed), true);
  t.same(session.breakpoints, [breakpoint, compressed]);
  t.equal(await session.removeBreakpoint(breakpoint), true);
  t.same(session.breakpoints, [compressed]);
  void session.resume();
  await session.detach();
  await session.detach();
  t.same(stub.packets, [
    'Z0,80200000,4',
    'Z1,80200010,2',
    'Z0,ffffffff80200000,2',
    'z0,80200000,4',
    'vCont;c:p01.-1',
    '\x03',
    'z0,ffffffff80200000,2',
    'D;01',
  ]);
  t.same(session.state, { kind: 'gone', reason: undefined });
});

t.test('leaving a block detaches, whatever happens there', async (t) => {
  const { stub, session } = await open(t, { 'Z0*': 'OK', 'z0*': 'OK' });
  await t.rejects(
    (async () => {
      await using inside = session;
      await inside.insertBreakpoint(breakpoint);
      throw new Error('the work failed');
    })(),
    { message: 'the work failed' },
  );
  t.same(stub.packets, ['Z0,80200000,4', 'z0,80200000,4', 'D;01']);
});

t.test('stepping over: QEMU as it is, other stubs with the breakpoint out', async (t) => {
  const script: Script = { 'Z0*': 'OK', 'z0*': 'OK', 'vCont;s*': 'T05thread:p01.02;' };
  for (const qemu of [true, false]) {
    const { stub, session } = await open(t, { ...script, ...(qemu ? {} : { 'qqemu.sstepbits': '' }) });
    await session.insertBreakpoint(breakpoint);
    await session.stepOver('p01.02', breakpoint);
    const step = qemu ? ['vCont;s:p01.02'] : ['Hgp01.02', 'z0,80200000,4', 'vCont;s:p01.02', 'Z0,80200000,4'];
    t.same(stub.packets.slice(1), step);
    t.same(session.breakpoints, [breakpoint]);
  }
});

t.test('how the target goes on', async (t) => {
  const { stub, session } = await open(t, { 'vCont;*': 'T05thread:p01.02;' });
  await session.resume();
  await session.resume({ kind: 'continue', signal: 11 });
  await session.resume({ kind: 'step', hart: 'p01.01' });
  await session.resume({ kind: 'step', hart: 'p01.01', signal: 5 });
  t.same(stub.packets, ['vCont;c:p01.-1', 'vCont;C0b:p01.02;c:p01.-1', 'vCont;s:p01.01', 'vCont;S05:p01.01']);

  const plain = await open(t, { 'vCont?': '', c: 'S05', C0b: 'S05', s: 'S05', 'Hc*': 'OK' });
  await plain.session.resume();
  await plain.session.resume({ kind: 'continue', signal: 11 });
  await plain.session.resume({ kind: 'step', hart: 'p01.01' });
  await plain.session.resume({ kind: 'step', hart: '0' });
  t.same(plain.stub.packets, ['c', 'C0b', 'Hcp01.01', 's', 's']);
});

t.test('a stub without g is read register by register', async (t) => {
  const { session } = await open(t, {
    g: '',
    pa: 'efbe000000000000',
    p1c2: 'E14',
    p2: 'xxxxxxxxxxxxxxxx',
    p3: '0102',
    p4: '00'.repeat(9),
  });
  const batch = session.batch();
  const block = batch.readRegisters(['a0', 'satp', 'sp', 'gp', 'tp']);
  await batch.send();
  t.equal(block.value.register('a0'), 0xbeefn);
  t.equal(block.value.register('satp'), undefined);
  t.equal(block.value.register('sp'), undefined, 'not available');
  t.equal(block.value.register('gp'), 0x201n, 'shorter than described');
  t.equal(block.value.register('tp'), undefined, 'longer than described');
  t.equal(block.value.register('ra'), undefined, 'not asked for');
});

t.test('registers outside g are read along with it', async (t) => {
  const { stub, session } = await open(t, { p1c2: '0500000000000080' });
  const batch = session.batch();
  const block = batch.readRegisters(['satp', 's0']);
  const satp = batch.readRegister('satp');
  const unknown = batch.readRegister('cr3');
  await batch.send();
  t.same(stub.packets, ['g', 'p1c2', 'p1c2']);
  t.equal(block.value.register('satp'), 0x8000000000000005n);
  t.equal(block.value.register('fp'), 8n);
  t.equal(satp.value, 0x8000000000000005n);
  t.equal(unknown.value, undefined);
  t.match(unknown.errorText, /cr3/);
});

t.test('what g does not know stays unknown when other registers are read along', async (t) => {
  const g = riscv.g as string;
  const { session } = await open(t, { g: `${g.slice(0, 160)}xxxxxxxxxxxxxxxx${g.slice(176)}`, p1c2: '01' });
  const batch = session.batch();
  const block = batch.readRegisters(['satp']);
  await batch.send();
  t.same(
    ['a0', 'a1', 'satp'].map((name) => block.value.register(name)),
    [undefined, 11n, 1n],
  );
});

t.test('a stub without p and P: out of g, and one G for all changes', async (t) => {
  const { stub, session } = await open(t, { p20: '', 'G*': 'OK' });
  t.equal(session.features.singleRegister, false);
  const early = session.batch();
  const refused = early.writeRegister('a0', 1n);
  const a1 = early.readRegister('a1');
  await early.send();
  t.equal(refused.value, false);
  t.equal(a1.value, 11n);
  const batch = session.batch();
  const first = batch.writeRegister('a0', 0xaabbn);
  const second = batch.writeRegister('pc', 0x80200004n);
  await batch.send();
  t.same([first.value, second.value], [true, true]);
  const g = riscv.g as string;
  const changed = `${g.slice(0, 160)}bbaa000000000000${g.slice(176, 512)}0400208000000000`;
  t.same(stub.packets, ['g', `G${changed}`]);
  const again = session.batch();
  again.writeRegister('zero', 0n);
  await again.send();
  t.equal(stub.packets.at(-1), `G${changed}`, 'what was changed before is kept');
});

t.test('a stub without target.xml', async (t) => {
  const nothing: Script = { 'qSupported*': 'PacketSize=1000' };
  const { session } = await open(t, nothing, {
    architectures: knownArchitectures(),
    expectedArchitecture: 'riscv64',
  });
  t.equal(session.target.source, 'built-in');
  const batch = session.batch();
  const block = batch.readRegisters();
  await batch.send();
  t.equal(block.value.register('a0'), 10n);
  t.throws(() => session.batch().readRegister('satp'), { code: 'RSP_NO_TARGET_DESCRIPTION', message: /satp/ });
  const bare = await open(t, nothing);
  t.equal(bare.session.target.source, 'none');
  t.throws(() => bare.session.batch().writeRegister('a0', 1n), { code: 'RSP_NO_TARGET_DESCRIPTION' });
});

t.test('memory is read and written by page and PacketSize', async (t) => {
  const { stub, session } = await open(t, {
    'm*': (packet) => {
      const [address = '', length = ''] = packet.slice(1).split(',');
      const start = Number.parseInt(address, 16);
      const bytes = Array.from({ length: Number.parseInt(length, 16) }, (_, index) => (start + index) % 251);
      return start >= 0x5000 ? 'E14' : Buffer.from(bytes).toString('hex');
    },
    'M*': (packet) => (packet.startsWith('M5') ? 'E14' : 'OK'),
  });
  const bytes = await session.memory().read(addr(0xff0), 0x2020);
  t.equal(bytes?.length, 0x2020);
  t.ok(bytes?.every((byte, index) => byte === (0xff0 + index) % 251));
  // (0x1000 - 4) / 2 = 0x7fe bytes fit an answer.
  t.same(stub.packets, [
    'mff0,10',
    'm1000,7fe',
    'm17fe,7fe',
    'm1ffc,4',
    'm2000,7fe',
    'm27fe,7fe',
    'm2ffc,4',
    'm3000,10',
  ]);
  t.equal(await session.memory().read(addr(0x4ff0), 0x20), undefined, 'the second page is not there');
  t.same(await session.memory().read(addr(0), 0), new Uint8Array(0));
  await t.rejects(session.memory().read(addr(0), -1), { code: 'RSP_BAD_REQUEST' });

  const batch = session.batch();
  const whole = batch.readMemory(addr(0x1000), 0x1800);
  t.throws(() => whole.value, { code: 'RSP_BAD_STATE' });
  t.throws(() => batch.readMemory(addr(0), 1e12), { code: 'RSP_BAD_REQUEST' });
  await batch.send();
  t.same(whole.value, new Uint8Array(Array.from({ length: 0x1800 }, (_, index) => (0x1000 + index) % 251)));

  stub.heard.length = 0;
  t.equal(await session.memory().write(addr(0x1ffe), new Uint8Array([1, 2, 0xab])), true);
  t.same(stub.packets, ['M1ffe,2:0102', 'M2000,1:ab']);
  t.equal(await session.memory().write(addr(0x4fff), new Uint8Array([1, 2])), false);
  const longest = Math.max(...stub.packets.map((packet) => packet.length));
  await session.memory().write(addr(0x1000), new Uint8Array(4096));
  t.ok(longest < 4096 && stub.packets.every((packet) => packet.length <= 4096 - 4));
});

t.test('harts by every way a stub lists them', async (t) => {
  const names: Script = { 'qThreadExtraInfo,p01.01': hexOf('CPU#0 [halted ]'), 'qThreadExtraInfo,p01.02': '' };
  const listed = await open(t, { ...names, qfThreadInfo: 'mp01.01,p01.02', qsThreadInfo: 'l' });
  t.same(await listed.session.harts(), [{ id: 'p01.01', name: 'CPU#0 [halted ]' }, { id: 'p01.02' }]);
  const object = await open(t, {
    'qSupported*': 'PacketSize=1000;qXfer:threads:read+',
    'qXfer:threads:read::*': (packet) => {
      const list = '<?xml version="1.0"?><threads><thread id="1" core="0">a</thread><thread id="2"/></threads>';
      const start = Number.parseInt(packet.slice('qXfer:threads:read::'.length), 16);
      return start + 20 < list.length ? `m${list.slice(start, start + 20)}` : `l${list.slice(start)}`;
    },
  });
  t.same(await object.session.harts(), [{ id: '1' }, { id: '2' }]);
  for (const [first, more] of [
    ['mp01.01,p01.02', 'E01'],
    ['mp01.01', ''],
    ['mp01.01', 'OK'],
    ['m-1', 'l'],
    ['mp01.01,p01.-1', 'l'],
  ] as const)
    await t.rejects(
      open(t, { qfThreadInfo: first, qsThreadInfo: more }),
      { code: 'RSP_PROTOCOL' },
      `${first}, ${more}`,
    );
  const none = await open(t, { '?': 'S05', qfThreadInfo: '' });
  t.same(await none.session.harts(), [{ id: '0' }]);
  await none.session.batch('0').send();
  const endless = FakeStub.start(riscv, { qsThreadInfo: 'mp01.01' });
  await using ____ = await endless;
  await t.rejects(connect((await endless).path), { code: 'RSP_PROTOCOL' });
});

t.test('a batch is sent once', async (t) => {
  const { session } = await open(t);
  const batch = session.batch();
  await batch.send();
  await t.rejects(batch.send(), { code: 'RSP_BAD_STATE' });
  t.throws(() => batch.readRegisters(), { code: 'RSP_BAD_STATE' });
});

t.test('physical memory: the mode is on for one write of packets, and off again', async (t) => {
  const { stub, session } = await open(t, { 'Qqemu.PhyMemMode:*': 'OK', 'm*': '01', 'M*': 'OK' });
  const memory = await session.physicalMemory();
  t.same(await memory?.read(addr(0xfff), 4), undefined, 'a piece that is too short');
  t.equal(await memory?.write(addr(0x1fff), Uint8Array.of(1, 2)), true);
  t.same(stub.packets, [
    'Qqemu.PhyMemMode:1',
    'Qqemu.PhyMemMode:0',
    'Qqemu.PhyMemMode:1',
    'mfff,1',
    'm1000,3',
    'Qqemu.PhyMemMode:0',
    'Qqemu.PhyMemMode:1',
    'M1fff,1:01',
    'M2000,1:02',
    'Qqemu.PhyMemMode:0',
  ]);

  const other = await open(t, { 'Qqemu.PhyMemMode:*': '' });
  t.equal(await other.session.physicalMemory(), undefined);
  t.equal(await other.session.physicalMemory(), undefined);
  t.equal(other.stub.packets.length, 2, 'asked once');
});

/** Two harts whose registers are all ones and all twos, without p and P. `take`: whether a selection comes through. */
function twoHarts(take: () => boolean): { readonly blocks: Map<string, string>; readonly script: Script } {
  const blocks = new Map(['1', '2'].map((digit) => [`p01.0${digit}`, `0${digit}`.repeat(33 * 8)]));
  let selected = 'p01.01';
  const script: Script = {
    p20: '',
    'Hg*': (packet) => {
      if (!take()) return undefined;
      selected = packet.slice(2);
      return 'OK';
    },
    g: () => blocks.get(selected),
    'G*': (packet) => {
      blocks.set(selected, packet.slice(1));
      return 'OK';
    },
  };
  return { blocks, script };
}

async function firstArgument(session: Session, hart: string): Promise<bigint | undefined> {
  return (await registersOf(session, hart)).register('a0');
}

const ones = 0x0101010101010101n;

t.test('a hart whose selection was lost on the way is selected again', async (t) => {
  let isTaken = true;
  const { script } = twoHarts(() => isTaken);
  const { stub, session } = await open(t, script);
  let held: Promise<bigint | undefined> | undefined;
  isTaken = false;
  stub.script = {
    ...stub.script,
    'qSupported*': () => {
      isTaken = true;
      held = firstArgument(session, 'p01.02');
      return riscv['qSupported*'] as string;
    },
  };
  const read = retry(session, () => firstArgument(session, 'p01.02'));
  t.equal(await read, 2n * ones);
  t.equal(await held, 2n * ones, 'what is asked while the place in the sequence is looked for');
});

t.test('of a hart that is gone nothing is read, however much is asked at once', async (t) => {
  const { session } = await open(t, { ...twoHarts(() => true).script, 'Hgp01.07': 'E01' });
  const asked = [1, 2].map(() => {
    const batch = session.batch('p01.07');
    return { registers: batch.readRegisters(), sent: batch.send() };
  });
  for (const { registers, sent } of asked) {
    await sent;
    t.equal(registers.errorText, 'the hart could not be selected');
    t.equal(registers.value.register('a0'), undefined);
  }
});

t.test('without P, registers of a hart are written over those of this hart', async (t) => {
  const { blocks, script } = twoHarts(() => true);
  const { session } = await open(t, script);
  t.equal(await firstArgument(session, 'p01.01'), ones);
  const batch = session.batch('p01.01');
  batch.writeRegister('a1', 0n);
  t.equal(await firstArgument(session, 'p01.02'), 2n * ones);
  await batch.send();
  t.equal(await setRegister(session, 'a1', 0n, 'p01.02'), false, 'the last block is of the other hart');
  const word = '01'.repeat(8);
  t.equal(blocks.get('p01.01'), `${word.repeat(11)}${'00'.repeat(8)}${word.repeat(21)}`);
  t.equal(blocks.get('p01.02'), '02'.repeat(33 * 8));
});
