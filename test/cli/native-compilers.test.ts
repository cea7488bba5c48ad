// Programs of compilers of several years: how rustc describes the poll functions of `async fn` has changed. They count their polls.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { pollsPrinted, pollsProgram } from '../support/native.js';
import type { Recording } from '../support/recording.js';

const names = {
  unit: /^compilers::unit$/,
  byte: /^compilers::byte$/,
  word: /^compilers::word$/,
  pair: /^compilers::pair$/,
  float: /^compilers::float$/,
  choice: /^compilers::choice$/,
  // Two instances of a method.
  copies: /^compilers::.*::copies$/,
  block: /^compilers::main::\{async_block#0\}::\{async_block#0\}$/,
  all: /^compilers::main::\{async_block#0\}$/,
};

async function recorded(t: Test, program: string, probe: string): Promise<Recording> {
  const trace = join(scratchFolder(t), `${probe.length}.pftrace`);
  const ran = await rsptrace('run', '--json', '-p', probe, '-o', trace, program).ended;
  t.equal(ran.status, 0, ran.stderr);
  t.equal(ran.stderr.includes('cannot be used'), false, ran.stderr);
  return JSON.parse(/^(\{.*\})$/m.exec(ran.stdout)?.[1] ?? '');
}

for (const version of ['1.70', '1.90', '1.92'] as const)
  for (const level of [0, 3] as const)
    t.test(
      `rustc ${version}, opt-level ${level}: each poll of an async fn, with its result and its state`,
      async (t) => {
        const program = pollsProgram(t, `compilers-${version}-o${level}`);
        const counted = pollsPrinted((await start(program, []).ended).stdout);
        const { futures } = await recorded(t, program, 'poll:**');
        for (const [name, future] of Object.entries(names)) {
          const rows = futures.filter((row) => future.test(row.future));
          const sum = (of: (row: (typeof rows)[0]) => number): number => rows.reduce((all, row) => all + of(row), 0);
          t.equal(
            sum(({ polls }) => polls),
            counted.get(name),
            name,
          );
          t.equal(sum(({ ready }) => ready) + sum(({ pending }) => pending), counted.get(name), `${name}: results`);
          // Some polls of this one are taken from the Future around it.
          if (name !== 'unit')
            t.notOk(
              rows.some((row) => row.at_least),
              `${name}: exact`,
            );
        }
        // It waits `times` times. Inlined polls have no entry at which that could be asked.
        if (level > 0) return;
        const some = await recorded(t, program, 'poll:compilers::choice if times == 4');
        t.match(some.futures, [{ future: 'compilers::choice', polls: 5, ready: 1, pending: 4 }]);
      },
    );
