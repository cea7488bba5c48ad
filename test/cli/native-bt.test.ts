// Stacks of a program whose threads wait in libc, through its shared libraries, as gdb walks them.
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { statOf } from '../../src/base/proc.js';
import { ElfFile } from '../../src/elf/index.js';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { gdbserver, waitingProgram } from '../support/native.js';

interface Output {
  readonly libraries: readonly string[];
  readonly missing_libraries: readonly { readonly name: string; readonly why: string }[];
  readonly harts: readonly {
    readonly id: string;
    readonly frames: readonly { level: number; pc: string; function: string | null; library: string | null }[];
    readonly end: { readonly reason: string; readonly complete: boolean };
  }[];
}

const here = join(import.meta.dirname, '../native');
const attached = 'if a debugger may attach here: sysctl kernel.yama.ptrace_scope=0, or as root';

async function backtrace(target: readonly string[], program: string): Promise<Output> {
  return rsptrace('bt', '--json', ...target, program).json<Output>();
}

async function lldbServer(t: { teardown: (fn: () => void) => void }, pid: string): Promise<string> {
  const server = start('lldb-server-14', ['gdbserver', '--pipe', '1', '127.0.0.1:0', '--attach', pid]);
  t.teardown(() => void server.process.kill('SIGKILL'));
  const found = await new Promise<string>((done) => {
    server.process.stdout?.on('data', (text: string) => {
      const [digits] = /\d+/.exec(text) ?? [];
      if (digits !== undefined) done(digits);
    });
  });
  return `127.0.0.1:${found}`;
}

t.test('threads that wait in libc have the frames that gdb finds', async (t) => {
  const program = join(scratchFolder(t), 'blocked');
  execFileSync('gcc', ['-g', '-O2', '-pthread', '-o', program, join(here, 'blocked.c')]);
  const { pid } = await waitingProgram(t, program);
  const gdb = await start('gdb', ['-nx', '-batch', '-p', pid, '-x', join(here, 'gdb-threads.py')]).ended;
  const [, told] = /^THREADS (.*)$/m.exec(gdb.stdout) ?? [];
  if (told === undefined) throw new Error(`gdb tells nothing, ${attached}: ${gdb.stderr}`);
  const wanted = JSON.parse(told) as Readonly<Record<string, readonly string[]>>;
  t.equal(Object.keys(wanted).length, 5);
  const core = join(scratchFolder(t), 'core');
  execFileSync('gdb', ['-nx', '-batch', '-p', pid, '-ex', `gcore ${core}`], { stdio: 'ignore' });
  for (const name of ['gdbserver', 'lldb-server', 'a core']) {
    const address =
      name === 'a core'
        ? ['--core', core]
        : ['--remote', name === 'gdbserver' ? (await gdbserver(t, '--attach', pid)).address : await lldbServer(t, pid)];
    const { harts, libraries, missing_libraries } = await backtrace(address, program);
    const found = harts.map(({ id, frames }) => {
      const pcs = frames.filter(({ level }, i) => level !== frames[i - 1]?.level).map(({ pc }) => pc);
      return [Number.parseInt(id.split('.').at(-1) ?? '', 16), pcs] as const;
    });
    t.same(Object.fromEntries(found), wanted, name);
    t.ok(
      harts.every(({ end }) => end.complete),
      'and every stack is whole',
    );
    t.ok(libraries.some((path) => /\/libc\.so\.6$/.test(path)));
    t.same(missing_libraries, []);
    const waits = harts
      .flatMap(({ frames }) => frames.slice(0, 1))
      .filter((frame) => /epoll_wait/.test(`${frame.function}`));
    t.match(waits, [{ library: /\/libc\.so\.6$/ }]);
  }
});

t.test('a library whose file has changed is told, and not taken for the one that runs', async (t) => {
  const folder = scratchFolder(t);
  const [library, program] = [join(folder, 'libmiddle.so'), join(folder, 'program')];
  const build = (body: string, as: string): void => {
    writeFileSync(`${as}.c`, `#include <unistd.h>\nint middle(int (*f)(int), int x) { ${body} }\n`);
    execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', as, `${as}.c`]);
  };
  build('return f(x) + 1;', library);
  writeFileSync(
    `${program}.c`,
    `#include <stdio.h>\n#include <unistd.h>
int middle(int (*)(int), int);
static int inner(int x) { return pause() + x; }
int main(void) { puts("ready"); fflush(stdout); return middle(inner, 1); }\n`,
  );
  execFileSync('gcc', ['-g', '-O1', '-o', program, `${program}.c`, library, `-Wl,-rpath,${folder}`]);
  const { pid } = await waitingProgram(t, program);
  const names = async (): Promise<{ output: Output; functions: (string | null)[] }> => {
    const server = await gdbserver(t, '--attach', pid);
    const output = await backtrace(['--remote', server.address], program);
    return { output, functions: (output.harts[0]?.frames ?? []).map((frame) => frame.function) };
  };
  t.same((await names()).functions.slice(1, 4), ['inner', 'middle', 'main']);
  build('return x + f(x * 3) * 2;', `${library}.new`);
  renameSync(`${library}.new`, library);
  const { output, functions } = await names();
  t.equal(functions.at(-1), 'inner');
  t.equal(output.harts[0]?.end.reason, 'outside-code');
  t.match(output.missing_libraries, [{ name: library, why: /another one than the process has loaded/ }]);
});

t.test('a location that is damaged costs its variable alone', async (t) => {
  const program = join(scratchFolder(t), 'waits');
  const source = `#include <unistd.h>
int work(int alpha) { int gamma = 2 * alpha; pause(); return gamma; }
int main(int count, char **words) { return work(count + 8); }`;
  execFileSync('gcc', ['-g', '-O0', '-x', 'c', '-', '-o', program], { input: source });
  const { sections } = await ElfFile.open(program);
  const { offset = 0 } = sections.find(({ name }) => name === '.debug_info') ?? {};
  const file = readFileSync(program);
  // DW_OP_fbreg, of the first variable: `count`. There is no operation 2.
  const at = file.indexOf(Uint8Array.of(2, 0x91), offset);
  file.writeUInt8(2, at + 1);
  writeFileSync(program, file);
  const { process } = start(program, []);
  t.teardown(() => void process.kill('SIGKILL'));
  while (!/^S/.test(statOf(process.pid ?? 0)[0] ?? '')) await sleep(5);
  const { stdout, stderr, status } = await rsptrace('bt', '--locals', '--pid', `${process.pid}`).ended;
  t.equal(status, 0, stderr);
  t.match(stdout, /gamma = 18\n *alpha = 9\n/);
  t.match(stdout, /count = <optimized out>/);
  t.match(stderr, /a DWARF expression is damaged/);
});
