/*
 * What breakpoints cost a guest that hits none of them.
 *
 * On a page with a breakpoint QEMU's translator runs code one instruction at a time, unchained. Whenever it looks up
 * code, it searches the whole list (QEMU, accel/tcg/cpu-exec.c, check_for_breakpoints). That does not depend on where
 * on the page a breakpoint lies. So each breakpoint of the set is replaced by one on the same page where no instruction
 * begins. The guest is as slow as with the set itself, and never stops. A breakpoint that is a trap instruction costs
 * nothing until it is reached. It is not tried, because it would change an instruction in the middle.
 *
 * How fast the guest is: see progress.ts. Both speeds are measured in turns, since guests do not do the same all the
 * time.
 */
import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import { type Counts, instructionMeter, type Meter, staticsMeter } from './progress.js';
import { type RunContext, runGuest } from './runs.js';
import type { Server } from './stub.js';

export interface SlowDown {
  /** The guest's speed without the set, divided by its speed with it. Undefined when not measured. */
  readonly ratio: number | undefined;
  /** Breakpoints of the set, and how many of them took part. */
  readonly breakpoints: number;
  readonly measured: number;
  /**
   * What the speed was measured by: `instructions`, `counters`, or `hits`. Hits include the cost of a stop, so the
   * guest itself is slowed at least this much.
   */
  readonly by: 'instructions' | 'counters' | 'hits' | undefined;
  /** The counter whose slow-down it is, and how many there were. */
  readonly counter: string | undefined;
  readonly counters: number;
  /** Why it was not measured. */
  readonly why: string | undefined;
  /** False when the guest has ended. */
  readonly stands: boolean;
}

/** From this factor on the set is reported as too slow. */
export const dearRatio = 2;

const findMs = [12, 18, 12] as const;
const turns = 4;
const turnMs = 25;
const hitTurns = 2;
const hitTurnMs = 100;
/** If there was no clear result, all is measured once more and longer, because the host may be busy. */
const scales = [1, 6];
/** Speeds that differ by less count as equal: a counter that follows time, not work, or no slow-down. */
const sameWithin = 0.03;

/**
 * Measures for a set of addresses, each with a breakpoint while a recording runs. `meter` is an address that the guest
 * passes.
 */
export async function slowDown(
  context: RunContext,
  elf: ElfFile,
  server: Server,
  addresses: readonly Addr[],
  passed: Addr | undefined,
): Promise<SlowDown> {
  const nothing = { ratio: undefined, by: undefined, counter: undefined, counters: 0 } as const;
  let stands = true;
  const no = (why: string): SlowDown => ({ ...nothing, breakpoints: addresses.length, measured: 0, why, stands });
  if (addresses.length === 0) return no('no breakpoint stays inserted');
  if (server.name !== 'qemu-system' || server.accelerator === 'kvm') {
    return no(
      'only QEMU without KVM slows a guest between hits; elsewhere a breakpoint costs nothing until it is reached',
    );
  }
  const taken = new Set<bigint>();
  const shadows = addresses.flatMap((address) => {
    const shadow = shadowOf(context.arch, elf, address, taken);
    if (shadow === undefined) return [];
    taken.add(shadow);
    return shadow;
  });
  if (shadows.length === 0) return no('no address beside the probes is sure never to be reached');
  if (await writesTraps(context, shadows[0] as Addr)) return no('this stub writes traps into the code');

  const set: Set = { context, elf, shadows, passed };
  for (const measure of [byMeter, byHits]) {
    for (const scale of scales) {
      const found = await measure(set, scale);
      if (found === 'ended') stands = false;
      if (found === 'ended') return no('the guest has ended meanwhile');
      if (context.signal.aborted) return no('interrupted');
      if (found)
        return {
          ...nothing,
          ...found,
          breakpoints: addresses.length,
          measured: shadows.length,
          why: undefined,
          stands,
        };
    }
  }
  return no('the program has no static that counts, and it passed no known place twice');
}

interface Set {
  readonly context: RunContext;
  readonly elf: ElfFile;
  readonly shadows: readonly Addr[];
  /** An address that the guest passes. */
  readonly passed: Addr | undefined;
}

type Found = Pick<SlowDown, 'ratio' | 'by'> & Partial<Pick<SlowDown, 'counter' | 'counters'>>;

async function byMeter({ context, elf, shadows }: Set, scale: number): Promise<Found | 'ended' | undefined> {
  const { session } = context;
  let stands = true;
  const run = async (ms: number): Promise<number> => {
    const done = await runGuest(context, [], { ms: ms * scale });
    stands = done.stands;
    return done.ranMs;
  };
  const pauses = [...findMs];
  const counted = async (): Promise<Meter | undefined> =>
    staticsMeter(session, elf, findMs.length, async () => {
      await run(pauses.shift() ?? turnMs);
      return stands;
    });
  const meter = (await instructionMeter(session, context.arch)) ?? (await counted());
  if (!stands) return 'ended';
  if (meter === undefined) return undefined;
  const speeds = [new Speeds(meter), new Speeds(meter)] as const;
  for (let turn = 0; turn < 2 * turns; turn++) {
    const withSet = turn % 2 === 1;
    const before = await meter.read();
    if (withSet) await insert(context, shadows);
    const ranMs = await run(turnMs);
    if (!stands) return 'ended';
    if (withSet) await remove(context, shadows);
    speeds[withSet ? 1 : 0].add(before, await meter.read(), ranMs);
  }
  const typical = typicalSlowDown(meter, speeds);
  if (typical === undefined) return undefined;
  const by = meter.counters[0]?.address === undefined ? 'instructions' : 'counters';
  return { ...typical, by, counters: meter.counters.length };
}

