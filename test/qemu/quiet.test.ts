// A hart that spins while nothing comes: the line of an idle recording names where.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { briefKernel } from '../support/tiny-kernels.js';

interface Quiet {
  readonly harts: readonly {
    readonly number: number;
    readonly state: string;
    readonly own?: { readonly function: string; readonly file: string; readonly line: number };
  }[];
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
    await Promise.race([tracer.shows('no event for'), tracer.ended]);
    tracer.signal('SIGINT');
    await Promise.race([tracer.shows('the guest runs on'), tracer.ended]);
    tracer.signal('SIGINT');
    const { status, stdout, stderr } = await tracer.ended;
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
