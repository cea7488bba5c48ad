// One process that is recorded again and again and left by Ctrl-C each time: no memory of ours stays in it, and it lives.
// `scripts/test --long` attaches 50 times.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { random } from '../support/fault-proxy.js';
import { long, usually } from '../support/long.js';
import { changedCode, compileReleased, gdbserver } from '../support/native.js';
import { functionProbes } from '../support/native-trace.js';

const cycles = long ? 50 : 2;
const next = random(20261123);
/** The latest Ctrl-C after the program was connected to, in milliseconds. */
const latest = long ? 1500 : 300;

function statusOf(pid: number, field: string): string | undefined {
  return new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
}

/** What is mapped, line by line of proc(5), /proc/PID/maps; the heap and stacks grow by themselves. */
function mapped(pid: number): readonly string[] {
  const lines = readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
  return lines.filter((line) => !/\[(heap|stack)\]/.test(line));
}

/** Whether it left nothing behind: what calls return through that a busy host has kept open stays, and that is said. */
async function recordOnce(t: Test, program: string, pid: number): Promise<boolean> {
  const server = await gdbserver(t, '--attach', String(pid));
  const trace = join(scratchFolder(t), 'out.txt');
  const tracer = rsptrace('-r', server.address, '--log', 'info', '-o', trace, ...functionProbes, program);
  await tracer.shows('position-independent');
  await sleep(next() * latest);
  tracer.signal('SIGINT');
  const { status, stderr } = await tracer.ended;
  t.ok(status === 0 || stderr.includes('[INTERRUPTED]'), stderr);
  await server.ended;
  t.equal(changedCode(pid, program), 0, 'its text is the file');
  t.match(statusOf(pid, 'State'), /^[RS]/, 'it runs');
  return !/trampolines.* stay/.test(stderr);
}

for (const leader of usually([true, false], (one) => !one)) {
  const title = leader
    ? 'a program that leads its process group'
    : 'one that does not, which gdbserver cannot interrupt';
  t.test(`${cycles} times: ${title}`, { timeout: 60_000 + cycles * 30_000 }, async (t) => {
    const program = compileReleased(t, 'calls.c', ['-pie']);
    const go = join(scratchFolder(t), 'go');
    const running = spawn(program, ['loop', go], { detached: leader, stdio: ['ignore', 'pipe', 'inherit'] });
    const { pid } = running;
    if (pid === undefined) throw new Error('not started');
    t.teardown(() => void running.kill('SIGKILL'));
    let stdout = '';
    running.stdout.on('data', (text) => {
      stdout += text;
    });
    const ended = new Promise((resolve) => running.on('close', resolve));

    let after: readonly string[] | undefined;
    for (let i = 0; i < cycles; i++) {
      if (!(await recordOnce(t, program, pid))) after = undefined;
      after ??= mapped(pid);
      t.same(mapped(pid), after, `${i}: nothing more is mapped`);
    }
    writeFileSync(go, '');
    await ended;
    t.match(stdout, /^same 1$/m, 'and came to the same results all the time');
  });
}
