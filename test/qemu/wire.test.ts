// The wire of a real QEMU, recorded and played back: all of x86_64's only under `scripts/test --long`.

import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { frozenGuest, type Ran, rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, qemuArgv } from './guests/guests.js';

const probes = ['level3', 'leaf_io', 'joiner'].flatMap((future) => ['-p', `poll:${future}`]);

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: a recording replays to the same trace, byte for byte`, async (t) => {
    const folder = scratchFolder(t);
    const wire = join(folder, 'wire.jsonl');
    const traces = ['live.pftrace', 'replayed.pftrace'].map((file) => join(folder, file)) as [string, string];
    const qemu = frozenGuest(t, name);
    const elf = elfPath(name);
    const enough = ['--json', '-n', '200', ...probes];
    const recorded = ['--remote', qemu.socket, '--record-wire', wire, ...enough, '-o', traces[0], elf];
    const live = await rsptrace(...recorded).ended;
    t.equal(live.status, 0, live.stderr);
    const replayed = await rsptrace('--remote', `replay:${wire}`, ...enough, '-o', traces[1], elf).ended;
    t.equal(replayed.status, 0, replayed.stderr);
    const [first, second] = [live, replayed].map(({ stdout }) => JSON.parse(stdout) as Recording) as [
      Recording,
      Recording,
    ];
    t.ok(first.events > 150);
    t.same(second.futures, first.futures);
    t.ok(readFileSync(traces[0]).equals(readFileSync(traces[1])), 'the same bytes');

    // Another command asks other questions.
    const other = await rsptrace('bt', '--remote', `replay:${wire}`, elf).ended;
    t.equal(other.status, 1);
    t.match(
      other.stderr,
      /leaves the recording at .*wire\.jsonl:\d+: ".+" is sent, where ".+" was \[RSP_REPLAY_DIVERGED\]/,
    );

    truncateSync(wire, Math.floor(statSync(wire).size / 2));
    const words = ['--remote', `replay:${wire}`, ...enough, '--force', '-o', traces[1], elf];
    const half = await rsptrace(...words).json<Recording>(3);
    t.equal(half.error?.code, 'RSP_REPLAY_ENDED');
    t.ok(half.events > first.events / 4, `${half.events} of ${first.events} events`);
  });
}

t.test('run, bt and tasks are recorded and replayed too', async (t) => {
  const folder = scratchFolder(t);
  const wire = join(folder, 'wire.jsonl');
  const trace = (name: string): string => join(folder, name);
  const elf = elfPath('rv-o2');
  const run = [
    'run',
    '--engine',
    'stop',
    // What is played back has no breakpoint where panics begin.
    '--on-panic',
    'ignore',
    '--record-wire',
    wire,
    '--force',
    '-o',
    trace('run.json'),
    '-n',
    '300',
    ...probes,
    elf,
    '--',
    ...qemuArgv('rv-o2'),
  ];
  const shared = await rsptrace(...run.map((each) => (each === 'stop' ? 'target' : each))).ended;
  t.match(shared.stderr, /did not pass over the wire, .*wire\.jsonl cannot be replayed; --engine stop/);
  const recorded = await rsptrace(...run).ended;
  t.equal(recorded.status, 0);
  t.notMatch(recorded.stderr, /cannot be replayed/);
  const replay = [
    '--remote',
    `replay:${wire}`,
    '--engine',
    'stop',
    '-n',
    '300',
    ...probes,
    '-o',
    trace('again.json'),
    elf,
  ];
  const again = await rsptrace(...replay).ended;
  t.equal(again.status, 0, again.stderr);
  // What the guest printed did not pass over the wire.
  const events = (name: string): string[] =>
    readFileSync(trace(name), 'utf8')
      .split('\n')
      .filter((line) => !line.includes('"cat":"console"'));
  t.strictSame(events('again.json'), events('run.json'));

  for (const command of ['bt', 'tasks']) {
    const qemu = frozenGuest(t, 'rv-o2');
    const live = await rsptrace(command, '--remote', qemu.socket, '--record-wire', wire, '--force', '--json', elf)
      .ended;
    t.equal(live.status, 0, live.stderr);
    const replayed = await rsptrace(command, '--remote', `replay:${wire}`, '--json', elf).ended;
    t.equal(replayed.status, 0, replayed.stderr);
    // How long the target stood is no fact of the wire.
    const lasting = ({ stdout }: Ran): string => stdout.replace(/"stoodMs":\d+,/, '');
    t.equal(lasting(replayed), lasting(live));
  }
});

t.test('a file that cannot be written costs nothing', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2');
  const wire = join(scratchFolder(t), 'no/such/wire.jsonl');
  const ran = await rsptrace('bt', '--remote', qemu.socket, '--record-wire', wire, elfPath('rv-o2')).ended;
  t.equal(ran.status, 1);
  t.match(ran.stderr, '[OUTPUT_CANNOT_WRITE]');
});

t.test('a breakpoint where a call returns is in only while a call is open', async (t) => {
  const folder = scratchFolder(t);
  const wire = join(folder, 'wire.jsonl');
  const elf = elfPath('rv-o2');
  const given = ['-p', 'fn:labkern::work::deep1', '-n', '400', '--engine', 'stop', '--record-wire', wire];
  const qemu = frozenGuest(t, 'rv-o2');
  const ran = await rsptrace('--remote', qemu.socket, ...given, '-o', join(folder, 'out.json'), elf).ended;
  t.equal(ran.status, 0, ran.stderr);
  const [symbol = ''] = execFileSync('riscv64-linux-gnu-nm', ['-C', elf], { encoding: 'latin1' })
    .split('\n')
    .filter((line) => line.endsWith(' deep1'));
  const entry = Number.parseInt(symbol, 16);
  const inserted = new Set<number>();
  const seen = { resumes: 0, waiting: 0, open: 0, most: 0 };
  for (const line of readFileSync(wire, 'latin1').split('\n').slice(1, -1)) {
    const { to, text = '' } = JSON.parse(line) as { to?: string; text?: string };
    for (const [, packet = ''] of text.matchAll(/\$([^#]*)#/g)) {
      const [, way, at = ''] = /^([Zz])0,([0-9a-f]+),/.exec(packet) ?? [];
      if (way === 'Z') inserted.add(Number.parseInt(at, 16));
      if (way === 'z') inserted.delete(Number.parseInt(at, 16));
      // The registers of a stop: x0 to x31, and the pc.
      if (to === 'client' && /^[0-9a-f]{528}/.test(packet)) {
        const pc = Number(Buffer.from(packet.slice(512, 528), 'hex').readBigUInt64LE());
        if (pc === entry) seen.open++;
        else if (inserted.has(pc)) seen.open--;
      }
      if (to !== 'stub' || !packet.startsWith('vCont;c')) continue;
      const waiting = [...inserted].filter((address) => address !== entry).length;
      if (waiting > seen.open) t.fail(`${waiting} places of return for ${seen.open} open calls`);
      seen.resumes++;
      if (waiting > 0) seen.waiting++;
      seen.most = Math.max(seen.most, inserted.size);
    }
  }
  t.ok(seen.waiting > 100 && seen.resumes - seen.waiting > 100, JSON.stringify(seen));
  t.equal(seen.most, 2, 'one probe, one place of return');
});
