// What a wire can do to bytes, between a session and a stub whose answers are known. Whatever it does: what is believed is
// true, and the session ends in time.
import { Buffer } from 'node:buffer';
import t, { type Test } from 'tap';
import { addr } from '../../src/base/addr.js';
import { RsptraceError } from '../../src/base/errors.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { FakeStub, frame, riscv, type Script } from '../support/fake-stub.js';
import { FaultProxy, type Faults } from '../support/fault-proxy.js';

const breakpoint = { type: 0, address: addr(0x80200000), kind: 4 } as const;
const timeoutMs = 400;

/** Memory whose bytes tell their own address. */
function memoryAt(address: number, length: number): string {
  return Array.from({ length }, (_, i) => (((address + i) * 7919) & 0xff).toString(16).padStart(2, '0')).join('');
}

/** Registers that tell how often the target has stopped. */
function truthful(): { script: Script; stops: () => number } {
  let stops = 0;
  const script: Script = {
    'm*': (packet) => {
      const [address = 0, length = 0] = packet
        .slice(1)
        .split(',')
        .map((each) => Number.parseInt(each, 16));
      return memoryAt(address, length);
    },
    g: () =>
      Array.from(
        { length: 33 },
        (_, n) => `${n.toString(16).padStart(2, '0')}${(stops & 0xff).toString(16).padStart(2, '0')}000000000000`,
      ).join(''),
    'Z0*': 'OK',
    'z0*': 'OK',
    'vCont;c*': () => {
      stops++;
      return 'T05thread:p01.01;';
    },
    '\x03': 'T02thread:p01.01;',
    '?': 'T05thread:p01.01;',
  };
  return { script, stops: () => stops };
}

/** One round as a recording has them: two writes that read, one that resumes. All that is believed is compared. */
async function round(t: Test, session: Session, seen: { stops: number }, truth: () => number): Promise<void> {
  const first = session.batch();
  const registers = first.readRegisters();
  const guess = first.readMemory(addr(0x80001000), 8);
  await first.send();
  seen.stops = Number((registers.value.register('a0') ?? 0n) >> 8n);
  t.equal(Number(registers.value.register('a0')) & 0xff, 10, 'a0 is a0');
  t.equal(seen.stops, truth() & 0xff, 'of this stop');
  t.equal(hex(guess.value), memoryAt(0x80001000, 8));
  const second = session.batch();
  const reads = [0x80002000, 0x80002008, 0x80003000].map((at) => ({ at, reply: second.readMemory(addr(at), 8) }));
  await second.send();
  for (const { at, reply } of reads) t.equal(hex(reply.value), memoryAt(at, 8), `memory at ${at.toString(16)}`);
  const third = session.batch();
  third.insertBreakpoint(breakpoint);
  third.removeBreakpoint(breakpoint);
  const stop = await third.resume();
  t.match(stop, { kind: 'signal', signal: 5 });
}

function hex(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('hex');
}

