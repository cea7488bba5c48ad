// Trampolines inside functions, on the real processor. Nothing of a function changes wherever it is patched, flags and
// red zone included, and records have the registers that a single-step finds there.
import fc from 'fast-check';
import t from 'tap';
import { controlBlock, type InnerTrampoline, type RecordField, x86_64 } from '../../src/arch/index.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { long } from '../support/long.js';
import { disassembleBytes, type Line } from './objdump.js';
import { random, values } from './random.js';
import { type Call, type CallOutcome, type Interrupts, probeHost, type Region } from './x86_64-probe-host.js';

await x86_64.prepare();
const host = probeHost('x86_64-inner-functions.s');

const names = 'rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15'.split(' ');
const CODE = addr(0x1100_0000);
const CONTROL = addr(0x1200_0000);
const NOTES = addOffset(CONTROL, 0x800);
const NOTES_SHIFT = 3;
const SEGMENTS = addr(0x7200_0000_0000n);
const STACK: Region = { address: addr(0x7100_0000_0000n), bytes: Uint8Array.from({ length: 0x1_0000 }, random(5)) };
const SP = addOffset(STACK.address, 0xc008);
const RING_BYTES = 1 << 13;
const SLOT = 256;
const ring = { control: CONTROL, wait: CODE, slotShift: 8, segmentShift: 12, countShift: 1 };
/** From one trampoline to the next. */
const EACH = 0x800;

const functions = [...host.functions].flatMap(([name, { start, code }]) => {
  if (name === 'passive') return [];
  return [{ name, start, code, lines: disassembleBytes('x86_64', code, start) }];
});
type Target = (typeof functions)[number];

/** Instructions of a function, and which of them is probed. */
interface Window {
  readonly first: number;
  readonly last: number;
  readonly place: number;
}

/** Where a jump of the function leads. */
function targets({ lines }: Target): Set<bigint> {
  return new Set(lines.filter(({ mnemonic }) => /^j/.test(mnemonic)).map(({ operands }) => BigInt(operands)));
}

/** Every place, with none, one and, under `--long`, two instructions before it, and as few behind it as a patch needs. */
function windows(target: Target): Window[] {
  const entered = targets(target);
  const { lines } = target;
  return lines.flatMap((_, place) =>
    [place, place - 1, ...(long ? [place - 2] : [])].flatMap((first) => {
      const last = lines.findIndex((_, at) => at >= place && first >= 0 && bytesOf(lines, first, at) >= 5);
      if (first < 0 || last < 0 || lines.slice(first + 1, last + 1).some(({ address }) => entered.has(address)))
        return [];
      return [{ first, last, place }];
    }),
  );
}

function bytesOf(lines: readonly Line[], first: number, last: number): number {
  return lines.slice(first, last + 1).reduce((sum, { bytes }) => sum + bytes.length, 0);
}

type Contents = Pick<InnerTrampoline, 'fields' | 'taken' | 'noted'>;

/** A target with trampolines at places inside it; undefined if one of the windows is refused. */
function install(target: Target, list: readonly (Window & Contents)[]): Region[] | undefined {
  const regions = host.loaded.map(({ address, bytes }) => ({ address, bytes: Uint8Array.from(bytes) }));
  const code = new Uint8Array(EACH * (list.length + 1));
  code.set(probeCode.wait(CODE, ring, true).code);
  for (const [index, { first, last, place, ...contents }] of list.entries()) {
    const { lines } = target;
    const start = addr(lines[first]?.address ?? 0n);
    const bytes = Buffer.concat(lines.slice(first, last + 1).map((line) => line.bytes));
    const offset = bytesOf(lines, first, place - 1);
    const displaced = probeCode.displaceInside(bytes, start, offset, { kind: 'near', free: undefined });
    if ('refused' in displaced) return undefined;
    const at = addOffset(CODE, EACH * (index + 1));
    const notes = { at: NOTES, countShift: NOTES_SHIFT };
    const inner = probeCode.inner({ at, ring, displaced, notes, via: 'patch', ...contents });
    code.set(inner.code, EACH * (index + 1));
    regions[0]?.bytes.set(probeCode.patch(displaced, at), Number(start - (regions[0]?.address ?? 0n)));
  }
  const control = new Uint8Array(0x1000);
  const view = new DataView(control.buffer);
  view.setBigUint64(controlBlock.head, BigInt(RING_BYTES), true);
  view.setBigUint64(controlBlock.limit, BigInt(2 * RING_BYTES), true);
  view.setBigUint64(controlBlock.segments, SEGMENTS, true);
  view.setBigUint64(controlBlock.segments + 8, addOffset(SEGMENTS, RING_BYTES / 2), true);
  return [
    ...regions,
    STACK,
    { address: CODE, bytes: code },
    { address: CONTROL, bytes: control },
    { address: SEGMENTS, bytes: new Uint8Array(RING_BYTES) },
  ];
}

