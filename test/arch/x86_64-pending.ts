import { controlBlock, type RecordField, type RingGeometry, x86_64 } from '../../src/arch/index.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { type Call, type Interrupts, probeHost, type Region } from './x86_64-probe-host.js';

await x86_64.prepare();
export const host = probeHost('x86_64-pending-functions.s');

export const [ENTRY, EXIT] = [1n, 2n];
export const SLOT = 64;
const slotShift = 6;
/** Room for all that a test writes, in eight segments. */
const [segmentShift, countShift] = [13, 3];
export const CAPACITY = 1 << (segmentShift + countShift);
const CODE = addr(0x1100_0000);
const CONTROL = addr(0x1200_0000);
const RECORD = addOffset(CONTROL, 0x800);
const SCRIPTS = addr(0x1300_0000);
const SEGMENTS = addr(0x7200_0000_0000n);
const STACKS = addr(0x7100_0000_0000n);
const STACK_BYTES = 0x8000;
const SCRIPT_BYTES = 0x200;

/** What a task does: a call of `act1` to `act3` with a number and what happens in it, a turn of another task or of the one whose turn it was before, or that claims are let in. */
export type Act =
  | { readonly act: 1 | 2 | 3; readonly id: number; readonly inside: readonly Act[] }
  | { readonly to: number | 'before' }
  | 'open';

/** `act1` pends and lasts less than `below`; `act2` pends and lasts long; `act3` does not pend. */
export interface Play {
  /** The first one is the one that is called; the others begin when it is their turn. */
  readonly tasks: readonly (readonly Act[])[];
  /** What interrupts do. */
  readonly handler: readonly Act[];
  readonly below: bigint;
  /** No claim is let in before `open`. */
  readonly full?: boolean;
  /** After which instructions of the trampolines an interrupt comes, each in a run of its own; 0: never. */
  readonly at: readonly number[];
}

export interface LogEntry {
  readonly id: bigint;
  readonly kind: bigint;
  readonly time: bigint;
}

export interface Played {
  readonly all: readonly LogEntry[];
  /** Claims whose slots are not written. */
  readonly torn: readonly number[];
  readonly flags: bigint;
  readonly ended: bigint;
  readonly dropped: bigint;
  readonly interrupted: boolean;
  readonly registers: readonly bigint[];
}

const common: readonly RecordField[] = [{ at: 16, size: 8, from: { kind: 'time', counter: 'tsc' } }];
const entryFields: readonly RecordField[] = [
  { at: 8, size: 8, from: { kind: 'constant', value: ENTRY } },
  ...common,
  { at: 32, size: 8, from: { kind: 'register', name: 'rdi' } },
  { at: 40, size: 8, from: { kind: 'stack-pointer' } },
];
const exitFields: readonly RecordField[] = [
  { at: 8, size: 8, from: { kind: 'constant', value: EXIT } },
  { at: 32, size: 8, from: { kind: 'kept', index: 0 } },
  ...common,
  { at: 40, size: 8, from: { kind: 'stack-pointer' } },
];

/** What the ring of these tests is. */
export const geometry: RingGeometry = {
  control: CONTROL,
  wait: CODE,
  slotShift,
  segmentShift,
  countShift,
  pending: { record: RECORD, flush: addOffset(CODE, 0x100) },
};

interface Planted {
  readonly regions: readonly Region[];
  readonly bare: readonly Region[];
}

function plant(below: bigint): Planted {
  const code = new Uint8Array(0x1400);
  const put = (offset: number, bytes: Uint8Array, room: number): void => {
    if (bytes.length > room) throw new RangeError(`${bytes.length} bytes at ${offset}`);
    code.set(bytes, offset);
  };
  put(0, probeCode.wait(CODE, geometry, 'tsc').code, 0x100);
  put(0x100, probeCode.flush(addOffset(CODE, 0x100), geometry), 0x100);
  const [text, data] = host.loaded.map(({ address, bytes }) => ({ address, bytes: Uint8Array.from(bytes) })) as [
    Region,
    Region,
  ];
  for (const [index, name] of ['act1', 'act2', 'act3'].entries()) {
    const { start, code: own } = host.functions.get(name) ?? { start: addr(0), code: new Uint8Array() };
    const displaced = probeCode.displace(own, start, 'near');
    if ('refused' in displaced) throw new Error(displaced.refused);
    const [exitAt, entryAt] = [0x200 + 0x600 * index, 0x500 + 0x600 * index];
    const pends = index < 2;
    const [exit, at] = [addOffset(CODE, exitAt), addOffset(CODE, entryAt)];
    const plain = { ring: geometry, keep: ['rdi'] };
    const limit = pends ? { below: index === 0 ? below : 0n } : {};
    put(exitAt, probeCode.exit({ ...plain, ...limit, at: exit, fields: exitFields, nesting: false }), 0x300);
    const hook = { exit, keep: ['rdi'] };
    const none = { when: [], nesting: undefined, outerCopy: undefined, counters: [] };
    const shape = { ...none, ring: geometry, fields: entryFields, displaced, via: 'patch' as const };
    put(entryAt, probeCode.entry({ ...shape, at, hook, pends }), 0x300);
    text.bytes.set(probeCode.patch(displaced, at), Number(start - text.address));
  }
  const others = [
    { address: CODE, bytes: code },
    { address: CONTROL, bytes: control() },
    { address: SEGMENTS, bytes: new Uint8Array(CAPACITY) },
    { address: STACKS, bytes: new Uint8Array(3 * STACK_BYTES) },
  ];
  return { regions: [text, data, ...others], bare: [...host.loaded, ...others] };
}

