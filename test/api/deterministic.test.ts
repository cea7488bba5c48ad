// The command line of --deterministic, of which QEMU itself says how many harts it makes.
import { spawnSync } from 'node:child_process';
import t from 'tap';
import { deterministicCommand } from '../../src/api/index.js';

t.test('one hart, whatever the command line says of sockets and cores', async (t) => {
  for (const smp of [[], ['-smp', '2'], ['--smp', 'cpus=4,sockets=2,cores=2,maxcpus=4'], ['-smp', '4,cores=4']]) {
    const { command } = deterministicCommand(['qemu-system-riscv64', '-M', 'virt', ...smp, '-bios', 'none']);
    const [program = '', ...args] = command;
    const quiet = ['-S', '-display', 'none', '-serial', 'none', '-monitor', 'stdio'];
    const { stdout } = spawnSync(program, [...args, ...quiet], { input: 'info cpus\nquit\n', encoding: 'utf8' });
    t.equal(stdout.split('CPU #').length - 1, 1, `${smp.join(' ')}: ${stdout.slice(-200)}`);
  }
});
