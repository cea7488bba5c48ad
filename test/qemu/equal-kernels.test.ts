// Kernels print what they print untraced: the project's with a probe at each function, and Debian's Linux, with a shell script as load, with probes
// at what copies from and to user memory, whose instructions its table of exceptions knows.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ElfFile } from '../../src/elf/index.js';
import { rsptraceWithin, scratchFolder } from '../support/command.js';
import { plainRun } from '../support/hidden.js';
import { linuxGuest } from '../support/linux/boot.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, guests, qemuArgv, TIMING_DEPENDENT } from './guests/guests.js';

async function traced(t: Test, elf: string, probes: readonly string[], command: readonly string[]) {
  const [trace, kept] = ['out.txt', 'console'].map((name) => join(scratchFolder(t), name)) as [string, string];
  const options = ['--json', '-o', trace, '--console', kept, ...probes.flatMap((probe) => ['-p', probe])];
  const output = await rsptraceWithin(300_000, 'run', ...options, elf, '--', ...command).json<Recording>();
  t.equal(output.missing, 0);
  return { output, console: readFileSync(kept, 'latin1') };
}

/** What the guest printed: the firmware's last words, in front of its first, are as many dots as there was time for. */
const linesOf = (console: string): string[] => console.replace(/^Booting from ROM\.*/m, '').split(/\r?\n/);

/** What counts ticks, or depends on when they come: two boots may have the same by chance. */
const timed = new RegExp(['LAB exec', ...TIMING_DEPENDENT].join('|'));

// Those that power their machine off, and do little that depends on ticks: with those of others two boots agree by chance.
const ending = guests().filter(({ name }) => /^(rvm?|x86|arm)-o\d/.test(name) && !name.includes('long'));
for (const { name } of usually(ending, ({ name: one }) => one === 'x86-o2')) {
  t.test(`${name}: what it always prints`, async (t) => {
    const boots = [await plainRun(t, qemuArgv(name), 60_000), await plainRun(t, qemuArgv(name), 60_000)];
    const [first = [], second = []] = boots.map(linesOf);
    const always = first.filter((line) => second.includes(line) && !timed.test(line));
    const { console } = await traced(t, elfPath(name), ['fn:**'], qemuArgv(name));
    const lines = linesOf(console);
    t.strictSame(
      always.filter((line) => !lines.includes(line)),
      [],
    );
    t.ok(always.length > 3, `${always.length} lines`);
  });
}

/** What Linux copies from and to user memory with, and more that knows an instruction by its address. */
const copies =
  /^(_?_?copy_(from|to)_(user|iter)\w*|__(get|put)_user_(nocheck_)?[1248]|str(ncpy_from|nlen)_user|__asm_copy_(from|to)_user|copy_user_\w+_(string|unrolled)|_*clear_user\w*|fault_in_\w*able|copy_from_kernel_nofault|vfs_write|do_exit)$/;

for (const [arch, ...words] of usually([['x86_64', 'nokaslr'], ['riscv64']] as const, () => false)) {
  t.test(`Linux for ${arch} with a shell script`, async (t) => {
    const guest = linuxGuest(t, arch, 1, 'script');
    const { symbols } = await ElfFile.open(guest.elf);
    const places = new Map([...symbols].flatMap(({ name, address }) => (copies.test(name) ? [[name, address]] : [])));
    t.ok(places.size > 15, `${places.size} functions`);
    const script = (text: string): string => /BEGIN\r\n.*END\r\n/s.exec(text)?.[0] ?? text;
    const probes = [...places.keys()].map((name) => `fn:${name}`);
    const command = [...guest.command(...words), ...guest.counting([...places.values()])];
    const { output, console } = await traced(t, guest.elf, probes, command);
    t.equal(script(console), script(await plainRun(t, guest.command(...words))));
    t.notMatch(console, /\bOops|\bBUG:|Call Trace|Kernel panic/);
    const calls = new Map(output.functions.map((row) => [row.function, row.calls]));
    const counted = guest.counts();
    let compared = 0;
    for (const { function: name, address, engine } of output.probes) {
      const count = counted.get(BigInt(address))?.reduce((sum, one) => sum + one, 0);
      // Called in the gap that is said.
      if (engine !== 'target' || name === 'copy_from_kernel_nofault') continue;
      t.equal(calls.get(name) ?? 0, count, `${name}: as often as QEMU has carried it out`);
      if (count) compared++;
    }
    t.ok(compared > 3, `${compared} of them were called`);
  });
}
