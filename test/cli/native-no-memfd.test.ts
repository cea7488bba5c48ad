// A process that may have no memfd: its ring is read past the wire all the same, by /proc/PID/mem.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { compileReleased, gdbserver } from '../support/native.js';
import { functionProbes, type Output, sameCalls } from '../support/native-trace.js';

t.test('without a free file number: no stop reads the ring', async (t) => {
  const path = compileReleased(t, 'calls.c');
  const server = await gdbserver(t, path, 'threads', '600');
  let isLimited = false;
  let seen = '';
  await using proxy = await FaultProxy.start(server.address, {
    'to-client': {
      edit: (text) => {
        if (isLimited) return text;
        // A stop may come in two pieces.
        seen += text;
        const [, second] = [...seen.matchAll(/T05[^#]*thread:p([0-9a-f]+)\./g)];
        const pid = second?.[1];
        // It has opened its libraries when the first probe is hit: that is its second stop at the latest.
        if (pid !== undefined) {
          isLimited = true;
          execFileSync('prlimit', ['--pid', String(Number.parseInt(pid, 16)), '--nofile=0:0']);
        }
        return text;
      },
    },
  });
  const trace = join(scratchFolder(t), 'out.pftrace');
  const output = await rsptrace('-r', proxy.path, '--json', '-o', trace, ...functionProbes, path).json<
    Output & { readonly tail_lost: boolean }
  >();
  t.match(output.scratch, /^memory mapped into process \d+ \(\/proc\/\d+\/mem\)$/);
  const { stdout } = await server.ended;
  t.equal(stdout, (await start(path, ['threads', '600']).ended).stdout, 'it computes what it does untraced');
  t.equal(output.missing, 0);
  t.equal(output.tail_lost, false);
  t.ok(output.records > 70_000, `${output.records} records: more than the ring holds`);
  t.ok(output.stops < 60, `${output.stops} stops`);
  sameCalls(t, output, stdout);
});
