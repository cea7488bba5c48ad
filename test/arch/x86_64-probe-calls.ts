import { deepStrictEqual as same } from 'node:assert';
import { x86_64 } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { values } from './random.js';
import { type Call, type CallOutcome, type CallResults, type Interrupts, probeHost } from './x86_64-probe-host.js';
import { install, type Probe, SEGMENTS, SP, STACK, slotOf } from './x86_64-probe-memory.js';

await x86_64.prepare();
export const host = probeHost();

export const names = 'rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15'.split(' ');
export const words = host.symbol('words');
export const RING_SHIFT = 13;
export const RING_BYTES = 1 << RING_SHIFT;

/** What a load goes through must be an address; `words` is what all such point to, if they are not null. */
function pointers({ entry, exit, keep }: Probe): Set<string> {
  const bases = [...entry, ...(exit ?? [])].flatMap(({ from }) => (from.kind === 'load' ? [from.base] : []));
  return new Set(bases.map((base) => (base.kind === 'kept' ? (keep[base.index] ?? '') : base.name)));
}

/** Calls with what registers a function needs, and anything in the others. */
export function calls(probe: Probe, count: number, next: () => number, more: Partial<Call> = {}): Call[] {
  const value = values(next);
  const start = host.functions.get(probe.target)?.start ?? addr(0);
  const pointer = pointers(probe);
  return Array.from({ length: count }, () => ({
    reset: true,
    start,
    flags: probe.target === 'direction' ? 0x602n : 0x202n,
    ...more,
    registers: names.map((name) => {
      if (name === 'rsp') return SP;
      if (!pointer.has(name)) return value();
      return next() % 4 === 0 ? 0n : words + BigInt(next() % 3 === 0 ? next() % 9 : 8 * (next() % 2));
    }),
  }));
}

/** What must be the same as without a probe: data, and the stack from the caller's frame on. */
const [text, data] = host.loaded;
const watched = [
  { address: data.address, size: data.bytes.length },
  { address: addOffset(SP, 8), size: 0x1000 },
];

export interface Ran {
  readonly results: CallResults;
  readonly bare: readonly CallOutcome[];
  /** After a call: the control block's words, and the slot of a claim. */
  control(call: number, offset: number): bigint;
  slot(call: number, claim: number): DataView;
}

/** Makes the calls with the probe and without it, and says where they leave something else. */
export function run(probe: Probe, list: readonly Call[], interrupts?: Interrupts): Ran {
  const { regions, ring } = install(host, probe);
  const watch = [
    ...watched,
    { address: probe.control, size: 0x1000 },
    { address: SEGMENTS, size: 1 << probe.ringShift },
  ];
  const results = host.call({ watch, calls: list, ...(interrupts && { interrupts }) }, regions);
  const bare = host.call({ watch: watched, calls: list }, [...host.loaded, ...regions.slice(2)]).outcomes;
  const differences: object[] = [];
  for (const [index, outcome] of results.outcomes.entries()) {
    const [with_, without] = [outcome, bare[index] as CallOutcome].map((each) => ({
      registers: each.registers.map((value, number) => `${names[number]} ${value.toString(16)}`),
      direction: each.flags & 0x400n,
      xmm: each.xmm,
      watched: each.watched.slice(0, watched.length).map((bytes) => Buffer.from(bytes).toString('hex')),
    }));
    if (JSON.stringify(with_, hexed) !== JSON.stringify(without, hexed)) differences.push({ index, with_, without });
  }
  same(differences.slice(0, 1), [], `${probe.target} leaves what it leaves without a probe`);
  const bytes = (call: number, index: number): Uint8Array =>
    results.outcomes[call]?.watched[watched.length + index] as Uint8Array;
  return {
    results,
    bare,
    control: (call, offset) => Buffer.from(bytes(call, 0)).readBigUInt64LE(offset),
    slot: (call, claim) => slotOf(BigInt(claim), ring, bytes(call, 1)),
  };
}

export const hexed = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString(16) : value);

/** Memory as it is all through a call of the functions with loads: nothing writes where pointers point. */
export function memory(address: bigint, size: number, returnAddress: bigint): bigint {
  let value = 0n;
  for (let index = size - 1; index >= 0; index--) {
    const at = address + BigInt(index);
    const region = [text, data, STACK].find(
      (each) => at >= each.address && at < each.address + BigInt(each.bytes.length),
    );
    const inReturn = at >= SP && at < SP + 8n;
    const byte = inReturn
      ? Number((returnAddress >> (8n * (at - SP))) & 0xffn)
      : region?.bytes[Number(at - region.address)];
    value = (value << 8n) | BigInt(byte ?? 0);
  }
  return value;
}

export const inRegister = (registers: readonly bigint[], name: string): bigint =>
  registers[names.indexOf(name)] as bigint;

export const plainProbe: Probe = {
  target: 'plain',
  entry: [{ at: 8, size: 8, from: { kind: 'register', name: 'rdi' } }],
  exit: [{ at: 8, size: 8, from: { kind: 'kept', index: 0 } }],
  keep: ['rdi'],
  when: [],
  nesting: undefined,
  room: undefined,
  plan: undefined,
  counted: [],
  countShift: 1,
  ringShift: RING_SHIFT,
  code: addr(0x1100_0000),
  control: addr(0x1200_0000),
};
