// Locks of a program that counts itself how often it takes each, and by which function.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
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

interface Row {
  readonly lock: string;
  readonly taken: number;
  readonly file: string;
  readonly line: number;
}

/** Compiles these, and gives what the program prints and its rows of these locks. */
function program(t: Parameters<typeof scratchFolder>[0], sources: Readonly<Record<string, string>>) {
  const folder = scratchFolder(t);
  const path = join(folder, 'program');
  const files = Object.entries({ 'mutex.h': header, ...sources }).map(([name, text]) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  });
  execFileSync('g++', ['-g', '-O1', '-o', path, ...files.filter((file) => file.endsWith('.cpp'))]);
  return {
    counts: () => JSON.parse(execFileSync(path, { encoding: 'utf8' })) as readonly Counts[],
    taken: async (...globs: string[]): Promise<readonly Row[]> => {
      const options = [
        '--json',
        '--force',
        '-o',
        join(folder, 'out.pftrace'),
        ...globs.flatMap((glob) => ['-p', glob]),
      ];
      return (await rsptrace('run', ...options, path).json<{ readonly locks: readonly Row[] }>()).locks;
    },
  };
}

t.test('a function that takes locks is chosen for all of them, whichever was the first to take one', async (t) => {
  const { counts, taken } = program(t, { 'first.cpp': source });
  const [locked, tried] = [1, 2].map((at) => counts().map((each) => [each[0], each[at]]));
  const shown = async (...globs: string[]) => (await taken(...globs)).map((row) => [row.lock, row.taken]).sort();
  t.strictSame(await shown('lock:Mutex::try_lock'), tried);
  t.strictSame(await shown('lock:**', '!lock:Mutex::try_lock'), locked);
});

t.test('statics of two files that have one name are two locks, each with its own place', async (t) => {
  const guard = 'static Mutex guard;';
  const { taken } = program(t, {
    'one.cpp': `#include "mutex.h"\n${guard}\nvoid two();\nint main() { guard.lock(); guard.unlock(); two(); two(); }`,
    'two.cpp': `#include "mutex.h"\n\n\n${guard}\nvoid two() { guard.lock(); guard.unlock(); }`,
  });
  const rows = (await taken('lock:guard')).map((row) => `${row.taken} ${basename(row.file)}:${row.line}`);
  t.strictSame(rows.sort(), ['1 one.cpp:2', '2 two.cpp:4']);
});
