// A guest's clock that counts instructions: QEMU's `-icount` (docs/devel/tcg-icount.rst). QEMU 7.2 to 10 print the line
// "Host - Guest clock" at the end of `info jit` with `-icount`, and only then (accel/tcg/monitor.c, dump_drift_info).
import { basename } from 'node:path';
import { isProcess, type Session } from '../rsp/index.js';
import { commandLineOf, nanosPerInstruction, qemuOptions, sleeps } from '../target/index.js';

export interface InstructionClock {
  /** What an instruction takes; undefined if that is not known, or if QEMU changes it as it runs (`shift=auto`). */
  readonly nanosPerInstruction: number | undefined;
  /** While no hart runs it follows the host's clock, else it jumps (`sleep=off`); undefined if that is not known. */
  readonly sleeps: boolean | undefined;
}

/**
 * Whether the guest's clock counts instructions. What is `given` of a QEMU that was started for this session says
 * it, or QEMU's command line where that can be read, or its monitor. Undefined if the clock follows the host's.
 *
 * Where the wire is recorded or played back only the monitor is asked, so that both do the same.
 */
export async function instructionClock(
  session: Session,
  given?: InstructionClock,
): Promise<InstructionClock | undefined> {
  if (isProcess(session.features) || (await session.stub()).name !== 'qemu-system') return undefined;
  const server = session.serverProcess('qemu');
  if (server !== undefined && given?.nanosPerInstruction !== undefined) return given;
  const args = argumentsOf(server);
  if (args && qemuOptions(args).some(({ name }) => name === 'icount')) {
    return { nanosPerInstruction: nanosPerInstruction(args), sleeps: sleeps(args) };
  }
  // A file of `-readconfig` may have it too.
  const answer = (await session.monitor('info jit')) ?? '';
  return /^Host - Guest clock/m.test(answer) ? { nanosPerInstruction: undefined, sleeps: undefined } : undefined;
}

/** At the other end may be something that forwards to QEMU. */
function argumentsOf(server: ReturnType<Session['serverProcess']>): string[] | undefined {
  if (typeof server !== 'number') return undefined;
  const [program = '', ...args] = commandLineOf(server);
  return basename(program).includes('qemu') ? args : undefined;
}
