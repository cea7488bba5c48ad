// Code that a program brings itself after it was started, at stubs that write trap instructions: nothing is written into what is not that code,
// and every call is told from the first on. The program looks at its memory and counts its calls.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { compileReleased, gdbserver } from '../support/native.js';
import { type Output, sameCalls } from '../support/native-trace.js';
import { freePort, untilListens } from '../support/stub-servers.js';

const LATE = 0x3000_0000n;
const probes = ['early', 'late*'].flatMap((name) => ['-p', `fn:${name}`]);

/** The program, and a copy to be run, in whose headers the segment of .late is none. */
function latePrograms(t: Test): { readonly elf: string; readonly runs: string } {
  const elf = compileReleased(t, 'late.c', ['-static', '-no-pie', `-Wl,--section-start=.late=0x${LATE.toString(16)}`]);
  const runs = `${elf}-late`;
  copyFileSync(elf, runs);
  const bytes = readFileSync(elf);
  const [offset, count] = [Number(bytes.readBigUInt64LE(32)), bytes.readUInt16LE(56)];
  const headers = Array.from({ length: count }, (_, index) => offset + 56 * index);
  const late = headers.find((at) => bytes.readBigUInt64LE(at + 16) === LATE);
  if (late === undefined) throw new Error('no segment of its own');
  bytes.writeUInt32LE(0, late);
  writeFileSync(runs, bytes);
  return { elf, runs };
}

interface LateOutput extends Output {
  readonly never_loaded: readonly string[];
}

async function traced(t: Test, mode: string, ...options: string[]) {
  const { elf, runs } = latePrograms(t);
  const untraced = (await start(runs, [mode]).ended).stdout;
  const server = await gdbserver(t, runs, mode);
  const file = join(scratchFolder(t), 'out.txt');
  const args = ['-r', server.address, '--json', '-o', file, ...probes, ...options, elf];
  const { status, stdout, stderr } = await rsptrace(...args).ended;
  t.equal(status, 0, stderr.slice(-300));
  t.equal((await server.ended).stdout, untraced, 'it sees in its memory, and computes, what it does untraced');
  return { output: JSON.parse(stdout) as LateOutput, untraced, stderr };
}

for (const [mode, engine] of [
  ['file', 'stop'],
  // Of a busy host's stops the default engine has enough.
  ['pages', 'mixed'],
  ['copy', 'stop'],
] as const) {
  t.test(`gdbserver, ${mode}, --engine ${engine}: every call of code that comes late`, async (t) => {
    const { output, untraced, stderr } = await traced(t, mode, '--engine', engine, '--log', 'info');
    if (mode !== 'file') t.match(untraced, /others: 0 bytes changed/);
    t.match(untraced, /late5=5/);
    sameCalls(t, output, untraced);
    t.match(stderr, /"waiting":\["late0",.*code that is not loaded yet/, 'one sentence, which names them');
    t.same(output.never_loaded, []);
  });
}

t.test('gdbserver: code that never comes is told in the end', async (t) => {
  const { output, stderr } = await traced(t, 'never');
  const late = [0, 1, 2, 3, 4, 5].map((number) => `late${number}`);
  t.same(output.never_loaded, late);
  t.match(stderr, /their code was never loaded/);
  t.match(output.functions, [{ function: 'early', calls: 1 }]);
});

t.test('lldb-server, which tells of no system calls: it is looked at now and then', async (t) => {
  const { elf, runs } = latePrograms(t);
  const go = join(scratchFolder(t), 'go');
  const target = start(runs, ['wait', go]);
  t.teardown(() => void target.process.kill('SIGKILL'));
  await target.shows('waiting');
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const server = start('lldb-server-14', ['gdbserver', address, '--attach', `${target.process.pid}`]);
  t.teardown(() => void server.process.kill('SIGKILL'));
  await untilListens(port);
  const file = join(scratchFolder(t), 'out.txt');
  const tracer = rsptrace('-r', address, '--json', '--log', 'info', '-o', file, ...probes, elf);
  await tracer.shows('code that is not loaded yet');
  writeFileSync(go, '');
  const { status, stdout, stderr } = await tracer.ended;
  t.equal(status, 0, stderr.slice(-300));
  const { stdout: printed } = await target.ended;
  const output = JSON.parse(stdout) as LateOutput;
  t.match(printed, /late5=5/);
  // Before the attach it was called once.
  sameCalls(t, output, printed.replace('early=1', ''));
  t.same(output.never_loaded, []);
});
