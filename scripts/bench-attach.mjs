// A server that serves while rsptrace attaches to it: what its clients see, and how long it stood. Each engine in its turn, an untraced run before each.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import http from 'node:http';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { folder } from './bench-lib.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '8' },
    server: { type: 'string' },
    engines: { type: 'string', default: 'auto,mixed,stop' },
  },
});
const seconds = Number(values.seconds);
const elf = values.server ?? built();
const main = resolve(import.meta.dirname, '../dist/cli/main.js');
// gdbserver before GDB 14 damages code that uses AVX-512 when it stops.
const environment = { ...process.env, GLIBC_TUNABLES: 'glibc.cpu.hwcaps=-AVX512F,-AVX512VL' };
const server = spawn(elf, [], { stdio: ['ignore', 'pipe', 'inherit'], env: environment });
process.on('exit', () => server.kill('SIGKILL'));
const [host, port] = String((await once(server.stdout, 'data'))[0])
  .trim()
  .split(':');
console.log(
  `${elf}: ${(statSync(elf).size / 1e6).toFixed(0)} MB, ${values.connections} connections, ${seconds} s each`,
);

for (const engine of values.engines.split(',')) {
  const began = performance.now();
  const untraced = await load(() => performance.now() - began > seconds * 500);
  const words = ['attach', String(server.pid), '--json', '--engine', engine, '-d', `${seconds}s`];
  const child = spawn(process.execPath, [main, ...words, '--force', '-o', join(folder, 'attach.pftrace')]);
  let stdout = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  // While it reads the program nothing is to be seen.
  while (child.exitCode === null && !isTraced(server.pid)) await sleep(5);
  const traced = load(() => child.exitCode !== null);
  await once(child, 'close');
  const { standing_ms, longest_standing_ms, events, stops, engines } = JSON.parse(stdout);
  const after = await traced;
  console.log(
    `${engine}: untraced ${untraced.rate.toFixed(0)} requests a second (longest ${untraced.longest.toFixed(0)} ms), traced ${after.rate.toFixed(0)} (longest ${after.longest.toFixed(0)} ms); ` +
      `stood ${standing_ms} ms, at most ${longest_standing_ms} at once; ${events} events, ${stops} stops, ${engines.switched_off} switched off  [load ${loadavg()[0].toFixed(1)}]`,
  );
}
process.exit();

function isTraced(pid) {
  return !/^TracerPid:\s*0$/m.test(execFileSync('cat', [`/proc/${pid}/status`], { encoding: 'utf8' }));
}

/** Requests one after the other over each connection. Of a traced server also while it is left. */
async function load(isOver) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: Number(values.connections) });
  const began = performance.now();
  let [count, longest] = [0, 0];
  const one = () =>
    new Promise((done, fail) => {
      const sent = performance.now();
      http
        .get({ host, port, path: '/hello', agent }, (answer) => {
          answer.resume().on('end', () => {
            count++;
            longest = Math.max(longest, performance.now() - sent);
            done();
          });
        })
        .on('error', fail);
    });
  const client = async () => {
    while (!isOver()) await one();
  };
  await Promise.all(Array.from({ length: Number(values.connections) }, client));
  agent.destroy();
  return { rate: (count / (performance.now() - began)) * 1000, longest };
}

/** scripts/attach, compiled with what cargo fetches. */
function built() {
  const source = resolve(import.meta.dirname, 'attach');
  const target = resolve(import.meta.dirname, '../.cache/attach');
  const manifest = join(source, 'Cargo.toml');
  execFileSync('cargo', ['build', '--manifest-path', manifest, '--target-dir', target], { stdio: 'inherit' });
  return join(target, 'debug/served');
}
