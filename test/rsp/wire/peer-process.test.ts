// The process at the other end of a socket: servers of the test's own, on TCP and on unix sockets.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { peerProcess } from '../../../src/rsp/wire/peer-process.js';
import { scratchFolder } from '../../support/command.js';

/** Listens where its argument says, and prints the port, then a line for each client that it has accepted. */
const code = `const server = require('net').createServer(() => console.log('accepted'));
const [where, host] = process.argv.slice(1);
server.listen(host === undefined ? { path: where } : { port: Number(where), host }, () => console.log(server.address().port ?? 0));`;

async function listening(
  t: Test,
  where: readonly string[],
  cwd?: string,
): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(process.execPath, ['-e', code, ...where], { stdio: ['ignore', 'pipe', 'inherit'], cwd });
  t.teardown(() => void child.kill('SIGKILL'));
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, port: Number(text.toString()) };
}

async function connected(t: Test, to: NetConnectOpts): Promise<Socket> {
  const socket = connect(to);
  t.teardown(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

for (const host of ['127.0.0.1', '::', '::1']) {
  t.test(`TCP, a server at ${host}`, async (t) => {
    const { child, port } = await listening(t, ['0', host]);
    const accepted = once(child.stdout ?? child, 'data');
    const socket = await connected(t, { host: host === '::' ? '127.0.0.1' : host, port });
    // Until then no process has the socket.
    await accepted;
    const address = { kind: 'tcp', host, port } as const;
    t.equal(peerProcess(address, socket.localPort, 'qemu'), child.pid, 'of another name');
    t.equal(peerProcess(address, socket.localPort, 'node'), child.pid);
    t.match(peerProcess(address, undefined, 'node'), { refused: /another machine/ });
    t.match(peerProcess({ ...address, port: port ^ 1 }, socket.localPort, 'node'), { refused: /another machine/ });
  });
}

t.test('a unix socket, bound to a path of its own folder, and one of the same name elsewhere', async (t) => {
  const [folder, other] = [scratchFolder(t), scratchFolder(t)];
  const { child } = await listening(t, ['gdb'], folder);
  await listening(t, ['gdb'], other);
  const path = join(folder, 'gdb');
  await connected(t, { path });
  t.equal(peerProcess({ kind: 'unix', path }, undefined, 'node'), child.pid);
  t.match(peerProcess({ kind: 'unix', path: join(folder, 'none') }, undefined, 'node'), { refused: /another machine/ });
});

t.test('this process itself is none', async (t) => {
  const path = join(scratchFolder(t), 'gdb');
  const server = createServer(() => {}).listen(path);
  t.teardown(() => void server.close());
  await once(server, 'listening');
  await connected(t, { path });
  t.match(peerProcess({ kind: 'unix', path }, undefined, 'node'), { refused: /container|another user/ });
});
