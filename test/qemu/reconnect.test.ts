// A link that breaks in the middle, with the guest still there behind it.
// A guest of x86_64 under `scripts/test --long`.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { frozenGuest, frozenQemu, rsptrace, scratchFolder, traceGrows } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { compareCounts } from '../support/lab.js';
import { usually, variant } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { lateKernel } from '../support/tiny-kernels.js';
import { type ChromeRecord, readChrome } from '../trace/decode-chrome.js';
import { children, protoc, readPerfetto } from '../trace/decode-perfetto.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

/** Some of the Futures: each is polled often enough, and a stop at all of them takes long. */
const probes = ['chain_task', 'joiner', 'sleeper', 'producer', 'consumer'].flatMap((future) => [
  '-p',
  `poll:${future}`,
]);

interface Setup {
  readonly name: string;
  readonly trace: string;
  readonly options?: readonly string[];
  /** What happens to the wire, some hundred events in. */
  readonly harm: (proxy: FaultProxy, n: number) => void;
  readonly times: number;
}

async function traced(
  t: Test,
  { name, trace, options = [], harm, times }: Setup,
): Promise<[Recording, string, number | null]> {
  const qemu = frozenGuest(t, name);
  await using proxy = await FaultProxy.start(qemu.socket);
  const elf = elfPath(name);
  const args = ['--remote', proxy.path, '--json', ...probes, ...options];
  const tracer = rsptrace(...args, '-o', trace, elf);
  await qemu.shows('LAB cfg');
  for (let n = 0; n < times; n++) {
    const from = proxy.sent.length;
    while (proxy.sent.length < from + 6_000 && !tracer.over()) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    harm(proxy, n);
  }
  const { stdout, status, stderr } = await tracer.ended;
  t.notMatch(stderr, /INTERNAL/);
  return [JSON.parse(stdout) as Recording, (await qemu.ended).stdout, status];
}

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: a wire that is cut three times: recording goes on, with three gaps`, async (t) => {
    const trace = join(scratchFolder(t), 'out.pftrace');
    const harm = (proxy: FaultProxy): void => proxy.cut();
    const [output, console, status] = await traced(t, { name, trace, harm, times: 3, options: ['--reconnect'] });
    t.equal(status, 0);
    t.equal(output.end, 'guest-ended');
    t.equal(output.gaps.length, 3);
    let last = 0;
    for (const { from_ns, to_ns } of output.gaps) {
      t.ok(from_ns >= last && to_ns >= from_ns, `${from_ns} to ${to_ns}`);
      last = to_ns;
    }
    const lab = parseLab(console);
    t.equal(lab.checksum, guest(name).checksum, 'the guest has not noticed');
    // QEMU 7.2 holds the guest at the first breakpoint that it hits with nobody there: little is missing.
    const rows = compareCounts(lab, output.futures).filter((row) => row.derived === 0 && row.polls > 0);
    t.ok(rows.length >= 2, `${rows.length} Futures`);
    for (const row of rows) t.ok(Math.abs(row.polls - row.counted) <= 3, `${row.name}: ${row.polls} of ${row.counted}`);
    const { slices, tracks } = readPerfetto(children(protoc(readFileSync(trace)), 'packet'));
    const gaps = slices.filter(({ category }) => category === 'gap');
    t.same(
      gaps.map(({ begin, end }) => ({ from_ns: begin, to_ns: end })),
      output.gaps,
    );
    t.same([...new Set(gaps.map(({ track }) => tracks.get(track)?.name))], ['gaps']);
  });
}

variant(t, 'a wire that falls silent is given up and opened again', async (t) => {
  const trace = join(scratchFolder(t), 'out.json');
  let done = false;
  const harm = (proxy: FaultProxy): void => {
    // Only this connection: the next one is served.
    const { connections } = proxy;
    proxy.faults['to-stub'] = { edit: (text) => (proxy.connections === connections ? '' : text) };
    done = true;
  };
  const options = ['--reconnect', '--timeout', '1s'];
  const [output, console, status] = await traced(t, { name: 'rv-o2', trace, harm, times: 1, options });
  t.ok(done);
  t.equal(status, 0);
  t.equal(output.gaps.length, 1);
  t.equal(parseLab(console).checksum, guest('rv-o2').checksum);
  const slices = readChrome(JSON.parse(readFileSync(trace, 'utf8')) as ChromeRecord[]);
  const gaps = slices.filter(({ category }) => category === 'gap');
  t.same(
    gaps.map(({ begin, end }) => [begin, end]),
    output.gaps.map(({ from_ns, to_ns }) => [from_ns, to_ns]),
  );
});

/** Bytes of a trace with more than a hundred events in it. */
const enough = 20_000;

t.test('a machine that was started anew behind the link ends the recording, and is let go', async (t) => {
  const [qemu, other] = [frozenGuest(t, 'rv-o2-long'), frozenGuest(t, 'rv-o2-long')];
  await using proxy = await FaultProxy.start(qemu.socket);
  const trace = join(scratchFolder(t), 'out.pftrace');
  const args = ['--remote', proxy.path, '--reconnect', '--json', '-o', trace, ...probes];
  const tracer = rsptrace(...args, elfPath('rv-o2-long'));
  await traceGrows(tracer, trace, enough);
  proxy.target = other.socket;
  proxy.cut();
  const { stdout, status } = await tracer.ended;
  t.equal(status, 3);
  t.match(JSON.parse(stdout), { end: 'failed', error: { code: 'TARGET_RESTARTED' } });
  t.equal(proxy.connections, 2);
});

t.test('with --reconnect, and the target gone for good: what was recorded is kept', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2-long');
  const trace = join(scratchFolder(t), 'out.pftrace');
  const words = ['--remote', qemu.socket, '--reconnect', '--json', '-o', trace, ...probes, elfPath('rv-o2-long')];
  const tracer = rsptrace(...words);
  await traceGrows(tracer, trace, enough);
  qemu.process.kill('SIGKILL');
  const { status, stdout } = await tracer.ended;
  const output = JSON.parse(stdout) as Recording;
  t.ok(status === 0 || (status === 3 && output.error?.code === 'RSP_CLOSED'), `${status}`);
  t.same(output.gaps, []);
  t.ok(output.events > 50);
});

t.test('a link that breaks again before an event is given up: the trace has begun once', async (t) => {
  const calls = 20;
  // It calls nothing more for as long as the test takes.
  const { elf, command } = lateKernel(t, { early: calls, work: 1, spin: 2_000_000_000 });
  const qemu = frozenQemu(t, command);
  await using proxy = await FaultProxy.start(qemu.socket);
  const trace = join(scratchFolder(t), 'out.json');
  const words = [
    '--remote',
    proxy.path,
    '--reconnect',
    '--json',
    '--engine',
    'stop',
    '-p',
    'fn:early',
    '-o',
    trace,
    elf,
  ];
  const tracer = rsptrace(...words);
  const until = async (is: () => boolean): Promise<void> => {
    while (!is() && !tracer.over()) await sleep(5);
  };
  const ended = (): number => (existsSync(trace) ? readFileSync(trace, 'utf8').split('"ph":"E"').length - 1 : 0);
  await until(() => ended() === calls);
  proxy.cut();
  await until(() => proxy.connections === 2);
  const from = proxy.sent.length;
  await until(() => /vCont;c[^;]*$/.test(proxy.sent.slice(from)));
  proxy.cut();
  await until(() => proxy.connections === 3);
  qemu.process.kill('SIGKILL');
  const output = JSON.parse((await tracer.ended).stdout) as Recording;
  t.equal(proxy.connections, 2);
  t.match(output, { end: 'guest-ended', clock: { guest: true } });
  t.equal(output.gaps.length, 1);
  const slices = readChrome(JSON.parse(readFileSync(trace, 'utf8')) as ChromeRecord[]);
  t.equal(slices.filter(({ category }) => category === 'call').length, calls);
});
