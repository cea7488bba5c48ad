// A static program of Linux on aarch64 under QEMU in user mode: calls as it counts them itself, arguments and results as its source
// has them, by the rules of AAPCS64.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';

/**
 * Two processors: the vector registers of one with SVE are parts of wider ones. Two ways to compile: optimised code says where its
 * arguments are, of other code the convention has to.
 */
const compiled = [
  ['cortex-a72', '-O1'],
  ['max', '-O0'],
] as const;
for (const [cpu, level] of usually(compiled, ([cpu]) => cpu === 'max')) {
  t.test(
    `${cpu}, ${level}: integers of two words, structs of numbers, large structs, what lies on the stack`,
    async (t) => {
      const folder = scratchFolder(t);
      const [program, socket, trace] = ['program', 'gdb', 'out.txt'].map((name) => join(folder, name)) as [
        string,
        string,
        string,
      ];
      const source = join(import.meta.dirname, '../support/programs/calls-aarch64.c');
      execFileSync('aarch64-linux-gnu-gcc', ['-g', level, '-static', '-o', program, source]);
      const guest = start('qemu-aarch64', ['-cpu', cpu, '-g', socket, program]);
      t.teardown(() => void guest.process.kill('SIGKILL'));
      const functions = ['compare', 'add', 'three', 'four', 'mix', 'large', 'many', 'eight', 'pairs', 'wide'];
      const probes = [...functions, 'behind if m->b == 3'].flatMap((probe) => ['-p', `fn:${probe}`]);
      const output = await rsptrace('-r', socket, '--json', ...probes, '-o', trace, program).json<
        Recording & {
          probes: readonly { engine: string; why: string }[];
          engines: object;
        }
      >();
      t.match(output.probes[0], { engine: 'stop', why: /^on aarch64 each event stops the target/ });
      t.match(output.engines, { advice: { code: 'leave-out', text: /^leave some out with '!'/ } });
      const said = (await guest.ended).stdout;
      const compares = Number(/compares=(\d+)/.exec(said)?.[1]);
      t.ok(compares > 100, said);
      const calls = new Map(output.functions.map((row) => [row.function, row.calls]));
      const expectedCalls = functions.map((name) => [name, name === 'compare' ? compares : 5] as const);
      t.strictSame(calls, new Map([...expectedCalls, ['behind', 1]]));
      const lines = readFileSync(trace, 'utf8')
        .split('\n')
        .flatMap((line) => /\]\s+([a-z]+\(.*)$/.exec(line)?.[1] ?? [])
        .filter((line) => !/^(compare|behind)/.test(line));
      const also = (value: string): string => (level === '-O0' ? `h: ${value}, ` : '');
      const expected = Array.from({ length: 5 }, (_, i) => [
        `add(n: ${i}, x: 1.5, y: 2.25, h: hfa2 { a: ${i}.0, b: ${2 * i}.0 }) = ${4 * i + 3.75}`,
        `three(${also(`hfa3 { a: 1.0, b: 2.0, c: 3.0 }`)}k: ${i}) = hfa3 { a: ${i}.0, b: ${2 * i}.0, c: ${3 * i}.0 }`,
        `four(${also(`hfa4 { a: ${i}.0, b: ${i + 1}.0, c: ${i + 2}.0, d: ${i + 3}.0 }`)}z: 7) = hfa4 { a: ${i}.0, b: ${i + 1}.0, c: ${i + 2}.0, d: ${i + 10}.0 }`,
        `mix(m: mixed { a: 0.5, b: ${i} }, z: 4) = mixed { a: 0.5, b: ${i + 4} }`,
        `large(seed: ${i}, b: big { a: [1, 2, 3, 4, ${i}] })`,
        // Its struct and its last integer are on the stack.
        `many(a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8) = ${36 + 2 * i}`,
        // A struct that needs one register more than there are takes the last one from who comes behind it.
        `eight(a: 1.0, b: 2.0, c: 3.0, d: 4.0, e: 5.0, f: 6.0, g: 7.0) = ${45 + i}.0`,
        `pairs(a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7) = ${37 + i}`,
        `wide(a: ${i}, b: ${(5n << 64n) + BigInt(i)}, c: 3) = ${(5n << 64n) + BigInt(2 * i + 3)}`,
      ]).flat();
      t.strictSame(lines, expected);
    },
  );
}
