// How many of the polled Futures a recording sees, for programs in several build profiles, held against their own counts.
//
//   cargo build --profile dev|release|lto|size      in this folder, with CARGO_TARGET_DIR=.cache/coverage of the repository
//   scripts/guests unpack; npm run build
//   node scripts/coverage/measure.mjs [NAME...]     a row for each program that is there; NAME: a part of a row's name
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findGuest } from '../../test/qemu/guests/store.mjs';

const root = join(import.meta.dirname, '../..');
const main = join(root, 'dist/cli/main.js');
const folder = mkdtempSync(join(tmpdir(), 'coverage-'));
const wanted = process.argv.slice(2);

const native = ['debug', 'release', 'lto', 'size'].flatMap((profile) =>
  [['on_tokio', 'ct'], ['on_tokio', 'mt'], ['on_axum'], ['on_smol']].map(([program, ...args]) => {
    const elf = join(root, '.cache/coverage', profile, program);
    return { name: [program, ...args].join(' '), profile, elf, run: () => underGdbserver(elf, args) };
  }),
);
const profiles = { o0: 'debug', o3: 'release', lto: 'lto', os: 'size' };
const guests = ['rv-embassy', 'rv-asynctask', 'x86-asynctask'].flatMap((name) =>
  Object.entries(profiles).map(([suffix, profile]) => {
    const elf = join(root, 'test/qemu/guests/elf', `${name}-${suffix}.elf`);
    return { name, profile, elf, run: () => underQemu(`${name}-${suffix}`, elf) };
  }),
);

async function underGdbserver(elf, args) {
  const server = spawn('gdbserver', ['127.0.0.1:0', elf, ...args]);
  let [text, errors] = ['', ''];
  server.stdout.on('data', (bytes) => {
    text += bytes;
  });
  const port = await new Promise((resolve) => {
    server.stderr.on('data', (bytes) => {
      errors += bytes;
      const found = /Listening on port (\d+)/.exec(errors)?.[1];
      if (found) resolve(found);
    });
  });
  const closed = new Promise((resolve) => server.on('close', resolve));
  const ran = await command('-r', `127.0.0.1:${port}`, '--json', '--force', '-o', join(folder, 'out.txt'), elf);
  if (ran.status !== 0) server.kill();
  await closed;
  return { ...ran, text };
}

async function underQemu(guest, elf) {
  const console = join(folder, 'console');
  const qemu = findGuest(guest).qemu.map((word) => (word === '{elf}' ? elf : word));
  const options = ['run', '--json', '--console', console, '-o', join(folder, 'out.txt'), elf, '--', ...qemu];
  const ran = await command(...options);
  return { ...ran, text: existsSync(console) ? readFileSync(console, 'latin1') : '' };
}

function command(...args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 300_000 });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (bytes) => {
      stdout += bytes;
    });
    child.stderr.on('data', (bytes) => {
      stderr += bytes;
    });
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
}

/** Polls by the name of an async fn, as the program has counted them. */
function counted(text) {
  const all = new Map();
  for (const [, name, polls] of text.matchAll(/(?:COUNT|LAB stat) (\w+) (?:calls=\d+ )?polls=(\d+)/g)) {
    if (Number(polls) > 0) all.set(name, (all.get(name) ?? 0) + Number(polls));
  }
  return all;
}

function nameOf(future) {
  const [, task] = /::__(\w+)_task::__\w+_task_inner_function$/.exec(future) ?? [];
  return task ?? /(\w+)(?:::\{async_block#0\})?$/.exec(future)?.[1];
}

console.log('program, profile: polled Futures = exactly + lower bounds + not | without stops | right, wrong counts');
for (const { name, profile, elf, run } of [...native, ...guests]) {
  if (!existsSync(elf) || (wanted.length > 0 && !wanted.some((part) => `${name} ${profile}`.includes(part)))) continue;
  const { status, stdout, stderr, text } = await run();
  if (status !== 0) {
    console.log(`${name}, ${profile}: ${stderr.trim().split('\n').at(-1)}`);
    continue;
  }
  const { futures, coverage, probes, stops, events } = JSON.parse(stdout);
  const truth = counted(text);
  let [right, wrong] = [0, []];
  for (const { future, polls, at_least } of futures) {
    const known = truth.get(nameOf(future));
    if (known === undefined) continue;
    if (at_least ? polls <= known : polls === known) right++;
    else wrong.push(`${future}: ${at_least ? '>=' : ''}${polls} of ${known}`);
  }
  const { exact, lower_bound: bounds, not } = coverage;
  const share = Math.round((1000 * probes.filter(({ engine }) => engine === 'target').length) / probes.length) / 10;
  const sum = `${exact + bounds + not} = ${exact} + ${bounds} + ${not}`;
  console.log(
    `${name}, ${profile}: ${sum} | ${share} % of ${probes.length}, ${stops} stops, ${events} events | ${right} right, ${wrong.length} wrong ${wrong.join('; ')}`,
  );
}
