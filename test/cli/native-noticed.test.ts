// Programs that look: at their return addresses, at the address of an instruction that faults, at the frames of their stack. Under the default
// engine they print what they print untraced.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC } from '../support/native.js';

async function unnoticed(t: Test, program: string, ...probes: string[]) {
  const untraced = await start(program, []).ended;
  const trace = join(scratchFolder(t), 'out.txt');
  const args = ['run', '--json', '-o', trace, ...probes.flatMap((probe) => ['-p', probe]), program];
  const { status, stdout, stderr } = await rsptraceProcess(...args).ended;
  t.equal(status, 0, stderr.slice(-300));
  t.ok(stderr.includes(untraced.stdout), `${untraced.stdout}but: ${stderr}`);
  const { functions } = JSON.parse(stdout) as { functions: { function: string; calls: number }[] };
  return { untraced: untraced.stdout, calls: new Map(functions.map(({ function: name, calls }) => [name, calls])) };
}

const noinline = '__attribute__((noinline))';

t.test('return addresses: a table by call sites, dlsym in place of a return, the frames of the stack', async (t) => {
  const head = '#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n';
  const sites = `${head}
static struct { void *at; long n; } sites[16];
${noinline} void note(long x) {
  void *at = __builtin_return_address(0); int i = 0;
  while (sites[i].at && sites[i].at != at) i++;
  sites[i].at = at; sites[i].n += x;
}
${noinline} void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }
int main(void) {
  for (int i = 0; i < 10; i++) note(1);
  for (int i = 0; i < 5; i++) note(2);
  int known = 0; extern char __executable_start, etext; int own = 0;
  for (; known < 16 && sites[known].at; known++)
    own += (char *)sites[known].at >= &__executable_start && (char *)sites[known].at < &etext;
  printf("sites %d of which own %d, next %s\\n", known, own, next_of("puts") ? "found" : dlerror());
  return 0;
}`;
  const { untraced, calls } = await unnoticed(t, compileC(t, sites, ['-O2']), 'fn:note', 'fn:next_of');
  t.equal(untraced, 'sites 2 of which own 2, next found\n');
  t.same(Object.fromEntries(calls), { note: 15, next_of: 1 });
  const frames = `${head}#include <execinfo.h>
${noinline} int depth(void) { void *all[64]; int n = backtrace(all, 64); __asm__ volatile(""); return n; }
${noinline} int outer(void) { int n = depth(); __asm__ volatile(""); return n; }
int main(void) { int inner = depth(); printf("one more: %d\\n", outer() - inner); return 0; }`;
  const listed = await unnoticed(t, compileC(t, frames, ['-O2']), 'fn:depth', 'fn:outer');
  t.equal(listed.untraced, 'one more: 1\n');
  t.same(Object.fromEntries(listed.calls), { depth: 2, outer: 1 });
});

for (const first of usually(['nop', ''], (one) => one === '')) {
  t.test(`a handler of faults that knows an instruction by its address, behind '${first}'`, async (t) => {
    const source = `#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>
long try_read(const long *, long);
extern char try_read_at[], try_read_failed[];
__asm__(".globl try_read, try_read_failed\\n.type try_read, @function\\ntry_read: ${first}\\ntry_read_at: mov (%rdi), %rax\\n nop\\n nop\\n ret\\n"
        "try_read_failed: mov %rsi, %rax\\n ret\\n.size try_read, .-try_read\\n.globl try_read_at\\n");
static volatile int faults;
static void handler(int number, siginfo_t *info, void *context) {
  long *pc = (long *)&((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  if ((char *)*pc != try_read_at) _exit(9);
  faults++; *pc = (long)try_read_failed;
}
int main(void) {
  struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
  sigaction(SIGSEGV, &action, 0);
  long value = 5, sum = 0;
  for (int i = 0; i < 100; i++) sum += try_read(i % 10 ? &value : (long *)8, -1);
  printf("faults %d sum %ld\\n", faults, sum);
  return 0;
}`;
    const { untraced, calls } = await unnoticed(t, compileC(t, source), 'fn:try_read');
    t.equal(untraced, 'faults 10 sum 440\n');
    // Also those that come where a call has faulted in its first instruction, whose handler went elsewhere.
    t.equal(calls.get('try_read'), 100);
  });
}

t.test(
  'a static program: what a resolver chooses is meant by its name, and what signals return to is left out',
  async (t) => {
    const source = `#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  char from[256], to[256]; long sum = 0; memset(from, argc, 256);
  for (int i = 0; i < TURNS; i++) sum += (char *)mempcpy(to, from, i + argc - 1) - to;
  return sum < 0;
}`;
    const [program, longer] = [100, 300].map((turns) => compileC(t, source, ['-static', `-DTURNS=${turns}`]));
    if (!program || !longer) throw new Error('nothing was compiled');
    // The C library calls it, too.
    const called = async (one: string) => (await unnoticed(t, one, 'fn:mempcpy')).calls.get('mempcpy') ?? 0;
    t.equal((await called(longer)) - (await called(program)), 200);
    const { stdout } = await rsptrace('run', '--dry-run', '--json', '-p', 'fn:**', program).ended;
    const { not_probed } = JSON.parse(stdout) as { not_probed: { function: string; reason: string }[] };
    const reason = not_probed.find(({ function: name }) => name === '__restore_rt')?.reason;
    t.match(reason, /entered by a return/);
    t.match(readFileSync(program).toString('latin1'), '__restore_rt');
  },
);
