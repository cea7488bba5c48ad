// A process that is copied while it runs: what stood still, and the stacks of threads that wait, against a program that says which is which.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { RunningProcess } from '../../src/api/index.js';
import { addOffset } from '../../src/base/addr.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { architectureFor, placeInProcess } from '../../src/target/index.js';
import { start } from '../support/command.js';
import { compileC } from '../support/native.js';

const source = `
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
volatile unsigned long spins;
volatile unsigned long still = 42;
__attribute__((noinline)) int waits(int n) { pause(); return n + 1; }
void *waiter(void *arg) { return (void *)(long)waits(1); }
int main(void) {
  pthread_t thread;
  mmap(0, 3UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  pthread_create(&thread, 0, waiter, 0);
  puts("ready");
  fflush(stdout);
  for (;;) spins++;
}`;

t.test('a process that runs is copied without a stop', async (t) => {
  const path = compileC(t, source, ['-pie']);
  const program = start(path, []);
  t.teardown(() => void program.process.kill('SIGKILL'));
  await program.shows('ready');
  const pid = program.process.pid ?? 0;
  const linked = await ElfFile.open(path);
  const elf = linked.loadedAt(placeInProcess(pid, linked));
  const arch = architectureFor(elf);
  await arch.prepare();
  const debug = DebugInfo.load(elf);
  const watched = new RunningProcess(pid, elf, { arch });
  const placeOf = (name: string) => elf.symbols.named(name)[0]?.address ?? elf.entry;
  const [spins, still, waits] = [placeOf('spins'), placeOf('still'), placeOf('waits')];

  // Until it has run between two copies, and its other thread has come to where it waits.
  for (;;) {
    const copy = await watched.copy();
    t.equal(await copy.stood(still, 8), true);
    t.equal(copy.memory.unread, 3 * 2 ** 30, 'what it has reserved is not copied, and counted');
    t.equal((await copy.memory.read(still, 8))?.[0], 42);
    const stacks = await copy.walk({ elf, debug });
    t.equal(copy.threads - copy.running, stacks.length, 'those that wait have stacks');
    const isWaiting = stacks.some(({ frames }) => frames.some(({ pc }) => pc >= waits && pc < addOffset(waits, 64)));
    if (isWaiting && copy.threads === 2 && !(await copy.stood(spins, 8))) break;
  }
  t.match(readFileSync(`/proc/${pid}/status`, 'latin1'), /^TracerPid:\s*0$/m);
  program.process.kill('SIGKILL');
  await program.ended;
  await t.rejects(watched.copy(), { code: 'ATTACH_NO_PROCESS' });
});