function calls({ start }: Target, count: number, next: () => number): Call[] {
  const value = values(next);
  // With random arithmetic flags.
  return Array.from({ length: count }, () => ({
    reset: true,
    start,
    flags: 0x202n | (BigInt(next()) & 0x8d5n),
    registers: names.map((name) => (name === 'rsp' ? SP : value())),
  }));
}

/** What no place may change: data, the red zone, and the stack of the callers. */
const kept = [
  { address: host.loaded[1].address, size: host.loaded[1].bytes.length },
  { address: addOffset(SP, -128), size: 128 },
  // The return address lies between.
  { address: addOffset(SP, 8), size: 0x1000 },
];
const watch = [...kept, { address: CONTROL, size: 0x1000 }, { address: SEGMENTS, size: RING_BYTES }];

/** All that a call leaves, but for single-step's own flag. */
function left({ registers, flags, xmm, watched }: CallOutcome): object {
  return {
    registers: registers.map((value, i) => `${names[i]} ${value.toString(16)}`),
    flags: (flags & ~0x100n).toString(16),
    xmm: xmm.map(String),
    watched: watched.slice(0, kept.length).map((bytes) => Buffer.from(bytes).toString('hex')),
  };
}

const TRAP = 0x100n;

/** The registers of each call before instruction `place`, by single-steps of the bare function: the first comes at its entry. */
function registersAt(list: readonly Call[], place: number): readonly (readonly bigint[])[] {
  const [text] = host.loaded;
  const interrupts: Interrupts = {
    ...{ from: text.address, to: addOffset(text.address, text.bytes.length) },
    ...{ handler: addr(0n), data: addr(0n), each: 1 },
  };
  const stepped = list.map((call) => ({ ...call, flags: (call.flags ?? 0n) | TRAP, interruptAt: place + 1 }));
  const { outcomes } = host.call({ watch: [], interrupts, calls: stepped }, [...host.loaded, STACK]);
  return outcomes.map(({ registers }) => registers);
}

const everyRegister: RecordField[] = names.map((name, i) => ({
  ...{ at: 8 + 8 * i, size: 8 },
  from: name === 'rsp' ? { kind: 'stack-pointer' } : { kind: 'register', name },
}));

const word = (outcome: CallOutcome | undefined, region: number, offset: number): bigint =>
  Buffer.from(outcome?.watched[region] ?? []).readBigUInt64LE(offset);
const CONTROL_BYTES = kept.length;
const RING = kept.length + 1;
const events = (outcome: CallOutcome | undefined): number =>
  (Number(word(outcome, CONTROL_BYTES, controlBlock.head)) - RING_BYTES) / SLOT;

for (const target of functions) {
  t.test(`${target.name}, patched at each place: as if it were not`, async (t) => {
    const list = calls(target, long ? 4 : 2, random(7));
    const bare = host.call({ watch: kept, calls: list }, [...host.loaded, STACK]).outcomes.map(left);
    const isStraight = targets(target).size === 0;
    let places = 0;
    for (const window of windows(target)) {
      const frame = { register: 'rsp', offset: 64 };
      const noted = [{ of: 5, frame, pointer: { register: 'rdi', offset: 16 } }];
      const regions = install(target, [{ ...window, fields: everyRegister, taken: [], noted }]);
      if (regions === undefined) continue;
      places++;
      const { outcomes } = host.call({ watch, calls: list }, regions);
      const where = `place ${window.place} of ${window.first} to ${window.last}`;
      t.strictSame(outcomes.map(left), bare, where);
      if (!isStraight) continue;
      const before = registersAt(list, window.place);
      for (const [i, outcome] of outcomes.entries()) {
        t.equal(events(outcome), 1, 'one record');
        t.equal(word(outcome, RING, 0), BigInt(RING_BYTES), 'which is committed');
        const registers = before[i] ?? [];
        t.strictSame(
          names.map((_, at) => word(outcome, RING, 8 + 8 * at)),
          registers,
          `${where}: registers`,
        );
        const pointer = BigInt.asUintN(64, (registers[7] ?? 0n) + 16n);
        const key = BigInt.asUintN(64, ((registers[4] ?? 0n) + 64n) ^ (5n << 48n) ^ pointer);
        const notes = Array.from({ length: 2 ** NOTES_SHIFT }, (_, at) =>
          [0, 8].map((offset) => word(outcome, CONTROL_BYTES, 0x800 + 16 * at + offset)),
        ).filter((entry) => entry.some((half) => half !== 0n));
        t.strictSame(notes, [[key, pointer]], `${where}: the note`);
      }
    }
    t.ok(places >= target.lines.length - 3, `${places} places`);
  });
}

