import type { Architecture } from '../arch/index.js';
import { type Logger, silent } from '../base/logger.js';
import type { Session } from '../rsp/index.js';

/** How many short runs the target gets until it is in its kernel. */
const mostTries = 5;
/** Milliseconds of each run: timers call kernels more often. */
const moment = 200;

/**
 * Runs a hart from user mode or firmware into its kernel, to its trap vector. QEMU's stub translates addresses in the
 * hart's mode, and shows the kernel's memory only there. Does nothing if the architecture does not need this.
 * Afterwards the hart may still be elsewhere, and the target may have ended.
 */
export async function runIntoKernel(session: Session, arch: Architecture, logger: Logger = silent): Promise<void> {
  const entry = arch.privilege?.kernelEntry;
  if (!entry || !(await session.stub()).isQemu) return;
  for (let tries = 0; tries < mostTries; tries++) {
    const batch = session.batch();
    const replies = new Map(
      entry.registers.flatMap((name) =>
        session.target.register(name) === undefined ? [] : [[name, batch.readRegister(name)]],
      ),
    );
    await batch.send();
    const address = entry.find({ register: (name) => replies.get(name)?.value });
    if (address === undefined) return;
    const breakpoint = { type: 0, address, kind: arch.breakpointKind(new Uint8Array(4)) } as const;
    if (!(await session.insertBreakpoint(breakpoint))) return;
    const timer = setTimeout(() => void session.interrupt().catch(() => {}), moment);
    await session.resume();
    clearTimeout(timer);
    if (session.state.kind !== 'idle') return;
    await session.removeBreakpoint(breakpoint);
  }
  logger.warn({}, 'the target does not come into its kernel, whose memory cannot be seen from elsewhere');
}
