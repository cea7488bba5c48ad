// Profiles of programs that spend known shares of their time in known functions.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { elfPath, qemuArgv } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { usually, variant } from '../support/long.js';
import { compileC, gdbserver } from '../support/native.js';
import { children, protoc } from '../trace/decode-perfetto.js';

const folder = scratchFolder(t);
const source = (name: string): string => join(import.meta.dirname, name);
const built = (name: string): string => join(folder, name);
/** As the sources say. */
const shares = { burn_half: 0.5, burn_third: 0.3, burn_fifth: 0.2 } as const;

const riscv = built('shares-riscv64.elf');
execFileSync('riscv64-linux-gnu-as', ['-march=rv64gc', source('shares-riscv64.S'), '-o', `${riscv}.o`]);
execFileSync('riscv64-linux-gnu-ld', ['-Ttext=0x80000000', `${riscv}.o`, '-o', riscv]);
const x86 = built('shares-x86_64.elf');
execFileSync('gcc', ['-c', source('shares-x86_64.S'), '-o', `${x86}.o`]);
execFileSync('ld', ['-Ttext=0x100000', `${x86}.o`, '-o', x86]);
const native = built('shares');
execFileSync('gcc', ['-O1', '-g', '-pthread', source('shares.c'), '-o', native]);

interface Profile {
  readonly samples: number;
  readonly looks: number;
  readonly idle: number;
  readonly other_mode: number;
  readonly incomplete: number;
  readonly end: string;
  readonly period_ms: number;
  readonly mean_period_ms: number;
  readonly ran_ms: number;
  readonly functions: readonly { readonly function: string; readonly self: number; readonly total: number }[];
}

async function profile(...words: readonly string[]): Promise<Profile> {
  return rsptrace('profile', '--json', ...words).json<Profile>();
}

/** Within three points, and four standard deviations of so few samples. */
function sharesAreRight(
  t: Pick<typeof import('tap').default, 'ok'>,
  { samples, functions }: Profile,
  count: 'self' | 'total',
): void {
  t.ok(samples >= 100, `${samples} samples`);
  for (const [name, share] of Object.entries(shares)) {
    const measured = (functions.find((row) => row.function === name)?.[count] ?? 0) / samples;
    const tolerance = 0.03 + 4 * Math.sqrt((share * (1 - share)) / samples);
    t.ok(Math.abs(measured - share) <= tolerance, `${name}: ${measured} for ${share}`);
  }
}

const virt = ['qemu-system-riscv64', '-M', 'virt', '-bios', 'none', '-nographic', '-kernel', riscv];
for (const harts of usually([1, 4], (one) => one === 4)) {
  t.test(`riscv64, ${harts} harts`, async (t) => {
    const found = await profile('-F', '400', '-n', '150', riscv, '--', ...virt, '-smp', `${harts}`);
    sharesAreRight(t, found, 'self');
    t.equal(found.samples + found.idle, found.looks * harts, 'each hart is looked at in each stop');
    t.equal(found.functions.find((row) => row.function === '_start')?.self ?? 0, 0);
  });
}

variant(t, 'a period shorter than what a timer counts', async (t) => {
  const short = await profile('--period', '200us', '-n', '150', riscv, '--', ...virt);
  sharesAreRight(t, short, 'self');
  t.equal(short.period_ms, 0.2);
  t.ok(Math.abs(short.mean_period_ms * short.looks - short.ran_ms) <= 1, `${short.mean_period_ms} ms each`);
  const error = await rsptrace('profile', '--period', '99us', riscv, '--', ...virt).ended;
  t.match(error, { status: 2, stderr: /--period takes a time from 100us to 100s, not '99us' \[USAGE\]/ });
});

t.test('x86_64', async (t) => {
  const qemu = ['qemu-system-x86_64', '-nographic', '-display', 'none', '-kernel', x86];
  const found = await profile('-F', '400', '-n', '150', x86, '--', ...qemu);
  const burnt = found.functions.filter((row) => row.function in shares);
  const samples = burnt.reduce((sum, { self }) => sum + self, 0);
  sharesAreRight(t, { ...found, samples }, 'self');
});

