import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { littleEndian, littleEndianBytes } from '../../src/base/little-endian.js';
import { formatRemote, parseRemote } from '../../src/rsp/wire/address.js';
import {
  MAX_PACKET,
  PacketReader,
  type PacketSink,
  PacketWriter,
  protocolError,
  toProtocolError,
} from '../../src/rsp/wire/framing.js';
import { decodeHex, hexToBytes } from '../../src/rsp/wire/hex.js';
import { codePoint } from '../support/code-points.js';
import { frame } from '../support/fake-stub.js';

class Heard implements PacketSink {
  readonly all: string[] = [];
  ack(): void {
    this.all.push('+');
  }
  nak(): void {
    this.all.push('-');
  }
  packet(bytes: Uint8Array, start: number, end: number): void {
    this.all.push(`$${Buffer.from(bytes.subarray(start, end)).toString('latin1')}`);
  }
  notification(bytes: Uint8Array, start: number, end: number): void {
    this.all.push(`%${Buffer.from(bytes.subarray(start, end)).toString('latin1')}`);
  }
  badChecksum(sum: string): void {
    this.all.push(`bad ${sum}`);
  }
  junk(bytes: Uint8Array, start: number, end: number): void {
    this.all.push(`junk ${Buffer.from(bytes.subarray(start, end)).toString('latin1')}`);
  }
}

function read(...chunks: string[]): string[] {
  const heard = new Heard();
  const reader = new PacketReader(heard);
  for (const chunk of chunks) reader.feed(Buffer.from(chunk, 'latin1'));
  return heard.all;
}

function written(...packets: string[]): string {
  const writer = new PacketWriter();
  for (const packet of packets) writer.packet(packet);
  return Buffer.from(writer.bytes).toString('latin1');
}

/** The sum, by another way than either side's code. */
function sumOf(body: string): string {
  return (Buffer.from(body, 'latin1').reduce((sum, byte) => sum + byte, 0) % 256).toString(16).padStart(2, '0');
}

t.test('packets are framed with the sum modulo 256', async (t) => {
  t.equal(written('g'), '$g#67');
  t.equal(written('?', 'vCont;c'), '$?#3f$vCont;c#a8');
  t.equal(written(''), '$#00');
});

t.test('the four special characters are escaped, and count as sent', async (t) => {
  t.equal(written('a#b$c}d*e'), `$a}\x03b}\x04c}]d}\x0ae#${sumOf('a}\x03b}\x04c}]d}\x0ae')}`);
});

t.test('bytes in hex behind a letter: what the same packet is as text', async (t) => {
  const writer = new PacketWriter();
  const bytes = Uint8Array.from({ length: 40_000 }, (_, index) => (index * 7 + (index >> 8)) & 255);
  writer.hexPacket('G'.charCodeAt(0), bytes);
  writer.packet('c');
  const body = `G${Buffer.from(bytes).toString('hex')}`;
  t.equal(Buffer.from(writer.bytes).toString('latin1'), `$${body}#${sumOf(body)}$c#63`);
});

t.test('many packets grow the buffer, a released one is not written to again', async (t) => {
  const writer = new PacketWriter();
  for (let index = 0; index < 5000; index++) writer.packet('m80000000,40');
  t.equal(writer.length, 5000 * 16);
  const kept = writer.bytes;
  writer.release();
  writer.packet('x');
  t.equal(kept[1], 'm'.charCodeAt(0));
});

t.test('single bytes, and a writer that is cleared', async (t) => {
  const writer = new PacketWriter();
  t.equal(writer.length, 0);
  writer.byte(3);
  writer.packet('g');
  t.same([...writer.bytes], [3, ...Buffer.from('$g#67')]);
  writer.clear();
  t.equal(writer.length, 0);
  for (let i = 0; i < 20_000; i++) writer.byte(i & 255);
  t.equal(writer.length, 20_000);
  t.ok(writer.bytes.every((byte, i) => byte === (i & 255)));
  writer.release();
  t.equal(writer.length, 0);
});

t.test('what is thrown while a packet is read is an error of the protocol', async (t) => {
  const own = protocolError('it says nothing');
  t.match(own, { code: 'RSP_PROTOCOL', message: /it says nothing$/ });
  t.equal(toProtocolError(own), own);
  const cause = new RangeError('beyond');
  t.match(toProtocolError(cause), { code: 'RSP_PROTOCOL', message: 'beyond', cause });
});

t.test('packets, acknowledgements and notifications are told apart', async (t) => {
  t.same(read('+$OK#9a-%Stop:T05#9d$#00'), ['+', '$OK', '-', 'bad 9d', '$']);
  t.same(read(`%Stop:T05thread:p1.1;#${sumOf('Stop:T05thread:p1.1;')}+`), ['%Stop:T05thread:p1.1;', '+']);
});

