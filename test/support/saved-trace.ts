// One recording of test/native/reported.c, which tests of saved traces ask again.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { rsptrace, scratchFolder } from './command.js';
import { gdbserver } from './native.js';

export interface Saved {
  readonly folder: string;
  readonly source: string;
  readonly program: string;
  readonly trace: string;
  /** The recorder's own rows. */
  readonly functions: readonly {
    readonly function: string;
    readonly calls: number;
    readonly total_ns: number;
    readonly self_ns: number;
    readonly avg_ns: number;
    readonly max_ns: number;
  }[];
}

export const reportedFunctions = ['main', 'outer', 'middle', 'leaf', 'fib'];

/** Records every function of the program into a `.pftrace`, and keeps what the recorder itself reports. */
export async function savedTrace(t: Test): Promise<Saved> {
  const folder = scratchFolder(t);
  const source = join(import.meta.dirname, '../native/reported.c');
  const program = join(folder, 'reported');
  execFileSync('gcc', ['-g', '-O1', '-o', program, source]);
  const server = await gdbserver(t, program);
  const trace = join(folder, 'reported.pftrace');
  const probes = reportedFunctions.flatMap((name) => ['-p', `fn:${name}`]);
  const { functions } = await rsptrace('-r', server.address, '--json', '-o', trace, ...probes, program).json<
    Pick<Saved, 'functions'>
  >();
  return { folder, source, program, trace, functions };
}

export interface CallgrindArc {
  readonly caller: string;
  readonly callee: string;
  readonly calls: number;
}

/** The arcs of a callgrind file, by names that are not compressed. */
export function callgrindArcs(path: string): CallgrindArc[] {
  const arcs = new Map<string, CallgrindArc>();
  let [caller, callee] = ['', ''];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [, key, value = ''] = /^(fn|cfn|calls)=(.*)$/.exec(line) ?? [];
    if (key === 'fn') caller = plain(value);
    else if (key === 'cfn') callee = plain(value);
    else if (key === 'calls') {
      const name = `${caller} ${callee}`;
      const calls = (arcs.get(name)?.calls ?? 0) + Number(value.split(' ')[0]);
      arcs.set(name, { caller, callee, calls });
    }
  }
  return [...arcs.values()];
}

/** Callgrind tells levels of recursion apart: `fib'2`. */
function plain(name: string): string {
  return name.replace(/'\d+$/, '');
}
