import { Buffer } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { packetSizeOf, parseActions, parseSupported, transferObjects } from '../../src/rsp/session/features.js';
import { defaultRegisters, knownRegisters, RegisterBlock } from '../../src/rsp/session/registers.js';
import { parseStopReply, pidOf } from '../../src/rsp/session/stop-reply.js';
import { readTargetXml, TargetDescription } from '../../src/rsp/session/target-description.js';
import { readXml } from '../../src/rsp/session/xml.js';
import { connect, knownArchitectures } from '../../src/target/index.js';

/** A handshake and one `g` as the stub answered them, and what gdb 13 makes of that stub (maint print remote-registers). */
const wire = join(import.meta.dirname, '../wire');

async function describe(documents: Record<string, string>): Promise<Awaited<ReturnType<typeof readTargetXml>>> {
  return readTargetXml(async (annex) => documents[annex]);
}

async function fixture(name: string): Promise<{ target: TargetDescription; block: Uint8Array; gdb: string[][] }> {
  const session = await connect(`replay:${join(wire, name)}.jsonl`);
  const batch = session.batch();
  const registers = batch.readRegisters();
  await batch.send();
  await session.detach();
  const gdb = readFileSync(join(wire, `${name}.gdb-registers.txt`), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
  return { target: session.target, block: registers.value.bytes, gdb };
}

const architectures = [
  ['qemu-7.2-riscv64', 'riscv:rv64', 'satp'],
  ['qemu-7.2-x86_64', 'i386:x86-64', 'cr3'],
  ['gdbserver-13-x86_64', 'i386:x86-64', 'orig_rax'],
] as const;

for (const [name, architecture, special] of architectures) {
  t.test(`${name}: numbers, sizes and places in g are those gdb finds`, async (t) => {
    const { target, block, gdb } = await fixture(name);
    t.equal(target.architecture, architecture);
    t.ok(target.register(special), special);
    t.equal(target.registers.size, gdb.length);
    for (const [register = '', size, number, offset] of gdb) {
      const found = target.register(register);
      const inG = Number(offset) + Number(size) <= block.length;
      const wanted = { number: Number(number), bits: Number(size) * 8, offsetInG: inG ? Number(offset) : undefined };
      t.match(found, wanted, register);
    }
  });
}

t.test('riscv registers answer to all their names', async (t) => {
  const { target } = await fixture('qemu-7.2-riscv64');
  t.equal(target.register('s0'), target.register('fp'));
  t.equal(target.register('x8'), target.register('fp'));
  t.equal(target.register('x10')?.name, 'a0');
  t.equal(target.register('x32'), undefined);
  t.equal(target.register('toString'), undefined);
});

t.test('numbers go on through includes and comments', async (t) => {
  const found = await describe({
    'target.xml': `<?xml version="1.0"?><!-- <reg name="no" bitsize="8"/> --><!DOCTYPE target SYSTEM "gdb-target.dtd">
      <target><architecture> riscv:rv64 </architecture><feature name="f"><reg name="a" bitsize="64"/></feature>
      <xi:include href="one.xml"/><feature name="g"><reg name="d" bitsize='32' type="int"/></feature></target>`,
    'one.xml': '<feature name="h"><reg name="b" bitsize="64" regnum="65"/></feature>',
  });
  t.equal(found?.architecture, 'riscv:rv64');
  t.same(
    found?.registers.map(({ name, number, bits }) => [name, number, bits]),
    [
      ['a', 0, 64],
      ['b', 65, 64],
      ['d', 66, 32],
    ],
  );
});

t.test('nested includes are read where they stand', async (t) => {
  const found = await describe({
    'target.xml': '<target><xi:include href="a.xml"/><feature><reg name="z" bitsize="8"/></feature></target>',
    'a.xml': '<x><xi:include href="b.xml"/><reg name="a" bitsize="8"/></x>',
    'b.xml': '<x><reg name="b" bitsize="8"/></x>',
  });
  t.same(
    found?.registers.map(({ name, number }) => `${name}${number}`),
    ['b0', 'a1', 'z2'],
  );
});

t.test('no target.xml is no description', async (t) => {
  t.equal(await describe({}), undefined);
});

t.test('descriptions that could not be meant are refused', async (t) => {
  const many = Array.from({ length: 70 }, (_, index) => `<xi:include href="e${index}"/>`).join('');
  const empty = Object.fromEntries(Array.from({ length: 70 }, (_, index) => [`e${index}`, '<x/>']));
  const bad: Record<string, Record<string, string>> = {
    'includes itself': { 'target.xml': '<x><xi:include href="target.xml"/></x>' },
    'includes too many': { 'target.xml': `<x>${many}</x>`, ...empty },
    'includes what is not there': { 'target.xml': '<x><xi:include href="no.xml"/></x>' },
    'includes a strange name': { 'target.xml': '<x><xi:include href="a:0,ff#"/></x>' },
    'a register of no size': { 'target.xml': '<x><reg name="a" bitsize="0"/></x>' },
    'a register of 4 bits': { 'target.xml': '<x><reg name="a" bitsize="4"/></x>' },
    'a register of 1e9 bits': { 'target.xml': '<x><reg name="a" bitsize="999999999"/></x>' },
    'a number beyond all': { 'target.xml': '<x><reg name="a" bitsize="8" regnum="70000"/></x>' },
    'a number that is none': { 'target.xml': '<x><reg name="a" bitsize="8" regnum="-1"/></x>' },
    'no name': { 'target.xml': '<x><reg bitsize="8"/></x>' },
    'too large': { 'target.xml': `<x>${' '.repeat(5 << 20)}</x>` },
    'too many registers': { 'target.xml': `<x>${'<reg name="a" bitsize="8" regnum="1"/>'.repeat(9000)}</x>` },
    'too deep': { 'target.xml': `${'<a>'.repeat(40)}${'</a>'.repeat(40)}` },
    'entities of its own': { 'target.xml': '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>' },
    'an unknown entity': { 'target.xml': '<x>&nbsp;</x>' },
    'tags that do not match': { 'target.xml': '<a><b></a></b>' },
    'cut off': { 'target.xml': '<a><b' },
    'no element': { 'target.xml': 'hello' },
    'two roots': { 'target.xml': '<a/><b/>' },
    'an open comment': { 'target.xml': '<a><!-- </a>' },
  };
  for (const [why, documents] of Object.entries(bad))
    await t.rejects(describe(documents), { code: 'RSP_BAD_XML' }, why);
});

t.test('entities and CDATA are text', async (t) => {
  const texts: string[] = [];
  readXml('<a x="&lt;&#65;&#x42;&quot;"><b>1 &amp; 2<![CDATA[<c>&]]></b></a>', 'test', {
    open: ({ attributes }) => texts.push([...attributes.values()].join()),
    close: ({ name, text }) => texts.push(`${name}=${text}`),
  });
  t.same(texts, ['<AB"', '', 'b=1 & 2<c>&', 'a=']);
});

t.test('damaged XML ends in an error or in registers', async (t) => {
  const lines = readFileSync(join(wire, 'qemu-7.2-riscv64.jsonl'), 'utf8').split('\n');
  const answer = lines[lines.findIndex((line) => line.includes('riscv-64bit-virtual.xml:0')) + 1] ?? '';
  const whole = /\$l(.*)#..$/s.exec((JSON.parse(answer) as { text: string }).text)?.[1] ?? '';
  t.match(whole, '<feature name="org.gnu.gdb.riscv.virtual">');
  const edit = fc.record({
    at: fc.nat(whole.length),
    cut: fc.nat(20),
    put: fc.constantFrom('', '<', '>', '"', '&', '<!--', '<a>', '</a>', '/>'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 4 }), async (edits) => {
      let text = whole;
      for (const { at, cut, put } of edits) text = text.slice(0, at) + put + text.slice(at + cut);
      try {
        await describe({ 'target.xml': text });
        return true;
      } catch (error) {
        return error instanceof RsptraceError && error.code === 'RSP_BAD_XML';
      }
    }),
    { seed: 5, numRuns: 600 },
  );
});

