// `profile --sampler perf` with a perf that plays a recording of the real one: see perf-stream.test.ts. No container of CI lets perf
// run. The program is at the addresses of the recording, and waits.
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { main, type Running, rsptrace, scratchFolder, start } from '../support/command.js';
import { variant } from '../support/long.js';

const source = (name: string): string => join(import.meta.dirname, name);
const program = join(scratchFolder(t), 'perf-program');
execFileSync('as', [source('perf-program.S'), '-o', `${program}.o`]);
execFileSync('ld', ['--eh-frame-hdr', '-Ttext=0x401000', `${program}.o`, '-o', program]);
const child = spawn(program, { stdio: 'ignore' });
child.kill('SIGSTOP');
t.teardown(() => child.kill('SIGKILL'));

/** The recording as if it were of our process, but for its last sample: a child's. */
function played(): Buffer {
  const bytes = readFileSync(source('perf-recording.bin'));
  const samples: number[] = [];
  for (let at = 16; at < bytes.length; at += bytes.readUInt16LE(at + 6))
    if (bytes.readUInt32LE(at) === 9) samples.push(at);
  for (const at of samples.slice(0, -1)) {
    bytes.writeUInt32LE(child.pid ?? 0, at + 16);
    bytes.writeUInt32LE(child.pid ?? 0, at + 20);
  }
  return bytes;
}

interface Fake {
  readonly folder: string;
  run(...words: readonly string[]): Running;
}

/** A folder with a perf that runs this script. Without one there is none. */
function fake(t: Test, script: string | undefined): Fake {
  const folder = scratchFolder(t);
  writeFileSync(join(folder, 'played'), played());
  if (script !== undefined) writeFileSync(join(folder, 'perf'), `#!/bin/sh\ncd ${folder}\n${script}\n`);
  if (script !== undefined) chmodSync(join(folder, 'perf'), 0o755);
  const path = script === undefined ? folder : `${folder}:${process.env.PATH}`;
  return {
    folder,
    run: (...words) =>
      start('/usr/bin/env', [
        `PATH=${path}`,
        process.execPath,
        main,
        ...['profile', '--pid', `${child.pid}`, ...words],
      ]),
  };
}

