// Each command of docs/gallery.md is typed again, in the order of the page, and prints what the page says.
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { blocksOf, holds } from '../support/typed-again.js';
import { elfPath } from './guests/guests.js';

const page = 'docs/gallery.md';
const elves: Readonly<Record<string, string>> = { 'faulty.elf': 'rv-faulty', 'programs.elf': 'rv-spaces' };

t.test('each command', async (t) => {
  const folder = scratchFolder(t);
  const lines = blocksOf(page).flatMap((block) =>
    [...block.matchAll(/^\$ (rsptrace .*)$/gm)].map(([, line = '']) => line),
  );
  // What asks a process is typed by the test of the tutorial, whose program it is.
  const commands = lines.filter((line) => !line.includes('$(pgrep'));
  t.ok(commands.length >= 10, `${commands.length} commands`);
  for (const command of commands) {
    const name = /\b\w+\.elf\b/.exec(command)?.[0];
    const elf = elfPath(elves[name ?? 'faulty.elf'] as string);
    const qemu = `qemu-system-riscv64 -M virt -nographic -icount shift=0 -kernel ${elf}`;
    const words = command
      .replace(/\bQEMU\b/, qemu)
      .replace(/\bFAULT=(\d)/, '-device loader,addr=0x86000000,data=$1,data-len=4')
      .split(' ')
      .slice(1)
      .map((word) => word.replaceAll("'", ''))
      .map((word) => (word === name ? elf : /\.pftrace$/.test(word) ? join(folder, word) : word));
    const { stdout, stderr, status } = await rsptrace(...words).ended;
    t.equal(status, /FAULT=3/.test(command) ? 5 : 0, stderr);
    holds(t, [page], command, stdout, true);
  }
});