t.test('built-in registers lie where gdb has them', async (t) => {
  for (const [name, known] of [
    ['qemu-7.2-riscv64', 'riscv64'],
    ['gdbserver-13-x86_64', 'x86_64'],
  ] as const) {
    const { gdb, block } = await fixture(name);
    const registers = knownRegisters(knownArchitectures(), undefined, known);
    const specs = (registers && defaultRegisters(registers)) ?? [];
    t.ok(specs.length >= 33, known);
    const built = new TargetDescription(undefined, specs, block.length, 'built-in');
    const wanted = new Map(gdb.map(([register = '', size, number, offset]) => [register, [size, number, offset]]));
    for (const register of built.registers.values()) {
      const { bits, number, offsetInG } = register;
      t.same([`${bits / 8}`, `${number}`, `${offsetInG}`], wanted.get(register.name), `${known} ${register.name}`);
    }
  }
  const named = (said: string | undefined, expected?: string): string | undefined =>
    knownRegisters(knownArchitectures(), said, expected)?.name;
  t.equal(named('riscv:rv64'), 'riscv64');
  t.equal(named('i386:x86-64', 'riscv64'), 'x86_64', 'what the stub says counts');
  t.equal(named('riscv:rv32'), undefined);
  t.equal(named('i386'), undefined);
  t.equal(named(undefined, 'x86_64'), 'x86_64');
});

