// Programs of unusual control flow at a real gdbserver: exceptions, panics, vfork, arguments that lie on the stack. Each prints what it prints
// untraced, and counts its calls or polls itself.
import t, { type Test } from 'tap';
import { rsptraceProcess, start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC, compileReleased, pollsPrinted, pollsProgram } from '../support/native.js';
import { functionProbes, sameCalls, trace, withoutStops } from '../support/native-trace.js';

for (const flags of usually([[], ['-static']], (one) => one.length === 0)) {
  t.test(`g++ -O2 ${flags}: exceptions pass traced calls`, async (t) => {
    const program = compileReleased(t, 'exceptions.cpp', flags);
    const untraced = (await start(program, []).ended).stdout;
    const { output, stdout } = await trace(t, [program], '--engine', 'target', ...functionProbes.slice(0, 6));
    t.equal(stdout, untraced, 'each is caught where it is caught untraced, with its cleanups');
    t.equal(output.guest_exit, 'status 0');
    withoutStops(t, output);
    sameCalls(t, output, untraced);
    // It catches every exception, and throws each that outer catches once more: so many of its calls do not return.
    const [, rethrown] = / caught (\d+)/.exec(untraced) ?? [];
    const middle = output.functions.find((row) => row.function === 'middle');
    t.equal(middle?.lost, Number(rethrown));
    t.ok((middle?.total_ns ?? 0) > 0);
  });
}

// With exec it ends as the program with threads.
for (const mode of usually(
  ['alone', 'threads', 'fork', 'signals', 'exec'],
  (one) => one === 'fork' || one === 'exec',
)) {
  t.test(`${mode}: every poll that a Rust program counted, without stops`, async (t) => {
    const program = pollsProgram(t);
    const untraced = (await start(program, [mode]).ended).stdout;
    const { output, stdout } = await trace(t, [program, mode], '--engine', 'target');
    t.equal(stdout, untraced);
    t.equal(output.guest_exit, 'status 0');
    withoutStops(t, output);
    for (const [name, polls] of pollsPrinted(untraced))
      t.match(
        output.futures.find(({ future }) => future === `polls::${name}`),
        { polls, lost: 0 },
        name,
      );
  });
}

for (const engine of usually(['target', 'stop'], (one) => one === 'target')) {
  for (const name of usually(['panics-o0', 'panics-o2'] as const, (one) => one === 'panics-o2')) {
    t.test(`${name}, --engine ${engine}: a poll that panics is no poll that is lost`, async (t) => {
      const { output, stdout, text } = await trace(t, [pollsProgram(t, name)], '--engine', engine);
      t.match(stdout, /^leaves 18 caught 6$/m);
      const rowOf = (future: string): unknown => output.futures.find((row) => row.future === `panics::${future}`);
      // Three of six tasks panic, each in its leaf; `shields` catches that of its leaf and goes on.
      t.match(rowOf('passes_on'), { polls: 18, ready: 3, pending: 12, panicked: 3, lost: 0 });
      t.match(rowOf('shields'), { polls: 18, ready: 6, pending: 12, panicked: 0, lost: 0 });
      t.match(rowOf('leaf'), { polls: 42, ready: 12, pending: 24, panicked: 6, lost: 0 });
      t.equal(text.match(/= panicked .*panics::passes_on/g)?.length, 3, 'so the trace says');
    });
  }

  t.test(`tokio, --engine ${engine}: a task that panics`, async (t) => {
    const { output, stdout } = await trace(t, [pollsProgram(t, 'tokio'), '2', 'panics'], '--engine', engine);
    t.match(stdout, /^caught 5$/m);
    const row = output.futures.find(({ future }) => future === 'tokio_program::may_panic');
    t.match(row, { polls: 20, ready: 5, pending: 10, panicked: 5, lost: 0 });
  });
}

// vfork and posix_spawn: the child runs in its parent's memory until it execs, with breakpoints or trampolines in it.
const spawnProbes = ['work', 'other', 'launch', 'prepare'].flatMap((name) => ['-p', `fn:${name}`]);

