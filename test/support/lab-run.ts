// A lab guest under `rsptrace run`, to its end.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { elfPath, guest, parseLab, qemuArgv } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from './command.js';

interface LabRun {
  /** The trace's name, by whose end its format goes. */
  readonly file?: string;
  /** What is traced, if that is not the guest itself. */
  readonly elf?: string;
  /** More of QEMU's arguments. */
  readonly machine?: readonly string[];
}

/** The guest computes what it does untraced, or the test fails. */
export async function runLab(t: Test, name: string, options: readonly string[], how: LabRun = {}) {
  const { file = 'out.pftrace', elf = elfPath(name), machine } = how;
  const folder = scratchFolder(t);
  const [trace, kept] = [join(folder, file), join(folder, 'console.txt')];
  const args = ['run', '-o', trace, '--console', kept, ...options, elf, '--', ...qemuArgv(name, machine)];
  const { status, stdout, stderr } = await rsptrace(...args).ended;
  t.equal(status, 0, `${name}: exit status; stderr: ${stderr.slice(-300)}`);
  const console = readFileSync(kept, 'latin1');
  const lab = parseLab(console);
  t.equal(lab.done, true, 'the guest ran to its end');
  // Some print none.
  t.equal(lab.checksum ?? '', guest(name).checksum, 'and computed what it computes untraced', {
    printed: console.slice(-300),
  });
  return { stdout, stderr, console, lab, trace, folder };
}
