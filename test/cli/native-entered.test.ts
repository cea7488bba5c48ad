// No patch covers a byte that control enters from elsewhere: branches into every byte, from before, behind and far away, and through tables.
// The program's own sums say whether it still does what it does untraced.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { type Dialect, type EnteredCode, enteredCode, riscvDialect, x86Dialect } from '../support/entered-code.js';
import { usually } from '../support/long.js';

interface Preview {
  readonly probes: readonly { readonly function: string; readonly engine: string; readonly why?: string }[];
}

/** A program that calls each victim and each way into it, and prints the sum of their results. */
function x86Program(t: Test, code: EnteredCode, flags: readonly string[]): string {
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  const called = [...code.victims.map(({ name }) => name), ...code.ways];
  const main = [
    '#include <stdio.h>',
    `long ${called.map((name) => `${name}(long)`).join(', ')};`,
    `int main(void) { long sum = 0; for (long i = 0; i < 10; i++) sum += ${called.map((name) => `${name}(i)`).join(' + ')};`,
    'printf("sum %ld\\n", sum); return 0; }',
  ];
  writeFileSync(file('code.s'), code.text);
  writeFileSync(file('main.c'), `${main.join('\n')}\n`);
  execFileSync('gcc', [...flags, '-O1', '-o', file('program'), file('main.c'), file('code.s')]);
  return file('program');
}

async function preview(elf: string, kind: string, engine = 'auto'): Promise<Preview> {
  const options = ['--dry-run', '--json', '--engine', engine];
  return rsptrace('run', ...options, '-p', `${kind}:victim_*`, elf).json<Preview>();
}

/** The one victim that nothing enters is patched, no other is, and each says why. */
function onlyAlone(t: Test, code: EnteredCode, { probes }: Preview): void {
  const known = new Map(probes.map((probe) => [probe.function, probe]));
  for (const { name, isEntered } of code.victims) {
    const probe = known.get(name);
    t.equal(probe?.engine === 'target', !isEntered, `${name}: ${probe?.why}`);
    if (isEntered) t.match(probe?.why, /of those that a patch would replace|into the bytes that a patch would replace/);
  }
}

for (const flags of usually([['-no-pie'], ['-pie'], ['-static']], ([one]) => one === '-pie')) {
  t.test(`x86_64, ${flags}`, async (t) => {
    const code = enteredCode(x86Dialect);
    const program = x86Program(t, code, flags);
    onlyAlone(t, code, await preview(program, 'count'));
    const untraced = (await start(program, []).ended).stdout;
    t.match(untraced, /^sum \d+$/m);
    const options = ['--engine', 'mixed', '--json', '-o', `${program}.txt`, '-p', 'fn:victim_*'];
    const { status, stdout, stderr } = await rsptraceProcess('run', ...options, program).ended;
    t.equal(status, 0, stderr.slice(-300));
    t.ok(stderr.includes(untraced), 'it prints what it prints untraced');
    const { functions } = JSON.parse(stdout) as { functions: { calls: number }[] };
    t.equal(functions.length, code.victims.length);
    t.ok(
      functions.every(({ calls }) => calls === 10),
      'those calls alone that begin at the start',
    );
  });
}

t.test('riscv64', async (t) => {
  const code = enteredCode(riscvDialect);
  const file = join(scratchFolder(t), 'code');
  execFileSync('riscv64-linux-gnu-as', ['-march=rv64gc', '-o', `${file}.o`, '-'], { input: code.text });
  execFileSync('riscv64-linux-gnu-ld', [
    '--no-relax',
    '-e',
    'victim_alone',
    '-Ttext=0x80200000',
    '-o',
    file,
    `${file}.o`,
  ]);
  const others = { ...code, victims: code.victims.filter(({ isEntered }) => isEntered) };
  onlyAlone(t, others, await preview(file, 'count'));
});

/** A dialect whose victims have arguments on the stack, so that their ends are patched, which are entered. */
const ends: Dialect = {
  ...x86Dialect,
  victim: 'mov 8(%rsp), %rax; add %rdi, %rax; nop; nop; nop; nop; nop; ret',
  offsets: [10, 11, 12, 13],
};

t.test('x86_64, ends', async (t) => {
  const code = enteredCode(ends);
  const program = x86Program(t, { ...code, ways: [] }, ['-no-pie']);
  // Where returns are wanted in any case. Otherwise entries alone are patched.
  onlyAlone(t, code, await preview(program, 'fn', 'mixed'));
});

t.test('x86_64, ends where exceptions come back', async (t) => {
  // Its last five bytes become a jump, at +9. The unwinder's way in is at the jump itself, or behind its first byte.
  const victims = [0, 9, 10, 13].map((pad) => ({ name: `victim_${pad}`, pad, isEntered: pad > 9 }));
  const text = victims.map(
    ({ name, pad }) => `.text; .globl ${name}; .type ${name}, @function
${name}: .cfi_startproc; .cfi_lsda 3, .Ldata_${pad}
${ends.victim}
.cfi_endproc; .size ${name}, . - ${name}
.section .gcc_except_table, "a"; .Ldata_${pad}: .byte 0xff, 0xff, 1, 4, 0, 5, ${pad}, 0
`,
  );
  const code = { text: text.join(''), victims, ways: [] };
  onlyAlone(t, code, await preview(x86Program(t, code, ['-no-pie']), 'fn', 'mixed'));
});
