// Futures whose output has no values: the debug info gives their poll functions no result. The program counts the polls.

import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { pollsPrinted, pollsProgram } from '../support/native.js';

interface Row {
  readonly future: string;
  readonly polls: number;
  readonly ready: number;
  readonly pending: number;
  readonly at_least: boolean;
}

for (const name of ['never-o0', 'never-o2'] as const)
  t.test(`${name}: each poll, and each is pending`, async (t) => {
    const program = pollsProgram(t, name);
    const trace = join(scratchFolder(t), 'out.pftrace');
    const { status, stdout, stderr } = await rsptrace('run', '--json', '-o', trace, program).ended;
    t.equal(status, 0, stderr);
    const [, json = ''] = /^(\{.*\})$/m.exec(stdout) ?? [];
    const { futures } = JSON.parse(json) as { futures: readonly Row[] };
    const counted = pollsPrinted((await start(program, []).ended).stdout);
    for (const [future, by] of [
      [/^never::main::\{async_block#\d+\}$/, 'forever'],
      [/^never::Endless$/, 'endless'],
    ] as const) {
      const polls = counted.get(by);
      t.match(
        futures.find((row) => future.test(row.future)),
        { polls, ready: 0, pending: polls, at_least: false },
        `${future}: ${polls}`,
      );
    }
  });
