// How long `tasks` stops a process that has a large ELF and a large heap, by its own word. Gdbserver is on this machine,
// so memory is read past it.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from './bench-lib.mjs';

const { values } = parseArgs({
  options: {
    heap: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '5' },
    program: { type: 'string' },
  },
});
const elf = values.program ?? built();
const main = resolve(import.meta.dirname, '../dist/cli/main.js');
const program = spawn(elf, [values.heap], { stdio: ['ignore', 'pipe', 'inherit'] });
process.on('exit', () => program.kill('SIGKILL'));
await once(program.stdout, 'data');
console.log(`${elf}: ${(statSync(elf).size / 1e6).toFixed(0)} MB, a heap of ${values.heap} MB`);

const stood = [];
const took = [];
let found;
for (let round = 0; round < Number(values.rounds); round++) {
  const server = spawn('gdbserver', ['--once', '--attach', '127.0.0.1:0', String(program.pid)]);
  const port = await new Promise((done) => {
    let text = '';
    server.stderr.on('data', (bytes) => {
      text += bytes;
      const [, number] = /Listening on port (\d+)/.exec(text) ?? [];
      if (number) done(number);
    });
  });
  const began = performance.now();
  const child = spawn(process.execPath, [main, 'tasks', '--json', '-r', `127.0.0.1:${port}`, elf]);
  let stdout = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.pipe(process.stderr);
  await once(child, 'close');
  found = JSON.parse(stdout);
  stood.push(found.stoodMs);
  took.push(performance.now() - began);
}
const range = (list) =>
  `${median(list).toFixed(0)} ms (${Math.min(...list).toFixed(0)} to ${Math.max(...list).toFixed(0)})`;
console.log(
  `stood ${range(stood)}, all in all ${range(took)}; ${found.tasks.length} tasks, ${(found.searched / 2 ** 20).toFixed(0)} MiB searched  [load ${loadavg()[0].toFixed(1)}]`,
);
process.exit();

/** The program `large` of scripts/coverage. */
function built() {
  const source = resolve(import.meta.dirname, 'coverage');
  const target = resolve(import.meta.dirname, '../.cache/coverage');
  const words = ['build', '--bin', 'large', '--manifest-path', join(source, 'Cargo.toml'), '--target-dir', target];
  execFileSync('cargo', words, { stdio: 'inherit' });
  return join(target, 'debug/large');
}
