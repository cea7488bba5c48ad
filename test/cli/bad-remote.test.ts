// Every way to name the wrong thing with --remote: one sentence, a stable code, a way out, exit status 2 for what is no address and 1 for the rest.
import { chmodSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join, resolve } from 'node:path';
import t, { type Test } from 'tap';
import { elfPath, qemuArgv } from '../qemu/guests/guests.js';
import { frozenGuest, type Ran, rsptrace, scratchFolder, start } from '../support/command.js';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');

function check(t: Test, { status, stderr }: Ran, code: string, message: RegExp, hint: RegExp): void {
  t.equal(status, code === 'RSP_BAD_ADDRESS' ? 2 : 1, stderr);
  const [sentence = '', advice = '', ...rest] = stderr.trimEnd().split('\n');
  t.match(sentence, message);
  t.ok(sentence.endsWith(`[${code}]`), sentence);
  t.match(advice, hint);
  t.same(rest, [], 'one sentence and a hint');
}

/** The command at something that is no stub. */
function at(t: Test, remote: string): Promise<Ran> {
  const trace = join(scratchFolder(t), 'out.pftrace');
  return rsptrace('--remote', remote, '--timeout', '600ms', '-o', trace, elfPath('rv-o2')).ended;
}

t.test('addresses that are misspelt', async (t) => {
  const cases: [string, RegExp][] = [
    ['', /it is empty/],
    [':99999', /ports are 1 to 65535/],
    [':0', /ports are 1 to 65535/],
    ['localhost:', /the port is missing/],
    ['foo', /it has no port, and a path has a slash, as in \.\/foo|as in \.\/name/],
    ['1234', /is written :1234/],
    ['tcp:1234', /is written :1234/],
    ['tcp:foo', /it has no port/],
    ['localhost:gdb', /no port/],
    ['http://localhost:1234', /it is a URL/],
    ['::1:1234', /in brackets/],
    ['unix:', /the path is missing/],
    ['replay:', /the path is missing/],
    ['host:1234:5', /no port/],
    [' :1234', /cannot be read/],
  ];
  for (const [remote, message] of cases) {
    check(t, await at(t, remote), 'RSP_BAD_ADDRESS', message, /Give :PORT, HOST:PORT/);
  }
});

t.test('nobody there', async (t) => {
  const folder = scratchFolder(t);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const left = join(folder, 'left');
  const server = net.createServer().listen(left);
  await new Promise((done) => server.once('listening', done));
  // Closing would remove the socket: it is left over by a process that was killed.
  const leftover = start(process.execPath, [
    '-e',
    `require('net').createServer().listen('${join(folder, 'gone')}', () => process.kill(process.pid, 'SIGKILL'))`,
  ]);
  await leftover.ended;
  t.teardown(() => server.close());
  const cases: [string, RegExp, RegExp][] = [
    ['localhost:1', /Nothing listens at localhost:1 /, /Start the stub first/],
    [join(folder, 'missing'), /There is no socket /, /Start the stub first/],
    [join(file, 'missing'), /There is no socket /, /Part of the path is a file/],
    [join(folder, 'gone'), /Nothing listens at /, /left over/],
    [folder, /is a directory, not a socket/, /socket in it/],
    [file, /is a file, not a socket/, /replay:FILE/],
    ['/dev/null', /is a device, not a socket/, /socat/],
    ['no-such-host.invalid:1234', /is not known/, /spelling/],
  ];
  for (const [remote, message, hint] of cases) check(t, await at(t, remote), 'RSP_CONNECT', message, hint);
});

t.test('a unix socket without permission', async (t) => {
  const folder = scratchFolder(t);
  const path = join(folder, 'private');
  const server = net.createServer().listen(path);
  await new Promise((done) => server.once('listening', done));
  t.teardown(() => server.close());
  chmodSync(path, 0o000);
  const args = [main, '--remote', path, '-o', join(folder, 'out.pftrace'), elfPath('rv-o2')];
  // Root may do anything, unless it lets go of that.
  const isRoot = process.getuid?.() === 0;
  const drop = '-dac_override,-dac_read_search';
  const command = isRoot
    ? ['setpriv', `--inh-caps=${drop}`, `--bounding-set=${drop}`, process.execPath]
    : [process.execPath];
  const [program = '', ...before] = command;
  const ran = await start(program, [...before, ...args]).ended;
  check(t, ran, 'RSP_CONNECT', /No permission to connect to /, /Run as the user who started the stub/);
});

