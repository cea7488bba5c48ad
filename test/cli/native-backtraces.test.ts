// Programs that walk their own stacks through traced functions: they print what they print untraced.

import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptraceProcess, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';

const folder = scratchFolder(t);

const RUST = `use std::hint::black_box;
#[inline(never)] pub fn deep0(n: u64) -> u64 { black_box(deep1(n + 1)) + 1 }
#[inline(never)] pub fn deep1(n: u64) -> u64 { black_box(deep2(n + 1)) + 1 }
#[inline(never)] pub fn deep2(n: u64) -> u64 { if n % 2 == 0 { panic!("even {n}") } else { n } }
fn main() {
    for n in 0..3 { let _ = std::panic::catch_unwind(|| deep0(black_box(n))); }
    eprintln!("{}", std::backtrace::Backtrace::force_capture());
    deep0(black_box(0));
}
`;

/** It imports `backtrace`, so that return addresses stay where they are. */
const CPP = `#include <execinfo.h>
#include <cstdio>
#include <stdexcept>
extern "C" {
__attribute__((noinline)) void show(int n) { void *a[64]; backtrace_symbols_fd(a, backtrace(a, 64), 2); if (n == 3) throw std::runtime_error("three"); }
__attribute__((noinline)) void deep2(int n) { show(n); asm(""); }
__attribute__((noinline)) void deep1(int n) { deep2(n); asm(""); }
}
int main() {
  for (int n = 0; n < 5; n++) try { deep1(n); } catch (std::exception &e) { fprintf(stderr, "caught %s\\n", e.what()); }
}
`;

/** Loads what walks stacks when its functions are traced already: nothing that it imports does. */
const LATE = `#include <dlfcn.h>
static void (*show)(void);
__attribute__((noinline)) void deep2(void) { show(); __asm__(""); }
__attribute__((noinline)) void deep1(void) { deep2(); __asm__(""); }
static void nothing(void) {}
int main(int c, char **v) {
  show = nothing;
  deep1();
  void *library = dlopen(v[1], RTLD_NOW);
  if (!library) return 2;
  show = (void (*)(void))dlsym(library, "show");
  deep1();
  deep1();
  return 0;
}
`;

const PLUG = `#include <execinfo.h>
void show(void) { void *a[64]; backtrace_symbols_fd(a, backtrace(a, 64), 2); }
`;
const plug = join(folder, 'plug.so');
execFileSync('gcc', ['-O1', '-fPIC', '-shared', '-x', 'c', '-', '-o', plug], { input: PLUG });

const programs: Readonly<Record<string, readonly [command: string, args: readonly string[], source: string]>> = {
  'rust-debug': ['rustc', ['-g', '--crate-name', 'walks', '-'], RUST],
  'rust-release': ['rustc', ['-g', '-O', '--crate-name', 'walks', '-'], RUST],
  'rust-static': ['rustc', ['-g', '-C', 'target-feature=+crt-static', '--crate-name', 'walks', '-'], RUST],
  'c++': ['g++', ['-O1', '-g', '-rdynamic', '-x', 'c++', '-'], CPP],
  late: ['gcc', ['-O1', '-g', '-rdynamic', '-fexceptions', '-x', 'c', '-'], LATE],
};

/** Addresses, threads' numbers, and what rsptrace itself says are left out. */
function printed(stderr: string): string {
  const own = /^rsptrace: .*\n(?: {2}.*\n)?/gm;
  return stderr
    .replace(own, '')
    .replaceAll(/0x[0-9a-f]+/g, '0x')
    .replaceAll(/'main' \(\d+\)/g, "'main'");
}

async function traced(t: Test, program: string): Promise<string> {
  const args = ['--json', '-p', 'fn:*deep*', '-o', join(scratchFolder(t), 'out.pftrace'), program, '--', plug];
  const { stdout, stderr } = await rsptraceProcess('run', ...args).ended;
  const { records, probes } = JSON.parse(stdout) as Recording;
  t.ok(
    probes.every(({ engine }) => engine === 'target'),
    'each is traced without stops',
  );
  t.ok(records > 3, `${records} records`);
  return stderr;
}

const isUsual = ([name]: readonly [string, unknown]): boolean => !/debug|static|late/.test(name);
for (const [name, [command, args, input]] of usually(Object.entries(programs), isUsual)) {
  t.test(`${name}: stacks that the program prints have no frame of ours`, async (t) => {
    const program = join(folder, name);
    execFileSync(command, [...args, '-o', program], { input, stdio: ['pipe', 'ignore', 'ignore'] });
    process.env.RUST_BACKTRACE = '1';
    const untraced = printed(spawnSync(program, [plug], { encoding: 'utf8' }).stderr);
    t.match(untraced, /deep1/, 'the functions are on the stack');
    t.equal(printed(await traced(t, program)), untraced);
  });
}
