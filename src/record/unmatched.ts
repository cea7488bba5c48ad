// Probes that find nothing.
import { RsptraceError } from '../base/errors.js';
import type { AnyProbe, ProbedProgram, ProbeKind } from '../probes/index.js';

/** Of a probe next to others of its kind, which are found. */
export const matchesNothing = 'a probe that matches nothing, or only what the compiler inlined: alone it says which';

/** Why one of several probes finds nothing: its kind says it of the probe alone. */
export async function whyAlone(kind: ProbeKind, probe: AnyProbe, program: ProbedProgram): Promise<string> {
  try {
    await kind.resolve(program, [probe]);
    return matchesNothing;
  } catch (error) {
    if (!isUnfound(error)) throw error;
    return error.hint === undefined ? error.message : `${error.message}; ${error.hint}`;
  }
}

/** That a program has nothing of what is asked for. */
export function isUnfound(error: unknown): error is RsptraceError {
  const { code } = error instanceof RsptraceError ? error : {};
  return code !== undefined && /^(PROBE_NO_MATCH|PROBE_INLINED|PROBE_CONDITION|FUTURES_NONE|DWARF_MISSING)$/.test(code);
}
