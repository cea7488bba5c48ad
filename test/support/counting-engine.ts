// A stop engine that only counts: how often each hart came by each address.
import { architectureNamed } from '../../src/arch/index.js';
import type { Addr } from '../../src/base/addr.js';
import { findClock } from '../../src/clock/index.js';
import type { Session } from '../../src/rsp/index.js';
import { type EngineEnd, StopEngine, type Watchpoints } from '../../src/stop/index.js';

export interface Counting {
  readonly engine: StopEngine;
  /** Hits by hart number, then by address. */
  readonly hits: ReadonlyMap<number, ReadonlyMap<bigint, number>>;
}

/** Called at each hit; true ends the run. */
type OnHit = (pc: bigint, hart: number) => boolean;

/** The program's code, where it may be loaded late. */
type Code = (address: Addr, length: number) => Uint8Array | undefined;

export async function countingEngine(
  session: Session,
  archName: 'riscv64' | 'x86_64',
  options: {
    readonly hardware?: boolean;
    readonly onHit?: OnHit;
    readonly watches?: Watchpoints;
    readonly code?: Code;
  } = {},
): Promise<Counting> {
  const arch = architectureNamed(archName === 'riscv64' ? 'riscv:rv64' : 'i386:x86-64');
  if (arch === undefined) throw new Error(`no ${archName}`);
  await arch.prepare();
  const hits = new Map<number, Map<bigint, number>>();
  const harts = (await session.harts()).map(({ id }) => id);
  const engine: StopEngine = new StopEngine({
    session,
    arch,
    ...(options.hardware === undefined ? {} : { hardware: options.hardware }),
    ...(options.watches === undefined ? {} : { watches: options.watches }),
    code: options.code ?? (() => undefined),
    isSameProgram: async () => true,
    hartNumber: (id) => Math.max(0, harts.indexOf(id ?? '')),
    findClock: () => findClock(session, arch, () => engine.runningTime(), 'auto'),
    tracer: {
      *visit({ hart, pc }) {
        yield [];
        const counts = hits.get(hart) ?? new Map<bigint, number>();
        hits.set(hart, counts.set(pc, (counts.get(pc) ?? 0) + 1));
        if (options.onHit?.(pc, hart) === true) void engine.stop();
        return { watch: [], unwatch: [] };
      },
      abandon: () => {},
      digest: () => {},
    },
  });
  return { engine, hits };
}

/** Arms the addresses and runs until the last of them is hit. */
export async function countUntil(
  session: Session,
  archName: 'riscv64' | 'x86_64',
  addresses: readonly Addr[],
  options: { readonly hardware?: boolean } = {},
): Promise<Counting & { readonly end: EngineEnd }> {
  const last = addresses.at(-1);
  const counting = await countingEngine(session, archName, { ...options, onHit: (pc) => pc === last });
  await counting.engine.points.arm(addresses);
  return { ...counting, end: await counting.engine.run() };
}
