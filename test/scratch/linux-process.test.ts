// Memory mapped into real processes under a real gdbserver: what /proc says, what the program itself notices (nothing), and that it ends well.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { processScale } from '../../src/inject/counter-scales.js';
import { pidOf, registerOf, type Session } from '../../src/rsp/index.js';
import { mapIntoProcess } from '../../src/scratch/linux-process.js';
import type { Region, Scratch } from '../../src/scratch/scratch.js';
import { errnoOf, SystemCalls } from '../../src/scratch/system-calls.js';
import { parseAuxv } from '../../src/target/auxv.js';
import { connect } from '../../src/target/index.js';
import { parseMaps } from '../../src/target/process-memory.js';
import { frozenGuest, start } from '../support/command.js';
import { compileC, gdbserver } from '../support/native.js';

const HEAP = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  unsigned long sum = 0;
  for (int i = 1; i < 400; i++) {
    char *block = malloc(i * 977);
    memset(block, i, i * 977);
    sum += block[i] + block[i * 977 - 1];
    if (i % 3) free(block);
  }
  printf("sum %lu\\n", sum);
  return 7;
}
`;

function pidIn(session: Session): number {
  const { state } = session;
  return Number.parseInt(pidOf(state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop.hart : '') ?? '', 16);
}

function mapsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
}

/** Where the program's code is, by the kernel's own list. */
function textOf(pid: number, program: string): Region {
  const [, start, end] =
    mapsOf(pid)
      .map((line) => /^([0-9a-f]+)-([0-9a-f]+) r-xp .* (.*)$/.exec(line))
      .find((found) => found?.[3] === program) ?? [];
  const address = addr(BigInt(`0x${start}`));
  return { address, size: Number(BigInt(`0x${end}`) - address) };
}

async function allRegisters(session: Session): Promise<string> {
  const batch = session.batch();
  const block = batch.readRegisters();
  await batch.send();
  return block.value.hex;
}

function permissionsAt(pid: number, region: Region): string {
  const range = [region.address, addOffset(region.address, region.size)].map((at) => at.toString(16).padStart(8, '0'));
  return mapsOf(pid).find((line) => line.startsWith(`${range.join('-')} `)) ?? 'not mapped';
}

/** The registers but for the protection keys' (`pkru`), which gdbserver says only once the process has run: until then it says 0. */
async function ordinaryRegisters(session: Session): Promise<string> {
  const block = await allRegisters(session);
  const keys = session.target.register('pkru');
  if (keys?.offsetInG === undefined) return block;
  const [from, to] = [keys.offsetInG * 2, keys.offsetInG * 2 + keys.bits / 4];
  return block.slice(0, from) + block.slice(to);
}

/** Runs code of ours in the code region, as a jump from the program would. */
async function runs(session: Session, scratch: Scratch): Promise<bigint | undefined> {
  // mov eax, 42; mov [rip + data - code - 11], eax; int3
  const code = Buffer.from([0xb8, 42, 0, 0, 0, 0x89, 0x05, 0, 0, 0, 0, 0xcc]);
  code.writeInt32LE(Number(scratch.data.address - scratch.code.address) - 11, 7);
  if (!(await session.memory().write(scratch.code.address, code))) return undefined;
  const before = await allRegisters(session);
  const batch = session.batch();
  batch.readRegisters();
  await batch.send();
  const jump = session.batch();
  jump.writeRegister('rip', scratch.code.address);
  const stop = await jump.resume();
  const after = session.batch();
  const rax = after.readRegister('rax');
  after.writeRegisters(before);
  await after.send();
  return stop.kind === 'signal' && stop.signal === 5 ? rax.value : undefined;
}

for (const flags of [['-pie'], ['-no-pie'], ['-static', '-no-pie'], ['-static-pie']]) {
  t.test(`gcc ${flags.join(' ')}: mapped at the first stop, shared with this process, and never noticed`, async (t) => {
    const program = compileC(t, HEAP, flags);
    const server = await gdbserver(t, program);
    await using session = await connect(server.address);
    const pid = pidIn(session);
    const before = await ordinaryRegisters(session);
    const text = textOf(pid, program);
    const scratch = await mapIntoProcess({ session, arch: x86_64, text, codeSize: 70_000, dataSize: 1 << 20 });
    t.equal(await ordinaryRegisters(session), before, 'the registers are what they were');
    t.equal(scratch.source, `memory mapped into process ${pid} (memfd)`);

    t.equal(scratch.code.size, 73_728, 'whole pages');
    t.match(permissionsAt(pid, scratch.code), / r-xp /);
    t.match(permissionsAt(pid, scratch.data), / rw-s .*\/memfd:rsptrace-[0-9a-f]+ \(deleted\)$/);
    for (const guard of [addOffset(scratch.code.address, -4096), addOffset(scratch.data.address, -4096)]) {
      t.match(permissionsAt(pid, { address: guard, size: 4096 }), / ---p /);
    }
    const distance = scratch.code.address - text.address;
    t.ok(distance < 2 ** 31 && distance > -(2 ** 31), `0x${distance.toString(16)} from the program`);
    t.equal(
      mapsOf(pid).some((line) => / .wx/.test(line)),
      false,
      'nothing is writable and executable',
    );
    t.equal(
      readFileSync('/proc/self/maps', 'utf8').includes('memfd:rsptrace'),
      false,
      'and nothing of it is mapped here',
    );

    const { shared } = scratch;
    if (shared === undefined) throw new Error('not shared');
    const there = new Uint8Array(5000).map((_, index) => index * 13);
    await session.memory().write(addOffset(scratch.data.address, 60_000), there);
    const here = new Uint8Array(5000);
    shared.read(60_000, here);
    t.same(here, there, 'what the stub writes is read here');
    shared.write((1 << 20) - 5000, there);
    t.same(await session.memory().read(addOffset(scratch.data.address, (1 << 20) - 5000), 5000), there, 'and back');
    t.throws(() => shared.read((1 << 20) - 10, new Uint8Array(11)), RangeError);
    t.throws(() => shared.write(-1, new Uint8Array(1)), RangeError);

    t.equal(await runs(session, scratch), 42n, 'the code runs');
    const stored = new Uint8Array(4);
    shared.read(0, stored);
    t.same(stored, [42, 0, 0, 0], 'and what it stores is read here');
    t.equal(await scratch.verifyGuards(), undefined);
    await session.memory().write(addOffset(scratch.data.address, -8), Uint8Array.of(1));
    t.match(await scratch.verifyGuards(), /somebody wrote into the page at 0x/);

    await scratch.release();
    await scratch.release();
    t.equal(permissionsAt(pid, scratch.code), 'not mapped');
    t.equal(
      mapsOf(pid).some((line) => line.includes('memfd:rsptrace')),
      false,
    );
    t.equal(await ordinaryRegisters(session), before);
    t.match(await session.resume(), { kind: 'exited', status: 7 });
    t.match((await server.ended).stdout, /^sum \d+$/m);
  });
}

t.test('the heap grows beside it', async (t) => {
  const program = compileC(t, HEAP, ['-no-pie']);
  const untouched = (await start(program, []).ended).stdout;
  const server = await gdbserver(t, program);
  await using session = await connect(server.address);
  const text = textOf(pidIn(session), program);
  await mapIntoProcess({ session, arch: x86_64, text, codeSize: 1 << 20, dataSize: 16 << 20 });
  t.match(await session.resume(), { kind: 'exited', status: 7 });
  t.match((await server.ended).stdout, untouched);
});

const WAITER = `
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **args) {
  char text[8] = "";
  errno = 0;
  if (count > 1 && !strcmp(args[1], "sleep")) {
    struct timespec long_time = { 1, 500000000 }, begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int result = clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double slept = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("result %d, long enough %d\\n", result, slept >= 1.5);
  } else {
    int got = read(0, text, 7);
    printf("read %d %s errno %d\\n", got, text, errno);
  }
  return 3;
}
`;

/** Starts a program and waits until it sleeps in a system call of this number. */
async function sleeping(t: Test, program: string, call: number, ...args: string[]): Promise<ChildProcess> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  t.teardown(() => void child.kill('SIGKILL'));
  for (let tries = 0; tries < 5000; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (readFileSync(`/proc/${child.pid}/syscall`, 'utf8').startsWith(`${call} `)) return child;
  }
  throw new Error(`${program} never waited in system call ${call}`);
}

async function outputOf(child: ChildProcess): Promise<string> {
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  await new Promise((resolve) => child.on('close', resolve));
  return text;
}

for (const [what, number] of [
  ['sleep', 230],
  ['read', 0],
] as const) {
  t.test(`a thread that waits inside a system call (${what}): it goes on as if nothing had been`, async (t) => {
    const program = compileC(t, WAITER);
    const child = await sleeping(t, program, number, what);
    const output = outputOf(child);
    const pid = child.pid ?? 0;
    const server = await gdbserver(t, '--attach', String(pid));
    const session = await connect(server.address);
    t.equal(pidIn(session), pid);
    const before = await ordinaryRegisters(session);
    const scratch = await mapIntoProcess({
      session,
      arch: x86_64,
      text: textOf(pid, program),
      codeSize: 4096,
      dataSize: 65_536,
    });
    t.equal(await ordinaryRegisters(session), before);
    const sp = addr((await registerOf(session, x86_64.sp)) ?? 0n);
    const stack = { address: addOffset(sp, -8192), length: 8192 };
    const below = await session.memory().read(stack.address, stack.length);
    const clock = x86_64.probeCode?.process?.clock;
    if (!clock || !below) throw new Error('nothing is measured');
    const { nanosPerTick } = await processScale(session, clock, scratch, (hostMs) => hostMs * 1e6);
    t.ok(nanosPerTick > 0.1 && nanosPerTick < 10, `a tick is ${nanosPerTick} ns`);
    t.equal(await ordinaryRegisters(session), before);
    t.same(await session.memory().read(stack.address, stack.length), below, 'below its stack is what was there');
    await scratch.release();
    await session.detach();
    if (what === 'read') child.stdin?.end('hello\n');
    t.equal(await output, what === 'sleep' ? 'result 0, long enough 1\n' : 'read 6 hello\n errno 0\n');
  });
}

const SIGNALLED = `
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile int usr1, alrm, queued;
static void on(int number, siginfo_t *info, void *context) {
  if (number == SIGUSR1) usr1++;
  if (number == SIGALRM) alrm++;
  if (number == SIGRTMIN + 3) queued++;
}
int main(void) {
  struct sigaction action = { .sa_sigaction = on, .sa_flags = SA_SIGINFO };
  sigaction(SIGUSR1, &action, 0);
  sigaction(SIGALRM, &action, 0);
  sigaction(SIGRTMIN + 3, &action, 0);
  char text[8];
  while (read(0, text, 7) < 0);
  printf("usr1 %d alrm %d queued %d\\n", usr1, alrm, queued);
}
`;

t.test('signals that come in the middle reach the program afterwards, none twice', async (t) => {
  const program = compileC(t, SIGNALLED);
  const child = await sleeping(t, program, 0);
  const output = outputOf(child);
  const pid = child.pid ?? 0;
  const server = await gdbserver(t, '--attach', String(pid));
  const session = await connect(server.address);
  const before = await ordinaryRegisters(session);
  const calls = await SystemCalls.open(session, x86_64);
  // The process is stopped: they wait for the first instruction that it runs, which is ours.
  for (const signal of ['USR1', 'ALRM', 'RTMIN+3', 'RTMIN+3']) execFileSync('kill', ['-s', signal, String(pid)]);
  const results = await calls.with(async (call) => [await call('getpid'), await call('close', 999)]);
  t.same(results, [BigInt(pid), -9n], 'the calls are made all the same');
  t.equal(errnoOf(results[1] ?? 0n), 9);
  t.equal(await ordinaryRegisters(session), before);
  const run = session.resume();
  const seen: number[] = [];
  let stop = await Promise.race([run, later()]);
  while (stop?.kind === 'signal') {
    seen.push(stop.signal);
    stop = await Promise.race([session.resume({ kind: 'continue', signal: stop.signal }), later()]);
  }
  t.same(
    seen.sort((a, b) => a - b),
    [10, 14, 37, 37],
    'as signal(7) numbers USR1, ALRM and SIG37',
  );
  child.stdin?.end('x');
  t.equal(await output, 'usr1 1 alrm 1 queued 2\n');
  await session.detach();
});

t.test('a fault that has stopped it comes once, as the instruction raises it', async (t) => {
  const program = compileC(
    t,
    `
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static char *page;
static void on(int number, siginfo_t *info, void *context) {
  if (info->si_addr != page || info->si_code != SEGV_ACCERR) _exit(9);
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
int main(void) {
  struct sigaction action = { .sa_sigaction = on, .sa_flags = SA_SIGINFO };
  sigaction(SIGSEGV, &action, 0);
  page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *page = 7;
  return *page;
}
`,
  );
  const server = await gdbserver(t, program);
  await using session = await connect(server.address);
  const text = textOf(pidIn(session), program);
  const scratch = await mapIntoProcess({ session, arch: x86_64, text, codeSize: 4096, dataSize: 65_536 });
  t.match(await session.resume(), { signal: 11 });
  const clock = x86_64.probeCode?.process?.clock;
  if (!clock) throw new Error('nothing is measured');
  await processScale(session, clock, scratch, (hostMs) => hostMs * 1e6);
  t.match(await session.resume(), { signal: 11 }, 'once more');
  t.match(await session.resume({ kind: 'continue', signal: 11 }), { kind: 'exited', status: 7 });
});

function later(): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, 300, undefined));
}

t.test('a process under a seccomp filter is left alone', async (t) => {
  const program = compileC(
    t,
    `
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) { char c; prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); read(0, &c, 1); write(1, "alive\\n", 6); syscall(60, 0); }
`,
  );
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'ignore'] });
  const output = outputOf(child);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const server = await gdbserver(t, '--attach', String(child.pid));
  const session = await connect(server.address);
  const text = textOf(child.pid ?? 0, program);
  await t.rejects(mapIntoProcess({ session, arch: x86_64, text, codeSize: 4096, dataSize: 4096 }), {
    code: 'SCRATCH_UNAVAILABLE',
    message: /seccomp/,
  });
  await session.detach();
  child.stdin?.end('x');
  t.equal(await output, 'alive\n');
});

/** Traps in a sequence, and says whether that was aborted. */
const SEQUENCE = `
#include <sys/rseq.h>
static __attribute__((noinline)) int section(void) {
  struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
  int aborted = 0;
  __asm__ volatile(
    ".pushsection .data.rel.local, \\"aw\\"\\n.balign 32\\n3: .long 0, 0\\n.quad 1f, 2f - 1f, 4f\\n.popsection\\n"
    "lea 3b(%%rip), %%rax\\nmov %%rax, 8(%[area])\\n1: nop\\nint3\\nnop\\n2: jmp 6f\\n"
    ".byte 0x0f, 0xb9, 0x3d\\n.long 0x53053053\\n4: movl $1, %[aborted]\\n6:\\n"
    : [aborted] "+r"(aborted) : [area] "r"(area) : "rax", "memory", "cc");
  return aborted;
}
int main(void) { return section() ? 7 : 3; }
`;

t.test('a thread in a restartable sequence: the kernel aborts that, after calls of ours too', async (t) => {
  const program = compileC(t, SEQUENCE);
  for (const withCalls of [false, true]) {
    const server = await gdbserver(t, program);
    await using session = await connect(server.address);
    const stop = await session.resume({ kind: 'continue' });
    t.match(stop, { kind: 'signal', signal: 5 });
    if (withCalls) {
      const calls = await SystemCalls.open(session, x86_64);
      t.equal(await calls.with((call) => call('getpid')), BigInt(calls.pid));
    }
    t.match(await session.resume({ kind: 'continue' }), { kind: 'exited', status: 7 });
  }
});

t.test('an emulator is no process', async (t) => {
  const qemu = frozenGuest(t, 'x86-o2');
  await using session = await connect(qemu.socket, { waitMs: 60_000 });
  const text = { address: addr(0x100000), size: 4096 };
  await t.rejects(mapIntoProcess({ session, arch: x86_64, text, codeSize: 4096, dataSize: 4096 }), {
    code: 'SCRATCH_UNAVAILABLE',
    message: /no x86_64 Linux process/,
  });
});

t.test('limited memory: the process is as it was', async (t) => {
  const program = compileC(t, HEAP);
  const server = await gdbserver(t, 'prlimit', '--as=300000000', program);
  await using session = await connect(server.address);
  const pid = pidIn(session);
  // prlimit has not run the program yet: it is traced itself.
  const before = mapsOf(pid);
  const [first = ''] = before;
  const path = /\S+$/.exec(first)?.[0] ?? '';
  execFileSync('prlimit', ['--pid', String(pid), '--as=50000000']);
  const options = { session, arch: x86_64, text: textOf(pid, path), codeSize: 4096, dataSize: 1 << 29 };
  await t.rejects(mapIntoProcess(options), {
    code: 'SCRATCH_UNAVAILABLE',
    message: /its memory is limited \(ulimit -v\)/,
  });
  t.same(mapsOf(pid), before);
});

t.test('maps and auxiliary vectors that are damaged', (t) => {
  t.same(
    parseMaps(
      '7f00-8000 r-xp 0 0:0 1 /a b\nnonsense\n8000-9000 rw-s 00000000 00:01 12                  /memfd:x (deleted)\n',
    ),
    [
      { start: 0x7f00n, end: 0x8000n, permissions: 'r-xp', offset: 0, inode: 1, path: '/a b' },
      { start: 0x8000n, end: 0x9000n, permissions: 'rw-s', offset: 0, inode: 12, path: '/memfd:x (deleted)' },
    ],
  );
  const named = Buffer.from('7f00-8000 r-xp 0 0:0 1 /größe/libß.so').toString('latin1');
  t.equal(parseMaps(named)[0]?.path, '/größe/libß.so', 'bytes of a path are UTF-8');
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const found = parseAuxv(bytes);
      return found.size <= bytes.length / 16;
    }),
    { seed: 6, numRuns: 300 },
  );
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (text) => parseMaps(text).length <= text.length),
    { seed: 6, numRuns: 300 },
  );
  t.end();
});