t.test('of two registers with one name or one number the first counts', async (t) => {
  const specs = [
    { name: 'a', number: 0, bits: 64 },
    { name: 'a', number: 1, bits: 32 },
    { name: 'b', number: 0, bits: 32 },
  ];
  const target = new TargetDescription(undefined, specs, 64, 'target.xml');
  t.same(
    [...target.registers.values()].map(({ name, number, bits }) => [name, number, bits]),
    [['a', 0, 64]],
  );
});

t.test('a register block gives what is there', async (t) => {
  const specs = [
    { name: 'a', number: 0, bits: 64 },
    { name: 'b', number: 1, bits: 32 },
    { name: 'c', number: 2, bits: 80 },
    { name: 'd', number: 3, bits: 64 },
  ];
  const target = new TargetDescription(undefined, specs, 22, 'target.xml');
  const bytes = new Uint8Array(Buffer.from('efcdab8967452301' + '78563412' + '010000000000000000ff', 'hex'));
  const block = new RegisterBlock(target, bytes);
  t.equal(block.register('a'), 0x0123456789abcdefn);
  t.equal(block.register('b'), 0x12345678n);
  t.equal(block.register('c'), 0xff000000000000000001n);
  t.equal(block.register('d'), undefined, 'not in g');
  t.equal(block.register('e'), undefined);
  t.equal(new RegisterBlock(target, bytes.subarray(0, 11)).register('b'), undefined, 'g came short');
  const missing = new Uint8Array(22);
  missing[9] = 1;
  const gaps = new RegisterBlock(target, bytes, missing);
  t.equal(gaps.register('b'), undefined);
  t.equal(gaps.register('a'), 0x0123456789abcdefn);
  const a = target.register('a');
  if (a === undefined) throw new Error('no a');
  t.equal(gaps.changed(new Map([[a, 1n]])).hex, `010000000000000078xx3412${'010000000000000000ff'}`);
});

t.test('qSupported of every stub seen', async (t) => {
  const size = (text: string): number => packetSizeOf(parseSupported(text));
  t.equal(size('PacketSize=1000;qXfer:features:read+;vContSupported+;multiprocess+'), 4096, 'QEMU 7.2');
  t.equal(size('PacketSize=20020;qXfer:features:read+'), 131104, 'QEMU newer');
  t.equal(size('PacketSize=131072;QStartNoAckMode+;qEcho+;native-signals+'), 131072, 'lldb-server, decimal');
  t.equal(size('PacketSize=1024;qXfer:features:read+;swbreak+;t32extensions+'), 1024, 'Renode, decimal');
  t.equal(size('PacketSize=4000'), 16384, 'OpenOCD');
  t.equal(size('PacketSize=10'), 256);
  t.equal(size('PacketSize=ffffffff'), 1024 * 1024);
  t.equal(size('PacketSize=banana'), 400);
  t.equal(size(''), 400);
  const gdbserver = parseSupported('qXfer:features:read+;qXfer:memory-map:read-;qXfer:siginfo:write+;QNonStop+;x?;=;;');
  t.same([...transferObjects(gdbserver)], ['features']);
  t.equal(gdbserver.get('x'), '?');
  t.same([...parseActions('vCont;c;C;s;S')], ['c', 'C', 's', 'S']);
  t.equal(parseActions('').size, 0);
});