t.test('run lengths are those of the manual: "0* " is 0000', async (t) => {
  t.same(read(`$0* #${sumOf('0* ')}`), ['$0000']);
  t.same(read(`$T0506:0*,;#${sumOf('T0506:0*,;')}`), [`$T0506:${'0'.repeat(1 + 0x2c - 29)};`]);
  t.same(read(`$a}\x03* b#${sumOf('a}\x03* b')}`), ['$a####b'], 'an escaped character can be repeated');
});

t.test('impossible run lengths and escapes are refused', async (t) => {
  for (const body of ['*!', '0*', '0*\x1e', '0*\x1f', '0*\x7f', 'ab}']) {
    t.throws(() => read(`$${body}#${sumOf(body)}`), { code: 'RSP_PROTOCOL' }, JSON.stringify(body));
  }
});

t.test('run lengths cannot fill the memory', async (t) => {
  const body = `0${'*~'.repeat(60_000)}`;
  t.throws(() => read(`$${body}#${sumOf(body)}`), { code: 'RSP_PROTOCOL' });
});

t.test('a packet without end is given up', async (t) => {
  const reader = new PacketReader(new Heard());
  const chunk = Buffer.alloc(65536, 'a');
  reader.feed(Buffer.from('$'));
  t.throws(
    () => {
      for (let sent = 0; sent <= MAX_PACKET; sent += chunk.length) reader.feed(chunk);
    },
    { code: 'RSP_PROTOCOL' },
  );
});

t.test('the longest packet, and one byte more', async (t) => {
  const body = 'a'.repeat(MAX_PACKET - 3);
  const heard = read(`$${body}`, `#${sumOf(body)}`);
  t.equal(heard.length, 1);
  t.equal(heard[0]?.length, MAX_PACKET - 2);
  t.same(read(`$${'a'.repeat(MAX_PACKET - 1)}`), [], 'it may go on');
  t.throws(() => read(`$${'a'.repeat(MAX_PACKET)}`), { code: 'RSP_PROTOCOL' });
});

t.test('a sum that is no number, and one that ends too early', async (t) => {
  t.same(read('$OK#9x', '$OK#x9', '$OK#9a'), ['bad 9x', 'bad x9', '$OK']);
  t.same(read('$OK#'), []);
  t.same(read('$OK#', '9', 'a+'), ['$OK', '+']);
  t.same(read('%a}\x03#', sumOf('a}\x03')), ['%a#'], 'a notification is decoded too');
});

t.test('a packet that is cut off by the next is dropped', async (t) => {
  t.same(read('$m80$OK#9a'), ['junk $m80', '$OK']);
  t.same(read('HTTP/1.1 400 Bad\r\n$OK#9a'), ['junk HTTP/1.1 400 Bad\r\n', '$OK']);
});

t.test('however the bytes are split, the same packets come out', async () => {
  const data = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 60 });
  fc.assert(
    fc.property(
      fc.array(data, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      (all, cuts) => {
        const packets = all.map((bytes) => Buffer.from(bytes).toString('latin1'));
        const stream = `+${packets.map((packet) => written(packet)).join('+')}`;
        const chunks: string[] = [];
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const size = cuts[turn % cuts.length] ?? 1;
          chunks.push(stream.slice(at, at + size));
          at += size;
        }
        const heard = read(...chunks).filter((each) => each !== '+');
        return JSON.stringify(heard) === JSON.stringify(packets.map((packet) => `$${packet}`));
      },
    ),
    { seed: 7, numRuns: 400 },
  );
});

t.test('long packets, of hex and of anything between', async () => {
  const hex = fc.uint8Array({ maxLength: 1500 }).map((bytes) => Buffer.from(bytes).toString('hex'));
  const plain = fc.string({
    maxLength: 90,
    unit: fc.constantFrom('0', 'o', '/', 'p', '\x7f', '\x80', '\xff', '\x00', '+', ','),
  });
  const escaped = fc.constantFrom('}\x03', '}\x04', '}\x0a', '}\x5d');
  const same = fc.integer({ min: 0, max: 9000 }).map((length) => 'f'.repeat(length));
  const text = fc.array(fc.oneof(hex, same, plain, escaped), { maxLength: 6 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 0, max: 255 }), (body, cut, wrong) => {
      const means = body.replace(/}(.)/gs, (_, escaped: string) => String.fromCharCode(escaped.charCodeAt(0) ^ 0x20));
      const stream = `+$${body}#${sumOf(body)}$${body}#${wrong.toString(16).padStart(2, '0')}`;
      const heard = read(stream.slice(0, cut), stream.slice(cut));
      const second =
        Number.parseInt(sumOf(body), 16) === wrong ? `$${means}` : `bad ${wrong.toString(16).padStart(2, '0')}`;
      return JSON.stringify(heard) === JSON.stringify(['+', `$${means}`, second]);
    }),
    { seed: 19, numRuns: 600 },
  );
});

