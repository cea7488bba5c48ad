// A kernel and two programs linked at the same addresses, in address spaces of their own: a hit counts only where the program's own code runs, and
// what is not recorded goes on as if it were not traced. The witness is what the guest counts and computes.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { architectureNamed, riscv64, x86_64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { long, variant } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, guest, qemuArgv } from './guests/guests.js';

interface Wanted {
  readonly kernel: string;
  /** What is traced: the kernel itself, or one of its programs. */
  readonly program: 'kernel' | 'alpha' | 'beta';
  readonly functions: readonly string[];
  readonly engine?: string;
  readonly harts?: number;
}

const programs = {
  alpha: ['main', 'work', 'mix', 'twin', 'descend'],
  beta: ['main', 'brew', 'stir', 'twin', 'simmer'],
};
const own = ['account', 'dispatch', 'pick', 'map_page'];

function elfOf({ kernel, program }: Wanted): string {
  return elfPath(program === 'kernel' ? kernel : `${kernel}-${program}`);
}

async function traced(t: Test, wanted: Wanted) {
  const { kernel, program, functions, engine = 'stop', harts = 1 } = wanted;
  const probes = functions.flatMap((name) => ['-p', `fn:${name}`]);
  const how = { file: 'out.txt', elf: elfOf(wanted), machine: ['-smp', `${harts}`] };
  const { stdout, stderr, lab, trace } = await runLab(t, kernel, ['--json', '--engine', engine, ...probes], how);
  const output = JSON.parse(stdout) as Recording;
  const name = (path: string): string => path.split('::').at(-1) ?? path;
  t.strictSame(
    new Map(output.functions.map((row) => [name(row.function), row.calls])),
    new Map(
      output.functions.map((row) => [name(row.function), lab.stats.get(`${program}:${name(row.function)}`)?.calls]),
    ),
    "the guest's own counts",
  );
  t.equal(output.functions.length, functions.length);
  // A program's `main` may end it where it stands.
  for (const row of output.functions) if (name(row.function) !== 'main') t.equal(row.lost, 0, `${row.function}: lost`);
  return { output, stderr, lab, text: readFileSync(trace, 'utf8') };
}

for (const kernel of ['rv-spaces', 'x86-spaces']) {
  const isUsual = kernel === 'rv-spaces' || long;
  if (isUsual)
    t.test(`${kernel}: the kernel, whose addresses its programs have too`, async (t) => {
      const { output, stderr, lab } = await traced(t, { kernel, program: 'kernel', functions: own });
      // At three of these addresses, of `account` among them, each program has a function too.
      const calls = (...names: string[]) => names.reduce((sum, each) => sum + (lab.stats.get(each)?.calls ?? 0), 0);
      const first = calls('alpha:work', 'beta:brew');
      t.equal(output.foreign_hits, first + calls('alpha:mix', 'beta:stir', 'alpha:twin', 'beta:twin'));
      t.match(output.foreign_most, { hits: first, probes: ['labspaces::account'] });
      t.match(stderr, new RegExp(`came to its probes' addresses ${output.foreign_hits} times`));
    });

  t.test(`${kernel}: the kernel, without stops`, async (t) => {
    const { output } = await traced(t, { kernel, program: 'kernel', functions: own, engine: 'target' });
    t.strictSame(new Set(output.probes.map(({ engine }) => engine)), new Set(['target']));
  });

  // In user mode neither has trampolines, and stops are alike.
  if (isUsual)
    t.test(`${kernel}: a program that runs in two processes at once`, async (t) => {
      const { output, text } = await traced(t, { kernel, program: 'alpha', functions: programs.alpha, engine: 'auto' });
      for (const { engine, why } of output.probes) {
        t.equal(engine, 'stop');
        t.match(why, /runs in user mode, in a kernel that is not the program/);
      }
      const spaces = new Set([...text.matchAll(/is on stack 0x\w+ of space (0x\w+)/g)].map(([, root]) => root));
      t.equal(spaces.size, 2, 'each process on a track of its own');
    });

  t.test(`${kernel}: a hart that runs a program is not taken to run the kernel`, (t) => inUserMode(t, kernel));
}

t.test('rv-spaces: a program has no trampolines', async (t) => {
  const args = ['--json', '--engine', 'target', '-p', 'fn:work', '-o', join(scratchFolder(t), 'out.txt')];
  const { status, stdout } = await rsptrace('run', ...args, elfPath('rv-spaces-alpha'), '--', ...qemuArgv('rv-spaces'))
    .ended;
  t.not(status, 0);
  t.match(JSON.parse(stdout), { error: { code: 'ENGINE_UNAVAILABLE', message: /in user mode, in a kernel/ } });
});

for (const [kernel, harts] of Object.entries({ 'rv-spaces': 3, 'x86-spaces': 2 }))
  variant(t, `${kernel}: ${harts} harts run the processes`, async (t) => {
    const { output } = await traced(t, { kernel, program: 'alpha', functions: ['twin'], harts });
    t.ok(output.foreign_hits > 0);
  });

/** Stops in a program, at an address where the kernel has a function too. */
async function inUserMode(t: Test, kernel: string): Promise<void> {
  const { socket } = frozenGuest(t, kernel);
  const remote = `unix:${socket}`;
  const { arch: name } = guest(kernel);
  const { privilege } = name === 'riscv64' ? riscv64 : x86_64;
  const session = await connect(remote, { waitMs: 5000 });
  const arch = architectureNamed(session.target.architecture ?? '');
  const at = {
    type: 1,
    address: addr(name === 'riscv64' ? 0x80201200n : 0x201200n),
    kind: name === 'riscv64' ? 2 : 1,
  } as const;
  await session.insertBreakpoint(at);
  for (let tries = 0; tries < 100; tries++) {
    await session.resume();
    const batch = session.batch();
    const registers = batch.readRegisters(privilege.registers.filter((one) => session.target.register(one)));
    await batch.send();
    if (privilege.standing(registers.value).privilege === 'user') break;
    await session.stepOver('p01.01', [at]);
  }
  t.ok(arch);
  await session.removeBreakpoint(at);
  session.close();
  const bt = async (elf: string): Promise<{ status: number | null; stdout: string }> =>
    rsptrace('bt', '--json', '--remote', remote, elfPath(elf)).ended;
  const stopped = JSON.parse((await bt(kernel)).stdout);
  t.match(stopped.harts, [{ other_code: true, privilege: 'user', frames: [], end: { reason: 'other-code' } }]);
}