t.test('ports of something else', async (t) => {
  const serve = async (answer: (socket: net.Socket) => void): Promise<string> => {
    const path = join(scratchFolder(t), 's');
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      answer(socket);
    });
    await new Promise<void>((done) => server.listen(path, done));
    t.teardown(() => server.close());
    return path;
  };
  const says = (text: string) => (socket: net.Socket) => void socket.write(text);
  const check_ = /Check the port/;
  const cases: [string, (socket: net.Socket) => void, string, RegExp, RegExp][] = [
    ['an SSH server', says('SSH-2.0-OpenSSH_9.2p1\r\n'), 'RSP_PROTOCOL', /it says "SSH-2\.0-OpenSSH_9\.2p1"/, check_],
    [
      "QEMU's monitor",
      says('QEMU 7.2.22 monitor - type help\r\n(qemu) '),
      'RSP_PROTOCOL',
      /QEMU 7\.2\.22 monitor/,
      check_,
    ],
    ['a QMP socket', says('{"QMP": {"version": {}}}\r\n'), 'RSP_PROTOCOL', /it says "\{"QMP"/, check_],
    [
      'a web server that answers at once',
      (socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
      'RSP_PROTOCOL',
      /is a web server, not a GDB stub/,
      check_,
    ],
    [
      'a web server that waits for the end of a line',
      (socket) => {
        let text = '';
        socket.on('data', (chunk) => {
          text += chunk.toString('latin1');
          if (text.includes('\r\n')) socket.end('HTTP/1.0 400 Bad request syntax\r\n\r\n');
        });
      },
      'RSP_PROTOCOL',
      /is a web server, not a GDB stub/,
      check_,
    ],
    [
      'one that hangs up',
      (socket) => socket.once('data', () => socket.end()),
      'RSP_CLOSED',
      /without a word/,
      /Another debugger/,
    ],
    ['one that is silent', () => {}, 'RSP_TIMEOUT', /says nothing/, /Another debugger/],
  ];
  for (const [, answer, code, message, hint] of cases) check(t, await at(t, await serve(answer)), code, message, hint);
});

t.test('a stub that another debugger holds', async (t) => {
  const folder = scratchFolder(t);
  const [program, ...args] = qemuArgv('rv-o2', ['-S', '-gdb', `unix:${join(folder, 'gdb')},server=on,wait=off`]);
  const qemu = start(program, args);
  t.teardown(() => void qemu.process.kill('SIGKILL'));
  const path = join(folder, 'gdb');
  const other = await new Promise<net.Socket>((done) => {
    const attempt = (): void => {
      const socket = net.connect(path, () => done(socket));
      socket.once('error', () => setTimeout(attempt, 50));
    };
    attempt();
  });
  t.teardown(() => other.destroy());
  check(
    t,
    await at(t, path),
    'RSP_TIMEOUT',
    /takes the connection and says nothing/,
    /Another debugger may hold this stub/,
  );
});

t.test('an ELF of the other architecture, with every command', async (t) => {
  for (const command of [[], ['bt'], ['tasks']]) {
    const qemu = frozenGuest(t, 'rv-o2');
    const trace = command.length === 0 ? ['-o', join(scratchFolder(t), 'out.pftrace')] : [];
    const ran = await rsptrace(...command, '--remote', qemu.socket, ...trace, elfPath('x86-o2')).ended;
    check(
      t,
      ran,
      'ARCH_MISMATCH',
      /the ELF is for x86_64, the stub's target is riscv:rv64/,
      /give the ELF that runs there/,
    );
  }
});
