import { Buffer } from 'node:buffer';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { connect, type Session, WireRecorder } from '../../src/rsp/index.js';
import { WireUnits } from '../../src/rsp/wire/replay.js';
import { WireReader } from '../../src/rsp/wire/wire-log.js';
import { scratchFolder } from '../support/command.js';
import { FakeStub, frame, riscv, type Script } from '../support/fake-stub.js';

/** Does `work` at a fake stub, recorded in `file`. */
async function recorded(
  file: string,
  work: (session: Session, stub: FakeStub) => Promise<void>,
  ...scripts: Script[]
): Promise<void> {
  await using stub = await FakeStub.start(riscv, ...scripts);
  writeFileSync(file, '');
  using wire = new WireRecorder(file);
  const session = await connect(stub.path, { recordWire: wire, timeoutMs: 400 });
  await work(session, stub);
  session.close();
}

const memory: Script = { 'm10,4': '11223344', 'm20,4': '55667788', 'm30,4': 'E14', 'm40,4': '}\x03' };
const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));

/** The three reads, in one write or in three. */
async function read(session: Session, writes: 'one' | 'three'): Promise<(Uint8Array | undefined)[]> {
  const addresses = [0x10, 0x20, 0x30].map((each) => addr(each));
  let batch = session.batch();
  const replies = [];
  for (const address of addresses) {
    replies.push(batch.readMemory(address, 4));
    if (writes === 'one') continue;
    await batch.send();
    batch = session.batch();
  }
  if (writes === 'one') await batch.send();
  return replies.map((reply) => reply.value);
}

t.test('a recording holds every byte, both ways, with its time', async (t) => {
  const file = join(scratchFolder(t), 'wire.jsonl');
  let chunks = '';
  await recorded(
    file,
    async (session, stub) => {
      await session.memory().read(addr(0x10), 4);
      chunks = stub.chunks.join('');
    },
    memory,
  );
  const lines = readFileSync(file, 'utf8').split('\n');
  t.equal(lines.at(-1), '');
  const entries = lines.slice(0, -1).map((line) => JSON.parse(line) as Record<string, unknown>);
  t.same(entries[0], { rsptrace_wire: 1 });
  t.match(entries[1], { event: 'open', remote: /fake-stub/ });
  t.match(entries.at(-1), { event: 'closed', by: 'client' });
  const toStub = entries.filter(({ to }) => to === 'stub').map(({ text }) => text);
  t.equal(toStub.join(''), chunks, 'what the stub has heard');
  const times = entries.slice(1).map(({ t }) => t as number);
  t.same(
    times,
    times.toSorted((a, b) => a - b),
  );
  const said = entries.filter(({ to }) => to === 'client').map(({ text }) => text);
  t.equal(said.at(-1), `+${frame('11223344')}`);
});

t.test('packets may be spread over writes in another way than they were', async (t) => {
  const file = join(scratchFolder(t), 'wire.jsonl');
  const wanted = [bytes('11223344'), bytes('55667788'), undefined];
  for (const before of ['one', 'three'] as const) {
    await recorded(
      file,
      async (session) => {
        t.same(await read(session, before), wanted);
      },
      memory,
    );
    for (const now of ['one', 'three'] as const) {
      const session = await connect(`replay:${file}`, { timeoutMs: 400 });
      t.same(await read(session, now), wanted, `recorded in ${before}, replayed in ${now}`);
      session.close();
    }
  }
});

t.test('a packet that differs ends the replay and says where', async (t) => {
  const file = join(scratchFolder(t), 'wire.jsonl');
  await recorded(file, async (session) => void (await read(session, 'three')), memory);
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .findIndex((each) => each.includes('$m20,4#'));
  const session = await connect(`replay:${file}`);
  await session.memory().read(addr(0x10), 4);
  await t.rejects(session.memory().read(addr(0x20), 8), {
    code: 'RSP_REPLAY_DIVERGED',
    message: `The replay leaves the recording at ${file}:${line + 1}: "m20,8" is sent, where "m20,4" was`,
  });
});

t.test('what goes on behind the end of a recording, and one that was cut off', async (t) => {
  const folder = scratchFolder(t);
  const file = join(folder, 'wire.jsonl');
  await recorded(file, async (session) => void (await read(session, 'three')), memory);
  const session = await connect(`replay:${file}`);
  await read(session, 'three');
  await t.rejects(session.memory().read(addr(0x10), 4), { code: 'RSP_REPLAY_ENDED' });

  // Wherever a recording is cut off, what is whole is replayed.
  const whole = readFileSync(file);
  const cut = join(folder, 'cut.jsonl');
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 20, max: whole.length - 1 }), async (length) => {
      writeFileSync(cut, whole.subarray(0, length));
      const replay = async (): Promise<void> => {
        const session = await connect(`replay:${cut}`, { timeoutMs: 400 });
        await read(session, 'three');
        await session.memory().read(addr(0x10), 4);
      };
      await t.rejects(replay(), { code: 'RSP_REPLAY_ENDED' });
    }),
    { seed: 2026, numRuns: 60 },
  );
});

