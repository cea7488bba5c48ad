import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import type { Logger } from '../base/logger.js';
import { findClock } from '../clock/index.js';
import { registersOf, type Session } from '../rsp/index.js';
import { StopEngine } from '../stop/index.js';

/** How the guest is run for a short time. */
export interface RunContext {
  readonly session: Session;
  readonly arch: Architecture;
  readonly logger: Logger;
  /** Code at an address, if it is known without asking the target. */
  readonly bytesAt: (address: Addr, length: number) => Uint8Array | undefined;
  /** Ends a run early, and begins no more. */
  readonly signal: AbortSignal;
}

export interface GuestRun {
  /** Hits by address. */
  readonly hits: ReadonlyMap<bigint, number>;
  /** How long the guest ran, by the host's clock, in milliseconds. */
  readonly ranMs: number;
  /** From the first resume to the last stop, in milliseconds. */
  readonly tookMs: number;
  /** False when the guest has ended. */
  readonly stands: boolean;
}

/** When a run ends: after `ms`, `tail` ms after the first hit, or after this many hits. */
interface RunLimits {
  readonly ms: number;
  readonly tail?: number;
  readonly hits?: number;
}

/** How much code a breakpoint needs to know. */
const codeBytes = 16;

/**
 * Lets the guest run with breakpoints at `addresses`. Their instructions are emulated as in a recording, but nothing
 * is read. The breakpoints are removed when this returns.
 */
export async function runGuest(
  { session, arch, logger, bytesAt, signal }: RunContext,
  addresses: readonly Addr[],
  limits: RunLimits,
): Promise<GuestRun> {
  const hits = new Map<bigint, number>();
  let total = 0;
  let tail: NodeJS.Timeout | undefined;
  const known = await codeOf(session, bytesAt, addresses);
  const engine: StopEngine = new StopEngine({
    session,
    arch,
    logger,
    code: (address, length) => known.get(address)?.subarray(0, length) ?? bytesAt(address, length),
    hartNumber: () => 0,
    isSameProgram: async () => true,
    findClock: () => findClock(session, arch, () => 0, 'intervals'),
    tracer: {
      *visit({ pc }) {
        yield [];
        hits.set(pc, (hits.get(pc) ?? 0) + 1);
        total++;
        if (total === limits.hits) stop();
        else if (total === 1 && limits.tail !== undefined) tail = setTimeout(stop, limits.tail);
        return { watch: [], unwatch: [] };
      },
      digest() {},
      abandon() {},
    },
  });
  // A wire that breaks here breaks the run too, which reports it.
  const stop = (): void => void engine.stop().catch((error: unknown) => logger.debug({ error: String(error) }, 'stop'));
  await engine.points.arm(addresses);
  const timer = setTimeout(stop, limits.ms);
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  const began = performance.now();
  try {
    const { kind } = await engine.run();
    const tookMs = performance.now() - began;
    if (kind === 'asked') await engine.points.disarm(addresses);
    return { hits, ranMs: engine.runningTime() / 1e6, tookMs, stands: kind === 'asked' };
  } finally {
    clearTimeout(timer);
    clearTimeout(tail);
    signal.removeEventListener('abort', stop);
  }
}

/** The target's own bytes if the ELF has none, so that the instruction there can be emulated. */
async function codeOf(
  session: Session,
  bytesAt: RunContext['bytesAt'],
  addresses: readonly Addr[],
): Promise<ReadonlyMap<bigint, Uint8Array>> {
  const unknown = addresses.filter((address) => bytesAt(address, codeBytes) === undefined);
  if (unknown.length === 0) return new Map();
  const batch = session.batch();
  const reads = unknown.map((address) => ({ address, reply: batch.readMemory(address, codeBytes) }));
  await batch.send();
  return new Map(reads.flatMap(({ address, reply }) => (reply.value === undefined ? [] : [[address, reply.value]])));
}

/** The pcs of the harts, as far as they are known. */
export async function pcsNow(
  { session, arch }: Pick<RunContext, 'session' | 'arch'>,
  harts: readonly string[],
): Promise<Addr[]> {
  const found: Addr[] = [];
  for (const hart of harts.length > 0 ? harts : [undefined]) {
    const registers = await registersOf(session, hart);
    const pc = registers.register(arch.pc);
    if (pc !== undefined) found.push(addr(pc));
  }
  return found;
}