t.test('what is no protocol at all ends in an error or in nothing', async () => {
  const piece = fc.oneof(
    fc.constantFrom('$', '#', '*', '}', '%', '+', '-', '$OK#9a', '$0*'),
    fc.string({ maxLength: 20, unit: codePoint }),
  );
  fc.assert(
    fc.property(fc.array(fc.array(piece, { maxLength: 12 }), { maxLength: 6 }), (chunks) => {
      try {
        read(...chunks.map((chunk) => chunk.join('')));
        return true;
      } catch (error) {
        return error instanceof RsptraceError && error.code === 'RSP_PROTOCOL';
      }
    }),
    { seed: 11, numRuns: 600 },
  );
});

t.test('hex and little-endian numbers', async (t) => {
  t.same(hexToBytes('00ff7F'), new Uint8Array([0, 255, 127]));
  t.equal(hexToBytes('0'), undefined);
  t.equal(hexToBytes('0g'), undefined);
  const into = new Uint8Array(2);
  t.equal(decodeHex(Buffer.from('xa0Bc'), 1, 5, into, 0), true);
  t.same(into, new Uint8Array([0xa0, 0xbc]));
  t.equal(decodeHex(Buffer.from('aabbcc'), 0, 6, into, 0), false, 'does not fit');
  t.equal(decodeHex(Buffer.from('zz'), 0, 2, into, 0), false);
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), fc.integer({ min: 1, max: 16 }), (value, size) => {
      const bytes = littleEndianBytes(value, size);
      const wanted = BigInt.asUintN(size * 8, value);
      const text = wanted.toString(16).padStart(size * 2, '0');
      return littleEndian(bytes) === wanted && Buffer.from(bytes).reverse().toString('hex') === text;
    }),
    { seed: 3, numRuns: 300 },
  );
});

t.test('hex of any length, and one digit of it that is none', async () => {
  const places = fc.record({
    before: fc.nat(9),
    behind: fc.nat(9),
    wrong: fc.nat(),
    code: fc.integer({ min: 0, max: 255 }),
  });
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 90 }),
      fc.boolean(),
      places,
      (bytes, upper, { before, behind, wrong, code }) => {
        const hex = Buffer.from(bytes).toString('hex');
        const text = Buffer.from(`${'x'.repeat(before)}${upper ? hex.toUpperCase() : hex}x`);
        const into = new Uint8Array(behind + bytes.length + 1).fill(0x55);
        const end = before + hex.length;
        const wanted = [...new Uint8Array(behind).fill(0x55), ...bytes, 0x55];
        if (!decodeHex(text, before, end, into, behind)) return false;
        if (JSON.stringify([...into]) !== JSON.stringify(wanted)) return false;
        if (hex.length === 0) return true;
        text[before + (wrong % hex.length)] = code;
        return decodeHex(text, before, end, into, behind) === /[0-9a-f]/i.test(String.fromCharCode(code));
      },
    ),
    { seed: 23, numRuns: 600 },
  );
});

t.test('the fake stub frames as the client does', async (t) => {
  t.equal(frame('vCont;c'), written('vCont;c'));
});

t.test('addresses', async (t) => {
  t.same(parseRemote(':1234'), { kind: 'tcp', host: 'localhost', port: 1234 });
  t.same(parseRemote('tcp::1234'), { kind: 'tcp', host: 'localhost', port: 1234 });
  t.same(parseRemote('board-7.lab:3333'), { kind: 'tcp', host: 'board-7.lab', port: 3333 });
  t.same(parseRemote('tcp:10.0.0.2:3333'), { kind: 'tcp', host: '10.0.0.2', port: 3333 });
  t.same(parseRemote('[::1]:1234'), { kind: 'tcp', host: '::1', port: 1234 });
  t.same(parseRemote('unix:/run/gdb.sock'), { kind: 'unix', path: '/run/gdb.sock' });
  t.same(parseRemote('/run/gdb.sock'), { kind: 'unix', path: '/run/gdb.sock' });
  t.same(parseRemote('./gdb:0'), { kind: 'unix', path: './gdb:0' });
  for (const text of [
    '',
    '1234',
    ':0',
    ':65536',
    ':12345678',
    'host',
    'host:',
    '::1:1234',
    'a b:1',
    'unix:',
    'http://h:1/',
  ]) {
    t.throws(() => parseRemote(text), { code: 'RSP_BAD_ADDRESS' }, JSON.stringify(text));
  }
  t.throws(() => parseRemote(`/${'x'.repeat(107)}`), { code: 'RSP_BAD_ADDRESS', message: /107/ });
  for (const text of ['[::1]:1234', 'host:9', '/a/b', 'unix:a']) t.equal(formatRemote(parseRemote(text)), text);
});