for (const engine of ['stop', 'target']) {
  t.test(`--engine ${engine}: the parent's calls, and children that are unharmed`, async (t) => {
    const program = compileReleased(t, 'spawn.c');
    const untraced = (await start(program, []).ended).stdout;
    t.match(untraced, /(child \w+\nended 700\n){6}/);
    const { output, stdout } = await trace(t, [program], '--engine', engine, ...spawnProbes);
    t.equal(stdout, untraced, 'children compute and end as they do untraced');
    t.equal(output.end, 'guest-ended');
    t.equal(output.guest_exit, 'status 0');
    const prepared = output.functions.find(({ function: name }) => name === 'prepare')?.calls ?? 0;
    if (engine === 'target') {
      withoutStops(t, output);
      sameCalls(t, output, untraced);
    } else {
      sameCalls(t, output, untraced.replace(/ prepare=\d+/, ''));
      t.equal(prepared, 0, "what a child does in its parent's memory is not told");
    }
  });
}

// Functions that are not called as they are declared: their arguments lie on the stack, where a hooked return would move them.
const programs: readonly (readonly [string, (t: Test) => string])[] = [
  ['gcc passes parts of structures', (t) => compileReleased(t, 'promoted.c')],
  ['line tables alone name no arguments', (t) => compileReleased(t, 'promoted.c', ['-g1'])],
  ['a parameter pack of C++', (t) => compileReleased(t, 'packs.cpp')],
  ['rustc passes parts of structures', (t) => pollsProgram(t, 'promoted')],
];

for (const [what, build] of usually(programs, ([what]) => !/^line|^rustc/.test(what))) {
  t.test(`${what}: the program computes what it does untraced, and each call is recorded`, async (t) => {
    const program = build(t);
    const untraced = (await start(program, []).ended).stdout;
    const { output, stdout } = await trace(t, [program], '--engine', 'target', '-p', 'fn:**');
    t.equal(stdout, untraced);
    const calls = new Map<string, number>();
    for (const row of output.functions) {
      const name = row.function.replace(/^.*::|[.(<].*$/g, '');
      calls.set(name, (calls.get(name) ?? 0) + row.calls);
    }
    t.ok(calls.has('plain'));
    for (const [, name = '', count] of untraced.matchAll(/(\w+)=(\d+)/g)) {
      // One whose ends cannot be patched either is left out.
      if (calls.has(name)) t.equal(calls.get(name), Number(count), name);
    }
  });
}

t.test('the child of a fork keeps what the program has changed of its own code', async (t) => {
  const source = `#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int changed(int n);
__asm__(".text\\n.globl changed\\n.type changed,@function\\nchanged:\\n mov $1,%eax\\n nop;nop;nop;nop;nop;nop\\n ret\\n.size changed,.-changed\\n");
__attribute__((noinline)) int other(int n) { __asm__ volatile("nop;nop;nop;nop;nop;nop"); return n + 1; }
int main(void) {
  unsigned char *p = (unsigned char *)((unsigned long)changed & ~4095ul);
  mprotect(p, 8192, PROT_READ | PROT_WRITE | PROT_EXEC); ((unsigned char *)changed)[1] = 2; mprotect(p, 8192, PROT_READ | PROT_EXEC);
  for (int i = 0; i < 5; i++) other(i);
  pid_t c = fork(); if (!c) _exit(changed(0));
  int st; waitpid(c, &st, 0); printf("child got %d, parent %d\\n", WEXITSTATUS(st), changed(0)); return 0; }
`;
  const program = compileC(t, source);
  const probes = ['-p', 'fn:changed', '-p', 'fn:other'];
  const { stdout, stderr } = await rsptraceProcess('run', ...probes, '-o', `${program}.txt`, program).ended;
  t.match(stdout + stderr, /^child got 2, parent 2$/m);
});

t.test('--until is waited for in the program that the process runs next, if that is the same', async (t) => {
  const source = `#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
__attribute__((noinline)) int work(int n){ asm volatile(""); return n+1; }
__attribute__((noinline)) void done(void){ asm volatile(""); }
int main(int c,char**v){
  int s=0; for(int i=0;i<20;i++) s=work(s);
  if(c==1){ execv("/proc/self/exe",(char*[]){v[0],"again",0}); _exit(3);}    
  done();
  for(int i=0;i<20;i++){ s=work(s);} 
  printf("end %d\\n",s); return 0; }
`;
  const program = compileC(t, source, ['-no-pie']);
  const options = ['--engine', 'stop', '--json', '-p', 'fn:work', '--until', 'done', '-o', `${program}.txt`];
  const { stdout, stderr } = await rsptraceProcess('run', ...options, program).ended;
  t.match(JSON.parse(stdout), { functions: [{ function: 'work', calls: 40 }] }, stderr);
});