/** A promise that settles in time, whatever it comes to: a hang is the one thing that is not forgiven. */
async function inTime<T>(t: Test, what: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it hangs')), 20 * timeoutMs);
  });
  try {
    return await Promise.race([what, limit]);
  } catch (error) {
    if (!(error instanceof RsptraceError)) t.fail(String(error));
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const kinds: Record<string, Faults> = {
  drop: { drop: 0.0004 },
  duplicate: { duplicate: 0.0004 },
  flip: { flip: 0.0004 },
  'split and delay': { split: 3, delay: 1 },
  all: { drop: 0.0002, duplicate: 0.0002, flip: 0.0002, split: 40 },
};

for (const [name, faults] of Object.entries(kinds)) {
  for (const direction of ['to-client', 'to-stub'] as const) {
    t.test(`${name}, ${direction}: what is believed is true`, async (t) => {
      const isHarmless = name === 'split and delay';
      let harm = 0;
      let rounds = 0;
      const codes = new Set<string>();
      for (let seed = 1; seed <= 6; seed++) {
        const { script, stops } = truthful();
        await using stub = await FakeStub.start(riscv, script);
        stub.noisy = true;
        await using proxy = await FaultProxy.start(stub.path);
        // Where nothing is lost, nothing is waited for in vain, however busy the host is.
        const session = await connect(proxy.path, { timeoutMs: isHarmless ? 20 * timeoutMs : timeoutMs });
        Object.assign(proxy.faults[direction], { ...faults });
        const seen = { stops: 0 };
        proxy.reseed(direction, seed * 7);
        try {
          for (let n = 0; n < 25; n++) {
            await inTime(t, round(t, session, seen, stops));
            rounds++;
          }
        } catch (error) {
          codes.add(error instanceof RsptraceError ? error.code : String(error));
        }
        harm += proxy.harm;
        Object.assign(proxy.faults[direction], { drop: 0, duplicate: 0, flip: 0 });
        const before = stub.packets.length;
        await inTime(t, session.detach()).catch((error: unknown) => t.match(error, { code: /^RSP_/ }));
        // A link that has found its place again has been used to leave.
        if (session.state.kind === 'gone' && session.state.reason === undefined) {
          t.ok(
            stub.packets.slice(before).some((packet) => packet.startsWith('D')),
            'detached',
          );
        }
      }
      t.comment(`${harm} bytes harmed, ${rounds} rounds, ${[...codes].join(' ')}`);
      if (isHarmless) t.equal(rounds, 150, 'does no harm at all');
      else t.ok(harm > 0);
      for (const code of codes) t.match(code, /^RSP_(PROTOCOL|TIMEOUT)$/);
    });
  }
}

/** A session through a proxy, with a truthful stub behind it; the breakpoint is in. */
async function through(
  t: Test,
  limitMs = timeoutMs,
): Promise<{
  stub: FakeStub;
  proxy: FaultProxy;
  session: Session;
  stops: () => number;
}> {
  const { script, stops } = truthful();
  const stub = await FakeStub.start(riscv, script);
  stub.noisy = true;
  t.teardown(() => stub[Symbol.asyncDispose]());
  const proxy = await FaultProxy.start(stub.path);
  t.teardown(() => proxy[Symbol.asyncDispose]());
  const session = await connect(proxy.path, { timeoutMs: limitMs });
  await session.insertBreakpoint(breakpoint);
  stub.heard.length = 0;
  return { stub, proxy, session, stops };
}

/** The stub was left in order: its breakpoint is out, and the target goes on. */
function leftInOrder(t: Test, stub: FakeStub): void {
  // The link may ask who is there once more in between.
  const packets = stub.packets.filter((packet) => !/^(?:qSupported|vCont\?)/.test(packet));
  t.match(packets.slice(-2), [/^z0,80200000,4$/, /^D/], 'the breakpoint is out, and the target was let go');
}

/** Reads two words of memory in one write. */
async function twoWords(session: Session): Promise<(string | undefined)[]> {
  const batch = session.batch();
  const replies = [0x100, 0x200].map((at) => batch.readMemory(addr(at), 8));
  await batch.send();
  return replies.map((reply) => hex(reply.value));
}

const edits: Record<string, (text: string, proxy: FaultProxy) => string> = {
  'a wrong checksum': (text) => text.replace(frame(memoryAt(0x100, 8)), `$${memoryAt(0x100, 8)}#zz`),
  'an answer twice': (text) => text.replace(frame(memoryAt(0x100, 8)), '$&$&'),
  'an answer twice, acknowledged twice': (text) => text.replace(`+${frame(memoryAt(0x100, 8))}`, '$&$&'),
  'an answer lost': (text) => text.replace(frame(memoryAt(0x100, 8)), ''),
  'an answer and its acknowledgement lost': (text) => text.replace(`+${frame(memoryAt(0x100, 8))}`, ''),
  'an answer turned into a notification': (text) => text.replace(`$${memoryAt(0x100, 8)}`, `%${memoryAt(0x100, 8)}`),
  'a rejected packet': (text) => text.replace(`+${frame(memoryAt(0x100, 8))}`, '-'),
  'an answer too long': (text) => text.replace(frame(memoryAt(0x100, 8)), frame(memoryAt(0x100, 9))),
  'an answer past PacketSize': (text) => text.replace(frame(memoryAt(0x100, 8)), frame('00'.repeat(0x10000))),
  'an OK instead of memory': (text) => text.replace(frame(memoryAt(0x100, 8)), frame('OK')),
};
for (const [name, edit] of Object.entries(edits)) {
  t.test(`${name}, in the middle of a batch: an error, and the link goes on`, async (t) => {
    const { stub, proxy, session } = await through(t);
    Object.assign(proxy.faults['to-client'], { edit });
    await t.rejects(inTime(t, twoWords(session)), { code: /^RSP_(PROTOCOL|TIMEOUT)$/ });
    Object.assign(proxy.faults['to-client'], { edit: undefined });
    if (/acknowledged twice/.test(name)) {
      // One answer too many: nothing is done with this session but to leave.
      await t.rejects(twoWords(session), { code: 'RSP_PROTOCOL' });
    } else {
      t.same(await inTime(t, twoWords(session)), [memoryAt(0x100, 8), memoryAt(0x200, 8)]);
    }
    await inTime(t, session.detach());
    leftInOrder(t, stub);
  });
}

t.test(
  'the same faults in what goes along with a resume: the target is stopped again, and left in order',
  async (t) => {
    for (const [name, edit] of Object.entries(edits)) {
      const { stub, proxy, session } = await through(t);
      stub.script = { ...stub.script, 'vCont;c*': () => undefined };
      Object.assign(proxy.faults['to-client'], { edit });
      const batch = session.batch();
      batch.readMemory(addr(0x100), 8);
      batch.readMemory(addr(0x200), 8);
      await t.rejects(inTime(t, batch.resume()), { code: /^RSP_(PROTOCOL|TIMEOUT)$/ }, name);
      Object.assign(proxy.faults['to-client'], { edit: undefined });
      await inTime(t, session.detach());
      t.ok(stub.heard.includes('\x03'), `${name}: the target was stopped`);
      leftInOrder(t, stub);
    }
  },
);

t.test('a resume that was lost on its way is an error, not a long wait', async (t) => {
  const lost: [string, (text: string) => string][] = [
    ['dropped', (text) => text.replace(/\$vCont;c.*?#../, '')],
    ['damaged', (text) => text.replace('vCont;c', 'vCont;x')],
  ];
  for (const [name, edit] of lost) {
    const { stub, proxy, session } = await through(t);
    Object.assign(proxy.faults['to-stub'], { edit });
    const batch = session.batch();
    batch.readMemory(addr(0x100), 8);
    await t.rejects(inTime(t, batch.resume()), { code: /^RSP_(PROTOCOL|TIMEOUT)$/ }, name);
    stub.script = { ...stub.script, '\x03': () => undefined };
    await inTime(t, session.detach());
    leftInOrder(t, stub);
  }
});

t.test('a stop that was lost on its way: the interrupt finds a target that stands', async (t) => {
  const { stub, proxy, session } = await through(t);
  stub.script = { ...stub.script, '\x03': () => undefined };
  Object.assign(proxy.faults['to-client'], { edit: (text: string) => text.replace(frame('T05thread:p01.01;'), '') });
  const run = session.resume();
  run.catch(() => {});
  await stub.hears('vCont;c:p01.-1');
  await t.rejects(inTime(t, session.interrupt()), { code: 'RSP_TIMEOUT' });
  await t.rejects(run, { code: 'RSP_TIMEOUT' });
  await inTime(t, session.detach());
  leftInOrder(t, stub);
});

t.test('a stop that was damaged is asked for again', async (t) => {
  const { stub, proxy, session } = await through(t);
  stub.script = { ...stub.script, '-': '' };
  Object.assign(proxy.faults['to-client'], { edit: (text: string) => text.replace('T05thread', 'T05threax') });
  const run = session.resume();
  await stub.hears('-');
  Object.assign(proxy.faults['to-client'], { edit: undefined });
  stub.reply('T05thread:p01.01;');
  t.match(await inTime(t, run), { kind: 'signal', signal: 5 });
  await session.detach();
  leftInOrder(t, stub);
});

t.test('a resume that is refused: the target stands, and is left in order', async (t) => {
  for (const answer of ['E01', '', 'OK']) {
    const { stub, session } = await through(t);
    stub.script = { ...stub.script, 'vCont;c*': answer };
    await t.rejects(inTime(t, session.resume()), { code: 'RSP_PROTOCOL' }, answer);
    await inTime(t, session.detach());
    leftInOrder(t, stub);
  }
});

t.test('storms: of NAKs, acknowledgements, notifications, console output and stops nobody asked for', async (t) => {
  const storms: Record<string, string> = {
    naks: '-'.repeat(500),
    acks: '+'.repeat(500),
    notifications: frame('Stop:T05').replace('$', '%').repeat(50),
    console: frame('O61').repeat(50),
    stops: frame('T05thread:p01.01;').repeat(50),
    answers: frame('00').repeat(50),
  };
  for (const [name, text] of Object.entries(storms)) {
    const { stub, proxy, session } = await through(t, 100);
    stub.silent = true;
    const storm = setInterval(() => proxy.say(text), 2);
    const reading = inTime(t, twoWords(session));
    await t.rejects(reading, { code: /^RSP_(PROTOCOL|TIMEOUT)$/ }, name);
    clearInterval(storm);
    session.close();
  }
});

t.test('a storm of NAKs that passes: one error, and the target is left in order', async (t) => {
  for (const ms of [0, 30]) {
    const { stub, proxy, session } = await through(t);
    stub.noisy = true;
    const reading = inTime(t, twoWords(session));
    const storm = setInterval(() => proxy.say('-'.repeat(500)), 1);
    proxy.say('-'.repeat(500));
    await Promise.all([
      t.rejects(reading, { code: 'RSP_PROTOCOL', message: /rejects/ }, `${ms} ms`),
      new Promise((resolve) => setTimeout(resolve, ms)).then(() => clearInterval(storm)),
    ]);
    // What is still on its way.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await inTime(t, session.detach());
    leftInOrder(t, stub);
  }
});

t.test('a stop that nobody asked for, in front of any answer', async (t) => {
  const { stub, proxy, session } = await through(t);
  proxy.faults['to-client'] = { edit: (text) => text.replace(/\+\$/, `${frame('T05thread:p01.01;')}+$`) };
  t.same(await inTime(t, twoWords(session)), [memoryAt(0x100, 8), memoryAt(0x200, 8)]);
  proxy.faults['to-client'] = {};
  await session.detach();
  leftInOrder(t, stub);
});

t.test('a late answer, in the middle of a batch and behind it', async (t) => {
  const { stub, proxy, session } = await through(t);
  // The answers to the first batch are held until the second one was asked.
  let held = '';
  proxy.faults['to-client'] = {
    edit: (text) => {
      held += text;
      return '';
    },
  };
  await Promise.all([
    t.rejects(inTime(t, twoWords(session)), { code: 'RSP_TIMEOUT' }),
    (async () => {
      await stub.hears('m200,8');
      await new Promise((resolve) => setTimeout(resolve, timeoutMs * 1.25));
      proxy.faults['to-client'] = {};
      proxy.say(held);
    })(),
  ]);
  t.same(await inTime(t, twoWords(session)), [memoryAt(0x100, 8), memoryAt(0x200, 8)]);
  await session.detach();
  leftInOrder(t, stub);
});

t.test('silence, and connections that are closed by halves', async (t) => {
  const ways: Record<string, (proxy: FaultProxy) => void> = {
    swallowed: (proxy) => proxy.swallow(),
    'no more to the client': (proxy) => proxy.halfClose('to-client'),
    'no more to the stub': (proxy) => {
      proxy.halfClose('to-stub');
      proxy.faults['to-stub'] = { edit: () => '' };
    },
    cut: (proxy) => proxy.cut(),
  };
  for (const [name, harm] of Object.entries(ways)) {
    const { proxy, session } = await through(t);
    harm(proxy);
    await t.rejects(inTime(t, twoWords(session)), { code: /^RSP_(TIMEOUT|CLOSED)$/ }, name);
    await inTime(t, session.detach()).catch((error: unknown) => t.match(error, { code: /^RSP_/ }));
    t.equal(session.state.kind, 'gone', name);
  }
});

t.test('a stub that says OK to everything', async (t) => {
  await using stub = await FakeStub.start({ '*': 'OK' });
  await t.rejects(inTime(t, connect(stub.path, { timeoutMs })), { code: 'RSP_PROTOCOL', message: /"OK" to "\?"/ });
  t.ok(stub.packets.includes('D;1'), 'and was let go');
});

t.test('registers of another size are no registers', async (t) => {
  const g = riscv.g as string;
  for (const wrong of [`${g}00`, g.slice(0, -2), g.slice(0, 16), 'x'.repeat(g.length + 2)]) {
    const { stub, session } = await through(t);
    stub.script = { ...stub.script, g: wrong };
    const batch = session.batch();
    batch.readRegisters();
    await t.rejects(inTime(t, batch.send()), { code: 'RSP_PROTOCOL' });
    await session.detach();
    leftInOrder(t, stub);
  }
  const { stub, session } = await through(t);
  stub.script = { ...stub.script, p20: '20'.repeat(9), p1c2: '20'.repeat(4096) };
  const batch = session.batch();
  const [pc, satp] = [batch.readRegister('pc'), batch.readRegister('satp')];
  await batch.send();
  t.equal(pc.value, undefined);
  t.equal(satp.value, undefined);
  await session.detach();
});