t.test('samples become a profile', async (t) => {
  const { folder, run } = fake(t, 'echo "$@" > words; cat played; cat');
  const output = join(folder, 'x.folded');
  const found = await run('-F', '100', '-d', '200ms', '--json', '-o', output).json<Record<string, unknown>>();
  t.match(found, { sampler: 'perf', samples: 11, looks: 11, lost: 22, asked_hz: 100, incomplete: 0, stood_ms: 0 });
  t.match(found, { end: 'duration', kernel_left_out: false, had_hz: null });
  t.match(readFileSync(join(folder, 'words'), 'utf8'), new RegExp(` -c 10000000 .* -p ${child.pid} -o - -- cat\n$`));
  // The stacks of perf-recording.txt, the last sample apart.
  const stacks = readFileSync(output, 'utf8').trim().split('\n');
  const count = (pattern: RegExp): number =>
    stacks.filter((line) => pattern.test(line)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  t.equal(count(/^_start;outer;inner \d+$/), 2);
  t.equal(count(/^_start;outer;inner;\[kernel\S*( \w+)?\] \d+$/), 1);
  t.equal(count(/^_start;asks \d+$/), 4);
  t.equal(count(/^_start;asks;\[kernel(: \w+)?\] \d+$/), 4);
  t.equal(count(/./), 11);
});

t.test('a perf that says nothing but what it samples, because nothing runs (perf before 6.0)', async (t) => {
  const { folder, run } = fake(t, 'cat played; cat');
  const bytes = played();
  writeFileSync(join(folder, 'played'), bytes.subarray(0, 16 + bytes.readUInt16LE(16 + 6)));
  t.match(await run('-d', '100ms', '--json').json(), { samples: 0, end: 'duration' });
});

variant(t, 'only programs; so many', async (t) => {
  const { run } = fake(t, 'cat played; cat');
  t.match(await run('-U', '-d', '300ms', '--json').json(), { samples: 6, other_mode: 5, looks: 11, end: 'duration' });
  // Those of the last rounds come at the end.
  t.match(await run('-n', '3', '--json').json(), { samples: 3, end: 'samples' });
});

t.test('only the kernel, which may not be sampled; perf is ended from outside', async (t) => {
  const { folder, run } = fake(t, 'cat played');
  const bytes = played();
  // exclude_kernel
  bytes.writeUInt8(bytes.readUInt8(24 + 40) | 0x20, 24 + 40);
  writeFileSync(join(folder, 'played'), bytes);
  const { status, stdout, stderr } = await run('-K').ended;
  t.equal(status, 0);
  t.match(stdout, /^ *0\.0% +\d+\.\d% +0 +asks$/m);
  t.match(stderr, /5 samples by perf in .*; the process never stood\nrsptrace: 22 samples lost, because/);
  t.match(stderr, /perf was ended from outside: the profile ends there/);
  t.match(stderr, /the kernel, so its share is missing: run as root, or set kernel\.perf_event_paranoid to 1/);
});

t.test('perf gives up, as on a full disk', async (t) => {
  const { folder, run } = fake(t, 'cat played; exit 255');
  writeFileSync(join(folder, 'played'), played());
  const { stderr } = await run().ended;
  t.match(stderr, /perf gave up \(status 255\), as it does where TMPDIR has no room: the profile ends there/);
});

t.test('no perf, and one that is refused', async (t) => {
  const missing = await fake(t, undefined).run('--sampler', 'perf', '--json').ended;
  t.equal(missing.status, 1);
  t.match(JSON.parse(missing.stdout), { error: { code: 'RUN_NOT_FOUND', hint: /Debian: linux-perf/ } });
  const said = 'Error:\nAccess to performance monitoring and observability operations is limited.\nConsider';
  const refused = await fake(t, `printf '%s\\n' '${said}' >&2; exit 255`).run('--sampler', 'perf').ended;
  t.equal(refused.status, 1);
  t.match(
    refused.stderr,
    /perf does not sample process \d+: Access to performance .* is limited\. \[SAMPLES_UNAVAILABLE\]/,
  );
  t.match(refused.stderr, /kernel\.perf_event_paranoid \(here (-?\d+|none)\)/);
});

t.test('without --sampler: perf where it samples, and stops with the reason where it does not', async (t) => {
  const taken = await fake(t, 'cat played; cat').run('-d', '100ms', '--json').json();
  t.match(taken, { sampler: 'perf', samples: 11, no_perf: null });
  const refusing = fake(t, 'echo "No permission to enable cpu-clock event." >&2; exit 255');
  child.kill('SIGCONT');
  const stopped = await refusing.run('-n', '1', '--idle', '--json').json();
  t.match(stopped, { sampler: 'stops', no_perf: null }, 'perf is not asked where it cannot serve');
  const found = await refusing.run('-d', '100ms', '--json').json();
  t.match(found, { sampler: 'stops', no_perf: /perf does not sample process \d+: No permission to enable/ });
  const { stderr } = await refusing.run('-d', '100ms').ended;
  child.kill('SIGSTOP');
  t.match(stderr, /the process is stopped for each sample, because perf does not sample process \d+: No permission/);
  t.match(stderr, /perf_event_paranoid/);
});

t.test('another program than the process runs is refused, as with stops', async (t) => {
  const { status, stderr } = await fake(t, 'cat played; cat').run('-d', '100ms', '/bin/sh').ended;
  t.equal(status, 1);
  t.match(
    stderr,
    /process \d+ has not loaded \/bin\/sh \[LOAD_ADDRESS_UNKNOWN\]\n {2}give the program that runs there/,
  );
});

t.test('perf ends with its rsptrace', async (t) => {
  const { folder, run } = fake(t, 'exec 3> held; cat played; cat; echo ended >&3');
  execFileSync('mkfifo', [join(folder, 'held')]);
  const held = createReadStream(join(folder, 'held'), 'utf8');
  const running = run();
  await new Promise((resolve) => held.once('open', resolve));
  running.process.kill('SIGKILL');
  t.same(await held.toArray(), ['ended\n']);
});

t.test('wrong command lines', async (t) => {
  for (const [words, message] of [
    [[program], /--sampler perf is for a process that runs \[USAGE\]\n {2}name it: --pid PID/],
    [['--pid', '1', '--idle'], /--sampler perf sees no thread that waits \[USAGE\]/],
  ] as const) {
    const ran = await rsptrace('profile', '--sampler', 'perf', ...words).ended;
    t.equal(ran.status, 2);
    t.match(ran.stderr, message);
  }
});
