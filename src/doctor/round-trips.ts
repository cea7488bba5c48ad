import type { Addr } from '../base/addr.js';
import type { Session } from '../rsp/index.js';

/** How long one kind of request takes, in microseconds of the host. */
export interface RoundTrip {
  readonly samples: number;
  readonly medianUs: number;
  readonly p90Us: number;
}

export interface RoundTrips {
  /** The shortest question there is. */
  readonly smallest: RoundTrip;
  /** All registers of one hart. */
  readonly registers: RoundTrip;
  /** 4 KiB of memory, in as many packets as it takes, sent together. Undefined where no page could be read. */
  readonly page: RoundTrip | undefined;
}

const most = 50;
/** A slow wire is asked less often; in milliseconds. */
const enoughMs = 150;

/**
 * Asks each thing up to 50 times, one after the other; `pages` are addresses of which the first that can be read is
 * read.
 */
export async function roundTrips(session: Session, pages: readonly Addr[]): Promise<RoundTrips> {
  const smallest = await time(async () => {
    const batch = session.batch();
    batch.ping();
    await batch.send();
  });
  const registers = await time(async () => {
    const batch = session.batch();
    batch.readRegisters();
    await batch.send();
  });
  const memory = session.memory();
  for (const page of pages) {
    if ((await memory.read(page, 4096)) === undefined) continue;
    return { smallest, registers, page: await time(() => memory.read(page, 4096)) };
  }
  return { smallest, registers, page: undefined };
}

async function time(ask: () => Promise<unknown>): Promise<RoundTrip> {
  const samples: number[] = [];
  const began = performance.now();
  do {
    const before = performance.now();
    await ask();
    samples.push((performance.now() - before) * 1000);
  } while (samples.length < most && performance.now() - began < enoughMs);
  samples.sort((a, b) => a - b);
  return { samples: samples.length, medianUs: quantile(samples, 0.5), p90Us: quantile(samples, 0.9) };
}

/** The nearest rank of sorted numbers. */
function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