t.test('what one place has noted another one takes, once, in the same frame and for the same block', async (t) => {
  const target = functions.find(({ name }) => name === 'pushes') as Target;
  const { lines } = target;
  const at = (text: RegExp): number =>
    lines.findIndex(({ mnemonic, operands }) => text.test(`${mnemonic} ${operands}`));
  const [begin, end] = [at(/^mov +rbx,rdi/), at(/^xor +rax/)];
  const all = windows(target);
  const [one, other] = [begin, end].map((place) => all.find((each) => each.place === place && each.first === place));
  if (!one || !other) throw new Error('No windows there');
  t.ok(one.last < other.first, 'two patches beside each other');
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        fc.nat(2 ** 15 - 1),
        fc.integer({ min: 1 }),
        fc.constantFrom('same', 'word', 'frame', 'block', 'none'),
        (of, seed, what) => {
          const list = calls(target, 2, random(seed));
          // Two pushes and 40 bytes: the frame is the stack pointer at the entry.
          const frame = (offset: number) => ({ register: 'rsp', offset });
          // The word on top of the stack is what rbx was.
          const place = what === 'word' ? { register: 'rsp', through: 0 } : { register: 'rbx' };
          const noted = [{ of, frame: frame(8), pointer: { ...place, offset: -24 } }];
          const taken = [{ of: what === 'block' ? of ^ 128 : of, frame: frame(what === 'frame' ? 120 : 56) }];
          const fields: RecordField[] = [{ at: 8, size: 8, from: { kind: 'kept', index: 0 } }];
          const both = [
            ...(what === 'none' ? [] : [{ ...one, fields: [], taken: [], noted }]),
            // Noted before rbx has the pointer: the window's first instruction loads it.
            { ...other, fields, taken, noted: [] },
          ];
          const { outcomes } = host.call({ watch, calls: list }, install(target, both) ?? []);
          const bare = host.call({ watch: kept, calls: list }, [...host.loaded, STACK]).outcomes;
          for (const [i, outcome] of outcomes.entries()) {
            if (JSON.stringify(left(outcome)) !== JSON.stringify(left(bare[i] as CallOutcome))) return false;
            const pointer = BigInt.asUintN(64, (list[i]?.registers[3] ?? 0n) - 24n);
            const record = word(outcome, RING, SLOT * (both.length - 1) + 8);
            if (record !== (what === 'same' || what === 'word' ? pointer : 0n)) return false;
            const isLeft = Array.from({ length: 2 ** NOTES_SHIFT }, (_, at) =>
              word(outcome, CONTROL_BYTES, 0x800 + 16 * at),
            ).some((key) => key !== 0n);
            if (isLeft !== (what === 'frame' || what === 'block')) return false;
          }
          return true;
        },
      ),
      { seed: 3, numRuns: 40, endOnFailure: true },
    ),
  );
});

t.test('an interrupt after any instruction of a trampoline', async (t) => {
  const target = functions.find(({ name }) => name === 'carries') as Target;
  const list = calls(target, 3, random(11)).map((call) => ({ ...call, flags: (call.flags ?? 0n) | TRAP }));
  const noted = [{ of: 3, frame: { register: 'rsp', offset: 8 }, pointer: { register: 'rsi', offset: 0 } }];
  const window = windows(target).find(({ place, first }) => place === 3 && first === 2) as Window;
  const regions = install(target, [{ ...window, fields: everyRegister, taken: [], noted }]) ?? [];
  const handler = host.functions.get('passive')?.start as Addr;
  const interrupts = { from: CODE, to: addOffset(CODE, 2 * EACH), handler, data: addr(0n), each: 1 };
  const bare = host.call({ watch: kept.slice(0, 1), calls: list }, [...host.loaded, STACK]).outcomes;
  const { outcomes } = host.call({ watch, interrupts, calls: list }, regions);
  for (const [i, outcome] of outcomes.entries()) {
    t.ok(outcome.interrupts > 40, `${outcome.interrupts} interrupts`);
    t.strictSame(outcome.registers, bare[i]?.registers);
    t.equal(outcome.flags & ~TRAP, (bare[i]?.flags ?? 0n) & ~TRAP);
    t.equal(events(outcome), 1);
  }
});
