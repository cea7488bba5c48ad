import {
  type Condition,
  type Counted,
  controlBlock,
  type RecordField,
  type RingGeometry,
  wordsOf,
} from '../../src/arch/index.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { random } from './random.js';
import type { ProbeHost, Region } from './x86_64-probe-host.js';

/** A probe on one function, with all that it can have. */
export interface Probe {
  readonly target: string;
  readonly entry: readonly RecordField[];
  /** Without it the return is not hooked. */
  readonly exit: readonly RecordField[] | undefined;
  readonly keep: readonly string[];
  readonly when: readonly Condition[];
  /** The register with the Future. */
  readonly nesting: string | undefined;
  /** Bytes for the outer poll's; they end the slot. */
  readonly room: number | undefined;
  /** Offsets that are copied from `words` when a poll is open already. */
  readonly plan: readonly number[] | undefined;
  /** One behind the other, from {@link COUNTER} on. */
  readonly counted: readonly Counted[];
  /** A full ring is waited for as in a process of Linux. */
  readonly inProcess?: boolean;
  /** log2 of the number of segments. */
  readonly countShift: number;
  /** log2 of the ring's bytes. */
  readonly ringShift: number;
  readonly code: Addr;
  readonly control: Addr;
}

export const SLOT = 256;
export const SEGMENTS = addr(0x7200_0000_0000n);
export const STACK: Region = {
  address: addr(0x7100_0000_0000n),
  bytes: Uint8Array.from({ length: 0x1_0000 }, random(5)),
};
/** At a function's first instruction: 8 bytes off a multiple of 16, as calls leave it. */
export const SP = addOffset(STACK.address, 0xc008);
export const INNER_PLAN = 0xc00;
/** Where counters begin. */
export const COUNTER = 0x400;
export const OUTER_PLAN = 0x800;
const EXIT = 0x200;
const ENTRY = 0x1000;

export interface Installed {
  readonly ring: RingGeometry;
  readonly regions: readonly Region[];
  readonly exit: Addr;
  /** Where trampolines and the wait routine lie. */
  readonly from: Addr;
  readonly to: Addr;
}

/** All memory of the harness, with the probe in it. */
export function install(host: ProbeHost, probe: Probe): Installed {
  const { code: from, control, countShift, target } = probe;
  const segmentShift = probe.ringShift - countShift;
  const ring = { control, wait: from, slotShift: 8, segmentShift, countShift };
  const code = new Uint8Array(0x2000);
  const wait = probe.inProcess ? probeCode.process?.wait : probeCode.wait;
  code.set(wait?.(from, ring, false).code ?? []);
  const exit = addOffset(from, EXIT);
  const nesting = probe.nesting !== undefined;
  if (probe.exit !== undefined) {
    code.set(probeCode.exit({ at: exit, ring, fields: probe.exit, keep: probe.keep, nesting }), EXIT);
  }
  const found = host.functions.get(target);
  if (found === undefined) throw new Error(`There is no function ${target}`);
  const displaced = probeCode.displace(found.code, found.start, 'near');
  if ('refused' in displaced) throw new Error(`${target}: ${displaced.refused}`);
  const at = addOffset(from, ENTRY);
  const entry = probeCode.entry({
    at,
    ring,
    fields: probe.entry,
    displaced,
    when: probe.counted.length > 0 ? [] : probe.when,
    hook: probe.exit && { exit, keep: probe.keep },
    nesting: probe.nesting === undefined ? undefined : { self: probe.nesting, plan: addOffset(control, INNER_PLAN) },
    outerCopy: probe.room === undefined ? undefined : { at: SLOT - probe.room, room: probe.room },
    counters: probe.counted.map((counted, index) => ({
      ...counted,
      when: probe.when,
      at: addOffset(control, COUNTER + 8 * probe.counted.slice(0, index).reduce((sum, one) => sum + wordsOf(one), 0)),
    })),
    via: 'patch',
  });
  code.set(entry, ENTRY);
  const regions = host.loaded.map(({ address, bytes }) => ({ address, bytes: Uint8Array.from(bytes) }));
  regions[0]?.bytes.set(probeCode.patch(displaced, at), Number(displaced.start - regions[0].address));
  return {
    ring,
    regions: [
      ...regions,
      STACK,
      { address: from, bytes: code },
      { address: control, bytes: controlBytes(probe, host.symbol('words')) },
      { address: SEGMENTS, bytes: new Uint8Array(1 << probe.ringShift) },
    ],
    exit,
    from,
    to: addOffset(from, code.length),
  };
}

/** The control block of a ring that is empty, then plans and a counter. */
function controlBytes({ plan, countShift, ringShift, control }: Probe, words: Addr): Uint8Array {
  const bytes = new Uint8Array(0x1000);
  const view = new DataView(bytes.buffer);
  const set = (offset: number, value: bigint | number): void => view.setBigUint64(offset, BigInt(value), true);
  set(controlBlock.head, 1 << ringShift);
  set(controlBlock.limit, 2 << ringShift);
  set(controlBlock.spins, 3);
  if (plan !== undefined) {
    set(controlBlock.outer, words);
    set(controlBlock.outerPlan, addOffset(control, OUTER_PLAN));
    for (const [index, value] of [plan.length, ...plan].entries()) view.setUint32(OUTER_PLAN + 4 * index, value, true);
  }
  for (let index = 0; index < 1 << countShift; index++) {
    // Not in order, so that an index cannot be mistaken for an offset.
    const place = index ^ ((1 << countShift) - 1);
    set(controlBlock.segments + 8 * index, addOffset(SEGMENTS, place << (ringShift - countShift)));
  }
  return bytes;
}

/** The slot of a claim in what `SEGMENTS` holds. */
export function slotOf(claim: bigint, { segmentShift, countShift }: RingGeometry, segments: Uint8Array): DataView {
  const count = (1 << countShift) - 1;
  const index = (Number(claim >> BigInt(segmentShift)) & count) ^ count;
  const offset = (index << segmentShift) + (Number(claim) & ((1 << segmentShift) - 1));
  return new DataView(segments.buffer, segments.byteOffset + offset, SLOT);
}
