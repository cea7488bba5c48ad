// What an attempt to take a lock returns, in a program without debug info.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { lock } from '../../src/probes/kinds/locks/index.js';
import { resolveLocks } from '../../src/probes/kinds/locks/resolve.js';
import { compileC } from '../support/native.js';

const source = `
__attribute__((noinline)) void spin_lock(int *lock) { while (__sync_lock_test_and_set(lock, 1)); }
__attribute__((noinline)) int spin_trylock(int *lock) { return !__sync_lock_test_and_set(lock, 1); }
__attribute__((noinline)) _Bool attempt(int *lock) __asm__("_ZN4spin5Mutex8try_lock17h0123456789abcdefE");
_Bool attempt(int *lock) { return !__sync_lock_test_and_set(lock, 1); }
int main() { static int one, other; spin_lock(&one); return spin_trylock(&one) + attempt(&other); }`;

t.test('an int of C is read where it returns; of Rust nobody knows what it is', async (t) => {
  const path = compileC(t, source, ['-no-pie']);
  execFileSync('strip', ['-g', path]);
  const elf = await ElfFile.open(path);
  await x86_64.prepare?.();
  const probe = parseProbe('lock:**') as Parameters<typeof resolveLocks>[1][number];
  const found = resolveLocks({ elf, debug: undefined, arch: x86_64 }, [probe]);
  const plans = lock.plans?.(found, { general: new Set(['rdi', 'rax']) } as never) ?? [];
  const exits = plans.map(({ name, exit, needsStop }) => [name, exit.registers, needsStop]);
  t.strictSame(exits, [
    ['spin_lock', [], undefined],
    ['spin_trylock', ['rax'], undefined],
  ]);
  const [, attempt] = found.functions;
  t.match(attempt?.taken?.parts, [{ register: 'rax', offset: 0, size: 4 }]);
  const [refused] = found.excluded ?? [];
  t.match(refused, { name: 'spin::Mutex::try_lock', reason: /^without debug info nothing says/ });
});

t.test('what is found is not whole where a lock is left out together with a function', async (t) => {
  const report = lock.report({ unseen: [] } as never);
  const found = (name: string) => {
    const others = [{ name, subject: 'spin::Mutex::lock' }];
    const fact = { name: 'app::main', address: 0x1000n, engine: 'none', why: 'it stopped too often', others };
    return (report.json({ engines: [fact] } as never) as { lock_findings: object[] | null }).lock_findings;
  };
  t.same([found('spin::Mutex::lock in app::main'), found('app::other')], [null, []]);
});
