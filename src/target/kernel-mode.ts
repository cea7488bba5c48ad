import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { type Logger, silent } from '../base/logger.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { ElfFile } from '../elf/index.js';
import { ANY_HART, type Breakpoint, registerOf, type Session } from '../rsp/index.js';
import { runFor } from './let-run.js';

/** How many short runs the target gets until it is in its kernel. */
const mostTries = 5;
/** Milliseconds of the first run; each is twice the one before. Timers call most kernels more often. */
const moment = 200;
/** A trap handler that changes the page table does so within fewer instructions. */
const mostSteps = 256;

/**
 * Runs a hart from user mode or firmware into its kernel, to its trap vector. QEMU's stub translates addresses in the
 * hart's mode, and shows the kernel's memory only there. A trap handler may begin with a process's page table, which
 * need not have the kernel. Then the hart goes on until it sees `text`, an address of the kernel's code. Does nothing
 * if the architecture does not need this, nor in firmware if the kernel's addresses are physical ones too. Afterwards
 * the hart may still be elsewhere, and the target may have ended.
 */
export async function runIntoKernel(
  session: Session,
  arch: Architecture,
  text: Addr | undefined,
  logger: Logger = silent,
): Promise<void> {
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
    const registers: RegisterReader = { register: (name) => replies.get(name)?.value };
    const vectors = entry.find(registers);
    if (vectors === undefined) {
      const { root } = arch.privilege.standing(registers);
      // Before a kernel pages, it need not be where it is linked.
      if (root === undefined || (await stepTo(session, text))) return;
      continue;
    }
    if (await isPhysical(session, arch, registers, vectors[0])) return;
    const kind = arch.breakpointKind(new Uint8Array(4));
    const breakpoints = vectors.map((address) => ({ type: 0, address, kind }) as const);
    const inserted: Breakpoint[] = [];
    for (const each of breakpoints) if (await session.insertBreakpoint(each)) inserted.push(each);
    const isWhole = inserted.length === breakpoints.length;
    if (isWhole) await runFor(session, moment * 2 ** tries, { kind: 'continue' });
    if (session.state.kind !== 'idle') return;
    for (const each of inserted) await session.removeBreakpoint(each);
    if (!isWhole) return;
  }
  logger.warn({}, 'the target does not come into its kernel, whose memory cannot be seen from elsewhere');
}

/** Steps until a piece of code can be seen. Returns false if it cannot after many steps. */
async function stepTo(session: Session, text: Addr | undefined): Promise<boolean> {
  if (text === undefined) return true;
  for (let steps = 0; steps < mostSteps; steps++) {
    if ((await session.memory().read(text, 2)) !== undefined) return true;
    const { state } = session;
    const hart = state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop.hart : undefined;
    await session.resume({ kind: 'step', hart: hart ?? ANY_HART });
    if (session.state.kind !== 'idle') return true;
  }
  return false;
}

/** Whether a hart stands in firmware, and its kernel has this address where firmware has it. */
async function isPhysical(
  session: Session,
  { privilege, addressSpaces }: Architecture,
  registers: RegisterReader,
  address: Addr,
): Promise<boolean> {
  const inKernel = privilege?.kernelEntry?.fromFirmware(registers);
  const physical = await session.physicalMemory();
  if (!inKernel || !addressSpaces || !physical) return false;
  const space = addressSpaces.of(inKernel, physical);
  if ('refused' in space) return false;
  const mapping = await space.translate(address);
  return mapping !== undefined && mapping.physical === mapping.virtual;
}

/**
 * Whether the code of a program includes the firmware below its kernel, by where traps to it lead. That code never
 * pages, so all its addresses are physical.
 */
export async function hasOwnFirmware(session: Session, arch: Architecture, elf: ElfFile): Promise<boolean> {
  const vector = arch.privilege?.belowFirmware?.vector;
  if (vector === undefined || session.target.register(vector) === undefined) return false;
  const handler = await registerOf(session, vector);
  // Its lowest bits are a mode, and instructions are aligned.
  return handler !== undefined && elf.bytesAt(addr(handler & ~3n), 4) !== undefined;
}
