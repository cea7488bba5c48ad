// One place has probes of several kinds: what is no call, and a call that never returns, is the same for all of them.
import t from 'tap';
import { compileC } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

interface Recorded {
  readonly functions: readonly { readonly function: string; readonly calls: number; readonly lost: number }[];
  readonly locks: readonly { readonly taken: number }[];
  readonly histograms: readonly { readonly calls: number; readonly at_least?: boolean }[];
  readonly sums: readonly { readonly calls: number; readonly sum: number; readonly at_least?: boolean }[];
}

const asked = (...probes: string[]): string[] => probes.flatMap((probe) => ['-p', probe]);

t.test('a function that turns to its first instruction, as one that locks does', async (t) => {
  // It is called 5 times, and each call turns 3 times.
  const source = `
int turns, lock;
void spin_lock(int *lock);
__attribute__((noinline)) void spin_unlock(int *lock) { *(volatile int *)lock = 0; }
__asm__(".text; .globl spin_lock; .type spin_lock,@function; spin_lock: incl turns(%rip); movl turns(%rip), %eax;"
        "andl $3, %eax; jnz spin_lock; movl $1, (%rdi); ret; .size spin_lock, .-spin_lock");
int main(void) { for (int i = 0; i < 5; i++) { spin_lock(&lock); spin_unlock(&lock); } return turns != 20; }
`;
  const program = compileC(t, source, ['-no-pie']);
  const { output } = await recorded<Recorded>(t, [program], ['--engine', 'stop', ...asked('fn:spin_lock', 'lock:**')]);
  t.match(output.functions, [{ function: 'spin_lock', calls: 5 }]);
  t.match(output.locks, [{ taken: 5 }]);
});

// Of 20 calls every fourth does not return; the others return 135 in all.
const jumps = `
#include <setjmp.h>
static jmp_buf out;
__attribute__((noinline)) int work(int n) { volatile int kept = n; if (n % 4 == 3) longjmp(out, 1); return kept; }
int main(void) { volatile int i, sum = 0; for (i = 0; i < 20; i++) if (!setjmp(out)) sum += work(i); return sum != 135; }
`;

for (const engine of ['stop', 'target'])
  t.test(`a call that is left by longjmp, engine ${engine}`, async (t) => {
    const program = compileC(t, jumps);
    const probes = asked('fn:work', 'hist(duration):work', 'sum(ret):work');
    const { output } = await recorded<Recorded>(t, [program], ['--engine', engine, ...probes]);
    t.match(output.functions, [{ function: 'work', calls: 20, lost: 5 }]);
    t.match(output.histograms, [{ calls: 15, at_least: true }]);
    t.match(output.sums, [{ calls: 15, sum: 135, at_least: true }]);
    const alone = await recorded<Recorded>(t, [program], ['--engine', engine, ...asked('sum(ret):work')]);
    t.match(alone.output.sums, [{ calls: 15, sum: 135, at_least: true }]);
  });
