// What cargo starts: `cargo rsptrace`, and the runner of `cargo run` and `cargo test`.
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { verifyRuntime } from '../../src/base/runtime.js';
import { main, scratchFolder, start } from '../support/command.js';
import { compileC } from '../support/native.js';

const program = compileC(
  t,
  '#include <stdlib.h>\nint main(int n, char **words) { return n > 1 ? atoi(words[1]) : 0; }',
);

/** As cargo starts its runner. */
const runner = (...words: readonly string[]) =>
  start('/usr/bin/env', ['CARGO_MANIFEST_DIR=/x', process.execPath, main, 'run', ...words]).ended;

t.test('cargo rsptrace is rsptrace', async (t) => {
  const name = join(scratchFolder(t), 'cargo-rsptrace');
  symlinkSync(main, name);
  const { stdout } = await start(name, ['rsptrace', '--version']).ended;
  t.match(stdout, /^\d+\.\d+\.\d+\n$/);
});

t.test(
  'a program that has nothing of what is probed runs under cargo, and its status is that of a recording',
  async (t) => {
    const { status, stderr } = await runner('--', program);
    t.equal(status, 0);
    t.match(stderr, `${program} runs without a trace: the program has no Future that DWARF describes`);
    t.equal((await runner('-p', 'fn:nothing::*', '--', program, '3')).status, 5);
    t.equal((await runner('--guest-status', '--', program, '3')).status, 3);
  },
);

t.test('where it is held to something, and without cargo, it is refused', async (t) => {
  const limited = await runner('--time-limit', '20s', '--', program);
  t.match(limited, { status: 1, stderr: /FUTURES_NONE/ });
  const alone = await start('/usr/bin/env', [
    '-u',
    'CARGO_MANIFEST_DIR',
    'CARGO=cargo',
    process.execPath,
    main,
    'run',
    '--',
    program,
  ]).ended;
  t.match(alone, { status: 1, stderr: /FUTURES_NONE/ });
});

t.test('another runtime of JavaScript is refused in a line', (t) => {
  t.throws(() => verifyRuntime({ node: '24.3.0', bun: '1.4.5' }), {
    code: 'NODE_NEEDED',
    message: /this is Bun 1\.4\.5/,
  });
  t.throws(() => verifyRuntime({ node: '24.3.0', deno: '2.9.6' }), { code: 'NODE_NEEDED' });
  t.doesNotThrow(() => verifyRuntime({ node: '24.3.0' }));
  t.end();
});
