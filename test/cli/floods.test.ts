// Stubs that mean harm: the command ends in one error, in little memory, however much they send.
// They send up to 1 GiB under `scripts/test --long`.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { join, resolve } from 'node:path';
import t, { type Test } from 'tap';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { FakeStub, frame, riscv, type Script } from '../support/fake-stub.js';
import { long, usually } from '../support/long.js';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');
/** What floods come to at most, in MiB. */
const flood = long ? 1024 : 64;
/** What the command may hold at most, in MiB: less than its own 70 and a flood that it kept. */
const limit = long ? 250 : 130;

interface Flooded {
  readonly status: number | null;
  readonly stderr: string;
  /** The most that was resident, in MiB. */
  readonly peak: number;
}

/** The command with a heap of 96 MiB; a flood that it kept would end it. */
function command(remote: string, ...args: string[]): Promise<Flooded> {
  const child = spawn(process.execPath, ['--max-old-space-size=96', main, ...args, '--remote', remote], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-10_000);
  });
  let peak = 0;
  const watch = setInterval(() => {
    try {
      const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
      peak = Math.max(peak, Number(kilobytes ?? 0) / 1024);
    } catch {
      // It has ended.
    }
  }, 20);
  const killer = setTimeout(() => child.kill('SIGKILL'), 300_000);
  return new Promise((done) => {
    child.on('close', (status) => {
      clearInterval(watch);
      clearTimeout(killer);
      done({ status, stderr, peak });
    });
  });
}

/** A server that says this, again and again, once it has heard anything. */
async function flooding(t: Test, begin: string, again: string): Promise<{ path: string; sent: () => number }> {
  const path = join(scratchFolder(t), 'flood');
  const chunk = Buffer.from(again.repeat(Math.ceil(65_536 / again.length)), 'latin1');
  let sent = 0;
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(Buffer.from(begin, 'latin1'));
      const pump = (): void => {
        while (!socket.destroyed && sent < flood * 2 ** 20) {
          sent += chunk.length;
          if (!socket.write(chunk)) {
            socket.once('drain', pump);
            return;
          }
        }
      };
      pump();
    });
    socket.on('data', () => {});
  });
  await new Promise<void>((done) => server.listen(path, done));
  t.teardown(() => server.close());
  return { path, sent: () => sent };
}

function refused(t: Test, name: string, { status, stderr, peak }: Flooded, code: RegExp): void {
  t.equal(status, 1, `${name}: ${stderr.slice(0, 300)}`);
  t.match(stderr, code, name);
  t.notMatch(stderr, /\n\s+at /, `${name}: no stack trace`);
  t.ok(peak < limit, `${name}: ${peak.toFixed(0)} MiB`);
}

const floods: Record<string, [begin: string, again: string, code: RegExp]> = {
  'a packet without end': ['+$', 'a', /\[RSP_PROTOCOL\]/],
  'a packet of run lengths without end': ['+$0', '*~', /\[RSP_PROTOCOL\]/],
  'a notification without end': ['%Stop:', 'T05', /\[RSP_PROTOCOL\]/],
  'packets that unpack to megabytes each': ['+', frame('0*~'.repeat(30_000)), /\[RSP_(PROTOCOL|TIMEOUT)\]/],
  'text that is no protocol': ['', 'hello\r\n', /\[RSP_PROTOCOL\]/],
  acknowledgements: ['', '+', /\[RSP_TIMEOUT\]/],
  NAKs: ['', '-', /\[RSP_PROTOCOL\]/],
  notifications: ['+', frame('Stop:T05').replace('$', '%'), /\[RSP_TIMEOUT\]/],
  'console output': ['+', frame('O48656c6c6f0a'), /\[RSP_TIMEOUT\]/],
  'stops nobody asked for': ['+', frame('T05thread:p01.01;'), /\[RSP_/],
  'packets with a wrong sum': ['+', '$00#00', /\[RSP_PROTOCOL\]/],
};

/** One that is given up, of packets and of text, one that unpacks, and one that is read until a time limit. */
const chosen = [
  'a packet without end',
  'packets that unpack to megabytes each',
  'text that is no protocol',
  'console output',
];
for (const [name, [begin, again, code]] of usually(Object.entries(floods), ([name]) => chosen.includes(name))) {
  t.test(`${flood} MiB of ${name}`, async (t) => {
    const { path, sent } = await flooding(t, begin, again);
    // Only where a time-out is the answer is it short: a busy machine may need long for the others.
    const timeout = code.source.includes('TIMEOUT') ? '300ms' : '5s';
    const ran = await command(path, 'bt', '--timeout', timeout, elfPath('rv-o2'));
    refused(t, name, ran, code);
    t.comment(`${(sent() / 2 ** 20).toFixed(0)} MiB sent, at most ${ran.peak.toFixed(0)} MiB held`);
  });
}

let pieces = 0;
const endless: Record<string, Script> = {
  'a description that never ends': { 'qXfer:features:read:target.xml:*': `m${'<!-- -->'.repeat(400)}` },
  'a description that never ends, byte by byte': { 'qXfer:features:read:target.xml:*': 'm ' },
  'a list of threads that never ends': { qsThreadInfo: () => `m${(++pieces).toString(16)}` },
};
for (const [name, script] of usually(Object.entries(endless), ([name]) => !name.endsWith('byte by byte'))) {
  t.test(name, async (t) => {
    await using stub = await FakeStub.start(riscv, script);
    refused(t, name, await command(stub.path, 'bt', '--timeout', '5s', elfPath('rv-o2')), /\[RSP_PROTOCOL\]/);
  });
}

const deep = `l${'<a>'.repeat(100_000)}`;
const bomb = `l<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><target>&b;</target>`;
const xml = (text: string): Script => ({ 'qXfer:features:read:target.xml:*': text });
/** What is small, and must not become large. */
const small: Record<string, [Script, RegExp]> = {
  'XML that nests without end': [xml(deep), /\[RSP_BAD_XML\]/],
  'XML with entities of its own': [xml(bomb), /\[RSP_BAD_XML\]/],
  'XML that includes itself': [xml('l<target><xi:include href="target.xml"/></target>'), /\[RSP_BAD_XML\]/],
  'registers of a gigabyte': [xml('l<target><reg name="a" bitsize="8589934592"/></target>'), /\[RSP_BAD_XML\]/],
  'the same thread for ever': [{ qsThreadInfo: 'mp01.01' }, /\[RSP_PROTOCOL\]/],
};
t.test('what is small in the packets and large when it is followed', async (t) => {
  for (const [name, [script, code]] of Object.entries(small)) {
    await using stub = await FakeStub.start(riscv, script);
    const { status, stderr } = await rsptrace('bt', '--remote', stub.path, elfPath('rv-o2')).ended;
    t.equal(status, 1, name);
    t.match(stderr, code, name);
    t.notMatch(stderr, /\n\s+at /, `${name}: no stack trace`);
  }
});

t.test('registers of another size', async (t) => {
  await using stub = await FakeStub.start(riscv, { g: '00'.repeat(100_000) });
  t.ok((await command(stub.path, 'bt', elfPath('rv-o2'))).peak < limit);
});
