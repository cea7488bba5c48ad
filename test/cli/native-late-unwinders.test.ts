// A C program that loads C++ and Rust libraries after its first hits, whose exceptions pass traced frames.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';

const folder = scratchFolder(t);
const at = (name: string): string => join(folder, name);
const compile = (
  command: string,
  options: readonly string[],
  language: string,
  name: string,
  input: string,
): string => {
  const source = language === 'rust' ? ['-'] : ['-x', language, '-'];
  execFileSync(command, [...options, '-o', at(name), ...source], { input });
  return at(name);
};

/** Loads its libraries at four turns from `when` on, has each call back, and unloads some again. */
const host = compile(
  'gcc',
  ['-O1', '-g', '-fexceptions'],
  'c',
  'host',
  `#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
typedef int (*run_t)(int (*)(int), int);
static int (*thrower)(int);
static long calls;
__attribute__((noinline)) int callback(int x) { calls++; int r = thrower(x); asm volatile(""); return r + 1; }
__attribute__((noinline)) void warm(void) { calls++; asm volatile(""); }
int main(int c, char **v) {
  int when = atoi(v[2]), caught = 0;
  for (int turn = 0; turn < when + 4; turn++) {
    warm();
    for (int i = 3; i < c && turn >= when; i++) {
      void *h = dlopen(v[i], RTLD_NOW);
      if (!h) return 2;
      run_t run = (run_t)dlsym(h, "plug_run");
      thrower = (int (*)(int))dlsym(h, "plug_throw");
      for (int x = 0; x < 4; x++) caught += run(callback, x);
      if (turn % 2) dlclose(h);
    }
  }
  FILE *f = fopen(v[1], "w");
  fprintf(f, "calls %ld caught %d\\n", calls, caught);
  return fclose(f);
}`,
);
const CPP = `#include <stdexcept>
extern "C" int plug_throw(int x) { if (x % 2) throw std::runtime_error("odd"); return x; }
extern "C" int plug_run(int (*cb)(int), int x) { try { cb(x); return 0; } catch (const std::exception &) { return 1; } }`;
const cpp = compile('g++', ['-O1', '-fPIC', '-shared'], 'c++', 'plug.so', CPP);
const own = compile('g++', ['-O1', '-fPIC', '-shared', '-static-libgcc', '-static-libstdc++'], 'c++', 'own.so', CPP);
const rust = compile(
  'rustc',
  ['-O', '--crate-type=cdylib', '--crate-name=plug', '-Cpanic=unwind'],
  'rust',
  'plugr.so',
  `#[no_mangle] pub extern "C-unwind" fn plug_throw(x: i32) -> i32 { if x % 2 == 1 { std::panic::resume_unwind(Box::new(7)); } x }
#[no_mangle] pub extern "C-unwind" fn plug_run(cb: extern "C-unwind" fn(i32) -> i32, x: i32) -> i32 {
    std::panic::catch_unwind(|| { cb(x); }).is_err() as i32
}`,
);

const some = [
  ['C++, before the first call of another function', 0, cpp],
  ['C++', 2, cpp],
  ['Rust', 1, rust],
  ['C++ with an unwinder of its own', 1, own],
  ['all of them', 3, rust, own, cpp],
] as const;
/** Before anything has run, and all that the others have, one after the other. */
const usual = new Set<string>(['C++, before the first call of another function', 'all of them']);
const moments = Array.from({ length: 20 }, (_, when) => [`all of them at turn ${when}`, when, own, rust, cpp] as const);

for (const [name, when, ...libraries] of usually([...some, ...moments], ([name]) => usual.has(name))) {
  t.test(`libraries that come late: ${name}`, async (t) => {
    const words = [`${when}`, ...libraries];
    execFileSync(host, [at('alone'), ...words]);
    const probes = ['-p', 'fn:callback', '-p', 'fn:warm', '-o', at('out.pftrace'), '--force', '--json'];
    const { status, stdout, stderr } = await rsptrace('run', ...probes, host, '--', at('traced'), ...words).ended;
    t.equal(status, 0, stderr);
    const seen = readFileSync(at('traced'), 'utf8');
    t.equal(seen, readFileSync(at('alone'), 'utf8'));
    const report = JSON.parse(stdout) as {
      functions: { function: string; calls: number }[];
      probes: { function: string; engine: string }[];
    };
    const calls = report.functions.reduce((sum, row) => sum + row.calls, 0);
    t.equal(calls, Number(/calls (\d+)/.exec(seen)?.[1]), 'each call is seen');
    t.equal(report.probes.find(({ function: each }) => each === 'callback')?.engine, 'target');
  });
}
