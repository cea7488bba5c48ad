// Several harts under -icount, which QEMU runs one after another: said with what makes it faster.
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { long } from '../support/long.js';
import { elfPath } from './guests/guests.js';

t.test('long turns are said', { timeout: 120_000 }, async (t) => {
  const elf = elfPath('rv-procs');
  const recorded = async (shift: string, harts: string, ...options: string[]) => {
    const out = join(scratchFolder(t), 'out.json');
    const machine = ['-M', 'virt', '-nographic', '-smp', harts, '-icount', `shift=${shift}`, '-kernel', elf];
    const args = [
      'run',
      '--json',
      '-o',
      out,
      '--max-events',
      '1',
      ...options,
      elf,
      '--',
      'qemu-system-riscv64',
      ...machine,
    ];
    const { status, stdout, stderr } = await rsptrace(...args).ended;
    t.equal(status, 0, stderr.slice(-300));
    const { harts_in_turn: inTurn } = JSON.parse(stdout) as { readonly harts_in_turn: boolean };
    t.equal(/runs one hart at a time/.test(stderr), inTurn, 'said if it is so');
    return inTurn;
  };
  t.equal(await recorded('0', '2', '-p', 'fault:**'), true);
  t.equal(await recorded('10', '2', '-p', 'fault:**'), false, 'turns of few instructions');
  if (!long) return;
  t.equal(await recorded('0', '1', '-p', 'fault:**'), false, 'one hart');
  t.equal(await recorded('0', '2', '-p', 'fn:account'), true, 'no probe stops it, and its begin does');
});
