import type { Architecture } from '../arch/index.js';
import { addr } from '../base/addr.js';
import { type Logger, silent } from '../base/logger.js';
import type { Session } from '../rsp/index.js';

const SUPERVISOR = 1n;
const SATP_MODE = 60n;
/** Moments that the target may run before it is in its kernel. */
const mostTries = 5;
/** Milliseconds of each: kernels are called by a timer more often. */
const moment = 200;

/**
 * Lets a riscv64 machine that pages and stands in user mode or its firmware, from where QEMU's stub does not see the kernel's memory, run into its
 * kernel: to where traps lead (`stvec`). Where that cannot be had it stands somewhere else. The target may have ended meanwhile.
 */
export async function runIntoKernel(session: Session, arch: Architecture, logger: Logger = silent): Promise<void> {
  if (arch.name !== 'riscv64' || !(await session.stub()).isQemu) return;
  for (let tries = 0; tries < mostTries; tries++) {
    const batch = session.batch();
    const replies = ['priv', 'satp', 'stvec'].map((name) =>
      session.target.register(name) === undefined ? undefined : batch.readRegister(name),
    );
    await batch.send();
    const [priv, satp, stvec] = replies.map((reply) => reply?.value);
    if (priv === undefined || priv === SUPERVISOR || !satp || satp >> SATP_MODE === 0n || !stvec) return;
    const breakpoint = { type: 0, address: addr(stvec & ~3n), kind: 2 } as const;
    if (!(await session.insertBreakpoint(breakpoint))) return;
    const timer = setTimeout(() => void session.interrupt().catch(() => {}), moment);
    await session.resume();
    clearTimeout(timer);
    if (session.state.kind !== 'idle') return;
    await session.removeBreakpoint(breakpoint);
  }
  logger.warn({}, 'the target does not come into its kernel, whose memory cannot be seen from elsewhere');
}