t.test('a native program: four threads that compute, and one that waits', async (t) => {
  const { address: remote, pid } = await gdbserver(t, native);
  const found = await profile('-F', '250', '-n', '160', '--remote', remote, native);
  // It has no end of its own.
  process.kill(pid, 'SIGKILL');
  sharesAreRight(t, found, 'total');
  t.ok(found.idle > 0.9 * found.looks, `main waits: ${found.idle} of ${found.looks}`);
  t.ok(found.samples + found.idle <= 5 * found.looks, `${found.samples} samples, ${found.idle} idle`);
  t.ok(found.incomplete < 0.1 * found.samples, `libraries that were loaded later are known: ${found.incomplete}`);
});

t.test('a program that is started for it, and one that runs', async (t) => {
  // Kept in a process of its own name, which nobody else has.
  const program = `${native}-started`;
  copyFileSync(native, program);
  const running = () => spawnSync('pgrep', ['-f', `^${program}`], { encoding: 'utf8' }).stdout.trim();
  sharesAreRight(t, await profile('-F', '250', '-n', '160', program), 'total');
  t.equal(running(), '', 'what was started is ended');
  for (const isLeader of usually([true, false], (one) => !one)) {
    const child = spawn(program, { stdio: 'ignore', detached: isLeader });
    t.teardown(() => child.kill('SIGKILL'));
    const found = await profile('-F', '250', '-n', '120', '--sampler', 'stops', '--pid', String(child.pid));
    sharesAreRight(t, found, 'total');
    t.equal(running(), String(child.pid), 'what ran runs on');
    t.match(readFileSync(`/proc/${child.pid}/status`, 'latin1'), /^TracerPid:\t0$/m);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  const ended = await profile('/bin/true', '--', 'an argument');
  t.equal(ended.end, 'target-ended');
});

t.test('a thread that computes in the kernel runs, and one that waits there does not', async (t) => {
  const program = built('reads');
  const text = `#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static char bytes[1 << 20];
static void *reads(void *none) {
  int zero = open("/dev/zero", O_RDONLY);
  for (;;) read(zero, bytes, sizeof bytes);
}
int main(void) {
  pthread_t thread;
  alarm(100);
  pthread_create(&thread, 0, reads, 0);
  for (;;) pause();
}
`;
  execFileSync('gcc', ['-O1', '-g', '-pthread', '-x', 'c', '-', '-o', program], { input: text });
  const child = spawn(program, { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  const found = await profile('-n', '40', '--sampler', 'stops', '--pid', String(child.pid));
  const of = (name: string) => found.functions.find((each) => each.function === name);
  // Nearly all of its time, and of its system calls.
  t.ok((of('[kernel: read]')?.self ?? 0) >= 30, `${of('[kernel: read]')?.self} of ${found.samples}`);
  t.equal(of('reads')?.total, found.samples, 'below the function that calls');
  t.ok(found.idle >= found.looks, 'main waits');
  const inKernel = await profile('-K', '-n', '10', '--sampler', 'stops', '--pid', String(child.pid));
  t.ok(inKernel.functions.filter(({ self }) => self > 0).every((each) => each.function.startsWith('[kernel')));
  t.match(await profile('-U', '-d', '300ms', '--sampler', 'stops', '--pid', String(child.pid)), {
    other_mode: /^[1-9]/,
  });
  child.kill('SIGKILL');
});

t.test('its files hold the same samples', async (t) => {
  const trace = built('p.pftrace');
  const found = await profile('-F', '200', '-n', '60', '-o', trace, '--by', 'hart', riscv, '--', ...virt, '-smp', '2');
  const packets = children(protoc(readFileSync(trace)), 'packet');
  const perf = packets.flatMap((packet) => children(packet, 'perf_sample'));
  t.equal(perf.length, found.samples);
  t.same(new Set(perf.flatMap(({ cpu }) => cpu ?? ['0'])), new Set(['0', '1']));
  const folded = built('p.folded');
  t.equal((await rsptrace('convert', trace, '-o', folded).ended).status, 0);
  const lines = readFileSync(folded, 'utf8').trimEnd().split('\n');
  t.equal(
    lines.reduce((sum, line) => sum + Number(/ (\d+)$/.exec(line)?.[1]), 0),
    found.samples,
  );
  t.ok(lines.every((line) => line.startsWith('hart ')));
  const half = found.functions.find((row) => row.function === 'burn_half')?.self;
  t.equal(
    lines.filter((line) => line.includes('burn_half')).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0),
    half,
  );
  const again = built('again.pftrace');
  t.equal((await rsptrace('convert', trace, '-o', again).ended).status, 0);
  t.same(readFileSync(again), readFileSync(trace), 'read and written again: the same bytes');
});

/** How often something was written between a sample's interrupt and the next resume. */
function writesBySample(wire: string): number[] {
  const sent = readFileSync(wire, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly to?: string; readonly text?: string })
    .filter(({ to }) => to === 'stub');
  const counts: number[] = [];
  let since: number | undefined;
  for (const { text = '' } of sent) {
    if (text === '\x03') since = 0;
    else if (since !== undefined && text.includes('vCont;c')) {
      counts.push(since);
      since = undefined;
    } else if (since !== undefined && text !== '+') since++;
  }
  return counts;
}

t.test('by what is awaited', async (t) => {
  const elf = elfPath('rv-o2-long');
  const found = built('async.folded');
  const wire = built('async.jsonl');
  const options = ['--async', '-o', found, '--record-wire', wire];
  await profile('-F', '300', '-n', '80', ...options, elf, '--', ...qemuArgv('rv-o2-long'));
  // On a busy host what is asked may go in two.
  t.equal(Math.min(...writesBySample(wire)), 1, 'registers and stack are asked in one write');
  const lines = readFileSync(found, 'utf8').trimEnd().split('\n');
  const outermost = lines.map((line) => line.split(/;| \d+$/)[0] ?? '');
  t.ok(outermost.some((name) => name.startsWith('poll labkern::work::')));
  t.ok(
    outermost.every((name) => /^poll labkern::|^\[outside of polls\]/.test(name)),
    outermost.join(),
  );
  t.notMatch(lines.join('\n'), /exec::run/);
});

t.test('-K and -U', async (t) => {
  const kernel = await profile('-F', '200', '-d', '300ms', '-U', riscv, '--', ...virt);
  t.equal(kernel.samples, 0, 'machine mode is no program');
  t.equal(kernel.other_mode + kernel.idle, kernel.looks);
});

t.test('wrong command lines', async (t) => {
  for (const [words, message] of [
    [['-F', '0', '-r', ':1', riscv], /-F takes samples a second, from 0.01 to 10000, not '0' \[USAGE\]/],
    [[riscv], /nothing says where .* runs, and it is no program of Linux \[USAGE\]\n {2}give --remote ADDR, or a QEMU/],
    [['--pid', '1', '-r', ':1', riscv], /--pid and --remote do not go together/],
    [['--pid', '1', native, '--', 'x'], /--pid and a command behind -- do not go together/],
    [['--pid', 'x'], /'x' is no process number/],
    [[], /no program is given \[USAGE\]\n {2}rsptrace profile \.\/program/],
    [['-K', '-U', '-r', ':1', riscv], /-K and -U leave nothing to sample/],
    [
      ['-r', ':1', '-o', built('x.json'), riscv],
      /Chrome.* has no place for samples \[USAGE\]\n {2}name a file that ends with \.pftrace/,
    ],
    [['-r', ':1', '--period', 'soon', riscv], /--period takes a time from 100us to 100s, not 'soon'/],
  ] as const) {
    const ran = await rsptrace('profile', ...words).ended;
    t.equal(ran.status, 2, words.join(' '));
    t.match(ran.stderr, message);
  }
});

t.test('a process that forks more often than it is looked at is looked at all the same', async (t) => {
  const source = `#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  alarm(60);
  for (;;) {
    int child = fork();
    if (child == 0) _exit(0);
    waitpid(child, 0, 0);
  }
}
`;
  const ran = await rsptrace('profile', '--json', '-F', '20', '-d', '1s', compileC(t, source)).ended;
  t.match(ran, { status: 0, stderr: '' });
  t.ok((JSON.parse(ran.stdout) as Profile).looks > 2, ran.stdout);
});

t.test(
  'a process that begins another program is sampled no more: its stacks would have names of the old one',
  async (t) => {
    const source = '#include <unistd.h>\nint main() { return execl("/bin/sleep", "sleep", "60", (char *)0); }';
    const found = await profile('-d', '60s', compileC(t, source));
    t.equal(found.end, 'exec');
  },
);