function control(): Uint8Array {
  const bytes = new Uint8Array(0x1000);
  const set = (offset: number, value: bigint | number): void =>
    new DataView(bytes.buffer).setBigUint64(offset, BigInt(value), true);
  set(controlBlock.head, CAPACITY);
  set(controlBlock.limit, 2 * CAPACITY);
  set(controlBlock.spins, 3);
  for (let index = 0; index < 1 << countShift; index++)
    set(controlBlock.segments + 8 * index, addOffset(SEGMENTS, index << segmentShift));
  return bytes;
}

function scriptOf(acts: readonly Act[]): number[] {
  return acts.flatMap((act) => {
    if (act === 'open') return [4];
    return 'to' in act ? [8 + (act.to === 'before' ? 7 : act.to)] : [act.act, act.id, ...scriptOf(act.inside), 0];
  });
}

/** The scripts: the first task's, the handler's, and the other tasks', which go on with the first one for ever. */
function scripts({ tasks, handler }: Play): Region {
  const bytes = new Uint8Array(SCRIPT_BYTES * (tasks.length + 1));
  const [first = [], ...others] = tasks;
  for (const [index, acts] of [first, handler, ...others].entries()) {
    const script = scriptOf(acts);
    if (script.length >= SCRIPT_BYTES) throw new RangeError(`A script of ${script.length} bytes`);
    bytes.set(script, SCRIPT_BYTES * index);
    if (index > 1) bytes.fill(8, SCRIPT_BYTES * index + script.length, SCRIPT_BYTES * (index + 1));
  }
  return { address: SCRIPTS, bytes };
}

/** Plays it with its functions traced, and tells what each run left; `bare`: the registers that it leaves where nothing is traced. */
export function play(the: Play): { readonly runs: readonly Played[]; readonly bare: readonly bigint[] } {
  const { regions, bare } = plant(the.below);
  const script = scripts(the);
  const limit = addOffset(CONTROL, controlBlock.limit);
  const opens = host.symbol('opens');
  const writes = [
    { address: opens, value: limit as bigint },
    { address: addOffset(opens, 8), value: BigInt(2 * CAPACITY) },
    ...(the.full ? [{ address: limit, value: BigInt(CAPACITY) }] : []),
    ...the.tasks.slice(1).flatMap((_, index) => {
      const top = addOffset(STACKS, STACK_BYTES * (index + 2) - 0x40);
      return [
        { address: addOffset(host.symbol('tasks'), 8 * (index + 1)), value: top as bigint },
        { address: top, value: addOffset(SCRIPTS, SCRIPT_BYTES * (index + 2)) as bigint },
      ];
    }),
  ];
  const start = host.functions.get('play')?.start ?? addr(0);
  const own = Array.from({ length: 16 }, (_, number) => BigInt(number) * 0x0101_0101_0101n);
  own[4] = addOffset(STACKS, STACK_BYTES - 0x38);
  own[7] = SCRIPTS;
  // No call that is brief may last long: it is begun anew now and then.
  const goesOn = (index: number): boolean => index % 32 > 0 && (the.at[index] ?? 0) > (the.at[index - 1] || Infinity);
  const call = (at: number, index: number): Call => ({
    reset: true,
    goesOn: goesOn(index),
    start,
    writes,
    registers: own,
    ...(at > 0 && { flags: 0x302n, interruptAt: at }),
  });
  const interrupts: Interrupts = {
    from: CODE,
    to: addOffset(CODE, 0x1400),
    handler: host.functions.get('disturb')?.start ?? addr(0),
    data: addOffset(SCRIPTS, SCRIPT_BYTES),
    each: 0,
  };
  const watch = [
    { address: CONTROL, size: controlBlock.size },
    { address: SEGMENTS, size: CAPACITY >> 2 },
  ];
  const list = the.at.map(call);
  const { outcomes } = host.call({ watch, interrupts, calls: list }, [...regions, script]);
  const untraced = host.call({ watch: [], calls: [call(0, 0)] }, [...bare, script]).outcomes[0]?.registers ?? [];
  const runs = outcomes.map(({ watched, registers, interrupts: came }) => {
    const [controls, segments] = watched.map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)) as [
      DataView,
      DataView,
    ];
    const head = controls.getBigUint64(controlBlock.head, true);
    const claimed = Number(head - BigInt(CAPACITY)) >> slotShift;
    const [all, torn]: [LogEntry[], number[]] = [[], []];
    for (let number = 0; number < claimed; number++) {
      const word = (offset: number): bigint => segments.getBigUint64(SLOT * number + offset, true);
      if (word(0) !== BigInt(CAPACITY + SLOT * number)) torn.push(number);
      all.push({ id: word(32), kind: word(8), time: word(16) });
    }
    return {
      all,
      torn,
      flags: head & 3n,
      ended: controls.getBigUint64(controlBlock.ended, true),
      dropped: controls.getBigUint64(controlBlock.dropped, true),
      interrupted: came > 0,
      registers,
    };
  });
  return { runs, bare: untraced };
}

