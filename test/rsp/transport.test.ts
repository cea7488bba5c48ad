// Bytes arrive whole and in order although the other side does not read, and a buffer that is given back may be reused at once.
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import net from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { openTransport } from '../../src/rsp/wire/transport.js';
import { scratchFolder } from '../support/command.js';

const CHUNK = 48 * 1024;
const CHUNKS = 200;

/** Bytes that tell where they belong. */
function fill(into: Uint8Array, chunk: number): void {
  for (let index = 0; index < into.length; index++) into[index] = (chunk * 31 + index * 7 + (index >> 8)) & 255;
}

for (const kind of ['unix', 'tcp'] as const) {
  t.test(`${kind}: more than the kernel takes, to a peer that reads late`, async (t) => {
    const hash = createHash('sha256');
    let received = 0;
    let peer: net.Socket | undefined;
    const happened = new EventEmitter();
    const connected = once(happened, 'connected');
    const all = once(happened, 'all');
    const server = net.createServer({ pauseOnConnect: true }, (socket) => {
      peer = socket;
      socket.on('data', (bytes) => {
        hash.update(bytes);
        received += bytes.length;
        if (received >= CHUNK * CHUNKS) happened.emit('all');
      });
      happened.emit('connected');
    });
    t.teardown(() => {
      peer?.destroy();
      server.close();
    });
    const path = join(scratchFolder(t), 'stub');
    await new Promise<void>((done) =>
      kind === 'unix' ? server.listen(path, done) : server.listen(0, '127.0.0.1', done),
    );
    const bound = server.address();
    const port = bound !== null && typeof bound === 'object' ? bound.port : 0;
    const address = kind === 'unix' ? { kind, path } : { kind, host: '127.0.0.1', port };
    const events = { data: () => {}, closed: () => {} };
    const transport = await openTransport(address, events, { waitMs: 0 });
    t.teardown(() => transport.close());
    await connected;

    const expected = createHash('sha256');
    let buffer = new Uint8Array(CHUNK);
    let kept = 0;
    for (let chunk = 0; chunk < CHUNKS; chunk++) {
      fill(buffer, chunk);
      expected.update(buffer);
      if (transport.write(buffer)) buffer.fill(0);
      else {
        kept++;
        buffer = new Uint8Array(CHUNK);
      }
    }
    t.ok(kept > 0, 'some of it had to wait');
    t.ok(kept < CHUNKS, 'and some did not');
    peer?.resume();
    await all;
    t.equal(received, CHUNK * CHUNKS);
    t.equal(hash.digest('hex'), expected.digest('hex'));
  });
}

t.test('a peer that is gone: no error from the write, and the end is told once', async (t) => {
  const path = join(scratchFolder(t), 'stub');
  const server = net.createServer((socket) => socket.destroy());
  t.teardown(() => void server.close());
  await new Promise<void>((done) => server.listen(path, done));
  let told = 0;
  const events = {
    data: () => {},
    closed: () => {
      told++;
    },
  };
  const transport = await openTransport({ kind: 'unix', path }, events, { waitMs: 0 });
  const bytes = new Uint8Array(100);
  while (told === 0) {
    transport.write(bytes);
    await new Promise((later) => setImmediate(later));
  }
  transport.write(bytes);
  transport.close();
  t.equal(told, 1);
});