t.test('stop replies', async (t) => {
  const signal = { kind: 'signal', signal: 5, hart: undefined, reason: undefined };
  t.same(parseStopReply('S05'), signal);
  t.same(parseStopReply('T05thread:p01.02;'), { ...signal, hart: 'p01.02' });
  t.same(parseStopReply('T05'), signal);
  t.same(parseStopReply('T0506:0100000000000000;10:3611;thread:p1e.1e;core:3;'), { ...signal, hart: 'p1e.1e' });
  t.same(parseStopReply('T05swbreak:;thread:1;'), { ...signal, reason: 'swbreak', hart: '1' });
  t.same(parseStopReply('T05hwbreak:;thread:1;'), { ...signal, reason: 'hwbreak', hart: '1' });
  t.same(parseStopReply('T05thread:p01.01;rwatch:80200010;'), {
    ...signal,
    hart: 'p01.01',
    reason: 'rwatch',
    address: 0x80200010n,
  });
  t.same(parseStopReply('T05fork:p2.2;thread:p1.1;'), { ...signal, hart: 'p1.1', reason: 'fork', child: 'p2.2' });
  t.same(parseStopReply('T05exec:2f62696e2f7368;thread:p1.1;'), {
    ...signal,
    hart: 'p1.1',
    reason: 'exec',
    path: '/bin/sh',
  });
  t.same(parseStopReply('T05library:;thread:1;'), { ...signal, hart: '1', reason: 'library' });
  t.same(parseStopReply('T05thread:1;name:a.out;threads:1,2;reason:breakpoint;'), {
    ...signal,
    hart: '1',
    reason: 'breakpoint',
  });
  // lldb-server 14: "93824992247868 0 18446744073709551615", of 0x55555555803c.
  const description = '39333832343939323234373836382030203138343436373434303733373039353531363135';
  const watched = { ...signal, hart: '587d', reason: 'watch', address: 0x55555555803cn };
  t.same(parseStopReply(`T05thread:587d;name:w;reason:watchpoint;description:${description};`), watched);
  t.same(parseStopReply(`T05thread:587d;description:${description};reason:watchpoint;`), watched);
  for (const other of ['', '3', '7867', '61203020 30', '2d3120302030']) {
    const { address, ...unknown } = watched;
    t.same(parseStopReply(`T05thread:587d;reason:watchpoint;description:${other};`), unknown, other);
  }
  t.same(
    parseStopReply('T05foo:bar;thread:1;06:xxxx;constructor:1;'),
    { ...signal, hart: '1' },
    'what is not known is passed over',
  );
  t.same(parseStopReply('W00'), { kind: 'exited', status: 0 });
  t.same(parseStopReply('W7;process:1e0a'), { kind: 'exited', status: 7 }, 'gdbserver writes one digit');
  t.same(parseStopReply('X09;process:1'), { kind: 'terminated', signal: 9 });
  t.same(parseStopReply('X0b'), { kind: 'terminated', signal: 11 });
  for (const text of [
    '',
    'OK',
    'T',
    'T0',
    'T0x',
    'S5',
    'S05x',
    'W',
    'Wx',
    'T05thread:;',
    'T05thread:p1.zz;',
    'T05thread',
    'w0;p1.2',
    'N',
    'E01',
    'QC1',
  ]) {
    t.equal(parseStopReply(text), undefined, JSON.stringify(text));
  }
  t.equal(pidOf('p01.02'), '01');
  t.equal(pidOf('2'), undefined);
});

t.test('a stop reply of any bytes is read or refused', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'T05',
      'S05',
      'W00',
      'X09',
      'thread:',
      'p1.1',
      ';',
      ':',
      '06:',
      'watch:',
      'ffffffffffffffffff',
      'core:',
    ),
    fc.string({ maxLength: 12 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
      const stop = parseStopReply(pieces.join(''));
      return stop === undefined || typeof stop.kind === 'string';
    }),
    { seed: 9, numRuns: 1000 },
  );
});

t.test('of two registers of one name, each has its place in g', (t) => {
  // gdb 13, maint print remote-registers: 264, 272 and 280 behind riscv64's 33.
  const specs = ['extra', 'extra', 'last'].map((name, number) => ({ name, number, bits: 64 }));
  const target = new TargetDescription(undefined, specs, 24, 'target.xml');
  t.equal(target.register('extra')?.offsetInG, 0);
  t.equal(target.register('last')?.offsetInG, 16);
  t.end();
});
