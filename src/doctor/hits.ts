import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import type { Logger } from '../base/logger.js';
import { findClock } from '../clock/index.js';
import { registersOf, type Session } from '../rsp/index.js';
import { StopEngine } from '../stop/index.js';
import type { Server } from './stub.js';

/** How many stops per second are possible, made as a recording makes them. */
interface HitRate {
  readonly address: Addr;
  readonly hits: number;
  readonly perSecond: number;
  /** What the guest did between two hits, at most: its part of the time of one, in microseconds. */
  readonly guestUs: number;
}

export interface HitReport {
  readonly rate: HitRate | undefined;
  /** Why there is none. */
  readonly why: string | undefined;
  /** How long the guest has run for this, in milliseconds. */
  readonly ranMs: number;
  /** False when the guest has ended. */
  readonly stands: boolean;
}

interface HitPlaces {
  /** Places of probes, or other functions' first instructions: tried first, all at once. */
  readonly wanted: readonly Addr[];
  /** The first instruction of the function around an address. */
  readonly functionAt: (pc: Addr) => Addr | undefined;
  /** The guest was never started: it has not reached its probes yet. */
  readonly fresh: boolean;
  /** Ids, as far as they are looked at. */
  readonly harts: readonly string[];
}

/** The most places with a breakpoint at once. */
const mostPlaces = 32;
const samples = 5;
const sampleMs = 15;
/** A run for a hit ends soon after the first hit; on a busy host the first may take this long, in milliseconds. */
const findMs = { fresh: 1500, running: 500 };
const tailMs = 60;
/** The second is used if the first does not bring two hits. */
const measures = [
  { ms: 400, hits: 400 },
  { ms: 1500, hits: 50 },
];

/**
 * Searches for an address that the guest passes often, and measures how many hits per second there are at it. Wanted
 * places are tried first. Then functions, and single instructions, in which the guest was found when it was
 * interrupted a few times. About a second in all.
 */
export async function hitRate(context: RunContext, places: HitPlaces): Promise<HitReport> {
  let ranMs = 0;
  let ended = false;
  const run = async (addresses: readonly Addr[], limits: Parameters<typeof runGuest>[2]): Promise<GuestRun> => {
    const done = await runGuest(context, addresses, limits);
    ranMs += done.ranMs;
    ended ||= !done.stands;
    return done;
  };
  /** `passed`: what it passed in the run that may have been its last. */
  const over = (during: string, passed: GuestRun['hits']): string | undefined => {
    if (!ended) return context.signal.aborted ? 'interrupted' : undefined;
    const total = [...passed.values()].reduce((sum, count) => sum + count, 0);
    return `the guest ended after it had run for ${Math.ceil(ranMs)} ms, ${during} (hits until then: ${total}, places: ${passed.size}), so no rate is known`;
  };
  const searching = 'while a place that it passes often was searched for';
  const none = (why: string): HitReport => ({ rate: undefined, why, ranMs, stands: !ended });

  let best: Addr | undefined;
  const wanted = places.wanted.slice(0, mostPlaces);
  if (wanted.length > 0) {
    const ms = places.fresh ? findMs.fresh : findMs.running;
    const { hits } = await run(wanted, { ms, tail: tailMs });
    best = mostHit(hits);
    const why = over(searching, hits);
    if (why !== undefined) return none(why);
  }
  let tried = wanted.length;
  if (best === undefined) {
    const seen = new Set<Addr>();
    for (let i = 0; i < samples; i++) {
      const { hits } = await run([], { ms: sampleMs });
      const why = over(searching, hits);
      if (why !== undefined) return none(why);
      for (const pc of await pcsNow(context, places.harts)) {
        const entry = places.functionAt(pc);
        if (entry !== undefined) seen.add(entry);
        seen.add(pc);
      }
    }
    const sampled = [...seen].slice(0, mostPlaces);
    tried += sampled.length;
    const { hits } = await run(sampled, { ms: findMs.running, tail: tailMs });
    best = mostHit(hits);
    const why = over(searching, hits);
    if (why !== undefined) return none(why);
  }
  const nowhere = `the guest came past none of ${tried} places that it was seen at, or that are probed: it may be waiting`;
  if (best === undefined) return none(nowhere);
  for (const limits of measures) {
    const done = await run([best], limits);
    const rate = rateOf(best, done);
    if (rate) return { rate, why: undefined, ranMs, stands: !ended };
    const why = over('while hits were counted at one place', done.hits);
    if (why !== undefined) return none(why);
  }
  return none('the guest did not come past the same place again');
}

/** The rate at an address by one run; undefined if the address was passed only once. */
function rateOf(address: Addr, { hits: passed, tookMs, ranMs }: GuestRun): HitReport['rate'] {
  const hits = passed.get(address) ?? 0;
  if (hits < 2) return undefined;
  return { address, hits, perSecond: (hits * 1000) / tookMs, guestUs: (ranMs * 1000) / hits };
}

/** Why the guest should not be run: nothing could stop it again. */
export async function whyUnstoppable({ session }: RunContext, server: Server): Promise<string | undefined> {
  if (server.name === 'qemu-user') return 'QEMU in user mode hears no interrupt while its program runs';
  return session.whyUninterruptible();
}

function mostHit(hits: ReadonlyMap<bigint, number>): Addr | undefined {
  let best: readonly [bigint, number] | undefined;
  for (const each of hits) if (best === undefined || each[1] > best[1]) best = each;
  return best && addr(best[0]);
}

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

interface GuestRun {
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
async function runGuest(
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
async function pcsNow(
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
