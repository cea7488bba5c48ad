// What the tests of the engine without stops at a gdbserver have in common.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { rsptrace, scratchFolder } from './command.js';
import { gdbserver } from './native.js';
import type { Recording } from './recording.js';

export interface Output extends Recording {
  readonly histograms: readonly { readonly argument: string; readonly buckets: readonly object[] }[];
}

/** Probes for all that test/native/calls.c has. */
export const functionProbes = ['leaf', 'middle', 'outer', 'fib*', 'job*', 'nap*'].flatMap((name) => [
  '-p',
  `fn:${name}`,
]);

/** A recording at a gdbserver, to the program's end: what is said of it, what the program printed, and the trace. */
export async function recorded<T = Output>(
  t: Test,
  program: readonly string[],
  options: readonly string[],
  name = 'out.pftrace',
) {
  const server = await gdbserver(t, ...program);
  const file = join(scratchFolder(t), name);
  const ran = await rsptrace('-r', server.address, '--json', '-o', file, ...options, program[0] ?? '').ended;
  if (!t.equal(ran.status, 0, ran.stderr.slice(-300))) throw new Error(ran.stderr);
  const { stdout } = await server.ended;
  return { output: JSON.parse(ran.stdout) as T, stdout, file };
}

/** The same without a record lost, and the trace as text. */
export async function trace(t: Test, program: readonly string[], ...options: string[]) {
  const { file, ...found } = await recorded(t, program, ['--lossless', ...options], 'out.txt');
  return { ...found, text: readFileSync(file, 'utf8') };
}

/** No event was a stop, none is missing. */
export function withoutStops(t: Test, output: Output): void {
  t.same([...new Set(output.probes.map(({ engine }) => engine))], ['target']);
  t.equal(output.missing, 0);
  t.match(output.scratch, /^memory mapped into process \d+ \(memfd\)$/);
  // The first hit, perhaps with others in the same moment, forks, signals, the end: hundreds of events take none.
  t.ok(output.stops < 25, `${output.stops} stops`);
}

/** What the program printed of its calls, by function. */
function callsPrinted(stdout: string): [string, number][] {
  const line = /^calls (.*)$/m.exec(stdout)?.[1] ?? '';
  return [...line.matchAll(/(\w+)=(\d+)/g)].map(([, name = '', count]) => [name, Number(count)]);
}

export function sameCalls(t: Test, { functions }: Output, stdout: string): void {
  const counted = callsPrinted(stdout).filter(([, count]) => count > 0);
  t.ok(counted.length > 0);
  for (const [name, count] of counted) {
    const row = functions.find((each) => each.function.split('.')[0] === name);
    t.equal(row?.calls, count, name);
  }
}

/** A tree without its times and the numbers of threads: who called whom with what, and what came of it. */
export function calls(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.replace(/^.*?\[ *\d+\]/, ''));
}