t.test('a stub that went away goes away again', async (t) => {
  const file = join(scratchFolder(t), 'wire.jsonl');
  const script: Script = {
    'vCont;c*': (_, stub) => {
      stub.hangUp();
      return undefined;
    },
  };
  await recorded(file, async (session) => void t.match(await session.resume(), { kind: 'gone' }), script);
  const session = await connect(`replay:${file}`);
  t.match(await session.resume(), { kind: 'gone' });
});

t.test('an answer that was asked for twice is asked for twice again', async (t) => {
  const file = join(scratchFolder(t), 'wire.jsonl');
  let asked = 0;
  const script: Script = {
    'm10,4': (_, stub) => {
      if (++asked % 2 === 1) stub.raw('$ff#00');
      else return '11223344';
      return undefined;
    },
    '-': '',
  };
  const work = async (session: Session): Promise<void> => {
    t.same(await session.memory().read(addr(0x10), 4), bytes('11223344'));
  };
  await using stub = await FakeStub.start(riscv, script);
  {
    writeFileSync(file, '');
    using wire = new WireRecorder(file);
    const session = await connect(stub.path, { recordWire: wire });
    const reading = work(session);
    await stub.hears('-');
    stub.reply('11223344');
    await reading;
    session.close();
  }
  const session = await connect(`replay:${file}`);
  await work(session);
  session.close();
});

t.test('what is no recording', async (t) => {
  const folder = scratchFolder(t);
  const file = join(folder, 'wire.jsonl');
  const cases: [string, RegExp][] = [
    ['', /does not begin/],
    ['#!/bin/sh\n', /does not begin/],
    ['{"rsptrace_wire":"1"}\n', /does not begin/],
    ['{"rsptrace_wire":2}\n', /version 2, this rsptrace reads 1/],
    ['{"rsptrace_wire":1}\nnonsense\n', /line 2 is damaged/],
    ['{"rsptrace_wire":1}\n{"t":1,"to":"nobody","text":""}\n', /line 2 is damaged/],
    ['{"rsptrace_wire":1}\n{"t":1,"to":"stub","text":"\u0100"}\n', /line 2 is damaged/],
    [`{"rsptrace_wire":1}\n${'x'.repeat(17 * 1024 * 1024)}`, /line 2 is too long/],
  ];
  for (const [text, message] of cases) {
    writeFileSync(file, text);
    await t.rejects(connect(`replay:${file}`), { code: 'RSP_REPLAY_UNREADABLE', message });
  }
  for (const path of [folder, join(folder, 'missing')]) {
    await t.rejects(connect(`replay:${path}`), { code: 'RSP_REPLAY_UNREADABLE' });
  }
  t.throws(() => new WireRecorder(join(folder, 'no/such/file')), { code: 'OUTPUT_CANNOT_WRITE' });
});

t.test('a recording that cannot be written on: a warning, once, and the session goes on', async (t) => {
  const warnings: string[] = [];
  const none = (): void => {};
  const logger = {
    trace: none,
    debug: none,
    info: none,
    warn: (_: object, message: string) => void warnings.push(message),
    isLevelEnabled: () => false,
  };
  await using stub = await FakeStub.start(riscv, memory);
  t.throws(() => new WireRecorder('/dev/full'), { code: 'OUTPUT_CANNOT_WRITE' });
  // The first line still fits.
  const limited = new WireRecorder(join(scratchFolder(t), 'wire.jsonl'), logger);
  limited[Symbol.dispose]();
  const session = await connect(stub.path, { recordWire: limited });
  t.same(await session.memory().read(addr(0x10), 4), bytes('11223344'));
  session.close();
});

t.test('any bytes survive the recording', async (t) => {
  const file = join(scratchFolder(t), 'wire.jsonl');
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 8 }), (chunks) => {
      writeFileSync(file, '');
      using wire = new WireRecorder(file);
      for (const chunk of chunks) wire.bytes('client', chunk, chunk.length);
      using reader = new WireReader(file);
      for (const chunk of chunks) {
        const entry = reader.read();
        const text = entry?.kind === 'bytes' ? entry.text : '';
        t.same(new Uint8Array(Buffer.from(text, 'latin1')), chunk);
      }
      t.equal(reader.read(), undefined);
    }),
    { seed: 2026, numRuns: 50 },
  );
});

t.test('units are the same however the bytes are cut', async (t) => {
  const piece = fc.constantFrom('+', '-', '\x03', frame('g'), frame('m10,4'), '%Stop:x#00', 'junk', '$torn');
  fc.assert(
    fc.property(fc.array(piece), fc.array(fc.nat(200)), (pieces, cuts) => {
      const text = pieces.join('');
      const atOnce = new WireUnits();
      const wanted = [...atOnce.push(text), atOnce.rest()].join('|');
      const units = new WireUnits();
      const got: string[] = [];
      const places = [...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
      let from = 0;
      for (const to of places) {
        got.push(...units.push(text.slice(from, to)));
        from = to;
      }
      got.push(units.rest());
      // Only a run of junk may come in pieces.
      const joined = (list: string[]): string => list.join('|').replace(/(?<=[a-z])\|(?=[a-z])/g, '');
      t.equal(joined(got), joined([wanted]));
    }),
    { seed: 2026, numRuns: 100 },
  );
});
