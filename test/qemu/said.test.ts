// What stops cost is said: when the engines are known, at the end, in --json, and by doctor beforehand.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { runDoctor } from '../support/doctor.js';
import type { Recording } from '../support/recording.js';
import { elfPath, qemuArgv } from './guests/guests.js';

interface Engines {
  readonly without_stops: number;
  readonly stopping: number;
  readonly left_out: number;
  readonly switched_off: number;
  readonly reasons: readonly { readonly why: string; readonly probes: number; readonly names: readonly string[] }[];
  readonly partly: readonly object[];
  readonly stood_ms: number;
  readonly stood_share: number;
  readonly advice: { readonly code: string } | null;
}

interface Output extends Recording {
  readonly engines: Engines;
}

const probes = ['-p', 'fn:labkern::work::deep7', '-p', 'fn:memcmp'];
const none = ['--scratch', 'none'];

t.test('attached to a QEMU without memory for trampolines, all stop: said twice, with what helps', async (t) => {
  const trace = join(scratchFolder(t), 'out.txt');
  // QEMU makes the socket when it is ready to be connected to.
  const stub = async (): Promise<string> => {
    const { socket } = frozenGuest(t, 'rv-o2');
    while (!existsSync(socket)) await sleep(20);
    return socket;
  };
  const words = ['--remote', await stub(), '-o', trace, '--timeout', '60s', ...none, ...probes, elfPath('rv-o2')];
  const table = await rsptrace(...words).ended;
  t.equal(table.status, 0, table.stderr);
  t.match(
    table.stderr,
    /^rsptrace: \d+ probes, all of which stop the target at each hit\n {2}\d+: --scratch none leaves the guest all its RAM/m,
  );
  t.match(table.stderr, /^ {2}to spare most stops: leave --scratch none away/m);
  t.match(
    table.stdout,
    /all of which stop the target at each hit; \d+ stops took [\d.]+ m?s, \d+ % of the time, and QEMU/,
  );
  const ran = await rsptrace(
    ...['--remote', await stub(), '--force', '-o', trace, '--timeout', '60s', '--json', ...none, ...probes],
    ...[elfPath('rv-o2')],
  ).ended;
  const { engines, stops, host_ms, probes: used } = JSON.parse(ran.stdout) as Output;
  t.notMatch(ran.stderr, /stop the target/, 'with --json as data alone');
  t.match(engines, { without_stops: 0, stopping: used.length, left_out: 0, advice: { code: 'leave-scratch-none' } });
  t.equal(
    engines.reasons.reduce((sum, { probes }) => sum + probes, 0),
    used.length,
  );
  t.ok(stops > 0 && engines.stood_ms > 0 && engines.stood_ms < host_ms, `${engines.stood_ms} of ${host_ms} ms`);
  const { found } = await runDoctor(await stub(), '--timeout', '60s', ...none, ...probes, elfPath('rv-o2'));
  const { without_stops, stopping, left_out, reasons, partly } = engines;
  t.strictSame(found.program?.engines, { without_stops, stopping, left_out, reasons, partly });
  t.match(
    found.advice.find(({ code }) => code === 'no-scratch')?.text,
    /all of which stop the target at each hit; to spare most stops: leave --scratch none away/,
  );
});

t.test('started by rsptrace, one stops for its own reason', async (t) => {
  const trace = join(scratchFolder(t), 'out.txt');
  const run = ['run', '-o', trace, '--timeout', '60s', ...probes, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2')];
  const { stdout, stderr } = await rsptrace(...run).ended;
  t.match(stderr, /^rsptrace: \d+ of \d+ probes run without stops, 1 stops .*\n {2}1: a branch .* \(memcmp\)$/m);
  t.match(
    stdout,
    /1 stops the target at each hit; \d+ stops took .*\n {2}1: a branch .*\n {2}to spare .*--engine target/,
  );
});
