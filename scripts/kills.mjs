// `scripts/kills`: see there. Every kill ends with a line; the last lines have the sums.
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    first: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const root = resolve(import.meta.dirname, '..');
const main = join(root, 'dist/cli/main.js');
const folder = mkdtempSync(join(tmpdir(), 'kills-'));
// gdbserver before GDB 14 damages code that uses AVX-512 when it stops.
const env = { ...process.env, GLIBC_TUNABLES: 'glibc.cpu.hwcaps=-AVX512F,-AVX512VL' };

/** What must be so within so many milliseconds of a kill. */
const soonMs = 1000;
/** When it is given up. */
const neverMs = 20_000;
/** A target goes on at full speed: so much of the least that it did before, in a time of so many milliseconds. */
const [fullSpeed, speedMs] = [0.6, 150];
const lookMs = 10;

/** The same numbers from 0 to 1 in each run (mulberry32). */
function random(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
const next = random(Number(values.seed));

const ours = new Set();
function start(command, options = {}) {
  const child = spawn(command[0], command.slice(1), { env, stdio: ['ignore', 'pipe', 'pipe'], ...options });
  child.said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (child.said += text));
  ours.add(child);
  child.once('exit', () => ours.delete(child));
  return child;
}
process.on('exit', () => {
  for (const child of ours) child.kill('SIGKILL');
  for (const pid of childrenWith(folder)) kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

function textOf(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
const numbers = (path) => {
  try {
    return readdirSync(path).map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
};
const stateOf = (path) => /\) (\S)/.exec(textOf(path))?.[1] ?? 'X';
const tracerOf = (pid) => Number(/^TracerPid:\s*(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0);
const isThere = (pid) => !/[ZX]/.test(stateOf(`/proc/${pid}/stat`));
const wordsOf = (pid) => textOf(`/proc/${pid}/cmdline`).split('\0');
/** Processes with a text in their command lines, apart from this one. */
function childrenWith(text) {
  return numbers('/proc').filter(
    (pid) => pid !== process.pid && isThere(pid) && wordsOf(pid).some((word) => word.includes(text)),
  );
}

/** How long it took until something is so, in milliseconds; undefined if it never was. */
async function until(isSo, from = performance.now()) {
  while (!(await isSo())) {
    if (performance.now() - from > neverMs) return undefined;
    await sleep(lookMs);
  }
  return performance.now() - from;
}

// ---- programs of this machine ------------------------------------------------------------------------------------

/** Bytes of a process's code that are not its files'. */
function changedCode(pid) {
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  let changed = 0;
  try {
    for (const line of textOf(`/proc/${pid}/maps`).split('\n')) {
      const [, from, to, offset, path] = /^(\w+)-(\w+) r.xp (\w+) \S+ [1-9]\d*\s+(\/.*)$/.exec(line) ?? [];
      if (path === undefined || path.includes('memfd')) continue;
      const size = Number(BigInt(`0x${to}`) - BigInt(`0x${from}`));
      const [now, was] = [Buffer.alloc(size), Buffer.alloc(size)];
      const file = openSync(path, 'r');
      readSync(file, was, 0, size, Number.parseInt(offset, 16));
      closeSync(file);
      readSync(memory, now, 0, size, BigInt(`0x${from}`));
      if (!now.equals(was)) for (let at = 0; at < size; at++) if (now[at] !== was[at]) changed++;
    }
  } finally {
    closeSync(memory);
  }
  return changed;
}

/** Nobody traces it and nothing holds it. */
function isFree(pid) {
  if (tracerOf(pid) !== 0) return false;
  return numbers(`/proc/${pid}/task`).every((thread) => !/[tT]/.test(stateOf(`/proc/${pid}/task/${thread}/stat`)));
}

/** gdbservers that trace a process, or are about to. */
const serversOf = (pid) =>
  numbers('/proc').filter((each) => {
    const words = wordsOf(each);
    return isThere(each) && words.includes('--attach') && words.includes(String(pid));
  });

const http = { request: 'GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n', answer: '\r\n\r\n' };

function compiled() {
  const path = join(folder, 'kills-server');
  execFileSync('gcc', ['-g', '-O2', '-pthread', '-o', path, join(import.meta.dirname, 'kills-server.c')]);
  return path;
}
function served() {
  const target = join(root, '.cache/attach');
  const manifest = join(import.meta.dirname, 'attach/Cargo.toml');
  execFileSync('cargo', ['build', '--manifest-path', manifest, '--target-dir', target], { stdio: 'inherit' });
  return join(target, 'debug/served');
}
const printed = async (child) => {
  await until(() => /127\.0\.0\.1:\d+/.test(child.said));
  return Number(/127\.0\.0\.1:(\d+)/.exec(child.said)?.[1]);
};
/** A port that nobody has just now. */
let port = 20_000 + (process.pid % 20_000);

const servers = {
  c: () => ({ command: [compiled()], probes: ['fn:answer', 'fn:deep', 'fn:leaf'], port: printed, ...http }),
  tokio: () => ({ command: [served()], probes: [], port: printed, ...http }),
  redis: () => {
    const own = ++port;
    const command = [
      '/usr/bin/redis-server',
      '--port',
      String(own),
      '--save',
      '',
      '--io-threads',
      '4',
      '--io-threads-do-reads',
      'yes',
    ];
    const probes = ['fn:processCommand', 'fn:call', 'fn:lookupKey*', 'fn:dict*'];
    return { command, probes, port: async () => own, request: 'SET a 1\r\nGET a\r\n', answer: '$1\r\n1\r\n' };
  },
  nginx: () => {
    const own = ++port;
    const root = mkdtempSync(join(folder, 'nginx-'));
    writeFileSync(join(root, 'hello'), `${'hello\n'.repeat(500)}END`);
    const [pool, text] = ['thread_pool default threads=4;', 'aio threads=default; sendfile off; access_log off;'];
    writeFileSync(
      join(root, 'nginx.conf'),
      `daemon off; master_process off; pid ${root}/pid; error_log ${root}/error; ${pool} events {} http { ${text} keepalive_requests 1000000000; ` +
        `client_body_temp_path ${root}/a; proxy_temp_path ${root}/b; fastcgi_temp_path ${root}/c; uwsgi_temp_path ${root}/d; scgi_temp_path ${root}/e; ` +
        `server { listen 127.0.0.1:${own}; root ${root}; } }`,
    );
    const command = ['/usr/sbin/nginx', '-p', root, '-c', join(root, 'nginx.conf')];
    return {
      command,
      probes: ['fn:ngx_http_*', 'fn:ngx_palloc'],
      port: async () => own,
      request: http.request,
      answer: 'END',
    };
  },
};
const made = {};
const serverOf = (name) => (made[name] ??= servers[name]());

/** Counts a server's answers while it is there. */
async function load(server, child) {
  const counts = new SharedArrayBuffer(8);
  const answers = new BigInt64Array(counts);
  const workerData = {
    port: await server.port(child),
    request: server.request,
    answer: server.answer,
    connections: 8,
    counts,
  };
  const worker = new Worker(join(import.meta.dirname, 'kills-load.mjs'), { workerData });
  return { done: () => Number(Atomics.load(answers, 0)), end: () => worker.terminate() };
}

/** What is done in a second. */
async function speed({ done }, ms) {
  const [from, before] = [performance.now(), done()];
  await sleep(ms);
  return ((done() - before) / (performance.now() - from)) * 1000;
}

/** What is done in a second, in the slowest of some moments: threads that spin for input, as redis', come in turns. */
async function slowest(load) {
  let least = Number.POSITIVE_INFINITY;
  for (let each = 0; each < 6; each++) least = Math.min(least, await speed(load, speedMs));
  return least;
}

const before = values.first ? ['chrt', '-r', '1'] : [];
const rsptrace = (...words) => start([...before, process.execPath, main, ...words]);
const output = (ending) => ['--force', '-o', join(folder, `out.${ending}`)];
const probesOf = ({ probes }) => probes.flatMap((probe) => ['-p', probe]);

/** Waits for a moment of a recording, as random as the seed is: since its begin, or since it has the target. */
async function moment(hasTarget, tracer) {
  const [kind, when] = [next(), next()];
  if (kind < 0.3) return sleep(when * 1500);
  await until(async () => (await hasTarget()) || tracer.exitCode !== null);
  return sleep(when * 900);
}

/** What was seen after a kill: times in milliseconds from it, undefined for never. */
async function afterwards(from, { ended, free, clean, gone, load, before }) {
  let ratio;
  const isFast = async () => {
    ratio = (await speed(load, speedMs)) / before;
    return ratio >= fullSpeed;
  };
  // From when on it is free: it may be as fast while it is traced.
  const fast = load && (async () => (await free()) && isFast());
  const [endedMs, freeMs, cleanMs, goneMs, fastMs] = await Promise.all(
    [ended, free, clean, gone, fast].map((isSo) => isSo && until(isSo, from)),
  );
  return { endedMs, freeMs, cleanMs, goneMs, fastMs: fastMs && fastMs - speedMs, ratio };
}

/** Of a server that runs already. */
async function ofServer(doing, name, signal) {
  const server = serverOf(name);
  const child = start(server.command);
  const requests = await load(server, child);
  try {
    await until(() => requests.done() > 100);
    const before = await slowest(requests);
    const words =
      doing === 'profile'
        ? ['profile', '--pid', String(child.pid)]
        : ['attach', String(child.pid), ...probesOf(server)];
    const tracer = rsptrace(...words, ...output(doing === 'profile' ? 'folded' : 'pftrace'));
    await moment(() => tracerOf(child.pid) !== 0, tracer);
    if (doing === 'gdbserver') await until(() => serversOf(child.pid).length > 0);
    const ended = over(tracer);
    const from = performance.now();
    if (doing === 'gdbserver') for (const pid of serversOf(child.pid)) kill(pid, signal);
    else tracer.kill(signal);
    const found = await afterwards(from, {
      ended,
      free: () => isFree(child.pid),
      clean: () => isFree(child.pid) && (over(child)() || changedCode(child.pid) === 0),
      gone: () => serversOf(child.pid).length === 0,
      load: requests,
      before,
    });
    const died = over(child)() ? { died: child.signalCode ?? child.exitCode } : {};
    return { ...found, lives: isThere(child.pid), ...died, said: tracer.said };
  } finally {
    await requests.end();
    child.kill('SIGKILL');
  }
}

const over = (tracer) => () => tracer.exitCode !== null || tracer.signalCode !== null;

/** Of a server that rsptrace starts. */
async function ofProgram(name, signal) {
  const server = serverOf(name);
  const [path] = server.command;
  const tracer = rsptrace('run', ...output('pftrace'), ...probesOf(server), ...server.command);
  const mine = () =>
    numbers('/proc').filter(
      (pid) =>
        isThere(pid) &&
        (wordsOf(pid)[0] === path || wordsOf(pid).includes(`rsptrace-${tracer.pid}`)) &&
        isAbout(pid, server),
    );
  const program = () => mine().find((pid) => exeOf(pid) === realpathSync(path));
  try {
    await moment(() => program() !== undefined, tracer);
    const wasThere = program() !== undefined;
    const from = performance.now();
    tracer.kill(signal);
    const runsOn = signal === 'SIGKILL' || signal === 'SIGINT';
    const isDone = () => {
      const pid = program();
      if (mine().length === 0) return true;
      return runsOn && pid !== undefined && mine().length === 1 && isFree(pid) && changedCode(pid) === 0;
    };
    const cleanMs = await until(isDone, from);
    const endedMs = signal === 'SIGINT' ? 0 : await until(over(tracer), from);
    const pid = program();
    let rate;
    if (pid !== undefined) {
      const requests = await load(server, tracer);
      await until(() => requests.done() > 100);
      rate = await speed(requests, speedMs);
      await requests.end();
    }
    return {
      endedMs,
      cleanMs,
      goneMs: cleanMs,
      freeMs: cleanMs,
      lives: wasThere && runsOn ? undefined : true,
      rate,
      said: tracer.said,
    };
  } finally {
    tracer.kill('SIGKILL');
    await sleep(50);
    for (const pid of mine()) kill(pid, 'SIGKILL');
  }
}
const isAbout = (pid, { command }) => command.slice(1).every((word) => wordsOf(pid).includes(word));
function exeOf(pid) {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}

// ---- kernels -----------------------------------------------------------------------------------------------------

const kernels = {
  riscv64: {
    prefix: 'riscv64-linux-gnu-',
    isa: ['-march=rv64imac_zicsr_zifencei'],
    at: '-Ttext=0x80000000',
    counter: /x9\/s1\s+(\w+)/,
  },
  x86_64: { prefix: '', isa: [], at: '-Ttext-segment=0x100000', counter: /R12=(\w+)/ },
};
const machines = {
  riscv64: ['qemu-system-riscv64', '-M', 'virt', '-bios', 'none', '-nographic', '-nic', 'none'],
  x86_64: [
    'qemu-system-x86_64',
    '-no-reboot',
    '-nic',
    'none',
    '-device',
    'isa-debug-exit,iobase=0xf4,iosize=4',
    '-nographic',
  ],
};
/** A kernel of the tests that calls its functions for hours. */
function kernelOf(arch) {
  const { prefix, isa, at } = kernels[arch];
  const [elf, object] = [join(folder, `${arch}.elf`), join(folder, `${arch}.o`)];
  const sources = join(root, 'test/support/kernels');
  const symbols = ['CALLS=0x7fffffff', 'WAIT=100', 'OWN=0'].flatMap((symbol) => ['--defsym', symbol]);
  execFileSync(`${prefix}as`, [
    ...isa,
    '-g',
    ...symbols,
    '-I',
    sources,
    '-o',
    object,
    join(sources, `brief-${arch}.s`),
  ]);
  execFileSync(`${prefix}ld`, ['--no-warn-rwx-segments', '-static', at, object, '-o', elf]);
  return { elf, command: [...machines[arch], '-kernel', elf] };
}
const kernelNamed = (arch) => (made[arch] ??= kernelOf(arch));

/** QEMU's monitor: what a command says. */
function monitor(path, command) {
  return new Promise((done) => {
    const words = JSON.stringify({ execute: 'human-monitor-command', arguments: { 'command-line': command } });
    const socket = connect(path, () => socket.write(`{"execute":"qmp_capabilities"}${words}`));
    let said = '';
    socket.setEncoding('utf8').on('data', (text) => {
      said += text;
      const answers = said.split('\n').filter((line) => /^\{"return": "/.test(line) && line.endsWith('}\r'));
      if (answers.length > 0) socket.end();
      if (answers.length > 0) done(JSON.parse(answers[0]).return);
    });
    socket.on('error', () => done(''));
    socket.on('close', () => done(''));
  });
}

/** The addresses and bytes of an ELF's code, which begins behind its headers at a whole page. */
function codeOf(elf) {
  const bytes = readFileSync(elf);
  const [first, size, count] = [Number(bytes.readBigUInt64LE(32)), bytes.readUInt16LE(54), bytes.readUInt16LE(56)];
  return Array.from({ length: count }, (_, i) => bytes.subarray(first + i * size))
    .filter((header) => header.readUInt32LE(0) === 1 && (header.readUInt32LE(4) & 1) !== 0)
    .map((header) => {
      const [offset, address, length] = [8, 24, 32].map((at) => Number(header.readBigUInt64LE(at)));
      const headers = offset === 0 ? 4096 : 0;
      return { address: address + headers, bytes: bytes.subarray(offset + headers, offset + length) };
    });
}

/** Of a kernel: at a QEMU of somebody else's, under one of rsptrace's, or one of its that is to run on. */
async function ofKernel(doing, arch, signal) {
  const { elf, command } = kernelNamed(arch);
  const [qmp, stub, ram] = ['qmp', 'stub', 'ram'].map((name) => join(folder, `${name}-${++port}`));
  const words = [...command, '-qmp', `unix:${qmp},server=on,wait=off`];
  const qemu =
    doing === 'remote'
      ? start([
          ...words,
          '-chardev',
          `socket,path=${stub},server=on,wait=off,id=g`,
          '-gdb',
          'chardev:g',
          ...(next() < 0.5 ? ['-S'] : []),
        ])
      : undefined;
  const probes = ['-p', 'fn:brief', '-p', 'fn:quick', '-p', 'fn:outer'];
  // Read by packets, past the wire, or at stops.
  const engines =
    doing === 'remote'
      ? [['--engine', 'stop'], [], ['--scratch', arch === 'riscv64' ? '0x87c00000,0x100000' : '0x7c00000,0x100000']]
      : [[]];
  const engine = engines[Math.floor(next() * engines.length)];
  if (qemu) await until(async () => (await monitor(qmp, 'info status')) !== '');
  const recorded = [...output('pftrace'), ...probes, ...engine];
  const tracer =
    doing === 'remote'
      ? rsptrace('--remote', stub, ...recorded, elf)
      : rsptrace('run', ...recorded, ...(doing === 'keep' ? ['--keep-running'] : []), elf, '--', ...words);
  const registers = async () => (await monitor(qmp, 'info registers')) ?? '';
  const calls = async () => Number.parseInt(kernels[arch].counter.exec(await registers())?.[1] ?? '0', 16);
  const mine = () => childrenWith(qmp).filter((pid) => /^qemu/.test(wordsOf(pid)[0] ?? ''));
  const callSpeed = async (ms) => {
    const [from, before] = [performance.now(), await calls()];
    await sleep(ms);
    return (((await calls()) - before) / (performance.now() - from)) * 1000;
  };
  try {
    await moment(async () => (await calls()) > 0, tracer);
    const never = doing === 'remote' && /prelaunch/.test(await monitor(qmp, 'info status'));
    const from = performance.now();
    tracer.kill(signal);
    const runsOn = doing === 'remote' || doing === 'keep' || signal === 'SIGINT';
    let speedNow = 0;
    const isClean = async () => {
      if (mine().length === 0) return doing !== 'remote';
      if (!runsOn) return false;
      const status = await monitor(qmp, 'info status');
      if (never && /prelaunch/.test(status)) return true;
      if (!/running/.test(status)) return false;
      for (const { address, bytes } of codeOf(elf)) {
        await monitor(qmp, `pmemsave ${address} ${bytes.length} "${ram}"`);
        if (textOf(ram) !== bytes.toString('latin1')) return false;
      }
      speedNow = await callSpeed(50);
      return speedNow > 0;
    };
    const cleanMs = await until(isClean, from);
    const endedMs = runsOn && doing !== 'remote' ? 0 : await until(over(tracer), from);
    return {
      endedMs,
      cleanMs,
      goneMs: cleanMs,
      freeMs: cleanMs,
      rate: speedNow,
      engine: engine.join(' '),
      lives: true,
      said: tracer.said,
    };
  } finally {
    tracer.kill('SIGKILL');
    qemu?.kill('SIGKILL');
    await sleep(50);
    for (const pid of mine()) kill(pid, 'SIGKILL');
  }
}

// ---- all ---------------------------------------------------------------------------------------------------------

const signals = ['SIGKILL', 'SIGTERM', 'SIGKILL', 'SIGHUP', 'SIGKILL', 'SIGINT'];
const pairs = [
  ...Object.keys(servers).flatMap((name) => ['attach', 'run', 'profile', 'gdbserver'].map((doing) => [doing, name])),
  ...Object.keys(kernels).flatMap((arch) => ['run', 'remote', 'keep'].map((doing) => [doing, arch])),
];
const only = values.only.split(',').filter((word) => word !== '');
const chosen = pairs.filter((pair) => only.length === 0 || only.some((word) => pair.join(' ').includes(word)));
const results = [];
console.log(`${values.kills} kills, seed ${values.seed}, load ${loadavg()[0].toFixed(1)}`);
for (let each = 0; each < Number(values.kills); each++) {
  const [doing, name] = chosen[each % chosen.length];
  const signal = doing === 'gdbserver' ? 'SIGKILL' : signals[Math.floor(next() * signals.length)];
  const found =
    name in kernels
      ? await ofKernel(doing, name, signal)
      : doing === 'run'
        ? await ofProgram(name, signal)
        : await ofServer(doing, name, signal);
  const { said, ...rest } = found;
  const times = ['endedMs', 'freeMs', 'cleanMs', 'goneMs', 'fastMs'].filter((key) => key in rest);
  const never = times.filter((key) => rest[key] === undefined && !(key === 'fastMs'));
  // How long rsptrace itself takes to understand what it has is not the target's matter.
  const late = times.filter((key) => key !== 'endedMs' && rest[key] > soonMs);
  const verdict = never.length > 0 || rest.lives === false ? 'WRONG' : late.length > 0 ? 'late' : 'ok';
  const shown = Object.entries(rest).map(
    ([key, value]) => `${key} ${typeof value === 'number' ? Math.round(value * 100) / 100 : value}`,
  );
  results.push({ each, doing, name, signal, verdict, load: loadavg()[0], ...rest });
  console.log(`${each} ${verdict} ${doing} ${name} ${signal}: ${shown.join(', ')}`);
  if (verdict !== 'ok') console.log(`    ${said.trim().split('\n').slice(-4).join('\n    ')}`);
}
const count = (verdict) => results.filter((one) => one.verdict === verdict).length;
console.log(`${count('ok')} ok, ${count('late')} late, ${count('WRONG')} wrong; load ${loadavg()[0].toFixed(1)}`);
for (const key of ['freeMs', 'cleanMs', 'goneMs', 'fastMs']) {
  const list = results
    .map((one) => one[key])
    .filter((value) => value !== undefined)
    .sort((a, b) => a - b);
  const at = (share) => list[Math.floor(share * (list.length - 1))]?.toFixed(0);
  if (list.length > 0) console.log(`${key}: median ${at(0.5)}, 95 % ${at(0.95)}, longest ${at(1)} ms`);
}
if (values.json) writeFileSync(values.json, JSON.stringify(results));
process.exit(count('WRONG') > 0 ? 1 : 0);
