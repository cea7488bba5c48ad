// A hart that spins while nothing comes: the line of an idle recording names where, and what stops it for nothing.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { briefKernel } from '../support/tiny-kernels.js';

interface Quiet {
  readonly foreign_hits: number;
  readonly harts: readonly {
    readonly number: number;
    readonly state: string;
    readonly own?: { readonly function: string; readonly file: string; readonly line: number };
  }[];
}

/** The first signal ends the recording, the second one the guest. A busy host may be quiet before the `sign`, too. */
async function endedWhenQuiet(tracer: ReturnType<typeof rsptrace>, sign: string) {
  for (const each of [sign, 'the guest runs on']) {
    await Promise.race([tracer.shows(each), tracer.ended]);
    tracer.signal('SIGINT');
  }
  return tracer.ended;
}

for (const [arch, engine] of [
  ['riscv64', 'auto'],
  ['x86_64', 'stop'],
] as const) {
  t.test(`${arch}, --engine ${engine}: a hart that spins`, async (t) => {
    // `long` waits for seconds, whatever a tick is.
    const { elf, command } = briefKernel(t, arch, { calls: 1000, wait: 2 ** 31 - 1 });
    const words = ['run', '--json', '--engine', engine, '-p', 'fn:brief', '--stalled', '500ms'];
    const tracer = rsptrace(...words, '-o', join(scratchFolder(t), 'spins.pftrace'), elf, '--', ...command);
    const { status, stdout, stderr } = await endedWhenQuiet(tracer, 'hart 0 runs in long');
    t.equal(status, 0, stderr);
    t.match(stderr, /no event for \S+ s: hart 0 runs in long \(\S*brief-\w+\.s:\d+\)/);

    const { quiet } = JSON.parse(stdout) as { readonly quiet: readonly Quiet[] };
    const { harts } = quiet.at(-1) ?? { harts: [] };
    t.match(harts, [{ number: 0, state: 'runs', own: { function: 'long' } }]);
    // Its line is one of the loop's.
    const { file = '', line = 0 } = harts[0]?.own ?? {};
    const source = readFileSync(file, 'utf8').split('\n');
    const begin = source.findIndex((text) => /\bfunction long$/.test(text));
    const end = source.findIndex((text) => /\.size long/.test(text));
    t.ok(line > begin && line <= end, `${file}:${line} is between ${begin} and ${end}`);
  });
}

t.test('a further program has a probe where the kernel loops', async (t) => {
  const { elf, command } = briefKernel(t, 'riscv64', { calls: 1000, wait: 2 ** 31 - 1 });
  const code = execFileSync('riscv64-linux-gnu-objdump', ['-d', '--disassemble=long', elf], { encoding: 'utf8' });
  // The loop jumps back to its begin.
  const loop = /bltu\s+t1,t0,(?:0x)?([0-9a-f]+)/.exec(code)?.[1] ?? '';
  const folder = scratchFolder(t);
  const [source, object, shell] = [join(folder, 's'), join(folder, 'o'), join(folder, 'shell.elf')];
  writeFileSync(
    source,
    '.globl parse\n.type parse, @function\nparse: li a0, 1\nli a1, 2\nli a2, 3\nret\n.size parse, . - parse\n.globl _start\n_start: j _start\n',
  );
  execFileSync('riscv64-linux-gnu-as', ['-g', '-o', object, source]);
  execFileSync('riscv64-linux-gnu-ld', [`-Ttext=0x${loop}`, '-o', shell, object]);
  const words = ['--engine', 'stop', '-p', 'fn:brief', '-p', 'fn:shell/parse', '--elf', shell, '--stalled', '500ms'];
  const tracer = rsptrace('run', '--json', ...words, '-o', join(folder, 'o.pftrace'), elf, '--', ...command);
  const { status, stdout, stderr } = await endedWhenQuiet(tracer, 'other code came to the places of probes');
  t.equal(status, 0, stderr);
  const [, all, most] =
    /other code came to the places of probes (\d+) times, each a stop: (\d+) times to/.exec(stderr) ?? [];
  t.ok(Number(all) > 0, stderr);
  t.equal(most, all, 'at one place');
  t.match(stderr, `to 0x${loop}, that of shell::parse: leave that probe out`);
  const { quiet, ...output } = JSON.parse(stdout);
  t.equal((quiet as readonly Quiet[]).at(-1)?.foreign_hits, Number(all));
  t.match(output.foreign_most, { address: `0x${loop}`, probes: ['shell::parse'] });
  t.ok(output.foreign_hits >= Number(all));
});
