import { Buffer } from 'node:buffer';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { silent } from '../../src/base/logger.js';
import { connect } from '../../src/rsp/index.js';
import { shakeHands } from '../../src/rsp/session/handshake.js';
import { Link } from '../../src/rsp/wire/link.js';
import { FakeStub, frame, riscv } from '../support/fake-stub.js';

t.test('the handshake goes in the order that every stub stands', async (t) => {
  await using stub = await FakeStub.start(riscv);
  const session = await connect(stub.path);
  t.same(stub.packets, [
    'qSupported:multiprocess+;swbreak+;hwbreak+;fork-events+;vfork-events+;exec-events+;vContSupported+;error-message+;binary-upload+;xmlRegisters=i386',
    'QStartNoAckMode',
    'vMustReplyEmpty',
    '?',
    'qXfer:features:read:target.xml:0,ffb',
    'qfThreadInfo',
    'qsThreadInfo',
    'vCont?',
    'qAttached:01',
    'g',
    'p20',
    'qqemu.sstepbits',
    'vAttach;2',
  ]);
  t.match(session, { attached: true, target: { architecture: 'riscv:rv64' }, state: { kind: 'idle' } });
  t.match(session.features, {
    packetSize: 4096,
    noAck: false,
    multiprocess: true,
    singleRegister: true,
    registerBlock: true,
  });
  t.equal(session.target.register('satp')?.number, 450);
  session.close();
});

t.test('a target is let go when the handshake fails', async (t) => {
  await using stub = await FakeStub.start(riscv, { 'qXfer*': 'l<target><reg/></target>', 'D;1': 'E22' });
  delete stub.script['qXfer:features:read:target.xml:*'];
  await t.rejects(connect(stub.path), { code: 'RSP_BAD_XML' });
  t.same(stub.packets.slice(-2), ['D;1', 'D']);
});

t.test('no stub there', async (t) => {
  const missing = join(tmpdir(), `no-such-socket-${process.pid}`);
  await t.rejects(connect(missing), { code: 'RSP_CONNECT', message: /no socket/ });
  await t.rejects(connect('127.0.0.1:1'), { code: 'RSP_CONNECT', message: /Nothing listens/, hint: /-gdb/ });
  await t.rejects(connect('no-such-host.invalid:1234'), { code: 'RSP_CONNECT' });
  const file = `${missing}-file`;
  writeFileSync(file, '');
  chmodSync(file, 0o600);
  await t.rejects(connect(file), { code: 'RSP_CONNECT' });
  rmSync(file);
});

t.test('a stub that is still starting is waited for', async (t) => {
  const path = join(tmpdir(), `late-socket-${process.pid}`);
  const connecting = connect(path, { waitMs: 60_000, timeoutMs: 1000 });
  setTimeout(async () => {
    const server = net.createServer((socket) => socket.end('HTTP/1.0 400 Bad Request\r\n\r\n'));
    server.listen(path);
    setTimeout(() => server.close(), 1500).unref();
  }, 100);
  await t.rejects(connecting, { code: 'RSP_PROTOCOL', message: /web server/ });
});

t.test('who else may listen there', async (t) => {
  const ask = async (say: (socket: net.Socket) => void): Promise<unknown> => {
    const sockets: net.Socket[] = [];
    const server = net.createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      say(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as net.AddressInfo;
    try {
      return await connect(`127.0.0.1:${port}`, { timeoutMs: 600 }).catch((error: unknown) => error);
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  };
  t.match(await ask((socket) => socket.write('SSH-2.0-OpenSSH_9.2p1 Debian\r\n')), {
    code: 'RSP_PROTOCOL',
    message: /"SSH-2.0-OpenSSH/,
  });
  t.match(await ask((socket) => socket.write('220 ftp\r\n')), { code: 'RSP_PROTOCOL', message: /220 ftp/ });
  t.match(await ask((socket) => socket.end()), { code: 'RSP_CLOSED', hint: /debugger/ });
  t.match(await ask(() => {}), { code: 'RSP_TIMEOUT', message: /says nothing/, hint: /debugger/ });
  t.match(await ask((socket) => socket.pipe(socket)), { code: 'RSP_PROTOCOL' }, 'an echo');
  const ok = FakeStub.start({ '*': 'OK' });
  await using stub = await ok;
  await t.rejects(connect(stub.path), { code: 'RSP_PROTOCOL' }, 'a stub that says OK to everything');
  await using ended = await FakeStub.start(riscv, { '?': 'W00' });
  await t.rejects(connect(ended.path), { code: 'RSP_NO_PROGRAM' });
});

t.test('a handshake with nonsense ends in an error or a greeting', async () => {
  const keys = Object.keys(riscv);
  const answer = fc.oneof(
    fc.constantFrom(
      '',
      'OK',
      'E01',
      'l',
      'm',
      'mp01.01',
      'l<a/>',
      'T05',
      'S05',
      'W00',
      'PacketSize=ffffffffff',
      'O',
      'O41',
      'F1',
      'xxxx',
      '00',
    ),
    fc.string({ maxLength: 30 }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.constantFrom(...keys, 'vMustReplyEmpty', 'QStartNoAckMode'), answer),
      async (odd) => {
        const script: Record<string, string> = { ...(riscv as Record<string, string>), ...odd };
        const link = new Link(
          'fuzz',
          { event: () => {}, console: () => {}, adrift: () => {}, closed: () => {} },
          silent,
          20,
        );
        let rest = '';
        link.open({
          name: 'fuzz',
          close: () => {},
          write: (bytes) => {
            rest += Buffer.from(bytes).toString('latin1');
            for (let match = /\$([^#]*)#../.exec(rest); match !== null; match = /\$([^#]*)#../.exec(rest)) {
              rest = rest.slice(match.index + match[0].length);
              const packet = match[1] ?? '';
              const key = Object.keys(script).find(
                (each) => each === packet || (each.endsWith('*') && packet.startsWith(each.slice(0, -1))),
              );
              const reply = Buffer.from(`+${frame(key === undefined ? '' : (script[key] ?? ''))}`, 'latin1');
              setImmediate(() => link.data(reply, reply.length));
            }
            return true;
          },
        });
        try {
          const greeting = await shakeHands(link, silent, {});
          return greeting.features.packetSize >= 256;
        } catch (error) {
          return error instanceof RsptraceError && error.code.startsWith('RSP_');
        } finally {
          link.close();
        }
      },
    ),
    { seed: 13, numRuns: 150 },
  );
});
