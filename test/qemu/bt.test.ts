// `rsptrace bt` at guests that run, stand at a breakpoint, or were never started. Of x86_64 the first alone without `--long`.
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { connect } from '../../src/rsp/index.js';
import { connections, frozenGuest, rsptrace } from '../support/command.js';
import { long } from '../support/long.js';
import { stopAt } from '../support/stop-at.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

interface Output {
  readonly version: number;
  readonly harts: readonly {
    readonly id: string;
    readonly pc: string;
    readonly frames: readonly {
      readonly level: number;
      readonly pc: string;
      readonly function: string | null;
      readonly file: string | null;
      readonly line: number | null;
      readonly inlined: boolean;
      readonly interrupted: boolean;
      readonly unwinder: string | null;
      readonly confidence: string;
    }[];
    readonly end: { readonly reason: string; readonly complete: boolean };
  }[];
}

const chain = ['deep7', 'deep6', 'deep5', 'deep4', 'deep3', 'deep2', 'deep1', 'deep0'].map(
  (f) => `labkern::work::${f}`,
);
const outermost = { 'rv-o2': '_start2', 'x86-o2': 'start64' } as const;

for (const name of ['rv-o2', 'x86-o2'] as const) {
  t.test(`${name}: the stack at a breakpoint, by each unwinder; the guest then goes on to its end`, async (t) => {
    const qemu = frozenGuest(t, name);
    await stopAt(qemu.socket, name, 'deep7');
    const output = await rsptrace('bt', '-r', qemu.socket, '--json', elfPath(name)).json<Output>();
    t.equal(output.version, 1);
    const [hart] = output.harts;
    t.equal(output.harts.length, 1);
    const frames = hart?.frames ?? [];
    t.equal(hart?.pc, frames[0]?.pc);
    t.same(hart?.end, { reason: 'own-stack', complete: true });
    const real = frames.filter(({ inlined }) => !inlined);
    t.same(
      real.slice(0, 8).map((frame) => frame.function),
      chain,
    );
    t.equal(real[8]?.function, 'labkern::work::leaf_io::{async_fn#0}');
    t.same(
      real.slice(-4).map((frame) => frame.function),
      ['labkern::exec::poll_task', 'labkern::exec::run', 'labkern::rust_main', outermost[name]],
    );
    t.same(
      frames.filter(({ level }) => level === 0).map((frame) => [frame.function, frame.inlined]),
      [
        ['core::sync::atomic::atomic_add', true],
        ['core::sync::atomic::Atomic::fetch_add', true],
        ['labkern::stats::poll_hit', true],
        ['labkern::work::deep7', false],
      ],
    );
    t.match(real[1], {
      file: '/labkern/src/work.rs',
      line: 23,
      unwinder: 'cfi',
      confidence: 'sure',
      interrupted: false,
    });
    const end = await qemu.ended;
    t.equal(parseLab(end.stdout).checksum, guest(name).checksum);
    t.equal(end.status, guest(name).exit);
  });

  if (name === 'x86-o2' && !long) continue;
  t.test(`${name}: --unwinder, --depth and the text`, async (t) => {
    const qemu = frozenGuest(t, name);
    await stopAt(qemu.socket, name, 'deep7');
    const args = ['--unwinder', 'prologue', '--depth', '3'];
    const { status, stdout, stderr } = await rsptrace('bt', '-r', qemu.socket, ...args, elfPath(name)).ended;
    t.equal(status, 0, stderr);
    t.match(stdout, /^hart \S+ .*\n {2}#0 +0x[0-9a-f]+ core::sync::atomic::atomic_add at \S+:\d+ {2}\[inlined\]\n/);
    t.match(stdout, / {2}#2 +0x[0-9a-f]+ labkern::work::deep5 at \/labkern\/src\/work.rs:23 {2}\[prologue\]\n/);
    t.match(stdout, /the stack ends early: as many frames as were asked for \(--depth\)\n$/);
  });

  t.test(`${name}: a guest that runs is stopped, shown and let go on`, async (t) => {
    const lasting = `${name}-long`;
    const qemu = frozenGuest(t, lasting);
    const starter = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    await starter.detach();
    await qemu.shows('LAB cfg');
    // It must not end before the command has come.
    qemu.process.kill('SIGSTOP');
    const command = rsptrace('bt', '-r', qemu.socket, '--json', elfPath(lasting));
    while (connections(qemu.socket) === 0 && !command.over()) await sleep(20);
    qemu.process.kill('SIGCONT');
    const { status, stdout, stderr } = await command.ended;
    t.equal(status, 0, stderr);
    const [hart] = (JSON.parse(stdout) as Output).harts;
    // The moment is any: the guest's own code, or the firmware below it, in supervisor or in machine mode.
    const reason = hart?.end.reason;
    t.ok(reason === 'firmware' || (hart !== undefined && hart.frames.length > 0));
    t.ok(hart?.end.complete || reason === 'outside-code' || reason === 'firmware', `ended by ${reason}`);
    const end = await qemu.ended;
    t.equal(parseLab(end.stdout).checksum, guest(lasting).checksum, 'with the checksum of an undisturbed run');
  });
}

t.test('a guest that was never started stays so; each hart has its stack', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2', ['-smp', '2']);
  const { harts } = await rsptrace('bt', '-r', qemu.socket, '--json', elfPath('rv-o2')).json<Output>();
  t.equal(harts.length, 2);
  for (const hart of harts) t.match(hart, { pc: '0x1000', end: { reason: 'outside-code', complete: false } });
  await using session = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
  t.match(await session.monitor('info status'), /prelaunch/);
  session.close();
});

t.test('another architecture, or no such option', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2');
  const other = await rsptrace('bt', '-r', qemu.socket, elfPath('x86-o2')).ended;
  t.equal(other.status, 1);
  t.match(other.stderr, /ARCH_MISMATCH/);
  const wrong = await rsptrace('bt', '-r', qemu.socket, '--unwinder', 'gdb', elfPath('rv-o2')).ended;
  t.equal(wrong.status, 2);
});
