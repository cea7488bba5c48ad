// A gdbserver on another machine: the ring is a file of the process there, which gdbserver reads for us at stops.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { frame } from '../support/fake-stub.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { compileReleased, gdbserver } from '../support/native.js';
import { functionProbes, type Output, sameCalls } from '../support/native-trace.js';

const hexOf = (text: string): string => Buffer.from(text).toString('hex');
/** A recording whose process names its memory otherwise than rsptrace has asked for, so that it is not found on this machine. */
async function elsewhere(t: Test, program: readonly string[], edit: (packet: string) => string) {
  const path = compileReleased(t, 'calls.c');
  const server = await gdbserver(t, path, ...program);
  const packet = /\$([^#]*)#[0-9a-f]{2}/g;
  const named = (data: string): string =>
    /^M/.test(data) ? data.replace(hexOf('rsptrace-'), hexOf('elsewhere')) : data;
  await using proxy = await FaultProxy.start(server.address, {
    'to-stub': { edit: (text) => text.replaceAll(packet, (_, data: string) => frame(edit(named(data)))) },
  });
  const trace = join(scratchFolder(t), 'out.pftrace');
  const output = await rsptrace('-r', proxy.path, '--json', '-o', trace, ...functionProbes, path).json<Output>();
  const { stdout } = await server.ended;
  t.equal(stdout, (await start(path, program).ended).stdout, 'it computes what it does untraced');
  t.match(output.scratch, /^memory mapped into process \d+ \(memfd on another machine\)$/);
  t.equal(output.missing, 0);
  sameCalls(t, output, stdout);
  const sent = proxy.sent;
  const reads = [...sent.matchAll(/\$m[0-9a-f]+,([0-9a-f]+)#/g)].map(([, size = '']) => Number.parseInt(size, 16));
  return {
    records: output.records,
    files: [...sent.matchAll(/\$vFile:pread:[0-9a-f]+,([0-9a-f]+),/g)].length,
    opened: sent.split('$vFile:open:').length - 1,
    closed: sent.split('$vFile:close:').length - 1,
    /** Bytes in pieces that only a ring is read in. */
    byAddress: reads.filter((size) => size > 4096).reduce((sum, size) => sum + size, 0),
  };
}

t.test('the ring is read as a file', async (t) => {
  const used = await elsewhere(t, ['threads', '600'], (packet) => packet);
  t.ok(used.records > 70_000, `${used.records} records: more than the ring holds`);
  t.ok(used.files > 400, `${used.files} pieces of files`);
  t.equal(used.byAddress, 0, 'and by address nothing');
  t.equal(used.closed, used.opened - 1, 'no file stays open but the ring, which ends with the process and its server');
});

t.test('a stub that does not open it: the ring is read by address', async (t) => {
  const file = hexOf('/fd/');
  const used = await elsewhere(t, ['run', '500'], (packet) =>
    packet.startsWith('vFile:open:') && packet.includes(file) ? 'vNoSuchPacket' : packet,
  );
  t.ok(used.byAddress > 64 << 10, `${used.byAddress} bytes`);
});
