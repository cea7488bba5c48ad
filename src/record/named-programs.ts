// Probes that name the program in which they are meant: `fn:shell/parse`.
import { RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import type { AnyProbe, ProbedProgram, ProbeKind, ProbeSpec } from '../probes/index.js';
import { programName } from '../target/stacks/index.js';

/** The kinds of probes that further programs have. */
export const kindsOfOthers: ReadonlySet<string> = new Set(['poll', 'fn']);

/** The program that a probe names. */
export function programIn(spec: AnyProbe): string | undefined {
  return (spec as Partial<ProbeSpec>).program;
}

export function isExcluding(spec: AnyProbe): boolean {
  return (spec as Partial<ProbeSpec>).excludes === true;
}

export function isCalled(elf: ElfFile, name: string): boolean {
  return programName(elf) === name.replace(/\.elf$/, '');
}

/** @throws RsptraceError `PROBE_NO_MATCH`, `PROBE_SYNTAX` */
export function verifyNames(specs: readonly AnyProbe[], programs: readonly ElfFile[]): void {
  for (const spec of specs) {
    const program = programIn(spec);
    if (program === undefined) continue;
    if (!programs.some((elf) => isCalled(elf, program))) {
      const names = programs.map(programName).join(', ');
      throw new RsptraceError('PROBE_NO_MATCH', `'${spec.text}' names the program ${program}, which is not given`, {
        hint: programs.length === 1 ? `there is ${names}; --elf gives more` : `there are ${names}`,
      });
    }
    const [main] = programs;
    if (kindsOfOthers.has(spec.kind) || (main && isCalled(main, program))) continue;
    throw new RsptraceError(
      'PROBE_SYNTAX',
      `'${spec.text}' names a further program, where only poll and fn are traced`,
      {
        hint: 'give its ELF alone for the others',
      },
    );
  }
}

/**
 * Who names a program has no other in mind. `unmatched`: probes of this kind that match nothing in it; undefined if
 * nothing at all is found there.
 * @throws RsptraceError what the first of them lacks, as it would alone
 */
export async function verifyNamed(
  kind: ProbeKind,
  probes: readonly AnyProbe[],
  program: ProbedProgram,
  unmatched: readonly string[] | undefined,
): Promise<void> {
  const excluding = probes.filter(isExcluding);
  for (const probe of probes) {
    const isFound = unmatched?.includes(probe.text) === false;
    if (isFound || isExcluding(probe) || programIn(probe) === undefined) continue;
    await kind.resolve(program, [probe, ...excluding]);
  }
}
