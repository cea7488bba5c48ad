// Kernels that their loader puts elsewhere than they are linked: here OpenSBI, which starts one at 0x80200000.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenQemu, rsptrace, scratchFolder } from '../support/command.js';
import type { Recording } from '../support/recording.js';
import { movedKernel } from '../support/tiny-kernels.js';
import { elfPath } from './guests/guests.js';

/** What OpenSBI of QEMU's `virt` starts, by its own banner. */
const bias = '0x80200000';
const calls = 300;

function record(t: Test, ...words: string[]) {
  const [first = '', ...others] = words;
  const options = ['--json', '-o', join(scratchFolder(t), 'out.txt')];
  return rsptrace(...(first === 'run' ? [first, ...options] : [...options, first]), ...others).ended;
}

t.test('run: a first boot shows where', async (t) => {
  const { elf, command } = movedKernel(t, calls);
  const { stdout, stderr, status } = await record(t, 'run', '-p', 'fn:work', elf, '--', ...command);
  t.equal(status, 0, stderr);
  t.match(stderr, `the loader moves kernel.elf by ${bias}; --load-bias ${bias} spares it`);
  const output = JSON.parse(stdout) as Recording;
  t.match(output.functions, [{ function: 'work', calls }]);
  t.same([output.gaps, output.load_bias], [[], bias]);
  t.match(stderr, new RegExp(`0*${calls}\\r?\\n`), "the kernel's own count");
});

t.test('run --load-bias: no first boot, no stops', async (t) => {
  const { elf, command } = movedKernel(t, calls);
  const words = ['run', '-p', 'fn:work', '--load-bias', bias, elf, '--', ...command];
  const { stdout, stderr } = await record(t, ...words);
  t.notMatch(stderr, 'first boot');
  const output = JSON.parse(stdout) as Recording;
  t.match(output.functions, [{ function: 'work', calls }]);
  t.ok(output.stops < 10, `${output.stops} stops`);
});

t.test('a wrong distance is an error, and so is one for a program that no loader moves', async (t) => {
  const { elf, command } = movedKernel(t, calls);
  const wrong = await record(t, 'run', '-p', 'fn:work', '--load-bias', '0x80201000', elf, '--', ...command);
  t.match(JSON.parse(wrong.stdout), { events: 0, never_seen: true });
  t.match(
    wrong.stderr,
    /no probe was hit: is it the ELF that runs there, loaded 0x80201000 above its own addresses\? A loader may/,
  );
  const odd = await record(t, 'run', '-p', 'fn:work', '--load-bias', '0x80200800', elf, '--', ...command);
  t.match(odd.stderr, /--load-bias takes a distance in whole pages, in hexadecimal: .*, not '0x80200800' \[USAGE\]/);
  const fixed = await rsptrace('futures', '--load-bias', bias, elfPath('rv-o2')).ended;
  t.match(fixed.stderr, /linked to fixed addresses, so no loader moves it \[ELF_NOT_MOVABLE\]/);
});

t.test('bad input is told before anything boots', async (t) => {
  const { elf, command } = movedKernel(t, calls);
  const none = await record(t, 'run', '-p', 'fn:nothing', elf, '--', ...command);
  t.match(none.stderr, /\[PROBE_NO_MATCH\]/);
  t.notMatch(none.stderr, 'first boot');
  const other = await record(t, 'run', '-p', 'fn:work', elf, '--', 'qemu-system-x86_64', '-nographic');
  t.match(other.stderr, /qemu-system-x86_64 emulates x86_64 \[ARCH_MISMATCH\]/);
});

t.test('attached at its reset: nothing is missed where its RAM can be read', async (t) => {
  const { elf, command } = movedKernel(t, calls);
  const qemu = frozenQemu(t, command);
  const { stdout, stderr } = await record(t, '--remote', qemu.socket, '-p', 'fn:work', elf);
  const output = JSON.parse(stdout) as Recording;
  t.match(output.functions, [{ function: 'work', calls }], stderr);
  t.same(output.gaps, []);
});

t.test('else what came before it was found is told', async (t) => {
  // The longest time between two looks is 0.5 s.
  const { elf, command } = movedKernel(t, calls, 20_000_000);
  const qemu = frozenQemu(t, command);
  // A recorded wire has nothing past it.
  const wire = join(scratchFolder(t), 'wire.jsonl');
  const { stdout, stderr } = await record(t, '--remote', qemu.socket, '-p', 'fn:work', '--record-wire', wire, elf);
  const output = JSON.parse(stdout) as Recording;
  t.match(output.functions, [{ function: 'work', calls }], stderr);
  t.match(output.gaps, [
    { why: new RegExp(`was seen up to \\d+ ms after it began; --load-bias ${bias} records that`) },
  ]);
});