async function byHits({ context, shadows, passed }: Set, scale: number): Promise<Found | 'ended' | undefined> {
  if (passed === undefined) return undefined;
  const [without, among] = [
    { hits: 0, ms: 0 },
    { hits: 0, ms: 0 },
  ];
  for (let turn = 0; turn < 2 * hitTurns; turn++) {
    const withSet = turn % 2 === 1;
    if (withSet) await insert(context, shadows);
    const { hits, tookMs, stands } = await runGuest(context, [passed], { ms: hitTurnMs * scale });
    if (!stands) return 'ended';
    if (withSet) await remove(context, shadows);
    const sum = withSet ? among : without;
    sum.hits += hits.get(passed) ?? 0;
    sum.ms += tookMs;
  }
  if (without.hits === 0 || among.hits === 0) return undefined;
  return { ratio: among.ms / among.hits / (without.ms / without.hits), by: 'hits' };
}

/** Growth and time, summed up. */
class Speeds {
  readonly grown: number[];
  ms = 0;
  readonly #meter: Meter;

  constructor(meter: Meter) {
    this.#meter = meter;
    this.grown = meter.counters.map(() => 0);
  }

  add(before: Counts, now: Counts, ms: number): void {
    this.ms += ms;
    for (const index of this.grown.keys()) {
      this.grown[index] = (this.grown[index] ?? 0) + this.#meter.since(before, now, index);
    }
  }
}

/**
 * The median over the counters that the set slows. Counters that keep their speed are ignored if there are others,
 * because they follow the timer, not the guest's work. If all keep it, the guest does.
 */
function typicalSlowDown(
  meter: Meter,
  [without, among]: readonly [Speeds, Speeds],
): { readonly ratio: number; readonly counter: string } | undefined {
  const all = meter.counters.flatMap(({ name }, index) => {
    const [free, slow] = [without.grown[index] ?? 0, among.grown[index] ?? 0];
    // A counter that did not grow at all is slowed beyond measure.
    return free < 10 ? [] : [{ counter: name, ratio: free / without.ms / (Math.max(slow, 1) / among.ms) }];
  });
  const slowed = all.filter(({ ratio }) => ratio > 1 + sameWithin).sort((a, b) => a.ratio - b.ratio);
  const sorted = slowed.length > 0 ? slowed : all.sort((a, b) => a.ratio - b.ratio);
  return sorted[sorted.length >> 1];
}

/** An address on the page of a breakpoint, in the middle of an instruction, that is not `taken` by another one. */
function shadowOf(arch: Architecture, elf: ElfFile, address: Addr, taken: ReadonlySet<bigint>): Addr | undefined {
  if (arch.codeAlignment > 1) return addOffset(address, 1);
  // At the end of a page the function's instructions before it serve as well.
  for (const start of [address, elf.symbols.at(address)?.address ?? address]) {
    const code = elf.bytesAt(start, Number(address - start) + 64) ?? elf.bytesAt(start, Number(address - start) + 15);
    const steps = (code && arch.codeFlow?.steps(code, start)) ?? [];
    const isFree = (at: bigint): boolean => at >> 12n === address >> 12n && !taken.has(at);
    const step = steps.find((each) => each.length > 1 && isFree(each.address + 1n));
    if (step) return addOffset(step.address, 1);
  }
  return undefined;
}

/** Whether a breakpoint changes memory; tried while the target is stopped. */
async function writesTraps({ session, arch }: RunContext, address: Addr): Promise<boolean> {
  const batch = session.batch();
  const before = batch.readMemory(address, 4);
  const breakpoint = { type: 0, address, kind: arch.breakpointKind(new Uint8Array(4)) } as const;
  batch.insertBreakpoint(breakpoint);
  const after = batch.readMemory(address, 4);
  batch.removeBreakpoint(breakpoint);
  await batch.send();
  const [was, is] = [before.value, after.value];
  return was !== undefined && (is === undefined || was.some((byte, index) => byte !== is[index]));
}

async function insert({ session }: RunContext, shadows: readonly Addr[]): Promise<void> {
  const batch = session.batch();
  for (const address of shadows) batch.insertBreakpoint({ type: 0, address, kind: 1 });
  await batch.send();
}

async function remove({ session }: RunContext, shadows: readonly Addr[]): Promise<void> {
  const batch = session.batch();
  for (const address of shadows) batch.removeBreakpoint({ type: 0, address, kind: 1 });
  await batch.send();
}