export const shown = (all: readonly { readonly id: bigint | number; readonly kind: bigint }[]): string =>
  all.map(({ id, kind }) => `${id}${kind === ENTRY ? '(' : ')'}`).join(' ');

/** One end of a call, in the order in which they happen. */
export interface Happening {
  readonly id: number;
  readonly kind: bigint;
  readonly act: 1 | 2 | 3;
}

/** What happens in a play: tasks take turns as the scripts say, and an interrupt comes when so much has happened. */
export function happenings({ tasks, handler }: Pick<Play, 'tasks' | 'handler'>, interruptAt?: number): Happening[] {
  const all: Happening[] = [];
  const happens = 'happens' as const;
  const walk = function* (acts: readonly Act[]): Generator<number | 'before' | typeof happens> {
    for (const act of acts) {
      if (act === 'open') continue;
      if ('to' in act) yield act.to;
      else {
        const { id, act: which } = act;
        all.push({ id, kind: ENTRY, act: which });
        yield happens;
        yield* walk(act.inside);
        all.push({ id, kind: EXIT, act: which });
        yield happens;
      }
    }
  };
  const running = tasks.map(walk);
  let [task, before] = [0, 0];
  let came = false;
  for (;;) {
    const rest = running[task];
    if (!came && all.length === interruptAt && rest) {
      came = true;
      running[task] = (function* () {
        yield* walk(handler);
        yield* rest;
      })();
      continue;
    }
    const turn = rest?.next();
    if (turn === undefined || turn.done) {
      if (task === 0) return all;
      [task, before] = [0, task];
    } else if (turn.value !== happens) [task, before] = [turn.value === 'before' ? before : turn.value, task];
  }
}

/**
 * Of what happens the part that is told: both ends of a brief call go where nothing is between them, but for calls that are `told` anyway. A call that pends when
 * all is over is not told of yet.
 */
export function toldOf(all: readonly Happening[], told: readonly number[] = []): Happening[] {
  return all.filter(({ id, kind, act }, index) => {
    const after = all[index + 1];
    if (told.includes(id)) return true;
    if (kind === ENTRY && act !== 3 && after === undefined) return false;
    return act !== 1 || id !== (kind === ENTRY ? after : all[index - 1])?.id;
  });
}

/**
 * All that may be told where one interrupt comes at any instruction: it comes between two of the things that happen. What begins in it is told of anyway
 * where it comes while an entry is written that is to pend, and so is a call whose entry it comes upon when that has seen that another pends.
 */
export function tellable(the: Play, begunInHandler: readonly number[]): ReadonlySet<string> {
  const count = happenings(the).length;
  const all = new Set<string>();
  for (let at = 0; at <= count; at++) {
    const happen = happenings(the, at);
    const next = happenings(the)[at];
    for (const told of [[], begunInHandler, next ? [next.id] : []]) all.add(shown(toldOf(happen, told)));
  }
  return all;
}

/** An address of none of these functions, for what is refused. */
export const elsewhere: Addr = addOffset(CODE, 0x1000);
