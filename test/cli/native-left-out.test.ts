// A probe that is switched off on the way, and one that is left out: what the trace has of them is a lower bound, and
// every command says so. The program says how often it calls.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { compileC } from '../support/native.js';

// `brief` is one instruction, shorter than any patch: it stops the target at each call.
const source = `
#include <stdio.h>
__asm__(".globl brief\\n.type brief, @function\\nbrief: ret\\n.size brief, . - brief\\n");
void brief(void);
#define WORK(name) __attribute__((noinline)) int name(int n) { volatile int kept = n; return kept * 3 + n; }
WORK(one) WORK(two) WORK(three) WORK(four)
int main(void) {
  int sum = 0, i;
  for (i = 0; i < 5000; i++) { brief(); sum += one(i) + two(i) + three(i) + four(i); }
  printf("%d calls\\n", i);
  return sum & 0;
}
`;

interface Row {
  readonly calls: number;
  readonly at_least: boolean;
}

const program = compileC(t, source);
const folder = scratchFolder(t);
const calls = Number(execFileSync(program, { encoding: 'utf8' }).split(' ')[0]);

async function record(name: string, ...options: readonly string[]) {
  const trace = join(folder, `${name}.pftrace`);
  const probes = ['brief', 'one', 'two', 'three', 'four'].flatMap((fn) => ['-p', `fn:${fn}`]);
  const ran = await rsptrace('run', '-o', trace, ...probes, ...options, program).ended;
  t.equal(ran.status, 0, ran.stderr);
  return { trace, ...ran };
}

async function check(trace: string, budget: object): Promise<Record<string, { state: string; measured: string }>> {
  const file = join(folder, 'budget.json');
  writeFileSync(file, JSON.stringify({ version: 1, ...budget }));
  const { stdout, stderr } = await rsptrace('check', trace, '--budget', file, '--json').ended;
  t.match(stderr, /1 probe left out, or switched off on the way \(brief\)/);
  const { verdicts } = JSON.parse(stdout) as { verdicts: { subject: string; state: string; measured: string }[] };
  return Object.fromEntries(verdicts.map(({ subject, state, measured }) => [subject, { state, measured }]));
}

t.test('a probe that is switched off: at least so many calls', async (t) => {
  const { trace, stdout } = await record('off');
  const told = Number(/^ *>=(\d+) .* brief\b/m.exec(stdout)?.[1]);
  t.ok(told > 0 && told < calls, `${told} of ${calls} calls`);
  t.match(stdout, /^>= at least so many: the probe was left out, or switched off on the way/m);
  for (const name of ['one', 'two', 'three', 'four']) t.match(stdout, new RegExp(`^ *${calls} .* ${name}\\b`, 'm'));

  const report = await rsptrace('report', trace).ended;
  t.match(report.stdout, new RegExp(`^ *>=${told} .* brief\\b`, 'm'));
  t.match(report.stderr, /1 probe left out, or switched off on the way \(brief\): counts of them are lower bounds/);
  const json = JSON.parse((await rsptrace('report', '--json', trace).ended).stdout) as {
    fn: (Row & { name: string })[];
    probes_left_out: string[];
    stops_beside: number;
  };
  const { fn, probes_left_out: leftOut, stops_beside: stops } = json;
  // A call of `brief` is a stop at its entry, and one at its return; where it is switched off there may be one more.
  t.ok(stops >= told && stops <= 2 * told + 1, `${stops} stops of ${told} calls`);
  t.match(report.stderr, new RegExp(`${stops} stops beside probes that need none.*: times of calls that a stop is in`));
  t.strictSame(leftOut, ['brief']);
  const bounds = new Map(fn.map(({ name, calls: count, at_least: isBound }) => [name, [count, isBound]]));
  t.strictSame(bounds.get('brief'), [told, true]);
  t.strictSame(bounds.get('one'), [calls, false]);
  for (const verb of ['graph', 'replay'] as const)
    t.match((await rsptrace(verb, trace).ended).stderr, /switched off on the way \(brief\)/);

  const verdicts = await check(trace, {
    counts: { 'fn:brief': calls, 'fn:one': calls },
    times: { 'fn:brief': { max: '10s', avg: '10s' }, 'fn:two': { max: '10s' } },
  });
  t.match(verdicts, {
    'fn:brief': { state: 'unseen', measured: new RegExp(`^at least ${told}: the probe of brief`) },
    'fn:one': { state: 'kept' },
    'fn:brief max': {
      state: 'unseen',
      measured: /not all were seen: the probe of brief was left out, or switched off/,
    },
    'fn:brief avg': { state: 'unseen' },
    'fn:two max': { state: 'kept' },
  });
  const counts = async (bounds: object | number) =>
    (await check(trace, { counts: { 'fn:brief': bounds } }))['fn:brief'];
  t.match(await counts({ min: told }), { state: 'kept' });
  t.match(await counts({ max: told - 1 }), { state: 'broken' });
  t.match((await check(trace, { never: ['fn:brief'] }))['fn:brief'], { state: 'broken' });
});

t.test('counts, sums and histograms of it', async (t) => {
  const probes = ['count:brief', 'sum(rdi):brief', 'hist(rdi):brief'].flatMap((probe) => ['-p', probe]);
  const { stdout } = await record('counted', '-p', '!fn:brief', ...probes);
  t.match(stdout, /^ *>=\d+ +brief\b/m);
  t.match(stdout, /^ *>=\d+ +\d+ +brief, rdi\b/m);
  t.match(stdout, /^brief, rdi: at least \d+ calls$/m);
});

t.test('a probe that was left out from the begin: that it never came is not known', async (t) => {
  const { trace } = await record('target', '--engine', 'target');
  const verdicts = await check(trace, { never: ['fn:brief', 'fn:gone'], counts: { 'fn:two': calls } });
  t.match(verdicts, {
    'fn:brief': { state: 'unseen', measured: /the probe of brief was left out, or switched off on the way \(.*short/ },
    'fn:gone': { state: 'unseen', measured: /nothing in the trace has this name/ },
    'fn:two': { state: 'kept' },
  });
});

t.test(
  'system calls stop beside a function that needs no stop: that is said, and all times are upper bounds',
  async (t) => {
    const program = compileC(
      t,
      `#include <unistd.h>
    __attribute__((noinline)) int alone(int n) { volatile int kept = n; return kept * 3 + n; }
    int main(void) {
      int sum = 0;
      for (int i = 0; i < 7; i++) { sum += alone(i); getppid(); }
      return sum & 0;
    }`,
    );
    const trace = join(scratchFolder(t), 'calls.pftrace');
    const words = ['-o', trace, '-p', 'fn:alone', '-p', 'syscall:getppid', program];
    const { status, stdout, stderr } = await rsptrace('run', ...words).ended;
    t.equal(status, 0, stderr);
    t.match(stderr, /1 probe, without stops\n.*syscall:getppid stops the process at each call$/m);
    for (const name of ['alone', 'syscall::getppid']) t.match(stdout, new RegExp(`^ *7 +< .* ${name}\\b`, 'm'));
    t.match(
      stdout,
      /^durations are upper bounds \(<\), because a stop at a trap may be in any of them.*; but a call that waits in the kernel .* may have taken longer/m,
    );
  },
);
