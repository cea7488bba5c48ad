// Locks of a program that counts itself how often it takes each, and by which function.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';

const header = `
#define NO __attribute__((noinline))
struct Mutex {
  int word, locks, tries;
  NO void lock() { while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE)); locks++; }
  NO bool try_lock() { bool taken = !__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE); tries += taken; return taken; }
  NO void unlock() { __atomic_store_n(&word, 0, __ATOMIC_RELEASE); }
};
`;
const source = `
#include <cstdio>
#include "mutex.h"
Mutex first, second;
static void lock(Mutex &one) { one.lock(); one.unlock(); }
static void attempt(Mutex &one, int times) { for (int i = 0; i < times; i++) if (one.try_lock()) one.unlock(); }
int main() {
  lock(first);
  attempt(first, 3);
  attempt(second, 2);
  lock(second);
  printf("[[\\"first\\", %d, %d], [\\"second\\", %d, %d]]\\n", first.locks, first.tries, second.locks, second.tries);
}
`;

type Counts = readonly [name: string, locks: number, tries: number];

t.test('a function that takes locks is chosen for all of them, whichever was the first to take one', async (t) => {
  const folder = scratchFolder(t);
  const program = join(folder, 'program');
  writeFileSync(join(folder, 'mutex.h'), header);
  writeFileSync(join(folder, 'first.cpp'), source);
  execFileSync('g++', ['-g', '-O1', '-o', program, join(folder, 'first.cpp')]);
  const counts: readonly Counts[] = JSON.parse(execFileSync(program, { encoding: 'utf8' }));
  const taken = async (...globs: string[]) => {
    const probes = globs.flatMap((glob) => ['-p', glob]);
    const ran = rsptrace('run', '--json', '--force', ...probes, '-o', join(folder, 'out.pftrace'), program);
    const { locks } = await ran.json<{
      readonly locks: readonly { readonly lock: string; readonly taken: number }[];
    }>();
    return locks.map(({ lock, taken }) => [lock, taken]).sort();
  };
  const [locked, tried] = [1, 2].map((at) => counts.map((each) => [each[0], each[at]]));
  t.strictSame(await taken('lock:Mutex::try_lock'), tried);
  t.strictSame(await taken('lock:**', '!lock:Mutex::try_lock'), locked);
});
